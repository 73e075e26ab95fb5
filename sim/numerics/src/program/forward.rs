//! Forward: an operator of the network.

use haversack_workloads::{
    Averaging, Copying, EPSILON, Layout, MOMENTUM, Mask, Network, Op, OperatorNode, Unary, ValueId, Window,
};

use super::look::gather;
use super::{Loss, Operands, Outputs, Result, Run, Statistics};
use crate::dense::batch_norm::{Affine, BatchNorm};
use crate::dense::concatenate::concatenate;
use crate::dense::convolution::Convolution;
use crate::dense::layer_norm::LayerNorm;
use crate::dense::linear::Linear;
use crate::dense::matmul::Matmul;
use crate::dense::mean::Mean;
use crate::dense::pool::Pool;
use crate::dense::{dropout, elementwise, embedding, loss, softmax, unary};
use crate::{ProgramError, eight};

/// Fails for an operator that has no arithmetic here although the network's description is complete.
pub(super) fn check(network: &Network, node: &OperatorNode) -> Result {
    let reason = match &node.op {
        Op::Unary { function: Unary::DropPath(_), .. } | Op::Copy(Copying::Pad | Copying::Roll(_)) | Op::IndexTable => {
            "it is not computed yet"
        }
        Op::GlobalAveragePool { axes } if !axes.is_sorted_by(|a, b| a + 1 == *b) => "its axes are not side by side",
        Op::Add | Op::Mul if !broadcasts(network, node) => "only a trailing part of the shape is broadcast",
        _ => return Ok(()),
    };
    Err(refused(node, reason))
}

/// An operator that is not computed.
pub(super) fn refused(node: &OperatorNode, reason: &str) -> ProgramError {
    ProgramError::Refused(format!("{}: {} cannot be computed: {reason}", node.module, node.op.name()))
}

/// Whether the smaller operand, if there is one, is the trailing part of the other.
fn broadcasts(network: &Network, node: &OperatorNode) -> bool {
    let [a, b] = [0, 1].map(|place| network.shape(node.inputs[place]));
    let (large, small) = if a.elements().at(1) >= b.elements().at(1) { (a, b) } else { (b, a) };
    let small: Vec<_> = small.0.iter().skip_while(|dim| dim.size == 1 && !dim.batched).collect();
    a.elements() == b.elements() || large.0.iter().rev().zip(small.iter().rev()).all(|(large, &small)| large == small)
}

/// The convolution of an operator.
pub(super) fn convolution(
    operands: &Operands<'_>,
    node: &OperatorNode,
    window: Window,
    groups: u64,
) -> Result<Convolution> {
    let input = [0, 1, 2, 3].map(|axis| operands.size(node.inputs[0], axis));
    Ok(Convolution::new(input, operands.size(node.output, 1), window, groups as usize)?)
}

/// The linear layer of an operator.
pub(super) fn linear(operands: &Operands<'_>, node: &OperatorNode) -> Linear {
    let (rows, inputs) = operands.rows(node.inputs[0]);
    Linear { rows, inputs, outputs: operands.rows(node.output).1 }
}

/// The batched product of an operator.
pub(super) fn matmul(operands: &Operands<'_>, node: &OperatorNode) -> Matmul {
    let rank = operands.network().shape(node.output).rank();
    let [m, n] = [rank - 2, rank - 1].map(|axis| operands.size(node.output, axis));
    let k = operands.rows(node.inputs[0]).1;
    Matmul { batch: operands.elements(node.output) / (m * n).max(1), m, k, n }
}

/// The pooling of an operator.
pub(super) fn pool(
    operands: &Operands<'_>,
    node: &OperatorNode,
    window: Window,
    averaging: Option<Averaging>,
) -> Result<Pool> {
    let plane = |value: ValueId| [2, 3].map(|axis| operands.size(value, axis));
    let (input, output) = (plane(node.inputs[0]), plane(node.output));
    let planes = operands.size(node.output, 0) * operands.size(node.output, 1);
    if averaging == Some(Averaging::Adaptive) {
        return Ok(Pool::adaptive(planes, input, output));
    }
    let down = Pool::new(planes, input, window, false)?;
    Ok(if down.output == output { down } else { Pool::new(planes, input, window, true)? })
}

/// The batch normalisation of an operator.
pub(super) fn batch_norm(operands: &Operands<'_>, node: &OperatorNode) -> BatchNorm {
    let [batch, channels, positions] = operands.around(node.output, 1..2);
    let (epsilon, momentum) = match node.op {
        Op::BatchNorm { epsilon, momentum } => (epsilon, momentum),
        _ => (EPSILON, MOMENTUM),
    };
    BatchNorm { batch, channels, positions, epsilon, momentum }
}

/// The layer normalisation of an operator.
pub(super) fn layer_norm(operands: &Operands<'_>, node: &OperatorNode) -> LayerNorm {
    let (rows, width) = operands.rows(node.output);
    let epsilon = if let Op::LayerNorm { epsilon } = node.op { epsilon } else { EPSILON };
    LayerNorm { rows, width, epsilon }
}

/// The mean over the axes `axes` of an operator's input.
pub(super) fn mean(operands: &Operands<'_>, node: &OperatorNode, axes: &[usize]) -> Mean {
    let (first, last) = (axes.iter().copied().min().unwrap_or(0), axes.iter().copied().max().unwrap_or(0));
    let [outer, axis, inner] = operands.around(node.inputs[0], first..last + 1);
    Mean { outer, axis, inner }
}

impl Run<'_> {
    /// The operator at position `operator` of the network.
    pub(super) fn forward(&mut self, operator: u32) -> Result<Option<Loss>> {
        let program = self.program;
        let node = &program.network.nodes[operator as usize];
        if let Op::CrossEntropy = node.op {
            return self.cross_entropy(node).map(Some);
        }
        if let Op::Unary { function, in_place } = node.op {
            return self.unary(node, function, in_place).map(|()| None);
        }
        if let Op::BatchNorm { .. } = node.op {
            return self.batch_norm(node).map(|()| None);
        }
        let written = self.written(node);
        self.write(&written, |operands, outputs| {
            let value = |place: usize| operands.value(node.inputs[place]);
            match &node.op {
                Op::MaxPool(window) => return max_pool(&operands, node, *window, outputs),
                Op::LayerNorm { .. } => return normalise_rows(&operands, node, outputs),
                Op::Dropout(probability) => return drop_out(&operands, node, *probability, operator, outputs),
                _ => {}
            }
            let Some(output) = outputs.floats(0) else { return Ok(()) };
            match &node.op {
                &Op::Convolution { window, groups } => {
                    let (weight, bias) = (operands.weight(node, 0)?, operands.weight_if_any(node, 1)?);
                    let convolution = convolution(&operands, node, window, groups)?;
                    match operands.in_eight_bits(node) {
                        Some([input, weight]) => {
                            eight::convolve(&convolution, input, weight, bias.as_deref(), operands.meter(), output)?;
                        }
                        None => convolution.forward(&value(0)?, &weight, bias.as_deref(), operands.meter(), output)?,
                    }
                }
                Op::Linear => {
                    let (weight, bias) = (operands.weight(node, 0)?, operands.weight_if_any(node, 1)?);
                    let linear = linear(&operands, node);
                    match operands.in_eight_bits(node) {
                        Some([input, weight]) => {
                            eight::multiply(linear, input, weight, bias.as_deref(), output)?;
                        }
                        None => linear.forward(&value(0)?, &weight, bias.as_deref(), output)?,
                    }
                }
                Op::Matmul => matmul(&operands, node).forward(&value(0)?, &value(1)?, output)?,
                Op::Add => combine(&value(0)?, &value(1)?, output, elementwise::add)?,
                Op::Mul => combine(&value(0)?, &value(1)?, output, elementwise::multiply)?,
                Op::Concat { axis } => {
                    let parts =
                        node.inputs.iter().map(|&input| operands.value(input)).collect::<Result<Vec<_>, _>>()?;
                    let parts: Vec<&[f32]> = parts.iter().map(|part| &**part).collect();
                    concatenate(operands.around(node.output, *axis..axis + 1)[0], &parts, output)?;
                }
                &Op::AveragePool { window, averaging } => {
                    let pool = pool(&operands, node, window, Some(averaging))?;
                    pool.average(&value(0)?, averaging == Averaging::Padded, output)?;
                }
                Op::GlobalAveragePool { axes } => mean(&operands, node, axes).forward(&value(0)?, output)?,
                Op::Softmax => softmax::forward(&value(0)?, operands.rows(node.output).1, output)?,
                Op::Embedding => {
                    let (table, ids) = (operands.weight(node, 0)?, operands.ids(node.inputs[0])?);
                    embedding::forward(&table, operands.rows(node.output).1, &ids, output)?;
                }
                Op::Copy(Copying::Plain) => output.copy_from_slice(&value(0)?),
                Op::Copy(Copying::Part(part)) => {
                    let seen = Layout::row_major(program.network.shape(node.inputs[0]));
                    let seen = seen.map(|whole| whole.part(part, program.network.shape(node.output)));
                    if let Some(seen) = seen {
                        output.copy_from_slice(&gather(&seen, &value(0)?, operands.pass.samples, operands.meter())?);
                    }
                }
                _ => return Err(refused(node, "it is not computed")),
            }
            Ok(())
        })?;
        Ok(None)
    }

    /// The storages that an operator writes: that of its output, and those of the tensors that it saves.
    fn written(&self, node: &OperatorNode) -> Vec<u32> {
        let network = &self.program.network;
        let read = |storage: u32| node.inputs.iter().any(|&input| network.value(input).storage == storage);
        let output = network.value(node.output).storage;
        let aside = node.saved.iter().copied().filter(|&saved| saved != output && !read(saved));
        std::iter::once(output).chain(aside.filter(|saved| !node.buffers.contains(saved))).collect()
    }

    fn cross_entropy(&mut self, node: &OperatorNode) -> Result<Loss> {
        let (output, saved) = (self.program.network.value(node.output).storage, &node.saved);
        let written = [output, saved.first().copied().unwrap_or(output), saved.get(2).copied().unwrap_or(output)];
        self.write(&written, |operands, outputs| {
            let scores = operands.value(node.inputs[0])?;
            let labels = operands.ids(node.inputs[1])?;
            let [mean, log_softmax, weight] = outputs.each();
            let mut scratch = None;
            let log_softmax = or_scratch(log_softmax, &mut scratch, scores.len(), &operands);
            let found = loss::forward(&scores, operands.rows(node.inputs[0]).1, &labels, log_softmax)?;
            mean.into_iter().for_each(|mean| mean.fill(found.mean as f32));
            weight.into_iter().for_each(|weight| weight.fill(labels.len() as f32));
            Ok(found)
        })
    }

    fn unary(&mut self, node: &OperatorNode, function: Unary, in_place: bool) -> Result {
        let written = self.written(node);
        self.write(&written, |operands, outputs| {
            let [Some(output), aside] = outputs.each() else { return Ok(()) };
            if let (Some(clone), true) = (aside, in_place) {
                clone.copy_from_slice(output);
            }
            if !in_place {
                output.copy_from_slice(&operands.as_result(node)?);
            }
            match function {
                Unary::Where(Mask::Causal) => hide_later(output, operands.rows(node.output).1),
                _ => unary::forward(function, output),
            }
            Ok(())
        })
    }

    fn batch_norm(&mut self, node: &OperatorNode) -> Result {
        let network = &self.program.network;
        let output = network.value(node.output).storage;
        let (again, statistics) = (self.again, self.pass.statistics);
        let mut written = vec![output];
        // The input, the running statistics, then those of the batch.
        written.extend(node.saved.get(3..5).unwrap_or(&[output, output]));
        written.extend(&node.buffers);
        self.write(&written, |operands, outputs| {
            let norm = batch_norm(&operands, node);
            let (weight, bias) = (operands.weight(node, 0)?, operands.weight(node, 1)?);
            let affine = Affine { weight: &weight, bias: &bias };
            let input = operands.value(node.inputs[0])?;
            let [Some(output), mean, inverse, Some(running_mean), Some(running_variance)] = outputs.each() else {
                return Ok(());
            };
            match (statistics, &mean, &inverse) {
                (Statistics::Running, ..) => {
                    return Ok(norm.evaluate(&input, affine, running_mean, running_variance, output)?);
                }
                (Statistics::Given, Some(mean), Some(inverse)) => {
                    return Ok(norm.normalise(&input, affine, mean, inverse, output)?);
                }
                _ => {}
            }
            let running = (!again).then_some((running_mean, running_variance));
            let mut aside = [None, None];
            let [first, second] = &mut aside;
            let or_scratch = |given, scratch| or_scratch(given, scratch, norm.channels, &operands);
            let (mean, inverse) = (or_scratch(mean, first), or_scratch(inverse, second));
            Ok(norm.forward(&input, affine, running, mean, inverse, output)?)
        })
    }
}

/// The given slice, or scratch space if nothing needs the output.
pub(super) fn or_scratch<'s>(
    given: Option<&'s mut [f32]>,
    scratch: &'s mut Option<crate::meter::Floats>,
    len: usize,
    operands: &Operands<'_>,
) -> &'s mut [f32] {
    given.unwrap_or_else(|| &mut **scratch.insert(operands.meter().floats(len)))
}

fn max_pool(operands: &Operands<'_>, node: &OperatorNode, window: Window, outputs: &mut Outputs) -> Result {
    let input = operands.value(node.inputs[0])?;
    let pool = pool(operands, node, window, None)?;
    let (output, indices) = outputs.floats_and_integers();
    let Some(output) = output else { return Ok(()) };
    let mut scratch = None;
    let indices = match indices {
        Some(indices) => indices,
        None => &mut **scratch.insert(operands.meter().integers(output.len())),
    };
    Ok(pool.maximum(&input, output, indices)?)
}

fn normalise_rows(operands: &Operands<'_>, node: &OperatorNode, outputs: &mut Outputs) -> Result {
    let norm = layer_norm(operands, node);
    let rows = norm.rows;
    let (weight, bias) = (operands.weight(node, 0)?, operands.weight(node, 1)?);
    let input = operands.value(node.inputs[0])?;
    let [Some(output), mean, inverse] = outputs.each() else { return Ok(()) };
    let (mut first, mut second) = (None, None);
    let mean = or_scratch(mean, &mut first, rows, operands);
    let inverse = or_scratch(inverse, &mut second, rows, operands);
    let affine = Affine { weight: &weight, bias: &bias };
    Ok(norm.forward(&input, affine, mean, inverse, output)?)
}

/// Draws a mask by the index of every element in the mini-batch, so that it is the same whenever it is drawn.
pub(super) fn draw_mask(operands: &Operands<'_>, probability: f32, operator: u32, mask: &mut [f32]) {
    let pass = operands.pass;
    let per_sample = mask.len() / pass.samples.max(1);
    let seed = pass.seed ^ pass.update.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(operator) << 40;
    dropout::mask(seed, (pass.first * per_sample) as u64, probability, mask);
}

fn drop_out(
    operands: &Operands<'_>,
    node: &OperatorNode,
    probability: f32,
    operator: u32,
    outputs: &mut Outputs,
) -> Result {
    let input = operands.value(node.inputs[0])?;
    let [Some(output), mask] = outputs.each() else { return Ok(()) };
    if !operands.pass.trains() {
        output.copy_from_slice(&input);
        return Ok(());
    }
    let mut scratch = None;
    let mask = or_scratch(mask, &mut scratch, input.len(), operands);
    draw_mask(operands, probability, operator, mask);
    Ok(elementwise::multiply(&input, mask, output)?)
}

/// Combines two operands, one of which may be smaller: the larger comes first.
fn combine(
    a: &[f32],
    b: &[f32],
    output: &mut [f32],
    with: impl FnOnce(&[f32], &[f32], &mut [f32]) -> Result<(), crate::error::NumericsError>,
) -> Result {
    Ok(if a.len() >= b.len() { with(a, b, output) } else { with(b, a, output) }?)
}

/// Sets the elements above the diagonal of each square to the least value of f32.
fn hide_later(values: &mut [f32], width: usize) {
    for (row, values) in values.chunks_exact_mut(width.max(1)).enumerate() {
        let seen = row % width + 1;
        values[seen..].fill(f32::MIN);
    }
}

impl<'m> Operands<'m> {
    /// The input of an element-wise operator in the order in which its output is stored.
    fn as_result(&self, node: &OperatorNode) -> Result<crate::memory::Seen<'m>> {
        let (from, to) = (&self.program.looks[node.inputs[0] as usize], &self.program.looks[node.output as usize]);
        match (from, to) {
            (Some(from), Some(to)) if from.strides == to.strides && from.offset == to.offset => {
                self.memory.floats(self.network().value(node.inputs[0]).storage)
            }
            (_, None) => self.value(node.inputs[0]),
            (_, Some(_)) => {
                // No element-wise operator works on a part of a storage that is not row by row.
                let seen = self.memory.floats(self.network().value(node.inputs[0]).storage)?;
                match from {
                    None => Ok(seen),
                    Some(from) => Ok(crate::memory::Seen::Copy(gather(from, &seen, self.pass.samples, self.meter())?)),
                }
            }
        }
    }
}
