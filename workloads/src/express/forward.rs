//! Forward: the expressions of each operator.

use haversack_devices::work::{OperatorKind, ProductRole};

use super::expression::{Expression, Function, Order, VariableId};
use super::scribe::{Place, Scribe};
use crate::network::{Node, ValueId};
use crate::operator::{Op, Unary};
use crate::shape::{Extent, Shape};

impl Scribe<'_> {
    /// Writes the expressions of `node` and notes where its output is found.
    pub(super) fn forward(&mut self, node: &Node) {
        let place = match node.op {
            Op::View => self.seen(node),
            Op::Slice => self.part(node),
            Op::Copy => self.copied(node),
            _ => Place { variable: self.computed(node), permuted: false },
        };
        self.places[node.output as usize] = Some(place);
    }

    fn computed(&mut self, node: &Node) -> VariableId {
        let shape = self.network.shape(node.output).clone();
        let x = self.read(node.inputs[0]);
        match node.op {
            Op::Convolution { .. } => self.convolution(node, x, shape),
            Op::Linear => self.linear(node, x, shape),
            Op::Matmul => {
                let (a, b) = (self.in_order(x, Order::Rows), self.read_rows(node.inputs[1]));
                self.matmul(a, b, shape)
            }
            Op::BatchNorm => self.batch_norm(node, x),
            Op::LayerNorm => self.layer_norm(node, x),
            Op::Unary { function, .. } => self.unary(node, function, x),
            Op::Add | Op::Mul => {
                let other = self.read(node.inputs[1]);
                let [a, b] = self.paired(x, other);
                if node.op == Op::Add { self.add(a, b) } else { self.multiply(a, b) }
            }
            Op::Concat => self.concat(node, shape),
            Op::MaxPool(window) | Op::AveragePool(window) => {
                let kind =
                    if matches!(node.op, Op::MaxPool(_)) { OperatorKind::Gather } else { OperatorKind::Reduction };
                self.pool(kind, x, &shape, window.kernel.iter().product())
            }
            Op::GlobalAveragePool => self.mean(x, shape),
            Op::Dropout => self.dropped(x, shape),
            Op::Softmax => self.softmax(x),
            Op::Embedding | Op::IndexTable => {
                let table = self.weights[node.parameters[0] as usize];
                let y = self.make("gather", shape, Order::Rows);
                let (elements, rows) = (self.elements(y), self.bytes(y));
                let bytes = self.bytes(x) + rows * 2;
                let work = self.push("gather", OperatorKind::Gather, &[table, x], &[y]);
                // It reads the rows that it copies, not the table.
                (work.flops, work.parallelism, work.dram) = (elements, elements, bytes);
                self.record(y, Expression::Gather { table, ids: x, y })
            }
            Op::CrossEntropy => {
                let labels = self.read(node.inputs[1]);
                self.cross_entropy(x, labels)
            }
            // They make no expression of their own; see `forward`.
            Op::View | Op::Slice | Op::Copy => x,
        }
    }

    /// The variable of `value`, copied where its axes were permuted.
    fn read(&mut self, value: ValueId) -> VariableId {
        let place = self.place(value);
        if !place.permuted {
            return place.variable;
        }
        let shape = self.network.shape(value).clone();
        let variable = self.rearrange("permute", place.variable, shape, Order::Rows);
        self.places[value as usize] = Some(Place { variable, permuted: false });
        variable
    }

    fn read_rows(&mut self, value: ValueId) -> VariableId {
        let x = self.read(value);
        self.in_order(x, Order::Rows)
    }

    /// Two operands in one order: blocks where both are maps, otherwise rows.
    fn paired(&mut self, a: VariableId, b: VariableId) -> [VariableId; 2] {
        let maps = [a, b].iter().all(|&side| self.shape(side).rank() == 4);
        let blocks = [a, b].iter().any(|&side| self.variable(side).order == Order::Blocks);
        let order = if maps && blocks { Order::Blocks } else { Order::Rows };
        [self.in_order(a, order), self.in_order(b, order)]
    }

    fn convolution(&mut self, node: &Node, x: VariableId, shape: Shape) -> VariableId {
        let x = self.in_order(x, Order::Blocks);
        let weight = self.weights[node.parameters[0] as usize];
        let bias = node.parameters.get(1).map(|&bias| self.weights[bias as usize]);
        let inputs: Vec<_> = [x, weight].into_iter().chain(bias).collect();
        let y = self.product("convolution", ProductRole::Forward, &inputs, shape, Order::Blocks);
        self.record(y, Expression::Convolution { x, weight, bias, y })
    }

    /// A convolution of one position: rows are seen as pictures of one pixel, whose channels are the features.
    fn linear(&mut self, node: &Node, x: VariableId, shape: Shape) -> VariableId {
        let rows = self.in_order(x, Order::Rows);
        let pixels = as_pixels(&self.shape(rows));
        let x = self.reshape(rows, pixels);
        let y = self.convolution(node, x, as_pixels(&shape));
        self.reshape(y, shape)
    }

    fn matmul(&mut self, a: VariableId, b: VariableId, shape: Shape) -> VariableId {
        let y = self.product("matmul", ProductRole::Forward, &[a, b], shape, Order::Rows);
        self.record(y, Expression::Product { a, b, y })
    }

    fn unary(&mut self, node: &Node, function: Unary, x: VariableId) -> VariableId {
        match function {
            Unary::Relu => self.apply(Function::Relu, x),
            Unary::Relu6 => self.apply(Function::Relu6, x),
            Unary::Tanh => self.apply(Function::Tanh, x),
            Unary::Cube => self.apply(Function::Cube, x),
            Unary::Gelu => self.gelu(x),
            Unary::Scale | Unary::DivideByElement => self.scale(x),
            Unary::AddConstant => self.offset(x),
            Unary::DropPath => self.dropped(x, Shape::batched(&[])),
            Unary::Where => {
                let Some(&condition) = node.buffers.first() else { return self.offset(x) };
                let condition = self.leaf(condition, Shape::default());
                let y = self.sweep("select", &[condition, x]);
                self.record(y, Expression::Select { condition, x, y })
            }
        }
    }

    /// Pooling over windows of `taps` positions, in blocks.
    fn pool(&mut self, kind: OperatorKind, x: VariableId, shape: &Shape, taps: u64) -> VariableId {
        let x = self.in_order(x, Order::Blocks);
        let y = self.make("pool", shape.clone(), Order::Blocks);
        let work = self.push("pool", kind, &[x], &[y]);
        (work.flops, work.parallelism) = (shape.elements() * taps, shape.elements());
        self.record(y, Expression::Pool { x, y })
    }

    /// A mean over all positions is a pooling; over other axes it is a reduction.
    fn mean(&mut self, x: VariableId, shape: Shape) -> VariableId {
        let whole = self.shape(x);
        if whole.rank() == 4 && shape == Shape::batched(&[whole.size(1), 1, 1]) {
            return self.pool(OperatorKind::Reduction, x, &shape, whole.size(2) * whole.size(3));
        }
        let x = self.in_order(x, Order::Rows);
        self.reduce(true, x, shape)
    }

    fn concat(&mut self, node: &Node, shape: Shape) -> VariableId {
        let parts: Vec<_> = node.inputs.iter().map(|&part| self.read(part)).collect();
        let blocks = parts.iter().any(|&part| self.variable(part).order == Order::Blocks);
        let order = if blocks { Order::Blocks } else { Order::Rows };
        let parts: Vec<_> = parts.into_iter().map(|part| self.in_order(part, order)).collect();
        let y = self.map("concat", OperatorKind::Layout, &parts, shape, order);
        self.record(y, Expression::Concat { parts, y })
    }

    /// A reshape within rows is free; a permutation waits for its reader.
    fn seen(&mut self, node: &Node) -> Place {
        let Place { variable, permuted } = self.place(node.inputs[0]);
        if self.network.value(node.output).contiguous {
            let x = if permuted { self.read(node.inputs[0]) } else { variable };
            let shape = self.network.shape(node.output).clone();
            return Place { variable: self.reshape(x, shape), permuted: false };
        }
        Place { variable: self.in_order(variable, Order::Rows), permuted: true }
    }

    /// A part is copied; where the parts are the whole, one operator copies them all.
    fn part(&mut self, node: &Node) -> Place {
        if let Some(place) = self.places[node.output as usize] {
            return place;
        }
        let whole = node.inputs[0];
        let x = self.read(whole);
        let (shape, order) = (self.network.shape(node.output).clone(), self.variable(x).order);
        let parts: Vec<ValueId> = self.parts_of(whole);
        let of_all: Extent = parts.iter().map(|&part| self.network.shape(part).elements()).sum();
        if parts.len() > 1 && of_all == self.elements(x) {
            // Parts with more axes than the whole are seen by heads, whose axis has moved.
            let permuted = shape.rank() > self.shape(x).rank();
            let shapes: Vec<Shape> = parts.iter().map(|&part| self.network.shape(part).clone()).collect();
            let made: Vec<_> = shapes.into_iter().map(|shape| self.make("split", shape, order)).collect();
            self.push("split", OperatorKind::Layout, &[x], &made);
            for (&part, &variable) in parts.iter().zip(&made) {
                self.places[part as usize] = Some(Place { variable, permuted });
            }
            let first = made[0];
            self.record(first, Expression::Split { x, parts: made });
            return Place { variable: first, permuted };
        }
        let y = self.make("slice", shape, order);
        let (elements, bytes) = (self.elements(y), self.bytes(y) * 2);
        let work = self.push("slice", OperatorKind::Layout, &[x], &[y]);
        (work.flops, work.parallelism, work.dram) = (elements, elements, bytes);
        let variable = self.record(y, Expression::Slice { x, y });
        Place { variable, permuted: false }
    }

    /// The parts that are cut from `whole`, in order.
    fn parts_of(&self, whole: ValueId) -> Vec<ValueId> {
        let cuts = self.network.nodes.iter().filter(|node| node.op == Op::Slice && node.inputs[0] == whole);
        cuts.map(|node| node.output).collect()
    }

    /// A copy that only makes elements adjacent is a permutation's, or there is none: an expression's output is always
    /// in order.
    fn copied(&mut self, node: &Node) -> Place {
        let (input, shape) = (node.inputs[0], self.network.shape(node.output).clone());
        let adjacent = self.network.value(input).contiguous;
        let x = self.read(input);
        if !adjacent && shape.elements() == self.elements(x) {
            return Place { variable: x, permuted: false };
        }
        let x = self.in_order(x, Order::Rows);
        let y = self.make("copy", shape, Order::Rows);
        let storage = self.network.storage(self.network.value(node.output).storage);
        let tensor = &mut self.graph.tensors[self.variables[y as usize].tensor as usize];
        // Ids are wider than activations.
        (tensor.bytes, tensor.element) = (storage.bytes, storage.element);
        self.push("copy", OperatorKind::Layout, &[x], &[y]);
        let variable = self.record(y, Expression::Rearrange { label: "copy", x, y });
        Place { variable, permuted: false }
    }
}

/// All axes but the last as the number of pictures, the last as channels, of one position.
fn as_pixels(shape: &Shape) -> Shape {
    let pictures = shape.0.iter().rev().skip(1);
    let (batched, size) = pictures.fold((false, 1), |(batched, size), dim| (batched || dim.batched, size * dim.size));
    let mut pixels = Shape::fixed(&[size, shape.last(), 1, 1]);
    pixels.0[0].batched = batched;
    pixels
}
