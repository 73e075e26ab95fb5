//! The executor: one training iteration on the event engine.
//!
//! It walks a training graph node by node. Operators occupy the processor, their bytes occupy
//! DRAM, tensors occupy the store, and a policy is asked what gives way when memory is short. There
//! is one executor for every policy, so all are compared on the same machine.

mod executor;
mod job;
mod least;
mod machine;
mod packing;
pub mod phone;
mod record;
mod restore;
mod statistics;
mod store;
mod timeline;

pub use executor::{simulate, watch, with_setting};
pub use job::{AllocatorKind, Budgets, Job, Observe, RunError, Wall};
pub use least::least_memory;
pub use machine::{Machine, MachineError, Offloader, Trains};
pub use phone::{Phone, PhoneReport, PhoneSpan, ThreadStates, TrainerKill, WatchedSample};
pub use record::{Breakdown, HeatPoint, Held, PeakReport, Record};
pub use timeline::{PackingSpan, Span, SpanKind, Timeline};
