//! Scenarios, the command line, sweeps and the papers' artefacts: the top layer of haversack.
//!
//! A run goes from text to numbers in four steps; each command takes those that it needs:
//!
//! ```text
//! flags, TOML ─► scenario::Scenario   the given values, each with its origin
//!                     │ resolve       defaults filled in, names looked up: device, stack, network, phone
//!                     ▼
//!               scenario::Resolved
//!                     │ run::Plan::new    the graph of an iteration, budgets in bytes
//!                     ▼
//!                 run::Plan
//!                     │ run               the executor of `haversack_training`
//!                     ▼
//!                  Record ─► run::Results ─► a command's text, JSON, Parquet or figure
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`cli`], [`output`], [`error`] | the command line, the standard streams, exit codes |
//! | [`quickstart`], [`simulate`], [`advise`], [`sensitivity`], [`sweep`], [`train`], [`federate`], [`calibrate`], [`trace_command`], [`model_command`], [`replay_command`], [`list`], [`show`], [`validate`] | a command each |
//! | [`compare`] | the differences between two results |
//! | [`show_table`] | the rows of a sweep, chosen and sorted |
//! | [`checked`] | the evidence for a device under a stack: numbers of papers, and measured sets |
//! | [`artefacts`], [`reproduce`] | the simulations of the papers' numbers, and the folder with all of them |
//! | [`papers`] | the papers' numbers with their status, readings and notes; verdicts on simulated ones |
//! | `measured_set` | measurements on real machines, and the scenarios that simulate them |
//! | [`run`] | plans, and the least budget with which one works |
//! | [`scenario`] | keys, TOML, flags, and the meaning of their values |
//! | [`trace_table`] | tables of traces in Parquet |
//! | [`source`] | the source of a specification |
//! | [`work`] | long work in parts: its folder, its log, shards, resuming |
//! | [`progress`], [`interrupt`] | progress of long work, and Ctrl-C |
//! | [`quantities`] | times and sizes as text |
//! | [`measured`] | results of training with data |
//! | `truth` | measured sets and their networks, bundled with the program |
//! | [`cache`] | values that runs share |
//!
//! A module uses those below it in this list, never one above; a test checks the imports.
//!
//! To run a simulation from a program, start at [`scenario::Scenario`] and [`run::Plan`]; `examples/drive.rs` is
//! a complete example:
//!
//! ```
//! use haversack::cache::Cache;
//! use haversack::run::Plan;
//! use haversack::scenario::Scenario;
//!
//! let scenario = Scenario { batch: 8, policy: "sage".to_owned(), ..Scenario::new("galaxy-s10", "lenet5") };
//! let record = Plan::new(&scenario, &Cache::new())?.run()?;
//! assert_eq!(record.batch, 8);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod advise;
pub mod artefacts;
pub mod cache;
pub mod calibrate;
pub mod checked;
pub mod cli;
pub mod compare;
pub mod error;
pub mod federate;
pub mod interrupt;
mod limits;
pub mod list;
pub mod measured;
mod measured_set;
pub mod model_command;
mod moment;
pub mod output;
pub mod papers;
pub mod progress;
pub mod quantities;
pub mod quickstart;
pub mod replay_command;
pub mod reproduce;
mod rows;
pub mod run;
pub mod scenario;
pub mod sensitivity;
pub mod show;
pub mod show_table;
pub mod simulate;
pub mod source;
pub mod sweep;
mod texts;
pub mod trace_command;
pub mod trace_table;
pub mod train;
mod truth;
pub mod tune;
pub mod validate;
pub mod work;

pub use cache::Cache;
pub use error::{CommandError, Result};
pub use run::Plan;
pub use scenario::{Budget, Key, Scenario};

#[cfg(test)]
#[path = "../tests/unit/fuzz.rs"]
mod fuzz;
