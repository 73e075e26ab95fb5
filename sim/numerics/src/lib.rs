//! What the operators of a network compute.
//!
//! - [`dense`]: the arithmetic of each operator, forward and backward, on row-major slices of f32.
//! - [`eight`]: tensors of eight-bit values, and products of them that nobody dequantises.
//! - [`meter`]: the buffers that values and scratch space live in, counted.
//! - [`program`]: what each node of a training graph computes; [`memory`] is where its operands lie, which is the walker's
//!   matter.
//! - [`batch`], [`state`], [`optimiser`]: what training reads, carries on and is updated by.
//! - [`plain`]: a loop that keeps every tensor, for evaluation and as what the executor is held against.
//!
//! Nothing here knows of devices, stores or policies.

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
