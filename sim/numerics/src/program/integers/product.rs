//! Products of integers: a layer's output and its gradients, summed in 32 bits and shifted to eight.

use haversack_kernels::int8::accumulate;
use haversack_kernels::{Isa, Partial};
use haversack_workloads::mixed::Rounding;
use haversack_workloads::{Node, Op, OperatorNode, Role, TensorId, ValueId};

use super::Integers;
use super::rounding::{exponent, power_of_two, shift_all, shift_to, step_for};
use super::standing::standing_for;
use crate::dense::convolution::Convolution;
use crate::dense::linear::Linear;
use crate::eight::{largest, sums};
use crate::meter::Sums;
use crate::program::forward::{convolution, linear, refused};
use crate::program::look::Look;
use crate::program::operands::Operands;
use crate::program::{Derivative, Part, Result, Step};
use crate::{Codes, Contents, Eight, Memory, NumericsError, Pass, ProgramError, Seen};

/// Bits of a code's magnitude.
const CODE_BITS: i32 = 7;

/// A layer whose outputs are products.
enum Layer {
    Linear(Linear),
    Convolution(Convolution),
}

/// The operands of a product.
struct Reads<'r> {
    of: &'r Integers,
    memory: &'r dyn Memory,
    eager: &'r Node,
    node: &'r Node,
}

/// Sums, and the value of one unit of them.
struct Summed {
    sums: Sums,
    step: f32,
}

impl Integers {
    /// Computes a product, or its gradients, and brings each to the form in which it is stored.
    pub(super) fn product(
        &self,
        step: u32,
        rescaled: Option<TensorId>,
        node: &Node,
        memory: &mut dyn Memory,
        pass: &Pass,
    ) -> Result {
        let eager = &self.rewritten.eager.nodes[step as usize];
        let mut before: Vec<Option<Contents>> = node.outputs.iter().map(|&output| memory.take(output)).collect();
        let reads = Reads { of: self, memory, eager, node };
        let of = &self.eager.steps[step as usize];
        let rounding = self.rounding_of(of);
        let made = match of {
            Step::Forward(operator) => vec![reads.output(*operator, pass)?],
            Step::Backward(of) if of.part == Part::Input => vec![reads.input_gradient(of, pass)?],
            Step::Backward(of) => reads.weight_gradients(of, pass)?,
            _ => return Err(ProgramError::Missing(format!("what {} computes", node.name))),
        };
        for (place, (summed, &output)) in made.into_iter().zip(&node.outputs).enumerate() {
            let Some(before) = before[place].take() else { continue };
            // Gradients of weights are added to those of earlier micro-batches.
            let adds = self.rewritten.graph.tensor(output).role == Role::ParameterGradient;
            let made = match before {
                Contents::Eight(before) => {
                    let kept = rescaled.and_then(|rescaled| memory.kept_factor(rescaled, output));
                    let bits = if adds { gradient_bits(pass) } else { CODE_BITS };
                    let factor = kept.unwrap_or_else(|| shift_to(&summed.sums, bits));
                    memory.note_factor(output, factor);
                    if adds {
                        let made = memory.meter().codes(before.codes.len());
                        Contents::Eight(added(&before, summed.shifted(factor, rounding, made)?)?)
                    } else {
                        // The previous contents are overwritten.
                        Contents::Eight(summed.shifted(factor, rounding, before.codes)?)
                    }
                }
                // A tensor of floats takes the sums unrounded: it measures the error of rounding.
                Contents::Floats(mut values) => {
                    summed.write(&mut values, adds);
                    Contents::Floats(values)
                }
                held => held,
            };
            memory.put(output, made);
        }
        Ok(())
    }
}

impl Integers {
    /// How the sums of a product are rounded.
    const fn rounding_of(&self, of: &Step) -> Rounding {
        match of {
            Step::Forward(_) => self.rules.forward,
            Step::Backward(Derivative { part: Part::Input, .. }) => self.rules.input_gradient,
            _ => self.rules.weight_gradient,
        }
    }
}

/// The bits of the largest gradient of a weight, by which the weight moves by the learning rate's share of a range of 128.
fn gradient_bits(pass: &Pass) -> i32 {
    libm::log2(f64::from(pass.rule.rate) * 128.0).round().clamp(-31.0, f64::from(CODE_BITS)) as i32
}

impl Summed {
    fn shifted(&self, factor: u32, rounding: Rounding, mut codes: Codes) -> Result<Eight> {
        shift_all(rounding, &self.sums, factor, &mut codes)?;
        let step = if self.step > 0.0 { power_of_two(exponent(self.step) + factor.cast_signed()) } else { 0.0 };
        Ok(Eight { codes, step })
    }

    /// Writes the sums' values, or adds them to the previous contents.
    fn write(&self, values: &mut [f32], adds: bool) {
        for (value, &sum) in values.iter_mut().zip(&*self.sums) {
            *value = if adds { *value } else { 0.0 } + sum as f32 * self.step;
        }
    }

    /// Adds a bias to each sum: one bias for each plane of `plane` sums, in turn.
    fn add_bias(&mut self, bias: &[f32], plane: usize) {
        let aligned: Vec<i32> =
            bias.iter().map(|&value| (f64::from(value) / f64::from(self.step)).round() as i32).collect();
        for (plane, bias) in self.sums.chunks_exact_mut(plane.max(1)).zip(aligned.iter().cycle()) {
            plane.iter_mut().for_each(|sum| *sum = sum.saturating_add(*bias));
        }
    }
}

/// The sum of the gradients of earlier micro-batches and of this one, at the scale of the wider
/// (Mandheling, equation 4).
fn added(before: &Eight, made: Eight) -> Result<Eight> {
    if before.step == 0.0 || made.step == 0.0 {
        return Ok(if made.step == 0.0 { before.clone() } else { made });
    }
    let least = exponent(before.step).min(exponent(made.step));
    let scale = |held: &Eight| (exponent(held.step) - least).cast_unsigned();
    let parts = [before, &made].map(|held| Partial { values: &held.codes, scale: scale(held) });
    let mut codes = before.codes.clone();
    let isa = Isa::chosen().map_err(NumericsError::from)?;
    let common = accumulate(&parts, &mut codes, isa).map_err(NumericsError::from)?;
    Ok(Eight { codes, step: power_of_two(least + common.cast_signed()) })
}

impl<'r> Reads<'r> {
    fn operands(&self, pass: &'r Pass) -> Operands<'r> {
        Operands { program: &self.of.eager, memory: self.memory, pass }
    }

    fn layer(&self, node: &OperatorNode, pass: &'r Pass) -> Result<Layer> {
        let operands = self.operands(pass);
        match node.op {
            Op::Convolution { window, groups } => Ok(Layer::Convolution(convolution(&operands, node, window, groups)?)),
            Op::Linear => Ok(Layer::Linear(linear(&operands, node))),
            _ => Err(refused(node, "its product is not computed in integers")),
        }
    }

    fn standing_for(&self, tensor: TensorId) -> Result<TensorId> {
        let found = standing_for(tensor, &self.eager.inputs, &self.node.inputs);
        found.ok_or_else(|| ProgramError::Missing(format!("an operand of {}", self.node.name)))
    }

    fn held(&self, tensor: TensorId) -> Result<&'r Eight> {
        let missing = || ProgramError::Missing(format!("an operand of {} in eight bits", self.node.name));
        self.memory.eight(self.standing_for(tensor)?).ok_or_else(missing)
    }

    fn value(&self, value: ValueId) -> Result<&'r Eight> {
        let program = &self.of.eager;
        if program.looks[value as usize].is_some() {
            return Err(ProgramError::Missing(format!(
                "an operand of {}, which is not laid out row by row,",
                self.node.name
            )));
        }
        self.held(program.network.value(value).storage)
    }

    fn gradient(&self, look: &Look) -> Result<&'r Eight> {
        if !look.is_whole() {
            return Err(ProgramError::Missing(format!(
                "the gradient of {}, which is not laid out row by row,",
                self.node.name
            )));
        }
        self.held(look.tensor)
    }

    /// The values of a bias, whatever its number of bits.
    fn bias(&self, tensor: TensorId) -> Result<Seen<'r>> {
        self.memory.floats(self.standing_for(tensor)?)
    }

    fn weight(&self, node: &OperatorNode) -> Result<&'r Eight> {
        self.held(self.of.eager.network.parameter(node.parameters[0]).storage)
    }

    fn output(&self, operator: u32, pass: &'r Pass) -> Result<Summed> {
        let node = &self.of.eager.network.nodes[operator as usize];
        let (input, weight, meter) = (self.value(node.inputs[0])?, self.weight(node)?, self.memory.meter());
        let layer = self.layer(node, pass)?;
        let mut sums = meter.sums(self.operands(pass).elements(node.output));
        match &layer {
            Layer::Linear(layer) => sums::linear(*layer, &input.codes, &weight.codes, &mut sums)?,
            Layer::Convolution(layer) => sums::convolution(layer, &input.codes, &weight.codes, meter, &mut sums)?,
        }
        let mut summed = Summed { sums, step: input.step * weight.step };
        if let Some(&bias) = node.parameters.get(1) {
            let bias = self.bias(self.of.eager.network.parameter(bias).storage)?;
            if summed.step == 0.0 {
                // All sums are zero, so only the bias matters.
                summed.step = step_for(largest(&bias));
            }
            if summed.step > 0.0 {
                summed.add_bias(&bias, layer.plane());
            }
        }
        Ok(summed)
    }

    fn input_gradient(&self, of: &Derivative, pass: &'r Pass) -> Result<Summed> {
        let node = &self.of.eager.network.nodes[of.operator as usize];
        let (gradient, weight, meter) = (self.gradient(&of.gradient)?, self.weight(node)?, self.memory.meter());
        let layer = self.layer(node, pass)?;
        let (gradient_codes, weight_codes) = (&gradient.codes, &weight.codes);
        let mut sums = meter.sums(self.operands(pass).elements(node.inputs[0]));
        match &layer {
            Layer::Linear(layer) => sums::linear_input_gradient(*layer, gradient_codes, weight_codes, &mut sums)?,
            Layer::Convolution(layer) => {
                sums::convolution_input_gradient(layer, gradient_codes, weight_codes, meter, &mut sums)?;
            }
        }
        Ok(Summed { sums, step: gradient.step * weight.step })
    }

    /// Those of the weight and of the bias, in the order of the derivative's outputs.
    fn weight_gradients(&self, of: &Derivative, pass: &'r Pass) -> Result<Vec<Summed>> {
        let network = &self.of.eager.network;
        let node = &network.nodes[of.operator as usize];
        let (gradient, meter, layer) = (self.gradient(&of.gradient)?, self.memory.meter(), self.layer(node, pass)?);
        let one = |&(place, _): &(usize, TensorId)| {
            let mut sums = meter.sums(network.parameter(node.parameters[place]).elements as usize);
            if place > 0 {
                match &layer {
                    Layer::Linear(layer) => sums::sum_of_rows(&gradient.codes, layer.outputs, &mut sums),
                    Layer::Convolution(layer) => sums::sum_of_planes(layer, &gradient.codes, &mut sums),
                }
                return Ok(Summed { sums, step: gradient.step });
            }
            let input = self.value(node.inputs[0])?;
            match &layer {
                Layer::Linear(layer) => {
                    sums::linear_weight_gradient(*layer, &input.codes, &gradient.codes, &mut sums)?;
                }
                Layer::Convolution(layer) => {
                    sums::convolution_weight_gradient(layer, &input.codes, &gradient.codes, meter, &mut sums)?;
                }
            }
            Ok(Summed { sums, step: gradient.step * input.step })
        };
        of.weights.iter().map(one).collect()
    }
}

impl Layer {
    /// Sums that share a bias and lie side by side.
    fn plane(&self) -> usize {
        match self {
            Self::Linear(_) => 1,
            Self::Convolution(layer) => layer.output()[2..].iter().product(),
        }
    }
}
