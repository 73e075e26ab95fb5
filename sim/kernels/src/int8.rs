//! The arithmetic of INT8 training: products of i8 matrices, rescaling to i8, and the sum of micro-batches' gradients.
//!
//! An integer tensor is `values * 2^scale`, the values i8 and the scale a number of bits, as in NITI and in
//! Mandheling (`MobiCom` '22, section 2.2). A layer multiplies two of them into i32 and shifts the result, which is too
//! wide, back to i8:
//! - [`Gemm`] multiplies. Forward, input gradient and weight gradient are one product each, of [`Matrix`] views of
//!   which one may be [`transposed`](Matrix::transposed).
//! - [`round_shift`] shifts.
//! - [`accumulate`] adds the weight gradients of micro-batches, each with its own scale (section 3.5, equation 4).
//!
//! # One right answer
//! Every function is integer arithmetic without overflow, so its result is the same, to the bit, on every instruction
//! set and for every blocking. [`rounded`] and the sums of products themselves are the definition. An instruction set
//! that the processor lacks is replaced by plain Rust. Everything runs on the calling thread.
//!
//! ```
//! use haversack_kernels::int8::{Gemm, Matrix, round_shift};
//! use haversack_kernels::Isa;
//!
//! // Two samples of three inputs, by weights to one output: 100·100 + 50·1 + 0·1 and 1·100 + 2·1 + 3·1.
//! let (x, w) = ([100, 50, 0, 1, 2, 3], [100, 1, 1]);
//! let isa = Isa::chosen()?;
//! let mut wide = [0; 2];
//! Gemm::new(isa).multiply(Matrix::new(&x, 2, 3)?, Matrix::new(&w, 3, 1)?, &mut wide)?;
//! assert_eq!(wide, [10_050, 105]);
//! // 10050 has 14 bits, 7 more than a magnitude of i8. 10050 / 128 = 78.5…, 105 / 128 = 0.8….
//! let mut y = [0; 2];
//! round_shift(&wide, 7, &mut y, isa)?;
//! assert_eq!(y, [79, 1]);
//! # Ok::<(), haversack_kernels::KernelError>(())
//! ```

mod gemm;
mod gradient;
mod matrix;
mod panels;
mod rescale;

pub use gemm::{Gemm, MOST_TERMS};
#[doc(hidden)]
pub use gemm::{STRETCH, Tile, add_products};
pub use gradient::{Partial, accumulate};
pub use matrix::Matrix;
pub use rescale::{LARGEST_SHIFT, bits, round_shift, rounded};
