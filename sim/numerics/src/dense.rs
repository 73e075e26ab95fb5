//! The f32 arithmetic of operators, forward and backward.
//!
//! Tensors are row-major slices; images are batch × channels × height × width. Sizes come in a small struct or as
//! arguments, and every operand's length is checked. Gradients of *parameters* are **added** to the contents of their
//! slice, because micro-batches and shared weights accumulate; every other output is overwritten.
//!
//! The same operands give the same bits on any number of threads: work is cut into samples or blocks of fixed size, and
//! sums run over them in a fixed order.
//!
//! ```
//! use haversack_numerics::Meter;
//! use haversack_numerics::dense::convolution::Convolution;
//! use haversack_numerics::dense::unary;
//! use haversack_workloads::operator::{Unary, Window};
//!
//! // Two rows of three under a kernel that takes the difference of neighbours, then a rectifier.
//! let window = Window { kernel: [1, 2], stride: [1, 1], padding: [0, 0], dilation: [1, 1] };
//! let (edges, meter) = (Convolution::new([1, 1, 2, 3], 1, window, 1)?, Meter::default());
//! let mut output = meter.floats(edges.output_len());
//! edges.forward(&[1.0, 2.0, 4.0, 4.0, 3.0, 3.0], &[-1.0, 1.0], None, &meter, &mut output)?;
//! unary::forward(Unary::Relu, &mut output);
//! assert_eq!(output[..], [1.0, 2.0, 0.0, 0.0]);
//!
//! // Backward, the rectifier needs its output; of the input, only those positions get a gradient that were let through.
//! let (mut gradient, mut input_gradient) = (meter.floats(4), meter.floats(edges.input_len()));
//! unary::backward(Unary::Relu, &output, &[1.0; 4], &mut gradient)?;
//! edges.input_gradient(&gradient, &[-1.0, 1.0], &meter, &mut input_gradient)?;
//! assert_eq!(input_gradient[..], [-1.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
//! # Ok::<(), haversack_numerics::NumericsError>(())
//! ```

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
