//! Federations of phones that train one network together.
//!
//! - [`population`]: the phones, drawn from a seed; [`availability`] is when they can be asked.
//! - [`draw`]: the numbers of a phone, each for a purpose.
//! - [`clusters`]: phones of like memory and speed, for which one plan is made.
//! - [`selection`]: who takes part in a round.
//! - [`work`]: what a phone is to do, and [`round`]: what becomes of it.
//! - [`federation`]: rounds, one after the other; [`rows`] are what they yield.
//! - [`learning`]: what clients learn, for real, on networks small enough to train here.

pub mod availability;
pub mod clusters;
pub mod draw;
pub mod federation;
pub mod learning;
pub mod population;
pub mod quantiles;
pub mod round;
pub mod rows;
pub mod selection;
pub mod work;
