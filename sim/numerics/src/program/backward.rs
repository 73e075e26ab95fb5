//! Backward: a part of an operator's derivative.

use haversack_kernels::Isa;
use haversack_workloads::{Averaging, Layout, Mask, Op, OperatorNode, TensorId, Unary};

use super::forward::{self, convolution, draw_mask, linear, matmul, mean, or_scratch, pool};
use super::look::scatter_add;
use super::{Derivative, Operands, Outputs, Part, Passes, Result, Run};
use crate::dense::batch_norm::Normalised;
use crate::dense::transcendental::exp;
use crate::dense::{elementwise, embedding, softmax, unary};
use crate::{Seen, Signs};

/// The operands of a derivative.
struct Derived<'d> {
    operands: Operands<'d>,
    node: &'d OperatorNode,
    of: &'d Derivative,
    /// The gradient of the output, row by row.
    gradient: Seen<'d>,
}

impl Run<'_> {
    pub(super) fn backward(&mut self, of: &Derivative) -> Result {
        let node = &self.program.network.nodes[of.operator as usize];
        let made = of.inputs.iter().chain(&of.weights).map(|&(_, tensor)| tensor);
        let mut written: Vec<TensorId> = made.collect();
        if written.is_empty() {
            written.push(of.result);
        }
        let samples = self.pass.samples;
        self.write(&written, |operands, outputs| {
            let gradient = of.gradient.read(operands.memory, samples)?;
            let derived = Derived { operands, node, of, gradient };
            match of.part {
                Part::Whole => derived.whole(outputs),
                Part::Weights => derived.weights(outputs),
                Part::Input => derived.input(outputs),
                Part::LogProbabilities => derived.log_probabilities(outputs),
            }
        })
    }
}

impl Derived<'_> {
    fn saved(&self, place: usize) -> Result<Seen<'_>> {
        self.operands.saved(self.node, place)
    }

    fn input_value(&self, place: usize) -> Result<Seen<'_>> {
        self.operands.value(self.node.inputs[place])
    }

    /// The gradients of the weight and the bias of a product.
    fn weights(&self, outputs: &mut Outputs) -> Result {
        let Self { operands, node, gradient, .. } = self;
        let input = self.input_value(0)?;
        let [first, second] = outputs.each();
        // A frozen weight may have a trained bias.
        let (weight, bias) = match self.of.weights[..] {
            [(1, _)] => (None, first),
            _ => (first, second),
        };
        let mut scratch = None;
        let len = operands.network().parameter(node.parameters[0]).elements as usize;
        let weight = or_scratch(weight, &mut scratch, len, operands);
        match node.op {
            Op::Convolution { window, groups } => {
                let convolution = convolution(operands, node, window, groups)?;
                convolution.weight_gradient(&input, gradient, operands.meter(), weight, bias)?;
            }
            _ => linear(operands, node).weight_gradient(&input, gradient, weight, bias)?,
        }
        Ok(())
    }

    /// The gradient of one input.
    fn input(&self, outputs: &mut Outputs) -> Result {
        let Self { operands, node, gradient, .. } = self;
        let Some(made) = outputs.floats(0) else { return Ok(()) };
        let place = self.of.inputs[0].0;
        match &node.op {
            &Op::Convolution { window, groups } => {
                let convolution = convolution(operands, node, window, groups)?;
                convolution.input_gradient(gradient, &operands.weight(node, 0)?, operands.meter(), made)?;
            }
            Op::Linear => linear(operands, node).input_gradient(gradient, &operands.weight(node, 0)?, made)?,
            Op::Matmul if place == 0 => matmul(operands, node).left_gradient(gradient, &self.input_value(1)?, made)?,
            Op::Matmul => matmul(operands, node).right_gradient(&self.input_value(0)?, gradient, made)?,
            Op::CrossEntropy => self.scores(made)?,
            // Its smaller operand was broadcast.
            Op::Add => elementwise::sum_to(gradient, made)?,
            _ => return Err(forward::refused(node, "its derivative is not computed")),
        }
        Ok(())
    }

    /// The gradient of the log-probabilities: negative at each label.
    fn log_probabilities(&self, outputs: &mut Outputs) -> Result {
        let Self { operands, node, gradient, .. } = self;
        let Some(made) = outputs.floats(0) else { return Ok(()) };
        let (rows, classes) = operands.rows(node.inputs[0]);
        let labels = operands.ids(node.inputs[1])?;
        made.fill(0.0);
        let share = gradient.first().copied().unwrap_or(1.0) / rows.max(1) as f32;
        for (row, &label) in made.chunks_exact_mut(classes.max(1)).zip(&*labels) {
            if let Some(value) = usize::try_from(label).ok().and_then(|label| row.get_mut(label)) {
                *value = -share;
            }
        }
        Ok(())
    }

    /// The gradient of the scores, from that of their log-probabilities.
    fn scores(&self, made: &mut [f32]) -> Result {
        let (_, classes) = self.operands.rows(self.node.inputs[0]);
        let log_probabilities = self.saved(0)?;
        let rows = self.gradient.chunks_exact(classes.max(1)).zip(log_probabilities.chunks_exact(classes.max(1)));
        for (made, (gradient, log)) in made.chunks_exact_mut(classes.max(1)).zip(rows) {
            let sum: f32 = gradient.iter().sum();
            for (made, (gradient, log)) in made.iter_mut().zip(gradient.iter().zip(log)) {
                *made = gradient - exp(*log) * sum;
            }
        }
        Ok(())
    }

    /// Every gradient that is needed, in one go.
    fn whole(&self, outputs: &mut Outputs) -> Result {
        let Self { operands, node, gradient, .. } = self;
        match &node.op {
            Op::BatchNorm { .. } => return self.batch_norm(outputs),
            Op::LayerNorm { .. } => return self.layer_norm(outputs),
            Op::Mul => return self.product(outputs),
            Op::Embedding => {
                let (ids, width) = (operands.ids(node.inputs[0])?, operands.rows(node.output).1);
                let Some(table) = outputs.floats(0) else { return Ok(()) };
                return Ok(embedding::backward(gradient, width, &ids, table)?);
            }
            _ => {}
        }
        let Some(made) = outputs.floats(0) else { return Ok(()) };
        match &node.op {
            Op::Unary { function, .. } => self.unary(*function, made)?,
            Op::MaxPool(window) => {
                let indices = operands.memory.integers(node.saved[1])?;
                pool(operands, node, *window, None)?.maximum_gradient(gradient, &indices, made)?;
            }
            &Op::AveragePool { window, averaging } => {
                let pool = pool(operands, node, window, Some(averaging))?;
                pool.average_gradient(gradient, averaging == Averaging::Padded, made)?;
            }
            Op::GlobalAveragePool { axes } => mean(operands, node, axes).backward(gradient, made)?,
            Op::Softmax => softmax::backward(&self.saved(0)?, gradient, operands.rows(node.output).1, made)?,
            Op::Dropout(probability) => self.dropout(*probability, made)?,
            Op::Slice(part) => {
                made.fill(0.0);
                let whole = Layout::row_major(operands.network().shape(node.inputs[0]));
                let seen = whole.map(|whole| whole.part(part, operands.network().shape(node.output)));
                if let Some(seen) = seen {
                    scatter_add(&seen, gradient, made, operands.pass.samples)?;
                }
            }
            _ => return Err(forward::refused(node, "its derivative is not computed")),
        }
        Ok(())
    }

    fn unary(&self, function: Unary, made: &mut [f32]) -> Result {
        let gradient = &*self.gradient;
        if function == Unary::Where(Mask::Causal) {
            made.copy_from_slice(gradient);
            let width = self.operands.rows(self.node.output).1.max(1);
            made.chunks_exact_mut(width).enumerate().for_each(|(row, values)| values[row % width + 1..].fill(0.0));
            return Ok(());
        }
        if unary::saved(function) == unary::Saved::Nothing {
            return Ok(unary::backward(function, &[], gradient, made)?);
        }
        // An in-place ReLU6 saves a copy of its input.
        let saved = self.node.saved[0];
        let gates = self.operands.program.passes(saved) != Passes::Positive || function == Unary::Relu;
        if let (true, Signs::Bits(bits)) = (gates, self.operands.memory.signs(saved)?) {
            made.copy_from_slice(gradient);
            let isa = Isa::chosen().map_err(crate::error::NumericsError::from)?;
            return Ok(unary::gate(&bits, isa, made)?);
        }
        let held = self.as_gradient(saved)?;
        Ok(unary::backward(function, &held, gradient, made)?)
    }

    /// The saved tensor, row by row as the gradient is.
    fn as_gradient(&self, saved: TensorId) -> Result<Seen<'_>> {
        let network = self.operands.network();
        let values = [self.node.output, self.node.inputs[0]];
        let value = values.into_iter().find(|&value| network.value(value).storage == saved);
        value.map_or_else(|| self.operands.memory.floats(saved), |value| self.operands.value(value))
    }

    fn dropout(&self, probability: f32, made: &mut [f32]) -> Result {
        let Self { operands, node, gradient, of, .. } = self;
        if let Some(Ok(mask)) = node.saved.first().map(|&mask| operands.memory.signs(mask)) {
            match mask {
                Signs::Values(mask) => return Ok(elementwise::multiply(gradient, &mask, made)?),
                Signs::Bits(bits) => {
                    made.iter_mut()
                        .zip(&**gradient)
                        .for_each(|(made, gradient)| *made = gradient / (1.0 - probability));
                    let isa = Isa::chosen().map_err(crate::error::NumericsError::from)?;
                    return Ok(unary::gate(&bits, isa, made)?);
                }
            }
        }
        // The mask is not saved: it is drawn again.
        let mut mask = operands.meter().floats(made.len());
        draw_mask(operands, probability, of.operator, &mut mask);
        Ok(elementwise::multiply(gradient, &mask, made)?)
    }

    fn product(&self, outputs: &mut Outputs) -> Result {
        for (output, &(place, _)) in self.of.inputs.iter().enumerate() {
            let other = self.input_value(1 - place)?;
            let Some(made) = outputs.floats(output) else { continue };
            if made.len() < self.gradient.len() {
                elementwise::right_factor_gradient(&other, &self.gradient, made)?;
            } else {
                elementwise::multiply(&self.gradient, &other, made)?;
            }
        }
        Ok(())
    }

    fn batch_norm(&self, outputs: &mut Outputs) -> Result {
        let Self { operands, node, gradient, .. } = self;
        let norm = forward::batch_norm(operands, node);
        let (input, weight) = (self.input_value(0)?, operands.weight(node, 0)?);
        let (mean, inverse) = (self.saved(3)?, self.saved(4)?);
        let of = Normalised { input: &input, mean: &mean, inverse: &inverse };
        let sums = norm.gradient_sums(of, gradient)?;
        let (made, [of_weight, of_bias]) = self.placed(outputs);
        if let Some(made) = made {
            norm.input_gradient(of, gradient, &weight, &sums, made)?;
        }
        let (mut first, mut second) = (None, None);
        let of_weight = or_scratch(of_weight, &mut first, norm.channels, operands);
        let of_bias = or_scratch(of_bias, &mut second, norm.channels, operands);
        Ok(norm.add_parameter_gradients(&sums, of_weight, of_bias)?)
    }

    fn layer_norm(&self, outputs: &mut Outputs) -> Result {
        let Self { operands, node, gradient, .. } = self;
        let norm = forward::layer_norm(operands, node);
        let width = norm.width;
        let (input, weight) = (self.input_value(0)?, operands.weight(node, 0)?);
        let (mean, inverse) = (self.saved(1)?, self.saved(2)?);
        let of = Normalised { input: &input, mean: &mean, inverse: &inverse };
        let (made, [of_weight, of_bias]) = self.placed(outputs);
        if let Some(made) = made {
            norm.input_gradient(of, gradient, &weight, made)?;
        }
        if of_weight.is_none() && of_bias.is_none() {
            return Ok(());
        }
        let (mut first, mut second) = (None, None);
        let of_weight = or_scratch(of_weight, &mut first, width, operands);
        let of_bias = or_scratch(of_bias, &mut second, width, operands);
        Ok(norm.parameter_gradients(of, gradient, of_weight, of_bias)?)
    }

    /// The gradient of the input, and those of the weight and the bias, of a normalisation; `None` for
    /// each that is not computed.
    fn placed<'o>(&self, outputs: &'o mut Outputs) -> (Option<&'o mut [f32]>, [Option<&'o mut [f32]>; 2]) {
        let mut made: [Option<&mut [f32]>; 3] = outputs.each();
        let inputs = self.of.inputs.len();
        let input = if inputs > 0 { made[0].take() } else { None };
        let mut weights = [None, None];
        for (output, &(place, _)) in self.of.weights.iter().enumerate() {
            if let (Some(slot), Some(values)) = (weights.get_mut(place), made.get_mut(inputs + output)) {
                *slot = values.take();
            }
        }
        (input, weights)
    }
}
