//! Element-wise operators, views and copies.

use super::{FP32, Network, OperatorNode, StorageId, ValueId};
use crate::error::Result;
use crate::operator::{Copying, Mask, Op, Part, Unary, View};
use crate::shape::{Dim, Extent, Shape};
use crate::training_graph::Element;

impl Network {
    /// An element-wise function into a storage of its own, laid out as `x` is.
    pub fn unary(&mut self, module: &str, x: ValueId, function: Unary) -> ValueId {
        let (shape, contiguous) = (self.shape(x).clone(), self.value(x).contiguous);
        let input = self.storage_of(x);
        let storage = self.new_storage(module, shape.elements() * FP32, crate::Role::Activation);
        let saved: Option<StorageId> = match function {
            Unary::Relu | Unary::Tanh | Unary::Sigmoid => Some(storage),
            Unary::Relu6 | Unary::Clip { .. } | Unary::Gelu | Unary::GeluTanh | Unary::Silu | Unary::Power(_) => {
                Some(input)
            }
            Unary::Scale(_) | Unary::AddConstant(_) | Unary::Where(_) => None,
            Unary::DivideByElement(_) => Some(self.side_storage(&format!("{module}.divisor"), Extent::fixed(FP32))),
            Unary::Other(function) if function.saves_nothing() => None,
            Unary::Other(function) => Some(if function.saves_output() { storage } else { input }),
            Unary::DropPath(_) => Some(self.side_storage(&format!("{module}.noise"), Extent::per_sample(FP32))),
        };
        let node = OperatorNode::new(Op::Unary { function, in_place: false }, &[x]).saves(saved);
        self.add_node_over(module, node, shape, storage, contiguous)
    }

    /// ReLU in place.
    pub fn relu_in_place(&mut self, module: &str, x: ValueId) -> ValueId {
        self.in_place(module, x, Unary::Relu)
    }

    /// ReLU, ReLU6 or leaky ReLU over its input. Saves its output, whose signs are its input's; of ReLU6 PyTorch saves a
    /// clone of the input, so that it costs a third map.
    pub fn in_place(&mut self, module: &str, x: ValueId, function: Unary) -> ValueId {
        let (shape, storage, contiguous) = (self.shape(x).clone(), self.storage_of(x), self.value(x).contiguous);
        let saved = match function {
            Unary::Relu6 => self.side_storage(&format!("{module}.clone"), shape.elements() * FP32),
            _ => storage,
        };
        let node = OperatorNode::new(Op::Unary { function, in_place: true }, &[x]).saves([saved]);
        self.add_node_over(module, node, shape, storage, contiguous)
    }

    /// `where(mask, x, constant)` with a mask cut from `buffer`, which is saved whole.
    pub fn masked(&mut self, module: &str, x: ValueId, buffer: StorageId, mask: Mask) -> ValueId {
        let shape = self.shape(x).clone();
        let op = Op::Unary { function: Unary::Where(mask), in_place: false };
        let mut node = OperatorNode::new(op, &[x]).saves([buffer]);
        node.buffers = vec![buffer];
        self.add_node(module, node, shape)
    }

    /// Element-wise sum; saves nothing. The second operand may be smaller and is then broadcast.
    ///
    /// # Errors
    /// Shapes that do not broadcast to one.
    pub fn add(&mut self, module: &str, a: ValueId, b: ValueId) -> Result<ValueId> {
        self.sum(module, Op::Add, a, b)
    }

    /// Element-wise difference; saves nothing. An operand may be smaller and is then broadcast.
    ///
    /// # Errors
    /// Shapes that do not broadcast to one.
    pub fn subtract(&mut self, module: &str, a: ValueId, b: ValueId) -> Result<ValueId> {
        self.sum(module, Op::Subtract, a, b)
    }

    fn sum(&mut self, module: &str, op: Op, a: ValueId, b: ValueId) -> Result<ValueId> {
        let shape = self.broadcast(module, &op, a, b)?;
        Ok(self.add_node(module, OperatorNode::new(op, &[a, b]), shape))
    }

    /// Element-wise product; saves each operand that the other's gradient needs.
    ///
    /// # Errors
    /// Shapes that do not broadcast to one.
    pub fn mul(&mut self, module: &str, a: ValueId, b: ValueId) -> Result<ValueId> {
        let shape = self.broadcast(module, &Op::Mul, a, b)?;
        let saved_a = self.needs_grad(b).then(|| self.storage_of(a));
        let saved_b = self.needs_grad(a).then(|| self.storage_of(b));
        let node = OperatorNode::new(Op::Mul, &[a, b]).saves(saved_b).saves(saved_a);
        Ok(self.add_node(module, node, shape))
    }

    /// Dropout with a `probability` above zero: saves an fp32 mask.
    pub fn dropout(&mut self, module: &str, x: ValueId, probability: f32) -> ValueId {
        let shape = self.shape(x).clone();
        let mask = self.side_storage(&format!("{module}.mask"), shape.elements() * FP32);
        self.storages[mask as usize].dropout_mask = true;
        self.storages[mask as usize].element = Element::Whole;
        let node = OperatorNode::new(Op::Dropout(probability), &[x]).saves([mask]);
        self.add_node(module, node, shape)
    }

    /// Concatenation along `axis`; saves nothing.
    ///
    /// # Errors
    /// No tensors, or tensors that differ in another axis.
    pub fn concat(&mut self, module: &str, parts: &[ValueId], axis: usize) -> Result<ValueId> {
        let op = Op::Concat { axis };
        let Some(&first) = parts.first() else {
            return Err(self.shape_error(module, &op, parts, "at least one tensor"));
        };
        let mut shape = self.shape(first).clone();
        let agrees = |n: &Self, part: ValueId| {
            let other = n.shape(part);
            other.rank() == shape.rank() && (0..shape.rank()).all(|d| d == axis || other.0[d] == shape.0[d])
        };
        if axis >= shape.rank() || !parts.iter().all(|&part| agrees(self, part)) {
            return Err(self.shape_error(module, &op, parts, "tensors that agree in every other axis"));
        }
        shape.0[axis].size = parts.iter().map(|&part| self.shape(part).size(axis)).sum();
        Ok(self.add_node(module, OperatorNode::new(op, parts), shape))
    }

    /// The same elements under another shape; a value that is not contiguous is copied first, as PyTorch's `reshape` does.
    ///
    /// # Errors
    /// A shape with another number of elements.
    pub fn reshape(&mut self, module: &str, x: ValueId, shape: Shape) -> Result<ValueId> {
        let op = Op::View(View::Reshape);
        if shape.elements() != self.shape(x).elements() {
            let expected = format!("as many elements as {shape} has");
            return Err(self.shape_error(module, &op, &[x], &expected));
        }
        let x = self.contiguous(module, x);
        let storage = self.storage_of(x);
        Ok(self.add_node_over(module, OperatorNode::new(op, &[x]), shape, storage, true))
    }

    /// Everything but the batch in one dimension.
    ///
    /// # Errors
    /// A tensor without a batch.
    pub fn flatten(&mut self, module: &str, x: ValueId) -> Result<ValueId> {
        let elements = self.shape(x).elements();
        self.reshape(module, x, Shape::batched(&[elements.per_sample]))
    }

    /// The axes in another order, seen in place.
    ///
    /// # Errors
    /// An order that is not a permutation of the axes.
    pub fn permute(&mut self, module: &str, x: ValueId, order: &[usize]) -> Result<ValueId> {
        let shape = self.shape(x).clone();
        let op = Op::View(View::Permute(order.to_vec()));
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if sorted != (0..shape.rank()).collect::<Vec<_>>() {
            let expected = format!("a permutation of its axes, not {order:?}");
            return Err(self.shape_error(module, &op, &[x], &expected));
        }
        let permuted = Shape(order.iter().map(|&axis| shape.0[axis]).collect());
        // Axes of size one may move without changing the order of the elements.
        let moving = |axes: &[usize]| axes.iter().copied().filter(|&a| shape.0[a] != Dim::ONE).collect::<Vec<_>>();
        let in_order = moving(order).is_sorted() && self.value(x).contiguous;
        let storage = self.storage_of(x);
        Ok(self.add_node_over(module, OperatorNode::new(op, &[x]), permuted, storage, in_order))
    }

    /// The elements of `x` that `part` names, as `shape`, seen in place: autograd that saves them keeps the whole storage.
    pub fn slice(&mut self, module: &str, x: ValueId, part: Part, shape: Shape, contiguous: bool) -> ValueId {
        let storage = self.storage_of(x);
        self.add_node_over(module, OperatorNode::new(Op::Slice(part), &[x]), shape, storage, contiguous)
    }

    /// `x` itself where it is contiguous, otherwise a copy.
    pub fn contiguous(&mut self, module: &str, x: ValueId) -> ValueId {
        if self.value(x).contiguous { x } else { self.copy(module, x) }
    }

    /// A copy into a storage of its own (`clone`).
    pub fn copy(&mut self, module: &str, x: ValueId) -> ValueId {
        let shape = self.shape(x).clone();
        self.add_node(module, OperatorNode::new(Op::Copy(Copying::Plain), &[x]), shape)
    }

    /// A copy whose elements have moved by so many positions along each axis, from the end back to the front.
    pub fn roll(&mut self, module: &str, x: ValueId, shifts: &[u64]) -> ValueId {
        let shape = self.shape(x).clone();
        self.add_node(module, OperatorNode::new(Op::Copy(Copying::Roll(shifts.to_vec())), &[x]), shape)
    }

    /// A copy with zeros behind each axis, up to `shape`; PyTorch copies even if there is nothing to pad.
    pub fn pad(&mut self, module: &str, x: ValueId, shape: Shape) -> ValueId {
        self.add_node(module, OperatorNode::new(Op::Copy(Copying::Pad), &[x]), shape)
    }

    pub(super) fn broadcast(&self, module: &str, op: &Op, a: ValueId, b: ValueId) -> Result<Shape> {
        let shape = self.shape(a).broadcast(self.shape(b));
        shape.ok_or_else(|| self.shape_error(module, op, &[a, b], "shapes that broadcast to one"))
    }
}
