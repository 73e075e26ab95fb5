//! Federations of phones that train one network together.
//!
//! - [`population`]: the phones, drawn from a seed; [`availability`]: when they can take part.
//! - [`draw`]: the numbers of a phone, each for a purpose.
//! - [`clusters`]: phones of similar memory and speed, which share a plan.
//! - [`selection`]: who takes part in a round.
//! - [`work`]: the work of a phone in a round; [`round`]: its outcome.
//! - [`federation`]: rounds, one after the other; [`rows`]: their results.
//! - [`learning`]: real training of clients, on networks small enough to train here.

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
