//! The arithmetic of a network's operators.
//!
//! - [`dense`]: the arithmetic of each operator, forward and backward, on row-major slices of f32.
//! - [`eight`]: tensors of eight-bit values, and products of them without dequantisation.
//! - [`meter`]: counted buffers for values and scratch space.
//! - [`program`]: computes each node of a training graph, whose operands the walker of the graph
//!   provides through [`memory`].
//! - [`batch`], [`state`], [`optimiser`]: the data that training reads, the state that it carries on, and
//!   the rule that updates it.
//! - [`plain`]: a loop that keeps every tensor, for evaluation and as the reference of the executor.
//!
//! This crate has no devices, stores or policies.

pub mod batch;
pub mod dense;
pub mod eight;
pub mod error;
pub mod memory;
pub mod meter;
pub mod optimiser;
pub mod plain;
pub mod program;
pub mod state;

pub use batch::MiniBatch;
pub use eight::Eight;
pub use error::{NumericsError, ProgramError};
pub use memory::{Contents, Memory, Seen, SeenIntegers, Signs};
pub use meter::{Bytes, Codes, Floats, Integers, Meter};
pub use optimiser::Rule;
pub use plain::Plain;
pub use program::{Loss, Map, Pass, Passes, Program, Statistics};
pub use state::State;
