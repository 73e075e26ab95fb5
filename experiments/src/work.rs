//! Long work in parts, in a folder of its own; shared by sweeps, trainings, federations and reproductions.
//!
//! ```text
//! WorkOptions ─► OutputFolder      the folder belongs to one command and one specification
//!                    │
//!                Log               rows of what is done, appended as it comes: killed at any moment, --resume goes on
//!                    │
//!                Job::run          a part of the work, many at once; none begins after Ctrl-C
//!                    ▼
//!                Job::finish       files from all rows, the same bytes however the work was cut off or shared out
//! ```
//!
//! `work_on` takes a `Job` through these steps. [`Shard`]s are parts for several machines; a merge
//! begins with `shards_of`.

mod folder;
mod job;
mod log;
mod shard;

pub use folder::{MergeOptions, OUTPUTS, OutputFolder, RECORD, WorkOptions, command_of, outputs_of};
pub(crate) use folder::{THIS_BUILD, pool};
pub(crate) use job::{Job, Steps, Whose, go_on, work_on};
pub(crate) use log::{Log, bits};
pub use shard::Shard;
pub(crate) use shard::{Identity, Part, places, shards_of};
