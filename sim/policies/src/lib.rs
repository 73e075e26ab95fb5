//! Memory policies: what to hold, and what gives way.
//!
//! A policy is a small struct, one a file, that answers the [`Policy`] trait's questions with typed
//! actions; [`registry`] lists them by name. The scores of the `dtr` policy
//! are those of `haversack-replay`.

pub mod actnn;
pub mod budget;
pub mod capuchin;
pub mod daf;
pub mod dtr;
pub mod elastictrainer;
pub mod engines;
pub mod entry;
pub mod error;
mod eviction;
pub mod falling;
pub mod fedhybrid;
pub mod fixed8;
pub mod gact;
pub mod importance;
pub mod mandheling;
pub mod melon;
pub mod original;
pub mod policy;
pub mod quantised;
pub mod regain;
pub mod registry;
pub mod sage;
pub mod setting;
pub mod sga;
pub mod sgc;
pub mod view;

pub use error::PolicyError;
pub use policy::{Holding, IterationPlan, IterationSummary, Policy, Relief, Schedule, Want};
pub use setting::{NodeTimes, Setting};
pub use view::{Form, MemoryView, Storage, TensorSet, TensorState};
