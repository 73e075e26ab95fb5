//! What the operators of a network compute.
//!
//! - [`dense`]: the arithmetic of each operator, forward and backward, on row-major slices of f32.
//! - [`meter`]: the buffers that values and scratch space live in, counted.
//!
//! Nothing here knows of devices, stores or policies.

pub mod dense;
pub mod error;
pub mod meter;

pub use error::NumericsError;
pub use meter::{Bytes, Floats, Integers, Meter};
