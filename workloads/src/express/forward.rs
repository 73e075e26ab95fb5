//! Forward: the expressions of each operator, including those that MNN composes: normalisation, GELU,
//! dropout, the loss.

use haversack_devices::{OperatorKind, ProductRole};

use super::{DataFormat, ExpressionWriter, Function, Layout, Operation, Shown, VariableId, Version};
use crate::{Copying, Element, Extent, Need, Op, OperatorNode, Shape, Taking, Unary, ValueId};

impl ExpressionWriter<'_> {
    /// Writes the expressions of `node` and notes the variable of its output.
    pub(super) fn forward(&mut self, node: &OperatorNode) {
        let shown = match node.op {
            Op::View(_) => self.view(node),
            Op::Slice(_) => self.part(node),
            Op::Copy(_) => self.copy(node),
            _ => in_place(self.compute(node)),
        };
        self.shown[node.output as usize] = Some(shown);
    }

    fn compute(&mut self, node: &OperatorNode) -> VariableId {
        let shape = self.network.shape(node.output).clone();
        let x = self.read(node.inputs[0]);
        match node.op {
            Op::Convolution { .. } | Op::TransposedConvolution { .. } => self.convolution(node, x, shape),
            Op::Linear => self.linear(node, x, shape),
            // Recurrent layers are refused earlier: MNN trains none.
            Op::Recurrent { .. } | Op::Matmul => {
                let a = self.in_rows(x);
                let b = self.read(node.inputs[1]);
                let operands = [a, self.in_rows(b)];
                let y = self.product("matmul", ProductRole::Forward, &operands, Layout::rows(shape));
                self.record(Operation::Product, &operands, y)
            }
            Op::BatchNorm { .. } => self.batch_norm(node, x),
            Op::LayerNorm { .. } => self.layer_norm(node, x),
            Op::GroupNorm { groups, .. } => {
                let rows = self.in_rows(x);
                self.normalise(node, rows, Shape::batched(&[groups])).0
            }
            Op::Pairwise(_) => {
                let other = self.read(node.inputs[1]);
                let sides = self.in_one_format(x, other);
                self.step(Operation::Multiply, &sides)
            }
            Op::Reduce { .. } => {
                let x = self.in_rows(x);
                self.reduce(false, x, shape)
            }
            Op::Take(Taking::PadAround) => self.padded(x, shape),
            Op::Take(_) => {
                let x = self.in_rows(x);
                self.rearrange("raster", x, Layout::rows(shape))
            }
            Op::Unary { function, .. } => {
                let x = self.as_told(x);
                self.unary(node, function, x)
            }
            Op::Add | Op::Subtract | Op::Mul => {
                let other = self.read(node.inputs[1]);
                let sides = self.in_one_format(x, other);
                self.step(if node.op == Op::Mul { Operation::Multiply } else { Operation::Add }, &sides)
            }
            Op::Concat { .. } => self.concat(node, shape),
            // The maximum of blocks, by vectors.
            Op::MaxPool(window) => self.pool(OperatorKind::ElementWise, x, &shape, window.taps()),
            Op::AveragePool { window, .. } => self.pool(OperatorKind::Reduction, x, &shape, window.taps()),
            Op::GlobalAveragePool { .. } => self.mean(x, shape),
            Op::Dropout(_) => self.dropped(x, shape),
            Op::Softmax => self.softmax(x),
            Op::Embedding | Op::IndexTable => {
                let table = self.weights[node.parameters[0] as usize];
                let y = self.make("gather", Layout::rows(shape));
                let (elements, rows) = (self.elements(y), self.bytes(y));
                let bytes = self.bytes(x) + rows * 2;
                let work = self.push("gather", OperatorKind::Gather, &[table, x], &[y]);
                // It reads the rows that it copies, not the table.
                (work.flops, work.parallelism, work.dram) = (elements, elements, bytes);
                self.record(Operation::Gather, &[table, x], y)
            }
            Op::CrossEntropy => {
                let labels = self.read(node.inputs[1]);
                self.cross_entropy(x, labels)
            }
            // They make no expression; see `forward`.
            Op::View(_) | Op::Slice(_) | Op::Copy(_) => x,
        }
    }

    /// The variable of `value`, copied if its axes were permuted.
    fn read(&mut self, value: ValueId) -> VariableId {
        let shown = self.show(value);
        if !shown.permuted {
            return shown.variable;
        }
        let shape = self.network.shape(value).clone();
        let variable = self.rearrange("permute", shown.variable, Layout::rows(shape));
        self.shown[value as usize] = Some(in_place(variable));
        variable
    }

    /// Two operands in one format: blocks if both are maps and one lies in blocks, otherwise rows.
    fn in_one_format(&mut self, a: VariableId, b: VariableId) -> [VariableId; 2] {
        let maps = [a, b].iter().all(|&side| self.variable(side).shape.rank() == 4);
        let format = if maps { self.format_of(&[a, b]) } else { DataFormat::Rows };
        [a, b].map(|side| self.in_format(side, format))
    }

    /// Blocks if one of `variables` lies in blocks, otherwise rows.
    fn format_of(&self, variables: &[VariableId]) -> DataFormat {
        let blocks = variables.iter().any(|&variable| self.variable(variable).format.told() == DataFormat::Blocks);
        if blocks { DataFormat::Blocks } else { DataFormat::Rows }
    }

    fn convolution(&mut self, node: &OperatorNode, x: VariableId, shape: Shape) -> VariableId {
        if let Some(product) = self.gathers().filter(|_| self.version == Version::V1) {
            return self.gathered_convolution(node, x, shape, &product);
        }
        let x = self.in_format(x, DataFormat::Blocks);
        let weights = node.parameters.iter().take(2).map(|&parameter| self.weights[parameter as usize]);
        let inputs: Vec<_> = std::iter::once(x).chain(weights).collect();
        let y = self.product("convolution", ProductRole::Forward, &inputs, Layout::blocks(shape));
        self.record(Operation::Convolution, &inputs, y)
    }

    /// `x` with zeros around its positions, which no kernel reads: windows are clipped to the map.
    fn padded(&mut self, x: VariableId, shape: Shape) -> VariableId {
        let seen = self.variable(x);
        let (tensor, format, trains) = (seen.tensor, seen.format, seen.trains);
        let y = self.look(tensor, Layout { shape, format });
        self.variables[y as usize].trains = trains;
        self.record(Operation::Pad, &[x], y)
    }

    /// A convolution of one position: rows are treated as pictures of one pixel, whose channels are the features.
    fn linear(&mut self, node: &OperatorNode, x: VariableId, shape: Shape) -> VariableId {
        let rows = self.in_rows(x);
        if self.version == Version::V1 {
            return self.matrix_product(node, rows, shape);
        }
        let pixels = as_pixels(&self.shape(rows));
        let x = self.reshape(rows, pixels);
        let y = self.convolution(node, x, as_pixels(&shape));
        self.reshape(y, shape)
    }

    fn unary(&mut self, node: &OperatorNode, function: Unary, x: VariableId) -> VariableId {
        let operation = match function {
            Unary::Relu => Operation::Function(Function::Relu),
            Unary::Relu6 | Unary::Clip { .. } => Operation::Function(Function::Relu6),
            Unary::Tanh => Operation::Function(Function::Tanh),
            Unary::Sigmoid => Operation::Function(Function::Sigmoid),
            Unary::Silu => {
                let share = self.apply(Function::Sigmoid, x);
                return self.step(Operation::Multiply, &[x, share]);
            }
            Unary::Power(_) => Operation::Function(Function::Cube),
            Unary::Other(_) => Operation::Function(Function::Other),
            Unary::Gelu | Unary::GeluTanh => return self.gelu(x),
            Unary::Scale(_) | Unary::DivideByElement(_) => Operation::Scale,
            Unary::DropPath(_) => return self.dropped(x, Shape::batched(&[])),
            Unary::Where(_) if !node.buffers.is_empty() => {
                let condition = self.leaf(node.buffers[0], Shape::default());
                return self.step(Operation::Select, &[condition, x]);
            }
            Unary::AddConstant(_) | Unary::Where(_) => Operation::Offset,
        };
        self.step(operation, &[x])
    }

    /// Pooling over windows of `taps` positions, in blocks.
    fn pool(&mut self, kind: OperatorKind, x: VariableId, shape: &Shape, taps: u64) -> VariableId {
        let x = self.in_format(x, DataFormat::Blocks);
        let y = self.make("pool", Layout::blocks(shape.clone()));
        let work = self.push("pool", kind, &[x], &[y]);
        let flops = shape.elements() * taps;
        (work.flops, work.parallelism) = (flops, shape.elements());
        self.record(Operation::Pool { kind, flops }, &[x], y)
    }

    /// A mean over all positions is a pooling; over other axes it is a reduction.
    fn mean(&mut self, x: VariableId, shape: Shape) -> VariableId {
        let whole = self.shape(x);
        if whole.rank() == 4 && shape == Shape::batched(&[whole.size(1), 1, 1]) {
            return self.pool(OperatorKind::Reduction, x, &shape, whole.size(2) * whole.size(3));
        }
        let x = self.in_rows(x);
        self.reduce(true, x, shape)
    }

    fn concat(&mut self, node: &OperatorNode, shape: Shape) -> VariableId {
        let parts: Vec<_> = node.inputs.iter().map(|&part| self.read(part)).collect();
        let format = self.format_of(&parts);
        if parts.iter().any(|&part| self.variable(part).format == DataFormat::Columns) {
            return self.join_columns(&parts, Layout { shape, format });
        }
        let parts: Vec<_> = parts.into_iter().map(|part| self.in_format(part, format)).collect();
        self.join(&parts, Layout { shape, format })
    }

    /// A reshape within rows is free; a permutation waits for its reader.
    fn view(&mut self, node: &OperatorNode) -> Shown {
        if self.network.value(node.output).contiguous {
            let x = self.read(node.inputs[0]);
            return in_place(self.reshape(x, self.network.shape(node.output).clone()));
        }
        let variable = self.show(node.inputs[0]).variable;
        Shown { variable: self.in_rows(variable), permuted: true }
    }

    /// A part is copied; if the parts are the whole, one operator copies them all.
    fn part(&mut self, node: &OperatorNode) -> Shown {
        if let Some(shown) = self.shown[node.output as usize] {
            return shown;
        }
        let whole = node.inputs[0];
        let x = self.read(whole);
        let x = self.as_told(x);
        let (shape, format) = (self.network.shape(node.output).clone(), self.variable(x).format);
        let parts: Vec<ValueId> = self.parts.get(&whole).cloned().unwrap_or_default();
        let of_all: Extent = parts.iter().map(|&part| self.network.shape(part).elements()).sum();
        if parts.len() > 1 && of_all == self.elements(x) {
            // Parts with more axes than the whole are split into heads, whose axis has moved.
            let permuted = shape.rank() > self.shape(x).rank();
            let make = |part: &ValueId| self.make("split", Layout { shape: self.network.shape(*part).clone(), format });
            let made: Vec<_> = parts.iter().map(make).collect();
            self.push("split", OperatorKind::Layout, &[x], &made);
            for (&part, &variable) in parts.iter().zip(&made) {
                self.shown[part as usize] = Some(Shown { variable, permuted });
            }
            let first = made[0];
            self.record_all(Operation::Split, &[x], made);
            return Shown { variable: first, permuted };
        }
        in_place(self.slice(x, shape))
    }

    /// A part of `x`, copied because it is read without the rest.
    fn slice(&mut self, x: VariableId, shape: Shape) -> VariableId {
        let y = self.make("slice", Layout { shape, format: self.variable(x).format });
        let (elements, bytes) = (self.elements(y), self.bytes(y) * 2);
        let work = self.push("slice", OperatorKind::Layout, &[x], &[y]);
        (work.flops, work.parallelism, work.dram) = (elements, elements, bytes);
        self.record(Operation::Slice, &[x], y)
    }

    /// Moves elements along axes by two parts and a concatenation for each, as MNN has no operator for it.
    ///
    /// A part of a tensor of more than three axes is a box for every index of the leading axes
    /// (`GeometryStridedSlice.cpp`), and a view of several boxes is not merged into the concatenation that reads it
    /// (`GeometryComputer.cpp`, `getRasterCacheCreateRecursive`): each part is a separate copy.
    fn roll(&mut self, x: VariableId, shifts: &[u64]) -> VariableId {
        let whole = self.shape(x);
        let mut x = self.in_rows(x);
        for (axis, (dim, shift)) in whole.0.iter().zip(shifts).enumerate() {
            let shift = shift % dim.size;
            if shift == 0 {
                continue;
            }
            let parts = [shift, dim.size - shift].map(|size| {
                let mut part = whole.clone();
                part.0[axis].size = size;
                self.slice(x, part)
            });
            x = self.join(&parts, Layout::rows(whole.clone()));
        }
        x
    }

    /// Parts one after the other.
    pub(super) fn join(&mut self, parts: &[VariableId], layout: Layout) -> VariableId {
        let y = self.map("concat", OperatorKind::Layout, parts, layout);
        self.record(Operation::Concat, parts, y)
    }

    /// A copy that only makes elements adjacent is part of a permutation, or is left out: an expression's output is
    /// always in order. Rolled elements are cut and joined again.
    fn copy(&mut self, node: &OperatorNode) -> Shown {
        let (input, shape) = (node.inputs[0], self.network.shape(node.output).clone());
        let adjacent = self.network.value(input).contiguous;
        let x = self.read(input);
        match &node.op {
            Op::Copy(Copying::Roll(shifts)) => return in_place(self.roll(x, shifts)),
            // Nothing is padded: a view of one box (`GeometryCrop.cpp`), which its reader's command copies.
            Op::Copy(Copying::Pad) if shape == self.shape(x) => return in_place(x),
            _ if !adjacent && shape.elements() == self.elements(x) => return in_place(x),
            _ => {}
        }
        let x = self.in_rows(x);
        let y = self.make("copy", Layout::rows(shape));
        // Ids are wider than activations.
        let storage = self.network.storage(self.network.value(node.output).storage);
        let tensor = self.tensor(y);
        (tensor.bytes, tensor.element) = (storage.bytes, storage.element);
        self.push("copy", OperatorKind::Layout, &[x], &[y]);
        in_place(self.record(Operation::Rearrange("copy"), &[x], y))
    }
}

/// A value whose axes are those of `variable`.
const fn in_place(variable: VariableId) -> Shown {
    Shown { variable, permuted: false }
}

/// All axes but the last as the number of pictures, the last as channels, of one position.
fn as_pixels(shape: &Shape) -> Shape {
    let pictures = shape.0.iter().rev().skip(1);
    let (batched, size) = pictures.fold((false, 1), |(batched, size), dim| (batched || dim.batched, size * dim.size));
    let mut pixels = Shape::fixed(&[size, shape.last(), 1, 1]);
    pixels.0[0].batched = batched;
    pixels
}

impl ExpressionWriter<'_> {
    /// Batch normalisation as the module writes it in training: in rows, whatever its input's format.
    pub(super) fn batch_norm(&mut self, node: &OperatorNode, x: VariableId) -> VariableId {
        let format = self.variable(x).format.told();
        let rows = self.in_rows(x);
        let channels = Shape::fixed(&[self.shape(x).size(1)]);
        let (y, [mean, variance]) = self.normalise(node, rows, channels.clone());
        // Each of the two is a weighted sum of its old value and of the batch's: two products and a sum.
        let running: Vec<_> = node.buffers.iter().map(|&buffer| self.leaf(buffer, channels.clone())).collect();
        if !running.is_empty() {
            let read: Vec<_> = [mean, variance].into_iter().chain(running.iter().copied()).collect();
            let work = self.push("running_statistics", OperatorKind::ElementWise, &read, &running);
            work.flops = channels.elements() * 6;
        }
        self.in_format(y, format)
    }

    /// Layer normalisation over the last axis, which is composed as batch normalisation is.
    pub(super) fn layer_norm(&mut self, node: &OperatorNode, x: VariableId) -> VariableId {
        let rows = self.in_rows(x);
        let statistics = self.shape(rows).with_last(1);
        self.normalise(node, rows, statistics).0
    }

    /// (x − mean) · 1/√(variance + ε) · weight + bias; with the mean and the variance of each group.
    fn normalise(&mut self, node: &OperatorNode, x: VariableId, groups: Shape) -> (VariableId, [VariableId; 2]) {
        let mean = self.reduce(true, x, groups.clone());
        let centred = self.step(Operation::Subtract, &[x, mean]);
        let square = self.apply(Function::Square, centred);
        let variance = self.reduce(true, square, groups);
        let safe = self.step(Operation::Offset, &[variance]);
        let deviation = self.apply(Function::Sqrt, safe);
        let inverse = self.apply(Function::Reciprocal, deviation);
        // 1.1 has no gradient of a reciprocal, so that none flows through the variance (`UnaryGrad.cpp`).
        if self.version == Version::V1 {
            self.variables[inverse as usize].trains = false;
        }
        for statistic in [mean, variance, safe, deviation, inverse] {
            self.variables[statistic as usize].need = Need::Statistics;
        }
        let normal = self.step(Operation::Multiply, &[centred, inverse]);
        let &[weight, bias] = node.parameters.as_slice() else { return (normal, [mean, variance]) };
        let [weight, bias] = [weight, bias].map(|parameter| self.weights[parameter as usize]);
        let scaled = self.step(Operation::Multiply, &[normal, weight]);
        (self.step(Operation::Add, &[scaled, bias]), [mean, variance])
    }

    /// x · (1 + erf(x/√2)) · ½, as it is exported.
    pub(super) fn gelu(&mut self, x: VariableId) -> VariableId {
        let divided = self.step(Operation::Scale, &[x]);
        let erf = self.apply(Function::Erf, divided);
        let outer = self.step(Operation::Offset, &[erf]);
        let product = self.step(Operation::Multiply, &[x, outer]);
        self.step(Operation::Scale, &[product])
    }

    /// `x` times a newly drawn mask of `shape`.
    pub(super) fn dropped(&mut self, x: VariableId, shape: Shape) -> VariableId {
        let x = self.as_told(x);
        let format = if shape == self.shape(x) { self.variable(x).format } else { DataFormat::Rows };
        let mask = self.map("mask", OperatorKind::ElementWise, &[], Layout { shape, format });
        self.tensor(mask).element = Element::Whole;
        self.variables[mask as usize].need = Need::Mask;
        self.step(Operation::Multiply, &[x, mask])
    }

    /// Softmax in one operator.
    pub(super) fn softmax(&mut self, x: VariableId) -> VariableId {
        let x = self.in_rows(x);
        let y = self.map("softmax", OperatorKind::Reduction, &[x], Layout::rows(self.shape(x)));
        self.record(Operation::Softmax, &[x], y)
    }

    /// −mean over rows of Σ log(softmax(scores)) · one-hot labels.
    pub(super) fn cross_entropy(&mut self, scores: VariableId, labels: VariableId) -> VariableId {
        let shape = self.shape(scores);
        let predicted = self.softmax(scores);
        let log = self.apply(Function::Log, predicted);
        let one_hot = self.map("one_hot", OperatorKind::Gather, &[labels], Layout::rows(shape.clone()));
        let picked = self.step(Operation::Multiply, &[log, one_hot]);
        let rows = self.reduce(false, picked, shape.with_last(1));
        let mean = self.reduce(true, rows, Shape::default());
        self.apply(Function::Negative, mean)
    }
}
