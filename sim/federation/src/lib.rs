//! Federations of phones that train one network together.
//!
//! - [`population`]: the phones, drawn from a seed; [`availability`] is when they can be asked.
//! - [`clusters`]: phones of like memory and speed, for which one plan is made.
//! - [`selection`]: who takes part in a round.
//! - [`learning`]: what clients learn, for real, on networks small enough to train here.

pub mod availability;
pub mod clusters;
mod draw;
pub mod learning;
pub mod population;
pub mod quantiles;
pub mod selection;
