//! Backward: the expressions of each expression's gradient (`tools/train/source/grad`).
//!
//! A rule refers to each forward tensor that it names, even if it needs only the shape: the gradient of a reduction
//! starts from zeros in the shape of the reduction's input, which therefore stays in memory.

use haversack_devices::{OperatorKind, ProductRole};

use super::{DataFormat, Expression, ExpressionWriter, Function, Layout, Operation, VariableId, Version};
use crate::{Extent, FP32, Need, Optimiser, Phase, Role, Shape, ValueId};

impl ExpressionWriter<'_> {
    /// Writes the gradients of every trained weight.
    pub(super) fn backward(&mut self, loss: ValueId) {
        self.writer.phase = Phase::Backward;
        let seed = self.map("seed", OperatorKind::ElementWise, &[], Layout::rows(Shape::default()));
        let loss = self.show(loss).variable;
        self.give(loss, seed);
        for expression in std::mem::take(&mut self.expressions).into_iter().rev() {
            self.writer.origin = expression.origin;
            self.differentiate(&expression);
        }
        for (place, parameter) in self.network.parameters.iter().enumerate() {
            if let Some(gradient) = self.gradients[self.weights[place] as usize] {
                let tensor = self.tensor(gradient);
                (tensor.role, tensor.name) = (Role::ParameterGradient, format!("{}.gradient", parameter.name));
            }
        }
        self.writer.origin = None;
        self.copy_gradients();
    }

    fn differentiate(&mut self, Expression { operation, inputs, outputs, .. }: &Expression) {
        let (x, y) = (inputs[0], outputs[0]);
        if *operation == Operation::Split {
            return self.through_split(x, outputs);
        }
        let Some(dy) = self.gradients[y as usize] else { return };
        let dx = match *operation {
            Operation::Convolution => return self.through_convolution(inputs, dy),
            Operation::Product => return self.through_product(inputs[0], inputs[1], dy),
            Operation::Add => return inputs.iter().for_each(|&side| self.give_fitted(side, dy)),
            Operation::Subtract => {
                self.give_fitted(x, dy);
                if self.variable(inputs[1]).trains {
                    let negative = self.sweep("negative", &[dy]);
                    self.give_fitted(inputs[1], negative);
                }
                return;
            }
            Operation::Multiply => {
                for (wanted, other) in [(inputs[0], inputs[1]), (inputs[1], inputs[0])] {
                    if self.variable(wanted).trains {
                        let product = self.sweep("multiply", &[dy, other]);
                        self.give_fitted(wanted, product);
                    }
                }
                return;
            }
            Operation::Offset => dy,
            Operation::Scale => self.sweep("scale", &[dy]),
            Operation::Function(function) => self.through_function(function, x, y, dy),
            Operation::Select => {
                let zeros = self.zeros_like(inputs[1]);
                let dx = self.sweep("select", &[x, dy, zeros]);
                return self.give(inputs[1], dx);
            }
            Operation::Reduce { mean } => {
                let share = if mean { self.sweep("scale", &[dy]) } else { dy };
                let zeros = self.zeros_like(x);
                self.sweep("add", &[zeros, share])
            }
            Operation::Softmax => self.map("softmax", OperatorKind::Reduction, &[y, dy], Layout::rows(self.shape(x))),
            Operation::Pool { kind: OperatorKind::ElementWise, flops } => self.through_maximum(x, y, dy, flops),
            Operation::Pool { kind, flops } => {
                let dy = self.blocked(dy);
                let elements = self.elements(x);
                let dx = self.make("pool", Layout::blocks(self.shape(x)));
                // One operator that refers to the pooling's input, its output and the gradient.
                let work = self.push("pool", kind, &[x, y, dy], &[dx]);
                // Every position of every window is compared with the maximum, or given its share.
                (work.flops, work.parallelism) = (flops, elements);
                dx
            }
            Operation::Gather => {
                let elements = self.elements(dy);
                let made = self.make("scatter", Layout::rows(self.shape(x)));
                let work = self.push("scatter", OperatorKind::Gather, &[dy, inputs[1]], &[made]);
                (work.flops, work.parallelism) = (elements, elements);
                made
            }
            Operation::Reshape => {
                let tensor = self.variable(dy).tensor;
                self.look(tensor, Layout::rows(self.shape(x)))
            }
            Operation::Pad => {
                let (tensor, format) = (self.variable(dy).tensor, self.variable(dy).format);
                self.look(tensor, Layout { shape: self.shape(x), format })
            }
            Operation::Rearrange(label) => match (self.variable(x).format, self.variable(dy).format) {
                // Where a product's result was transposed, its readers' gradient is gathered in the layout that it has.
                (DataFormat::Columns, _) => dy,
                // In 2.3 a conversion between rows and blocks is postponed until a kernel needs blocks.
                (DataFormat::Blocks, DataFormat::Rows) if self.version == Version::V2 => {
                    self.seen_in(dy, DataFormat::Unblocked)
                }
                (DataFormat::Rows, DataFormat::Unblocked) => self.seen_in(dy, DataFormat::Rows),
                _ => self.moved(label, dy, self.layout(x)),
            },
            Operation::Slice => {
                let zeros = self.zeros_like(x);
                self.map("slice_write", OperatorKind::Layout, &[zeros, dy], self.layout(x))
            }
            Operation::Concat => {
                let dy = self.blocked(dy);
                let wanted: Vec<_> = inputs.iter().copied().filter(|&part| self.variable(part).trains).collect();
                let make = |&part: &u32| {
                    let format = self.variable(part).format.told();
                    self.make("split", Layout { format, ..self.layout(part) })
                };
                let made: Vec<_> = wanted.iter().map(make).collect();
                self.push("split", OperatorKind::Layout, &[dy], &made);
                self.by_rows(made.len() as u64);
                return wanted.into_iter().zip(made).for_each(|(part, dx)| self.give(part, dx));
            }
            Operation::Split => return,
        };
        self.give(x, dx);
    }

    /// The input's gradient is a transposed convolution, the weight's a product with the input, the
    /// bias's a sum in rows.
    fn through_convolution(&mut self, inputs: &[VariableId], dy: VariableId) {
        let (x, weight) = (inputs[0], inputs[1]);
        if let Some(product) = self.gathers() {
            return self.through_gathered(inputs, dy, &product);
        }
        let dy = if self.version == Version::V1 { self.in_format(dy, DataFormat::Blocks) } else { dy };
        if self.variable(x).trains {
            let blocks = self.in_format(dy, DataFormat::Blocks);
            let (role, shape) = (ProductRole::InputGradient, self.shape(x));
            let dx = self.product("input_gradient", role, &[blocks, weight], Layout::blocks(shape));
            self.give(x, dx);
        }
        if self.variable(weight).trains {
            self.tap_by_tap(x, weight, dy);
        }
        self.give_bias(inputs, dy);
    }

    /// The gradient of a convolution's bias, if it is trained: the sum of `dy`, in rows.
    pub(super) fn give_bias(&mut self, inputs: &[VariableId], dy: VariableId) {
        let Some(&bias) = inputs.get(2).filter(|&&bias| self.variable(bias).trains) else { return };
        let rows = match self.variable(dy).format {
            DataFormat::Rows | DataFormat::Unblocked => dy,
            _ => self.moved("convert", dy, Layout::rows(self.shape(dy))),
        };
        let made = self.sum("reduce_sum", rows, self.layout(bias));
        self.give(bias, made);
    }

    /// Two products with transposed operands, without copies.
    fn through_product(&mut self, a: VariableId, b: VariableId, dy: VariableId) {
        let is_weight = matches!(self.tensor(b).role, Role::Parameter { .. });
        let of_b = if is_weight { ProductRole::WeightGradient } else { ProductRole::InputGradient };
        for (wanted, other, role) in [(a, b, ProductRole::InputGradient), (b, a, of_b)] {
            if self.variable(wanted).trains {
                let label = if role == ProductRole::WeightGradient { "weight_gradient" } else { "input_gradient" };
                let made = self.product(label, role, &[dy, other], Layout::rows(self.shape(wanted)));
                self.lay_out_matrix(other, made);
                self.give(wanted, made);
            }
        }
    }

    /// Each step is a sweep; `x` is the function's input, `y` its output.
    fn through_function(&mut self, function: Function, x: VariableId, y: VariableId, dy: VariableId) -> VariableId {
        let slope = match function {
            Function::Negative => return self.sweep("negative", &[dy]),
            Function::Log => return self.sweep("divide", &[dy, x]),
            // x·dy, twice.
            Function::Square => {
                let product = self.sweep("multiply", &[x, dy]);
                return self.sweep("add", &[product, product]);
            }
            // ½·dy / y.
            Function::Sqrt => {
                let half = self.sweep("scale", &[dy]);
                return self.quotient(half, y);
            }
            // −x⁻².
            Function::Reciprocal => self.chain(x, &["pow", "negative"]),
            // 2/√π · exp(−x²).
            Function::Erf => self.chain(x, &["square", "negative", "exp", "scale"]),
            // 1 − y².
            Function::Tanh => self.chain(y, &["square", "subtract"]),
            // (1 − y) · y.
            Function::Sigmoid => {
                let rest = self.sweep("one_minus", &[y]);
                self.sweep("multiply", &[rest, y])
            }
            // dy · y · 3/x.
            Function::Cube => {
                let product = self.sweep("multiply", &[dy, y]);
                let slope = self.quotient_of_constant(x);
                return self.sweep("multiply", &[product, slope]);
            }
            Function::Other => self.sweep("slope", &[x]),
            // (sign(x) + 1) · ½.
            Function::Relu if self.version == Version::V1 => {
                let mask = self.signs(x, "sign");
                self.chain(mask, &["add_constant", "scale"])
            }
            // (sign(x) + 1) · (sign(6 − x) + 1) · dy · ¼.
            Function::Relu6 if self.version == Version::V1 => {
                let above = self.signs(x, "sign");
                let above = self.sweep("add_constant", &[above]);
                let below = self.signs(x, "subtract");
                let below = self.chain(below, &["sign", "add_constant"]);
                let mask = self.sweep("multiply", &[above, below]);
                let passed = self.sweep("multiply", &[mask, dy]);
                return self.sweep("scale", &[passed]);
            }
            // relu(sign(x)).
            Function::Relu => {
                let mask = self.signs(x, "sign");
                self.sweep("relu", &[mask])
            }
            // (0 < x) · (x < 6), where each comparison is cast to a number.
            Function::Relu6 => {
                let masks = ["greater", "less"].map(|comparison| {
                    let mask = self.signs(x, comparison);
                    self.sweep("cast", &[mask])
                });
                self.sweep("multiply", &masks)
            }
        };
        self.sweep("multiply", &[slope, dy])
    }

    fn chain(&mut self, x: VariableId, steps: &[&str]) -> VariableId {
        steps.iter().fold(x, |x, step| self.sweep(step, &[x]))
    }

    /// A sweep over `x` that needs only the side of a bound on which each element lies.
    fn signs(&mut self, x: VariableId, label: &str) -> VariableId {
        self.variables[x as usize].need = Need::Signs;
        let mask = self.sweep(label, &[x]);
        self.variables[x as usize].need = Need::Values;
        mask
    }

    /// a / b, kept away from division by zero: a / max(|b|, ε) · sign(b).
    fn quotient(&mut self, a: VariableId, b: VariableId) -> VariableId {
        let size = self.chain(b, &["abs", "maximum"]);
        let sign = self.sweep("sign", &[b]);
        let quotient = self.sweep("divide", &[a, size]);
        self.sweep("multiply", &[quotient, sign])
    }

    /// The same with a constant above.
    fn quotient_of_constant(&mut self, b: VariableId) -> VariableId {
        let size = self.chain(b, &["abs", "maximum", "divide"]);
        let sign = self.sweep("sign", &[b]);
        self.sweep("multiply", &[size, sign])
    }

    /// All parts' gradients in one copy, zeros where a part has none.
    fn through_split(&mut self, x: VariableId, parts: &[VariableId]) {
        let given: Vec<_> = parts.iter().filter_map(|&part| self.gradients[part as usize]).collect();
        if given.is_empty() {
            return;
        }
        let dx = self.map("concat", OperatorKind::Layout, &given, self.layout(x));
        self.give(x, dx);
    }

    /// Zeros of `x`'s shape: it refers to `x`, which stays in memory only for its shape, and only writes.
    fn zeros_like(&mut self, x: VariableId) -> VariableId {
        let zeros = self.make("zeros_like", self.layout(x));
        let bytes = self.bytes(zeros);
        self.push("zeros_like", OperatorKind::ElementWise, &[x], &[zeros]).dram = bytes;
        self.needs_shapes();
        zeros
    }

    /// Gives `gradient`, summed over the axes that `side` was broadcast along.
    fn give_fitted(&mut self, side: VariableId, gradient: VariableId) {
        if !self.variable(side).trains {
            return;
        }
        let fits = self.elements(gradient) == self.elements(side);
        let summed = |this: &mut Self| this.sum("reduce_sum", gradient, this.layout(side));
        let fitted = if fits { gradient } else { summed(self) };
        self.give(side, fitted);
    }

    /// Adds `gradient` to what other readers of `x` have given.
    pub(super) fn give(&mut self, x: VariableId, gradient: VariableId) {
        if self.variable(x).trains {
            let total = match self.gradients[x as usize] {
                None => gradient,
                Some(earlier) => self.sweep("accumulate", &[earlier, gradient]),
            };
            self.gradients[x as usize] = Some(total);
        }
    }
}

/// The sweeps of an update by `optimiser`: those with one operand as large as the weight (one read, one write), those
/// with two (two reads, one write), and the state values per weight.
const fn sweeps(optimiser: Optimiser) -> [u64; 3] {
    match optimiser {
        // g ← d·w + g; h ← r·g + m·h; w ← w − h. The momentum h is kept and swept even where m is zero.
        Optimiser::Sgd | Optimiser::Momentum => [3, 3, 1],
        // g ← d·w + g; h ← b·h + (1 − b)·g; k ← c·k + (1 − c)·g²; w ← w − r·(h / (√k + ε)).
        Optimiser::Adam => [9, 5, 2],
    }
}

impl ExpressionWriter<'_> {
    /// Writes one node a trained weight, over all of its sweeps.
    pub(super) fn update(&mut self, optimiser: Optimiser) {
        (self.writer.phase, self.writer.origin) = (Phase::Update, None);
        let [unary, binary, states] = sweeps(optimiser);
        for (place, parameter) in self.network.parameters.iter().enumerate() {
            let weight = self.weights[place];
            let Some(gradient) = self.gradients[weight as usize] else { continue };
            let [weight, gradient] = [weight, gradient].map(|variable| self.variable(variable).tensor);
            let mut update = self.writer.update(weight, gradient, states);
            let elements = Extent::fixed(parameter.elements);
            update.work.flops = elements * (unary + binary);
            update.work.dram = elements * FP32 * (2 * unary + 3 * binary);
            self.writer.push(update);
            self.renew(elements * FP32, unary + binary);
        }
    }
}
