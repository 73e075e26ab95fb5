//! Federations of phones that train one network together.
//!
//! - [`learning`]: what clients learn, for real, on networks small enough to train here.
//! - [`clusters`]: phones of like memory and speed, for which one plan is made.

pub mod clusters;
pub mod learning;
