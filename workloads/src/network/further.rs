//! Operators of imported networks, which are counted and not computed with data.

use super::{FP32, INT64, Network, OperatorNode, ParameterId, ValueId};
use crate::error::Result;
use crate::operator::{Cell, Op, Pairing, Reducing, Taking, Window};
use crate::shape::{Dim, Extent, Shape};
use crate::training_graph::Element;

impl Network {
    /// An element-wise function of two tensors; saves both, as far as the gradients that are wanted need them.
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

    /// What is left of `axes`, which `shape` lacks or shows as one.
    pub fn reduce(&mut self, module: &str, x: ValueId, how: Reducing, axes: Vec<usize>, shape: Shape) -> ValueId {
        let storage = self.new_storage(module, shape.elements() * FP32, crate::Role::Activation);
        let saved = how.saves().then(|| [self.storage_of(x), storage]);
        let node = OperatorNode::new(Op::Reduce { how, axes }, &[x]).saves(saved.into_iter().flatten());
        self.add_node_over(module, node, shape, storage, true)
    }

    /// Elements at other places, as `shape`; a look-up saves so many `indices`, which are 64-bit integers.
    pub fn take(&mut self, module: &str, x: ValueId, taking: Taking, indices: Extent, shape: Shape) -> ValueId {
        let saved = (taking == Taking::LookUp).then(|| {
            let places = self.side_storage(&format!("{module}.indices"), indices * INT64);
            self.storages[places as usize].element = Element::Whole;
            places
        });
        self.add_node(module, OperatorNode::new(Op::Take(taking), &[x]).saves(saved), shape)
    }

    /// Normalisation of `groups` groups of the channels of `B×C×…`; saves its input, and a mean and an inverse deviation
    /// for each sample and group. `parameters` are a weight and a bias for each channel, or nothing.
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

    /// A recurrent layer over `steps` steps with a state of `units`, of `x` into `shape`, whose last axis has a state for
    /// each of `directions`; saves its input, and for each step what [`Cell::saved_values`] says.
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
