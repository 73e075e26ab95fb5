//! The executor: training iterations on the event engine.
//!
//! [`simulate`] walks a training graph node by node. Operators occupy a processor, their bytes occupy DRAM, tensors
//! occupy memory, and a [policy](haversack_policies::Policy) decides how to hold saved tensors and which give way when
//! memory is short. There is one executor for every policy, so all are compared on the same machine.
//!
//! Modules and their responsibilities:
//!
//! | module | owns |
//! |---|---|
//! | `run` | a run's iterations, the governors of heat and of load (`governors`), and the initial information for a
//! policy (`setting`) |
//! | `executor` | the process: a micro-batch (`walk`), its inputs (`gather`), putting away (`hold`), bringing back
//! (`restore`), `pressure`, `paging` on a phone |
//! | `clock` | time: events, DRAM, phases, the breakdown, energy, the timeline. No other module charges any |
//! | `tensors` | every tensor's form, its memory, and the budgets |
//! | `lanes` | work in parallel with the schedule: cores that pack, flash, the DSP |
//! | [`phone`] | a phone in use: its kernel's memory, apps, kills, the rule for the budget |
//! | `lesson`, `importance` | the data and state of a run that learns, and its measurements |
//! | `machine`, `costs` | a device under a software stack, and all costs in a run |
//!
//! One saved tensor, from its producer to its use in backward:
//!
//! ```text
//! walk: the producer runs ─→ hold: last use in forward ─→ policy: Keep | Quantise | Compress | Swap | Rematerialise | Skip
//!                                     │
//!                     lanes pack or write it while time goes on (clock)
//!                                     │
//!       tensors: Whole → InFlight → Stored, or Dropped, or Absent
//!                                     │
//! gather: backward reads it ─→ restore: decompress, unpack or read ─→ walk: the reader runs, the tensor leaves memory
//!                         └─→ recompute: the producer runs again
//! ```
//!
//! ```
//! use haversack_devices::{Frequency, load, load_stack};
//! use haversack_policies::original::Original;
//! use haversack_training::{Job, Machine, Trains, simulate};
//! use haversack_workloads::autograd::Optimiser;
//! use haversack_workloads::lowering::{Gradients, Variant, lower};
//! use haversack_workloads::models;
//!
//! let (device, stack) = (load("galaxy-s10")?, load_stack("sage-opencl")?);
//! let machine = Machine::new(device, stack, Trains::Either, None, Frequency::default())?;
//! let graph = lower(&models::build("lenet5", None)?, Variant::Reduced, Optimiser::Sgd, Gradients::Kept)?;
//!
//! let record = simulate(&machine, &Job::plain(&graph, 32), &mut Original)?;
//! assert_eq!(record.micro_batches, [32]);
//! assert_eq!(record.breakdown.total(), record.iteration);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
mod costs;
mod error;
mod executor;
mod governors;
mod importance;
mod job;
mod lanes;
mod least_time;
mod lesson;
mod machine;
pub mod phone;
mod record;
mod run;
mod setting;
mod tensors;
mod timeline;

pub use error::RunError;
pub use haversack_devices::AllocatorKind;
pub use job::{Budgets, Job, Observe, Wall};
pub use least_time::{Allowed, least_room, least_time};
pub use lesson::Lesson;
pub use machine::packing::{BOUND as CODEC_BOUND, ratio_of as codec_ratio_of};
pub use machine::{Machine, MachineError, Trains};
pub use phone::{AtRest, Phone, WatchedSample, watch};
pub use record::{
    BoundBy, Breakdown, Fidelity, FidelityClass, HeatPoint, Held, OperatorTime, PeakReport, PhoneReport, PhoneSpan,
    PlanReport, Record, Stalls, StoredForms, ThreadStates, ThreadTime, TrainerKill,
};
pub use run::{Tries, least_memory, least_that_works, simulate, train, with_setting};
pub use tensors::{GivesBack, StoreError};
pub use timeline::{Happening, PackingSpan, PhoneEvent, PhoneSample, PhoneTrack, Pressure, Span, SpanKind, Timeline};
