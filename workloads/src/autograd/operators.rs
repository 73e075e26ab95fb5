//! What is said of operators: their kind, what their backward needs of saved tensors, and the layers of their products.

use haversack_devices::work::{OperatorKind, Product, ProductRole};

use super::Differentiator;
use crate::network::OperatorNode;
use crate::operator::{Op, Unary};
use crate::training_graph::{Need, Phase, Role};

/// What the backward of `op` needs of the tensor at `place` among those that it saved.
pub(super) fn need_of(op: &Op, place: usize) -> Need {
    match (op, place) {
        (Op::Unary { function: Unary::Relu | Unary::Relu6, .. }, _) => Need::Signs,
        (Op::Dropout, _) => Need::Mask,
        (Op::MaxPool(_), 0) | (Op::AveragePool(_), _) => Need::Shape,
        (Op::MaxPool(_), _) => Need::Indices,
        // Their inputs come first, then means, deviations and weights.
        (Op::BatchNorm | Op::LayerNorm | Op::CrossEntropy, 1..) => Need::Statistics,
        (Op::Unary { function: Unary::DivideByElement | Unary::Where | Unary::DropPath, .. }, _) => Need::Statistics,
        _ => Need::Values,
    }
}

/// The rate that a processor reaches on an operation, forward and backward.
pub(super) fn kind_of(node: &OperatorNode) -> OperatorKind {
    match node.op {
        Op::Convolution { groups, .. } if groups > 1 => OperatorKind::DepthwiseConvolution,
        Op::Convolution { .. } => OperatorKind::Convolution,
        Op::Linear | Op::Matmul => OperatorKind::Gemm,
        Op::BatchNorm | Op::LayerNorm | Op::Softmax | Op::CrossEntropy | Op::AveragePool(_) | Op::GlobalAveragePool => {
            OperatorKind::Reduction
        }
        // Max-pooling keeps the place of each maximum and scatters by it: element by element, as an embedding.
        Op::MaxPool(_) | Op::Embedding | Op::IndexTable => OperatorKind::Gather,
        Op::Concat | Op::Copy | Op::View | Op::Slice => OperatorKind::Layout,
        Op::Unary { .. } | Op::Add | Op::Mul | Op::Dropout => OperatorKind::ElementWise,
    }
}

impl Differentiator<'_> {
    /// Notes of the products among the nodes from `first` on, all of `node`, how wide they are, which layer they belong
    /// to, and whether Winograd's algorithm suits them.
    pub(super) fn describe_products(&mut self, node: &OperatorNode, first: usize) {
        let shape = self.network.shape(node.output);
        let (columns, winograd) = match node.op {
            Op::Convolution { window, groups } => {
                (shape.size(1), groups == 1 && window.kernel == [3, 3] && window.stride == [1, 1])
            }
            Op::Linear | Op::Matmul => (shape.last(), false),
            _ => return,
        };
        let product = self.layer_of(node);
        let graph = &mut self.writer.graph;
        for made in &mut graph.nodes[first..] {
            if matches!(made.work.kind, OperatorKind::Convolution | OperatorKind::Gemm) {
                let of_weight = |&output: &u32| graph.tensors[output as usize].role == Role::ParameterGradient;
                let role = match made.phase {
                    Phase::Forward => ProductRole::Forward,
                    _ if made.outputs.iter().any(of_weight) => ProductRole::WeightGradient,
                    _ => ProductRole::InputGradient,
                };
                (made.work.columns, made.work.winograd) = (columns, winograd);
                made.work.product = product.map(|product| Product { role, ..product });
            }
        }
    }

    /// The layer of a dense convolution, or of a linear layer: each of its rows (tokens) is a position.
    fn layer_of(&self, node: &OperatorNode) -> Option<Product> {
        let (input, output) = (self.network.shape(node.inputs[0]), self.network.shape(node.output));
        let role = ProductRole::Forward;
        match node.op {
            Op::Convolution { window, groups: 1 } => Some(Product {
                role,
                inputs: input.size(1),
                outputs: output.size(1),
                input_size: [input.size(2), input.size(3)],
                output_size: [output.size(2), output.size(3)],
                taps: window.kernel,
            }),
            Op::Linear => {
                let size = [output.with_last(1).elements().per_sample.max(1), 1];
                let (inputs, outputs) = (input.last(), output.last());
                Some(Product { role, inputs, outputs, input_size: size, output_size: size, taps: [1, 1] })
            }
            _ => None,
        }
    }
}
