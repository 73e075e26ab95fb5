//! Backward: each operation's derivative, expressed in computable operations over the tensors of forward.

use haversack_devices::OperatorKind;

use super::forward::{Lowering, NORMAL_SHARE};
use crate::{Extent, Op, OperatorNode, ParameterId, Phase, Role, TensorId, Unary, ValueId, Window, WorkloadError};

impl Lowering<'_> {
    pub(super) fn backward(&mut self) -> Result<(), WorkloadError> {
        let loss = self.network.loss()?;
        self.graph.phase = Some(Phase::Backward);
        self.graph.origin = self.network.nodes.len().saturating_sub(1) as u32;
        self.graph.loss = Some(self.tensors[loss as usize]);
        self.gradients[loss as usize] = self.graph.loss;
        for (id, node) in self.network.nodes.iter().enumerate().rev() {
            if let Some(gradient) = self.gradients[node.output as usize] {
                self.graph.origin = id as u32;
                self.lower_backward(id, node, gradient);
            }
        }
        Ok(())
    }

    fn wants(&self, value: ValueId) -> bool {
        self.network.value(value).requires_grad
    }

    fn trains(&self, node: &OperatorNode, position: usize) -> Option<ParameterId> {
        node.parameters.get(position).copied().filter(|&p| self.network.parameter(p).trainable)
    }

    /// Adds `gradient` to what the consumers of `value` have given so far.
    fn give(&mut self, value: ValueId, gradient: TensorId) {
        if self.wants(value) {
            let earlier = self.gradients[value as usize];
            let total = earlier.map_or(gradient, |earlier| self.graph.symmetrical("add", &[earlier, gradient]));
            self.gradients[value as usize] = Some(total);
        }
    }

    /// Declares `tensor` the gradient of a weight; the uses of a shared weight sum theirs.
    fn weight_gradient(&mut self, weight: ParameterId, tensor: TensorId) {
        let slot = weight as usize;
        let total = match self.graph.weight_gradients[slot] {
            None => tensor,
            Some(earlier) => {
                self.graph.tensors[earlier as usize].role = Role::Gradient;
                self.graph.symmetrical("add", &[earlier, tensor])
            }
        };
        self.graph.tensors[total as usize].role = Role::ParameterGradient;
        self.graph.weight_gradients[slot] = Some(total);
    }

    fn lower_backward(&mut self, id: usize, node: &OperatorNode, dy: TensorId) {
        let input = node.inputs[0];
        let x = self.tensors[input as usize];
        let y = self.tensors[node.output as usize];
        let elements = self.elements(input);
        let dx = match node.op {
            Op::Convolution { window, groups } => return self.convolution_gradients(node, x, dy, window, groups),
            Op::TransposedConvolution { .. } | Op::Recurrent { .. } => return self.heavy_gradients(node, x, dy),
            Op::GroupNorm { .. } if node.parameters.is_empty() => {
                let statistics = [self.inner[id][0], self.inner[id][1]];
                self.unweighted_gradient(statistics, dy)
            }
            Op::Pairwise(_) => {
                for side in [node.inputs[0], node.inputs[1]] {
                    if self.wants(side) {
                        let sides = [node.inputs[0], node.inputs[1]];
                        let [a, b] = sides.map(|side| self.fitted(side, self.elements(node.output)));
                        let made = self.graph.symmetrical("pairwise_gradient", &[dy, a, b]);
                        let made = self.folded(made, side);
                        self.give(side, made);
                    }
                }
                return;
            }
            Op::Reduce { how, .. } => {
                let wide = self.graph.translate("expand", dy, elements);
                if how.saves() {
                    let result = self.graph.translate("expand", y, elements);
                    self.graph.symmetrical("reduce_gradient", &[x, result, wide])
                } else {
                    wide
                }
            }
            Op::Take(_) => self.graph.rearrange("take_gradient", &[dy], elements),
            Op::Linear => {
                self.bias_gradient(node, dy);
                if let Some(weight) = self.trains(node, 0) {
                    let made = self.product(dy, x, self.size(weight), node.flops);
                    self.weight_gradient(weight, made);
                }
                if !self.wants(input) {
                    return;
                }
                self.product(dy, self.weight(node, 0), elements, node.flops)
            }
            Op::Matmul => {
                let other = node.inputs[1];
                if self.wants(other) {
                    let made = self.product(x, dy, self.elements(other), node.flops);
                    self.give(other, made);
                }
                if !self.wants(input) {
                    return;
                }
                self.product(dy, self.tensors[other as usize], elements, node.flops)
            }
            Op::BatchNorm { .. } | Op::LayerNorm { .. } | Op::GroupNorm { .. } => {
                return self.normalise_gradients(id, node, dy);
            }
            Op::Unary { function, .. } => self.unary_gradient(function, x, y, dy),
            Op::Add | Op::Subtract => {
                for side in [node.inputs[0], node.inputs[1]] {
                    let dx = self.folded(dy, side);
                    self.give(side, dx);
                }
                return;
            }
            Op::Mul => {
                for (side, other) in [(0, 1), (1, 0)] {
                    if self.wants(node.inputs[side]) {
                        let other = self.fitted(node.inputs[other], self.elements(node.output));
                        let product = self.graph.symmetrical("mul", &[dy, other]);
                        let dx = self.folded(product, node.inputs[side]);
                        self.give(node.inputs[side], dx);
                    }
                }
                return;
            }
            Op::Concat { .. } => {
                for &part in &node.inputs {
                    if self.wants(part) {
                        let cut = self.graph.translate("slice", dy, self.elements(part));
                        self.give(part, cut);
                    }
                }
                return;
            }
            Op::MaxPool(_) => self.max_pool_gradient(id, node, dy),
            Op::AveragePool { window, .. } if self.composite => {
                let wide = self.graph.translate("expand", dy, self.elements(node.output) * window.taps());
                let share = self.graph.symmetrical("scale", &[wide]);
                self.graph.rearrange("col2im", &[share], elements)
            }
            Op::AveragePool { .. } => {
                self.graph.contract("average_pool_gradient", OperatorKind::Reduction, &[dy], elements, elements)
            }
            Op::GlobalAveragePool { .. } => {
                let wide = self.graph.translate("expand", dy, elements);
                self.graph.symmetrical("scale", &[wide])
            }
            Op::Dropout(_) => self.graph.symmetrical("mul", &[dy, self.inner[id][0]]),
            Op::Softmax => {
                let rows = self.network.shape(node.output).with_last(1).elements();
                let g = &mut self.graph;
                let weighted = g.symmetrical("mul", &[dy, y]);
                let total = g.reduce("reduce_sum", weighted, rows);
                let centred = g.with_wide("sub", dy, total);
                g.symmetrical("mul", &[centred, y])
            }
            Op::Embedding | Op::IndexTable => {
                if let Some(table) = self.trains(node, 0) {
                    let size = self.size(table);
                    let made = self.graph.opaque("scatter_add", &[x, dy], size);
                    self.weight_gradient(table, made);
                }
                return;
            }
            Op::View(_) => dy,
            Op::Slice(_) => self.graph.rearrange("place", &[dy], elements),
            Op::Copy(_) => self.copy(dy, elements),
            Op::CrossEntropy => {
                let target = self.tensors[node.inputs[1] as usize];
                let probabilities = self.graph.symmetrical("exp", &[self.inner[id][0]]);
                let labels = self.graph.opaque("one_hot", &[target], elements);
                let difference = self.graph.symmetrical("sub", &[probabilities, labels]);
                self.graph.symmetrical("scale", &[difference])
            }
        };
        self.give(input, dx);
    }

    /// The elements of a parameter.
    fn size(&self, parameter: ParameterId) -> Extent {
        Extent::fixed(self.network.parameter(parameter).elements)
    }

    /// `dy` summed over the axes that `value` was broadcast along, or `dy` itself if it was not.
    fn folded(&mut self, dy: TensorId, value: ValueId) -> TensorId {
        let elements = self.elements(value);
        if !self.wants(value) || self.graph.elements_of(dy) == elements {
            dy
        } else {
            self.graph.reduce("reduce_sum", dy, elements)
        }
    }

    fn bias_gradient(&mut self, node: &OperatorNode, dy: TensorId) {
        if let Some(bias) = self.trains(node, 1) {
            let made = self.graph.reduce("reduce_sum", dy, self.size(bias));
            self.weight_gradient(bias, made);
        }
    }

    fn convolution_gradients(&mut self, node: &OperatorNode, x: TensorId, dy: TensorId, window: Window, groups: u64) {
        self.bias_gradient(node, dy);
        let (kind, of_weight, of_input) = match groups {
            1 => (OperatorKind::Convolution, "conv_weight_gradient", "conv_input_gradient"),
            _ => (OperatorKind::DepthwiseConvolution, "depthwise_weight_gradient", "depthwise_input_gradient"),
        };
        let gathers = self.gathers(window, groups);
        let weight = node.parameters[0];
        let size = self.size(weight);
        if self.trains(node, 0).is_some() {
            // Windows are gathered again: keeping them from forward would take as many maps as there are taps.
            let x = self.gathered(node, x, window, groups);
            let made = if gathers && groups > 1 {
                // A grouped product cannot sum over the samples: it makes a gradient for each sample, and these
                // are then summed.
                let each = Extent::per_sample(size.fixed);
                let each = self.graph.contract(of_weight, kind, &[dy, x], each, node.flops);
                self.graph.reduce("reduce_sum", each, size)
            } else {
                self.graph.contract_weight(of_weight, kind, [dy, x], size, node.flops)
            };
            self.weight_gradient(weight, made);
        }
        let input = node.inputs[0];
        if self.wants(input) {
            let (operands, elements) = ([dy, self.weight(node, 0)], self.elements(input));
            let wide = if gathers { self.columns(node, window) } else { elements };
            let made = self.graph.contract(of_input, kind, &operands, wide, node.flops);
            let made = if gathers { self.graph.rearrange("col2im", &[made], elements) } else { made };
            self.give(input, made);
        }
    }

    /// The gradients of a transposed convolution or a recurrent layer, a product each.
    fn heavy_gradients(&mut self, node: &OperatorNode, x: TensorId, dy: TensorId) {
        let kind = match node.op {
            Op::TransposedConvolution { groups: 1, .. } => OperatorKind::Convolution,
            Op::TransposedConvolution { .. } => OperatorKind::DepthwiseConvolution,
            _ => OperatorKind::Gemm,
        };
        // The weights of the input and of the state share the work of a recurrent layer by their sizes.
        let all: u64 = node.parameters.iter().map(|&weight| self.size(weight).fixed).sum();
        for (place, &parameter) in node.parameters.iter().enumerate() {
            let size = self.size(parameter);
            if self.trains(node, place).is_some() {
                let flops = node.flops.times(size.fixed, all.max(1));
                let made = self.graph.contract_weight("weight_gradient", kind, [dy, x], size, flops);
                self.weight_gradient(parameter, made);
            }
        }
        let input = node.inputs[0];
        if self.wants(input) {
            let operands = [dy, self.weight(node, 0)];
            let made = self.graph.contract("input_gradient", kind, &operands, self.elements(input), node.flops);
            self.give(input, made);
        }
    }

    /// dx = weight/deviation × (dy − mean(dy) − normal × mean(dy × normal)); the sums are the weights' gradients.
    fn normalise_gradients(&mut self, id: usize, node: &OperatorNode, dy: TensorId) {
        let [normal, inverse] = [self.inner[id][0], self.inner[id][1]];
        let (groups, features) = (self.graph.elements_of(inverse), self.size(node.parameters[0]));
        let wants = self.wants(node.inputs[0]);
        // Batch normalisation sums over what its weights are shared by, frozen ones too; layer normalisation does not.
        let shared = groups == features;
        let weights = [0, 1].map(|position| self.trains(node, position));
        let needed = weights.map(|weight| weight.is_some() || (shared && wants));
        let scale_gradient = needed[0].then(|| {
            let weighted = self.graph.symmetrical("mul", &[dy, normal]);
            self.graph.reduce("reduce_sum", weighted, features)
        });
        let shift_gradient = needed[1].then(|| self.graph.reduce("reduce_sum", dy, features));
        for (weight, gradient) in weights.into_iter().zip([scale_gradient, shift_gradient]) {
            if let (Some(weight), Some(gradient)) = (weight, gradient) {
                self.weight_gradient(weight, gradient);
            }
        }
        if !wants {
            return;
        }
        let weight = self.weight(node, 0);
        let dx = if let (true, Some(shift), Some(scale)) = (shared, shift_gradient, scale_gradient) {
            let centred = self.centred(normal, dy, [shift, scale]);
            let factor = self.graph.symmetrical("mul", &[weight, inverse]);
            self.graph.with_wide("mul", centred, factor)
        } else {
            let dn = self.graph.with_wide("mul", dy, weight);
            self.unweighted_gradient([normal, inverse], dn)
        };
        self.give(node.inputs[0], dx);
    }

    /// dy less its mean, and less its mean along `normal`: the sums of both are given.
    fn centred(&mut self, normal: TensorId, dy: TensorId, sums: [TensorId; 2]) -> TensorId {
        let g = &mut self.graph;
        let elements = g.elements_of(dy);
        let [shift, scale] = sums.map(|sum| g.translate("expand", sum, elements));
        let along = g.symmetrical("mul", &[normal, scale]);
        let sum = g.symmetrical("add", &[shift, along]);
        let mean = g.symmetrical("scale", &[sum]);
        g.symmetrical("sub", &[dy, mean])
    }

    /// dx of a normalisation without weights.
    fn unweighted_gradient(&mut self, [normal, inverse]: [TensorId; 2], dy: TensorId) -> TensorId {
        let groups = self.graph.elements_of(inverse);
        let shift = self.graph.reduce("reduce_sum", dy, groups);
        let weighted = self.graph.symmetrical("mul", &[dy, normal]);
        let scale = self.graph.reduce("reduce_sum", weighted, groups);
        let centred = self.centred(normal, dy, [shift, scale]);
        self.graph.with_wide("mul", centred, inverse)
    }

    fn unary_gradient(&mut self, function: Unary, x: TensorId, y: TensorId, dy: TensorId) -> TensorId {
        let g = &mut self.graph;
        let slope = match function {
            Unary::Relu => g.symmetrical("greater", &[y]),
            Unary::Relu6 | Unary::Clip { .. } => g.symmetrical("within", &[y]),
            Unary::Tanh | Unary::Sigmoid => g.symmetrical("slope", &[y]),
            Unary::Power(_) => g.symmetrical("slope", &[x]),
            Unary::Gelu | Unary::GeluTanh => {
                // Φ(x) + x φ(x), computed from x again.
                let share = g.chain(&NORMAL_SHARE, x);
                let square = g.symmetrical("mul", &[x, x]);
                let density = g.chain(&["scale", "exp", "scale"], square);
                let along = g.symmetrical("mul", &[density, x]);
                g.symmetrical("add", &[share, along])
            }
            Unary::Silu => {
                // s (1 + x (1 − s)), with s the sigmoid of x, computed again.
                let share = g.symmetrical("sigmoid", &[x]);
                let rest = g.symmetrical("one_minus", &[share]);
                let bent = g.symmetrical("mul", &[x, rest]);
                let bent = g.symmetrical("add_constant", &[bent]);
                g.symmetrical("mul", &[share, bent])
            }
            Unary::Other(function) => g.symmetrical("slope", &[if function.saves_output() { y } else { x }]),
            Unary::Scale(_) | Unary::DivideByElement(_) | Unary::DropPath(_) => return g.symmetrical("scale", &[dy]),
            Unary::Where(_) => return g.symmetrical("mask", &[dy]),
            Unary::AddConstant(_) => return dy,
        };
        g.symmetrical("mul", &[dy, slope])
    }

    /// The gradient goes to the positions that equal the maximum of their window.
    fn max_pool_gradient(&mut self, id: usize, node: &OperatorNode, dy: TensorId) -> TensorId {
        let [x, y] = [node.inputs[0], node.output].map(|value| self.tensors[value as usize]);
        let elements = self.elements(node.inputs[0]);
        if self.composite {
            let windows = self.inner[id][0];
            let g = &mut self.graph;
            let mask = g.with_wide("equal", windows, y);
            let chosen = g.with_wide("mul", mask, dy);
            g.rearrange("col2im", &[chosen], elements)
        } else {
            self.graph.contract("max_pool_gradient", OperatorKind::Reduction, &[x, y, dy], elements, elements)
        }
    }
}
