//! Memory policies: how to hold saved tensors, and which give way when memory is short.
//!
//! A policy is a small struct, one per file, that answers the six questions of the [`Policy`] trait with typed actions.
//! It never touches bytes or clocks: the executor (`haversack-training`) carries the answers out and charges for them.
//!
//! ```text
//! policies.toml ── registry: a line for each ──► a policy's file: parameters · answers
//!                                      │
//!     prepare(Setting) ──► Schedule    │   once: the graph, the micro-batch, how tensors are quantised, what plans ahead
//!     begin_iteration(IterationPlan)   │   each iteration: the first micro-batch, the scales that are kept
//!     hold(tensor, MemoryView)         │   a tensor was made that backward reads: kept, packed, dropped …?
//!     relieve(Want, MemoryView)        │   memory is short: what gives way?
//!     end_iteration(IterationSummary)  │   what was measured
//!     learned() ──► Learned            ▼   what it has learned of the data, for a run that goes on
//! ```
//!
//! Shared by several policies: [`entry`] (a policy's listing and parameters), [`ranking`] (the tensor that goes first,
//! without scoring all of them each time), [`restore`] (the cost of getting a tensor back), [`quantised`] (the size of
//! a tensor with fewer bits), [`importance`] (its importance without data), [`budget`] (rules for the memory budget on
//! a phone in use), [`plan`] (a run's decisions, to be repeated). The scores of `dtr` are those of `haversack-replay`.
//!
//! ```
//! use haversack_policies::{Holding, MemoryView, Policy, PolicyError, registry};
//! use haversack_workloads::TensorId;
//!
//! /// Everything that backward reads is computed again.
//! struct KeepNothing;
//!
//! impl Policy for KeepNothing {
//!     fn hold(&mut self, _tensor: TensorId, _memory: &MemoryView<'_>) -> Result<Holding, PolicyError> {
//!         Ok(Holding::Rematerialise)
//!     }
//! }
//!
//! let policies: Vec<Box<dyn Policy>> = vec![registry::build("sage", &[])?, Box::new(KeepNothing)];
//! assert_eq!(registry::find("sage")?.citation, "Gim and Ko, MobiSys 2022, section 3.4, algorithm 1");
//! # assert_eq!(policies.len(), 2);
//! # Ok::<(), PolicyError>(())
//! ```
//!
//! `examples/my_policy.rs` is a complete new policy with a run under it. To have it listed, give it an [`Entry`] in
//! `policies.toml` and [`registry`] a line.

pub mod actnn;
pub mod budget;
pub mod capuchin;
pub mod daf;
pub mod dtr;
pub mod elastictrainer;
pub mod entry;
pub mod error;
pub mod fedhybrid;
pub mod fixed8;
pub mod gact;
pub mod importance;
pub mod mandheling;
pub mod melon;
pub mod mincut;
pub mod original;
pub mod plan;
pub mod planning;
pub mod policy;
pub mod quantised;
pub mod ranking;
pub mod register;
pub mod registry;
pub mod restore;
pub mod sage;
pub mod sga;
pub mod sgc;
pub mod view;

pub use budget::{BudgetRule, SwapKind};
pub use entry::{Engine, EngineProcessor, Entry};
pub use error::PolicyError;
pub use importance::Metric;
pub use plan::{Plan, Planned, Recorder};
pub use planning::{Operations, Planner, Planning, Room};
pub use policy::setting;
pub use policy::setting::{Compression, DspProfile, Learned, NodeTimes, RestoreProfile, Setting, Swapping};
pub use policy::{
    BatchStatistics, ComputingBudget, Holding, IterationPlan, IterationSummary, Offload, Oracle, PlanAhead, Policy,
    Relief, Schedule, Tried, Want,
};
pub use quantised::{ArenaPlan, Control, ElementBytes, Packing, Quantisation, Quantised, Rounding, StoredParts, WHOLE};
pub use ranking::{Ranking, Scored};
pub use register::Register;
pub use registry::POLICIES;
pub use view::{Form, MemoryView, Storage, TensorSet, TensorState};
