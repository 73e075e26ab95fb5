//! The kernels that the policies really run: reductions, quantisation and packing of f32 tensors, and the integer
//! arithmetic of INT8 training.
//!
//! Each exists as a scalar definition, as SIMD chosen at run time, and as a program for a small SIMT
//! machine ([`simt`]) whose counts a device turns into time. All three give the same numbers. What a
//! tensor is, and when a kernel runs, is decided on higher floors.

pub mod compress;
pub mod convert;
pub mod error;
pub mod int8;
pub mod isa;
pub mod quantise;
pub mod reduce;

pub use error::KernelError;
pub use isa::Isa;
