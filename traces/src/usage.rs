//! The usage model: when people look at their phones, at which apps, and which stay alive behind them.
//!
//! - [`UsageModel`]: its numbers, each with unit, source and kind (`usage.toml`).
//! - [`Population`]: synthetic users as rows.
//! - [`AppTimeline`]: one user's events within a window, generated or from imported rows; sparse samples are
//!   interpolated.
//! - [`holdings()`]: what each app of a timeline holds of memory, by the table of [`crate::footprint`]; [`demand()`]: all
//!   of them together, second by second.
//! - [`sessions`]: statistics of sessions, of generated and imported rows alike.
//!
//! # Between samples
//!
//! Carat and Tsinghua say what ran, or moved bytes, at moments one to two hours apart, and nothing of what happened
//! between. The model assumes: the user has the habits of the synthetic user of the same name and seed; a session
//! within `interpolation.horizon` after a sample shows the apps of that sample, those seen in front `foreground_weight`
//! times as likely as cached ones; services belong to the system; further from a sample nothing happens, so that a gap
//! stays one. Every such event is [`crate::row::Confidence::Assumed`]. Days begin at midnight by the clock of the user, where the time zone is known, or UTC's.
//!
//! # What the model leaves out
//!
//! Weekends, charging and the network; apps that are installed or removed; multi-window; deaths that memory pressure
//! causes: the number of apps that stay alive is the user's, and a simulation of memory may end some earlier.

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
