//! The kernels that policies run on a CPU: reductions, quantisation and packing of f32 tensors, compression within an
//! error bound, and the integer arithmetic of INT8 training.
//!
//! ```text
//! f32 tensor ── reduce ──▶ minimum, maximum, sum of squares ──▶ a scale and an importance
//!     │
//!     ├── quantise ──▶ 1 to 8 bits an element, in words that a page store keeps ──▶ f32 again, within half a step
//!     ├── compress ──▶ channels quantised or predicted, Huffman-coded ──▶ f32 again, within the bound
//!     └── int8 ──────▶ i8 products, rescaled to i8, gradients of micro-batches added
//! ```
//!
//! - [`reduce`], [`quantise`], [`compress`], and [`int8`] are the kernels.
//! - [`Isa`] chooses the instructions: the best that the processor has, or the set that `HAVERSACK_SIMD` names. Only
//!   the module `simd` uses intrinsics: it defines sixteen lanes once for each instruction set. Every kernel is
//!   written once on top of it and gives the same bits under each set, except for sums, whose order of additions
//!   depends on the instruction set.
//!
//! The crates above this one define tensors and decide when a kernel runs. Versions for GPUs are in `haversack-gpu`;
//! the benchmark, which compares the kernels with the limits of the processor, is `benches/kernels`.
//!
//! ```
//! use haversack_kernels::quantise::{Bits, Format, Grouping, Layout, Packed, Rounding};
//! use haversack_kernels::{Isa, reduce};
//!
//! let values: Vec<f32> = (0..1000).map(|i| (i as f32 * 0.01).sin()).collect();
//! let isa = Isa::chosen()?;
//! let range = reduce::maximum(&values, isa) - reduce::minimum(&values, isa);
//! // Four bits are sixteen codes, fifteen steps apart: no value comes back further away than half a step.
//! let format = Format::new(Bits::new(4)?, Grouping::Tensor, Layout::Interleaved);
//! let packed = Packed::quantise(&values, format, Rounding::NearestEven, isa)?;
//! let back = packed.dequantise(isa);
//! assert!(values.iter().zip(&back).all(|(x, y)| (x - y).abs() <= range / 15.0 / 2.0 * 1.001));
//! // What a page store keeps is as long as the format says, not a byte more.
//! assert_eq!(packed.bytes(), format.bytes(1000));
//! # Ok::<(), haversack_kernels::KernelError>(())
//! ```

pub mod compress;
pub mod error;
pub mod int8;
pub mod isa;
pub mod quantise;
pub mod reduce;
#[doc(hidden)]
pub mod simd;

pub use error::KernelError;
pub use int8::{Gemm, LARGEST_SHIFT, Matrix, Partial};
pub use isa::Isa;
pub use quantise::{Bits, Format, GROUP, Grouping, Layout, Rounding};
pub use reduce::Statistic;
