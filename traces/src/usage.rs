//! The usage model: when people look at their phones, at which apps, and which apps stay alive in the background.
//!
//! - [`UsageModel`]: its numbers, each with unit, source and kind (`usage.toml`).
//! - [`Population`]: synthetic users as rows.
//! - [`AppTimeline`]: one user's events within a window, generated or from imported rows; sparse samples are
//!   interpolated.
//! - [`holdings()`]: the memory of each app of a timeline, by the table of [`crate::footprint`]; [`demand()`]: the
//!   memory of all of them together, second by second.
//! - [`sessions`]: statistics of sessions, of both generated and imported rows.
//!
//! # Between samples
//!
//! Carat and Tsinghua report which apps ran, or moved bytes, at moments one to two hours apart, and nothing in between.
//! The model assumes: the user has the habits of the synthetic user of the same name and seed; a session within
//! `interpolation.horizon` after a sample shows the apps of that sample, where those seen in front are
//! `foreground_weight` times as likely as cached ones; services belong to the system; further from a sample nothing
//! happens, so that a gap remains a gap. Every such event is [`crate::row::Confidence::Assumed`]. Days begin at
//! midnight by the clock of the user if the time zone is known, otherwise by UTC.
//!
//! # Limits
//!
//! The model leaves out weekends, charging and the network; apps that are installed or removed; multi-window;
//! deaths from memory pressure: the number of apps that stay alive is the user's, and a simulation of memory may
//! end some earlier.

mod alive;
mod generate;
mod holdings;
mod model;
mod session;
mod statistics;
mod timeline;

pub use crate::data::{DataError, Weights};
pub use alive::{AliveApp, AppEvent, AppEventKind, AppId};
pub use generate::Population;
pub use holdings::{Demand, DemandSeries, Held, Holding, demand, footprints, holdings};
pub use model::{Apps, Carat, CatalogueApp, Day, Interpolation, Launcher, Sessions, UsageModel};
pub use session::{Session, SessionStream, User};
pub use statistics::{SessionReader, SessionStatistics, UserSessions, sessions};
pub use timeline::{AppTimeline, Window, is_sampled, seems_opened};
