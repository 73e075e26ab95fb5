//! Element-wise operators, views and copies.
//!
//! Some operators occur only in imported networks, and are counted but not computed on data.

use super::{FP32, INT64, Initial, Network, OperatorNode, ParameterId, StorageId, ValueId};
use crate::error::Result;
use crate::operator::{Cell, Part, Pointwise};
use crate::{Copying, Dim, Element, Extent, Mask, Op, Pairing, Reducing, Shape, Taking, Unary, View, Window};

impl Network {
    /// An element-wise function into a new storage, in the layout of `x`.
    pub fn unary(&mut self, module: &str, x: ValueId, function: Unary) -> ValueId {
        let (shape, contiguous) = (self.shape(x).clone(), self.value(x).contiguous);
        let input = self.storage_of(x);
        let storage = self.new_storage(module, shape.elements() * FP32, crate::Role::Activation);
        let saved: Option<StorageId> = match function {
            Unary::Relu | Unary::Tanh | Unary::Sigmoid => Some(storage),
            Unary::Relu6 | Unary::Clip { .. } | Unary::Gelu | Unary::GeluTanh | Unary::Silu | Unary::Power(_) => {
                Some(input)
            }
            Unary::Scale(_) | Unary::AddConstant(_) | Unary::Where(_) | Unary::Other(Pointwise::Round) => None,
            Unary::DivideByElement(_) => Some(self.side_storage(&format!("{module}.divisor"), Extent::fixed(FP32))),
            Unary::Other(function) => Some(if function.saves_output() { storage } else { input }),
            Unary::DropPath(_) => Some(self.side_storage(&format!("{module}.noise"), Extent::per_sample(FP32))),
        };
        let node = OperatorNode::new(Op::Unary { function, in_place: false }, &[x]).saves(saved);
        self.add_node_over(module, node, shape, storage, contiguous)
    }

    /// ReLU, ReLU6 or leaky ReLU in place. Saves its output, whose signs are its input's; for ReLU6 PyTorch saves a
    /// clone of the input, which is a third map.
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

    /// One of two values by `condition`, as `shape`; saves the condition.
    pub(crate) fn select(&mut self, module: &str, condition: StorageId, sides: [ValueId; 2], shape: Shape) -> ValueId {
        let mut node = OperatorNode::new(Op::Pairwise(Pairing::Select), &sides).saves([condition]);
        node.buffers = vec![condition];
        self.add_node(module, node, shape)
    }

    /// A weight from a `direction` and a `length` for each of its rows, whose norms are saved: a table
    /// of two parameters.
    pub(crate) fn weight_norm(
        &mut self,
        module: &str,
        direction: ParameterId,
        length: ParameterId,
        shape: Shape,
    ) -> ValueId {
        let rows = self.id_buffer(&format!("{module}.rows"), &[1], 1, Initial::ZEROS);
        let norms = Extent::fixed(self.parameter(length).elements * FP32);
        let norms = self.side_storage(&format!("{module}.norms"), norms);
        let node = OperatorNode::new(Op::IndexTable, &[rows]);
        self.add_node(module, node.parameters(&[direction, length]).saves([norms]), shape)
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

    /// The same elements under another shape; a value that is not contiguous is copied first, as
    /// PyTorch's `reshape` does.
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

    /// The elements of `x` that `part` names, as `shape`, in a view: autograd keeps the whole storage if it saves them.
    pub fn slice(&mut self, module: &str, x: ValueId, part: Part, shape: Shape, contiguous: bool) -> ValueId {
        let storage = self.storage_of(x);
        self.add_node_over(module, OperatorNode::new(Op::Slice(part), &[x]), shape, storage, contiguous)
    }

    /// `x` itself where it is contiguous, otherwise a copy.
    pub fn contiguous(&mut self, module: &str, x: ValueId) -> ValueId {
        if self.value(x).contiguous { x } else { self.copy(module, x) }
    }

    /// A copy into a new storage (`clone`).
    pub fn copy(&mut self, module: &str, x: ValueId) -> ValueId {
        let shape = self.shape(x).clone();
        self.add_node(module, OperatorNode::new(Op::Copy(Copying::Plain), &[x]), shape)
    }

    /// A copy with elements moved by `shifts` positions along each axis, from the end back to the front.
    pub fn roll(&mut self, module: &str, x: ValueId, shifts: &[u64]) -> ValueId {
        let shape = self.shape(x).clone();
        self.add_node(module, OperatorNode::new(Op::Copy(Copying::Roll(shifts.to_vec())), &[x]), shape)
    }

    /// A copy with zeros behind each axis, up to `shape`; PyTorch copies even if no axis is padded.
    pub fn pad(&mut self, module: &str, x: ValueId, shape: Shape) -> ValueId {
        self.add_node(module, OperatorNode::new(Op::Copy(Copying::Pad), &[x]), shape)
    }

    pub(super) fn broadcast(&self, module: &str, op: &Op, a: ValueId, b: ValueId) -> Result<Shape> {
        let shape = self.shape(a).broadcast(self.shape(b));
        shape.ok_or_else(|| self.shape_error(module, op, &[a, b], "shapes that broadcast to one"))
    }

    /// An element-wise function of two tensors; saves those operands that the wanted gradients need.
    ///
    /// # Errors
    /// Shapes that do not broadcast to one.
    pub(crate) fn pairwise(&mut self, module: &str, a: ValueId, b: ValueId, pairing: Pairing) -> Result<ValueId> {
        let op = Op::Pairwise(pairing);
        let shape = self.broadcast(module, &op, a, b)?;
        // A quotient's first derivative is one over its second operand.
        let first = self.needs_grad(b) || pairing != Pairing::Quotient;
        let saved = [first.then(|| self.storage_of(a)), Some(self.storage_of(b))];
        Ok(self.add_node(module, OperatorNode::new(op, &[a, b]).saves(saved.into_iter().flatten()), shape))
    }

    /// A reduction over `axes`, which `shape` lacks or has as size one.
    pub fn reduce(&mut self, module: &str, x: ValueId, how: Reducing, axes: Vec<usize>, shape: Shape) -> ValueId {
        let storage = self.new_storage(module, shape.elements() * FP32, crate::Role::Activation);
        let saved = how.saves().then(|| [self.storage_of(x), storage]);
        let node = OperatorNode::new(Op::Reduce { how, axes }, &[x]).saves(saved.into_iter().flatten());
        self.add_node_over(module, node, shape, storage, true)
    }

    /// Elements at other places, as `shape`; a look-up saves its indices, `indices` 64-bit integers.
    pub fn take(&mut self, module: &str, x: ValueId, taking: Taking, indices: Extent, shape: Shape) -> ValueId {
        let saved = (taking == Taking::LookUp).then(|| {
            let places = self.side_storage(&format!("{module}.indices"), indices * INT64);
            self.storages[places as usize].element = Element::Whole;
            places
        });
        self.add_node(module, OperatorNode::new(Op::Take(taking), &[x]).saves(saved), shape)
    }

    /// Normalisation of `groups` groups of the channels of `B×C×…`; saves its input, and a mean and an inverse
    /// deviation for each sample and group. `parameters` are a weight and a bias for each channel, or nothing.
    ///
    /// # Errors
    /// A tensor whose channels the groups do not divide, or weights that do not match them.
    pub(crate) fn group_norm(
        &mut self,
        module: &str,
        x: ValueId,
        groups: u64,
        parameters: Option<[ParameterId; 2]>,
        epsilon: f32,
    ) -> Result<ValueId> {
        let op = Op::GroupNorm { groups, epsilon };
        let (rank, channels) = (self.shape(x).rank(), self.shape(x).size(1));
        let fits = |&parameter: &ParameterId| self.parameter(parameter).elements == channels;
        if rank < 2 || groups == 0 || !channels.is_multiple_of(groups) || !parameters.iter().flatten().all(fits) {
            let expected =
                format!("a B×C×… tensor whose channels {groups} groups divide, and a weight for each channel");
            return Err(self.shape_error(module, &op, &[x], &expected));
        }
        let rows = Shape(vec![self.shape(x).dim(0), Dim::fixed(groups)]).elements() * FP32;
        let statistics = ["mean", "inverse_deviation"].map(|s| self.side_storage(&format!("{module}.{s}"), rows));
        let parameters: Vec<_> = parameters.into_iter().flatten().collect();
        let node = OperatorNode::new(op, &[x]).parameters(&parameters).saves([self.storage_of(x)]).saves(statistics);
        let shape = self.shape(x).clone();
        Ok(self.add_node(module, node, shape))
    }

    /// A transposed convolution of `B×C×H×W` into `shape`; saves its input.
    ///
    /// # Errors
    /// A tensor of another rank, or channels that do not suit the weight and the groups.
    #[expect(clippy::too_many_arguments, reason = "a transposed convolution has as many parts")]
    pub(crate) fn transposed_convolution(
        &mut self,
        module: &str,
        x: ValueId,
        window: Window,
        groups: u64,
        shape: Shape,
        weight: ParameterId,
        bias: Option<ParameterId>,
    ) -> Result<ValueId> {
        let op = Op::TransposedConvolution { window, groups };
        self.expect_rank(module, &op, x, 4, "a B×C×H×W tensor")?;
        let (inputs, outputs) = (self.shape(x).size(1), shape.size(1));
        let divided = groups > 0 && inputs.is_multiple_of(groups) && outputs.is_multiple_of(groups);
        if !divided || self.parameter(weight).elements != inputs * (outputs / groups.max(1)) * window.taps() {
            return Err(self.shape_error(module, &op, &[x], "channels that suit its weight and its groups"));
        }
        // Each value of the input is spread over a window of every output channel of its group.
        let flops = self.shape(x).elements() * (2 * outputs / groups * window.taps());
        let parameters: Vec<_> = std::iter::once(weight).chain(bias).collect();
        let saved = self.trains(weight).then(|| self.storage_of(x));
        Ok(self.add_node(module, OperatorNode::new(op, &[x]).parameters(&parameters).saves(saved).flops(flops), shape))
    }

    /// A recurrent layer over `steps` steps with a state of `units`, of `x` into `shape`, whose last axis has a state
    /// for each of `directions`; saves its input, and the [`Cell::saved_values`] of each step.
    #[expect(clippy::too_many_arguments, reason = "a recurrent layer has as many parts")]
    pub(crate) fn recurrent(
        &mut self,
        module: &str,
        x: ValueId,
        cell: Cell,
        [steps, units]: [u64; 2],
        directions: u64,
        parameters: &[ParameterId],
        shape: Shape,
    ) -> ValueId {
        let rows = self.shape(x).with_last(1).elements();
        let inputs = self.shape(x).last();
        let flops = rows * (2 * directions * cell.gates() * units * (inputs + units));
        let values = rows * (directions * units * FP32 * cell.saved_values());
        // A plain unit saves the states before and after every step, which are one more than there are steps.
        let first = if cell == Cell::Plain { values.times(1, steps.max(1)) } else { Extent::ZERO };
        let kept = self.side_storage(&format!("{module}.steps"), values + first);
        let node = OperatorNode::new(Op::Recurrent { cell, steps }, &[x])
            .parameters(parameters)
            .saves([self.storage_of(x), kept])
            .flops(flops);
        self.add_node(module, node, shape)
    }
}
