//! Backward: the expressions of each expression's gradient (`tools/train/source/grad`).
//!
//! A rule refers to whatever forward made that it names, even where it wants the shape alone: the gradient of a
//! reduction starts from zeros like the reduction's input, which for that stays in memory.

use haversack_devices::work::{OperatorKind, ProductRole};

use super::expression::{Expression, Function, Order, VariableId};
use super::scribe::Scribe;
use crate::network::ValueId;
use crate::shape::{Extent, Shape};
use crate::training_graph::{Need, Phase, Role};

impl Scribe<'_> {
    /// Writes the gradients of every trained weight.
    pub(super) fn backward(&mut self, loss: ValueId) {
        self.phase = Phase::Backward;
        let seed = self.map("seed", OperatorKind::ElementWise, &[], Shape::default(), Order::Rows);
        let loss = self.place(loss).variable;
        self.give(loss, seed);
        for (expression, origin) in std::mem::take(&mut self.expressions).into_iter().rev() {
            self.origin = origin;
            self.differentiate(&expression);
        }
        for (place, parameter) in self.network.parameters.iter().enumerate() {
            if let Some(gradient) = self.gradients[self.weights[place] as usize] {
                let tensor = self.variable(gradient).tensor as usize;
                self.graph.tensors[tensor].role = Role::ParameterGradient;
                self.graph.tensors[tensor].name = format!("{}.gradient", parameter.name);
            }
        }
    }

    fn differentiate(&mut self, expression: &Expression) {
        if let Expression::Split { x, parts } = expression {
            return self.through_split(*x, parts);
        }
        let Some(dy) = expression.output().and_then(|y| self.gradients[y as usize]) else { return };
        match *expression {
            Expression::Convolution { x, weight, bias, .. } => self.through_convolution(x, weight, bias, dy),
            Expression::Product { a, b, .. } => self.through_product(a, b, dy),
            Expression::Add { a, b, .. } => [a, b].into_iter().for_each(|side| self.give_fitted(side, dy)),
            Expression::Subtract { a, b, .. } => {
                self.give_fitted(a, dy);
                if self.variable(b).trains {
                    let negative = self.sweep("negative", &[dy]);
                    self.give_fitted(b, negative);
                }
            }
            Expression::Multiply { a, b, .. } => {
                for (wanted, other) in [(a, b), (b, a)] {
                    if self.variable(wanted).trains {
                        let product = self.sweep("multiply", &[dy, other]);
                        self.give_fitted(wanted, product);
                    }
                }
            }
            Expression::Offset { x, .. } => self.give(x, dy),
            Expression::Scale { x, .. } => {
                let dx = self.sweep("scale", &[dy]);
                self.give(x, dx);
            }
            Expression::Function { function, x, y } => {
                let dx = self.through_function(function, x, y, dy);
                self.give(x, dx);
            }
            Expression::Select { condition, x, .. } => {
                let zeros = self.zeros_like(x);
                let dx = self.sweep("select", &[condition, dy, zeros]);
                self.give(x, dx);
            }
            Expression::Reduce { mean, x, .. } => {
                let share = if mean { self.sweep("scale", &[dy]) } else { dy };
                let zeros = self.zeros_like(x);
                let dx = self.sweep("add", &[zeros, share]);
                self.give(x, dx);
            }
            Expression::Softmax { x, y } => {
                let dx = self.map("softmax", OperatorKind::Reduction, &[y, dy], self.shape(x), Order::Rows);
                self.give(x, dx);
            }
            Expression::Pool { x, y } => self.through_pool(x, y, dy),
            Expression::Gather { table, ids, .. } => {
                let elements = self.elements(dy);
                let made = self.make("scatter", self.shape(table), Order::Rows);
                let work = self.push("scatter", OperatorKind::Gather, &[dy, ids], &[made]);
                (work.flops, work.parallelism) = (elements, elements);
                self.give(table, made);
            }
            Expression::Reshape { x, .. } => {
                let tensor = self.variable(dy).tensor;
                let dx = self.look(tensor, self.shape(x), Order::Rows);
                self.give(x, dx);
            }
            Expression::Rearrange { label, x, .. } => {
                let order = self.variable(x).order;
                let dx = self.map(label, OperatorKind::Layout, &[dy], self.shape(x), order);
                self.give(x, dx);
            }
            Expression::Slice { x, .. } => {
                let zeros = self.zeros_like(x);
                let order = self.variable(x).order;
                let dx = self.map("slice_write", OperatorKind::Layout, &[zeros, dy], self.shape(x), order);
                self.give(x, dx);
            }
            Expression::Concat { ref parts, .. } => {
                let wanted: Vec<_> = parts.iter().copied().filter(|&part| self.variable(part).trains).collect();
                let made: Vec<_> = wanted
                    .iter()
                    .map(|&part| self.make("split", self.shape(part), self.variable(part).order))
                    .collect();
                self.push("split", OperatorKind::Layout, &[dy], &made);
                wanted.into_iter().zip(made).for_each(|(part, dx)| self.give(part, dx));
            }
            Expression::Split { .. } => {}
        }
    }

    /// The input's gradient is a transposed convolution, the weight's a product with the input, the bias's a sum in rows.
    fn through_convolution(&mut self, x: VariableId, weight: VariableId, bias: Option<VariableId>, dy: VariableId) {
        if self.variable(x).trains {
            let (role, shape) = (ProductRole::InputGradient, self.shape(x));
            let dx = self.product("input_gradient", role, &[dy, weight], shape, Order::Blocks);
            self.give(x, dx);
        }
        if self.variable(weight).trains {
            let (role, shape) = (ProductRole::WeightGradient, self.shape(weight));
            let made = self.product("weight_gradient", role, &[x, dy], shape, Order::Rows);
            self.give(weight, made);
        }
        if let Some(bias) = bias.filter(|&bias| self.variable(bias).trains) {
            let rows = self.map("convert", OperatorKind::Layout, &[dy], self.shape(dy), Order::Rows);
            let made = self.reduce_like("reduce_sum", rows, bias);
            self.give(bias, made);
        }
    }

    /// Two products with transposed operands, without copies.
    fn through_product(&mut self, a: VariableId, b: VariableId, dy: VariableId) {
        let is_weight = matches!(self.graph.tensor(self.variable(b).tensor).role, Role::Parameter { .. });
        let of_b = if is_weight { ProductRole::WeightGradient } else { ProductRole::InputGradient };
        for (wanted, other, role) in [(a, b, ProductRole::InputGradient), (b, a, of_b)] {
            if self.variable(wanted).trains {
                let label = if role == ProductRole::WeightGradient { "weight_gradient" } else { "input_gradient" };
                let made = self.product(label, role, &[dy, other], self.shape(wanted), Order::Rows);
                self.give(wanted, made);
            }
        }
    }

    /// Each step is a sweep; `x` is the function's input, `y` its output.
    fn through_function(&mut self, function: Function, x: VariableId, y: VariableId, dy: VariableId) -> VariableId {
        match function {
            Function::Negative => self.sweep("negative", &[dy]),
            Function::Log => self.sweep("divide", &[dy, x]),
            // x·dy, twice.
            Function::Square => {
                let product = self.sweep("multiply", &[x, dy]);
                self.sweep("add", &[product, product])
            }
            // ½·dy / y.
            Function::Sqrt => {
                let half = self.sweep("scale", &[dy]);
                self.quotient(half, y)
            }
            // −x⁻² · dy.
            Function::Reciprocal => {
                let slope = self.chain(x, &["pow", "negative"]);
                self.sweep("multiply", &[slope, dy])
            }
            // 2/√π · exp(−x²) · dy.
            Function::Erf => {
                let slope = self.chain(x, &["square", "negative", "exp", "scale"]);
                self.sweep("multiply", &[slope, dy])
            }
            // (1 − y²) · dy.
            Function::Tanh => {
                let slope = self.chain(y, &["square", "subtract"]);
                self.sweep("multiply", &[slope, dy])
            }
            // dy · y · 3/x.
            Function::Cube => {
                let product = self.sweep("multiply", &[dy, y]);
                let slope = self.quotient_of_constant(x);
                self.sweep("multiply", &[product, slope])
            }
            // relu(sign(x)) · dy.
            Function::Relu => {
                let mask = self.signs(x, "sign");
                let mask = self.sweep("relu", &[mask]);
                self.sweep("multiply", &[mask, dy])
            }
            // (0 < x) · (x < 6) · dy, where each comparison is cast to a number.
            Function::Relu6 => {
                let masks = ["greater", "less"].map(|comparison| {
                    let mask = self.signs(x, comparison);
                    self.sweep("cast", &[mask])
                });
                let mask = self.sweep("multiply", &masks);
                self.sweep("multiply", &[mask, dy])
            }
        }
    }

    fn chain(&mut self, x: VariableId, steps: &[&str]) -> VariableId {
        steps.iter().fold(x, |x, step| self.sweep(step, &[x]))
    }

    /// A sweep over `x` that asks only on which side of a bound its elements lie.
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

    /// One operator that refers to the pooling's input, its output and the gradient.
    fn through_pool(&mut self, x: VariableId, y: VariableId, dy: VariableId) {
        let forward = self.graph.nodes.iter().find(|node| node.outputs.contains(&self.variables[y as usize].tensor));
        let Some((kind, flops)) = forward.map(|node| (node.work.kind, node.work.flops)) else { return };
        let elements = self.elements(x);
        let dx = self.make("pool", self.shape(x), Order::Blocks);
        let work = self.push("pool", kind, &[x, y, dy], &[dx]);
        // Every position of every window is compared with the maximum, or given its share.
        (work.flops, work.parallelism) = (flops, elements);
        self.give(x, dx);
    }

    /// All parts' gradients in one copy, zeros where a part has none.
    fn through_split(&mut self, x: VariableId, parts: &[VariableId]) {
        let given: Vec<_> = parts.iter().filter_map(|&part| self.gradients[part as usize]).collect();
        if given.is_empty() {
            return;
        }
        let order = self.variable(x).order;
        let dx = self.map("concat", OperatorKind::Layout, &given, self.shape(x), order);
        self.give(x, dx);
    }

    /// Zeros of `x`'s shape: it refers to `x`, which stays in memory for its shape alone, and writes only.
    fn zeros_like(&mut self, x: VariableId) -> VariableId {
        let order = self.variable(x).order;
        let zeros = self.make("zeros_like", self.shape(x), order);
        let bytes = self.bytes(zeros);
        self.push("zeros_like", OperatorKind::ElementWise, &[x], &[zeros]).dram = bytes;
        self.needs_shapes();
        zeros
    }

    /// Gives `gradient`, summed over what `side` was broadcast to.
    fn give_fitted(&mut self, side: VariableId, gradient: VariableId) {
        if !self.variable(side).trains {
            return;
        }
        let whole: Extent = self.elements(gradient);
        let fitted =
            if whole == self.elements(side) { gradient } else { self.reduce_like("reduce_sum", gradient, side) };
        self.give(side, fitted);
    }

    /// Adds `gradient` to what other readers of `x` have given.
    fn give(&mut self, x: VariableId, gradient: VariableId) {
        if self.variable(x).trains {
            let total = match self.gradients[x as usize] {
                None => gradient,
                Some(earlier) => self.sweep("accumulate", &[earlier, gradient]),
            };
            self.gradients[x as usize] = Some(total);
        }
    }
}

impl Expression {
    /// The output, of an expression with one.
    fn output(&self) -> Option<VariableId> {
        match *self {
            Self::Convolution { y, .. }
            | Self::Product { y, .. }
            | Self::Add { y, .. }
            | Self::Subtract { y, .. }
            | Self::Multiply { y, .. }
            | Self::Offset { y, .. }
            | Self::Scale { y, .. }
            | Self::Function { y, .. }
            | Self::Select { y, .. }
            | Self::Reduce { y, .. }
            | Self::Softmax { y, .. }
            | Self::Pool { y, .. }
            | Self::Gather { y, .. }
            | Self::Reshape { y, .. }
            | Self::Rearrange { y, .. }
            | Self::Slice { y, .. }
            | Self::Concat { y, .. } => Some(y),
            Self::Split { .. } => None,
        }
    }
}
