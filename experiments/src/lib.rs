//! Scenarios, the command line, sweeps and the papers' artefacts: the top floor of haversack.
//!
//! A program that wants a run without a command line starts at [`scenario::Scenario`] and [`run::Plan`]:
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

pub mod artefacts;
pub mod cache;
pub mod calibrate;
pub mod cli;
pub mod error;
pub mod kernels_command;
pub mod list;
pub mod model_command;
pub mod names;
pub mod output;
pub mod replay_command;
pub mod reproduce;
pub mod run;
pub mod scenario;
pub mod simulate;
pub mod sweep;
pub mod trace_command;

pub use error::CommandError;
