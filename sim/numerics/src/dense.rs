//! The f32 arithmetic of operators, forward and backward.
//!
//! Tensors are row-major slices; images are batch × channels × height × width. Sizes come in a small struct or as
//! arguments, and every operand's length is checked. Gradients of *parameters* are **added** to what their slice holds,
//! because micro-batches and shared weights accumulate; every other output is overwritten.
//!
//! The same operands give the same bits on any number of threads: work is cut into samples or blocks of fixed size, and
//! sums run over them in a fixed order.

pub mod batch_norm;
pub mod concatenate;
pub mod convolution;
pub mod dropout;
pub mod elementwise;
pub mod embedding;
mod gemm;
pub mod layer_norm;
pub mod linear;
pub mod loss;
pub mod matmul;
pub mod mean;
pub mod optimiser;
mod parallel;
pub mod pool;
pub mod softmax;
pub mod strided;
mod sums;
pub mod transcendental;
pub mod unary;
