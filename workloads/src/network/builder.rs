//! The steps that every builder method shares: new storages, new values, new nodes.

use haversack_devices::ensure;

use super::{FP32, INT64, Initial, Network, OperatorNode, Parameter, ParameterId, Storage, StorageId, Value, ValueId};
use crate::error::Result;
use crate::{Copying, Element, Extent, Op, Role, Shape, WorkloadError};

/// An operator in the making: its output is known when it is added.
impl OperatorNode {
    pub(super) fn new(op: Op, inputs: &[ValueId]) -> Self {
        Self {
            op,
            module: String::new(),
            inputs: inputs.to_vec(),
            parameters: Vec::new(),
            buffers: Vec::new(),
            output: ValueId::MAX,
            saved: Vec::new(),
            flops: Extent::ZERO,
        }
    }

    pub(super) fn parameters(mut self, parameters: &[ParameterId]) -> Self {
        self.parameters = parameters.to_vec();
        self
    }

    pub(super) fn saves(mut self, saved: impl IntoIterator<Item = StorageId>) -> Self {
        self.saved.extend(saved);
        self
    }

    pub(super) fn flops(mut self, flops: Extent) -> Self {
        self.flops = flops;
        self
    }
}

impl Network {
    /// The samples: fp32 values of `shape` (without the batch), which need no gradient.
    pub fn input(&mut self, shape: &[u64]) -> ValueId {
        self.source("input", Shape::batched(shape), FP32, Role::Input)
    }

    /// The samples as token ids: `tokens` 64-bit integers a sample.
    pub fn token_input(&mut self, tokens: u64) -> ValueId {
        self.source("input", Shape::batched(&[tokens]), INT64, Role::Input)
    }

    /// One 64-bit label for each of `per_sample` positions.
    pub fn target(&mut self, per_sample: u64) -> ValueId {
        self.source("target", Shape::batched(&[per_sample]), INT64, Role::Target)
    }

    /// 64-bit ids that do not depend on the batch, such as positions; `stored` may exceed what `shape` shows.
    pub(crate) fn id_buffer(&mut self, name: &str, shape: &[u64], stored: u64, initial: Initial) -> ValueId {
        let storage = self.stored_ids(name, stored, initial);
        self.new_value(Shape::fixed(shape), storage, false, true)
    }

    /// A buffer of `stored` 64-bit ids.
    pub(crate) fn stored_ids(&mut self, name: &str, stored: u64, initial: Initial) -> StorageId {
        let storage = self.filled_buffer(name, stored * INT64, initial);
        self.note_element(storage, INT64);
        storage
    }

    /// A buffer of `bytes` bytes.
    pub fn buffer(&mut self, name: &str, bytes: u64) -> StorageId {
        self.new_storage(name, Extent::fixed(bytes), Role::Buffer)
    }

    /// The same, with its content before training.
    pub(crate) fn filled_buffer(&mut self, name: &str, bytes: u64, initial: Initial) -> StorageId {
        let storage = self.buffer(name, bytes);
        self.storages[storage as usize].initial = Some(initial);
        storage
    }

    /// A weight of fp32 values with these dimensions.
    pub fn weight(&mut self, name: &str, dims: &[u64], initial: Initial, trainable: bool) -> ParameterId {
        let elements = dims.iter().product();
        let storage = self.new_storage(name, Extent::fixed(elements * FP32), Role::Parameter { trainable });
        self.storages[storage as usize].initial = Some(initial);
        self.parameters.push(Parameter { name: name.to_owned(), elements, dims: dims.to_vec(), trainable, storage });
        (self.parameters.len() - 1) as ParameterId
    }

    /// The weight, then the bias, of a normalisation over `features`.
    pub(crate) fn norm_weights(&mut self, module: &str, features: u64, trainable: bool) -> [ParameterId; 2] {
        [("weight", Initial::ONES), ("bias", Initial::ZEROS)]
            .map(|(part, initial)| self.weight(&format!("{module}.{part}"), &[features], initial, trainable))
    }

    /// A leaf of `element` bytes per element that needs no gradient.
    pub(crate) fn source(&mut self, name: &str, shape: Shape, element: u64, role: Role) -> ValueId {
        let storage = self.new_storage(name, shape.elements() * element, role);
        self.note_element(storage, element);
        self.new_value(shape, storage, false, true)
    }

    /// A view of a buffer.
    pub(crate) fn look_at(&mut self, buffer: StorageId, shape: Shape) -> ValueId {
        self.new_value(shape, buffer, false, true)
    }

    /// A frozen weight as a value of `shape`, a view of its storage.
    pub(crate) fn frozen(&mut self, weight: ParameterId, shape: Shape) -> ValueId {
        self.look_at(self.parameter(weight).storage, shape)
    }

    /// Values of `element` bytes that are copied or computed from `from` and need no gradient: labels,
    /// positions, masks.
    pub(crate) fn computed(
        &mut self,
        module: &str,
        from: ValueId,
        copying: Copying,
        shape: Shape,
        element: u64,
    ) -> ValueId {
        let storage = self.new_storage(module, shape.elements() * element, Role::Activation);
        self.note_element(storage, element);
        self.add_node_over(module, OperatorNode::new(Op::Copy(copying), &[from]), shape, storage, true)
    }

    pub(super) fn new_storage(&mut self, name: &str, bytes: Extent, role: Role) -> StorageId {
        self.storages.push(Storage {
            name: name.to_owned(),
            bytes,
            role,
            dropout_mask: false,
            element: Element::default(),
            initial: None,
        });
        (self.storages.len() - 1) as StorageId
    }

    /// Everything that is not four bytes wide is an integer.
    fn note_element(&mut self, storage: StorageId, bytes: u64) {
        if bytes != FP32 {
            self.storages[storage as usize].element = Element::Whole;
        }
    }

    /// An activation that an operator saves in addition to its output: statistics, indices, a mask.
    pub(super) fn side_storage(&mut self, name: &str, bytes: Extent) -> StorageId {
        self.new_storage(name, bytes, Role::Activation)
    }

    pub(super) fn new_value(
        &mut self,
        shape: Shape,
        storage: StorageId,
        requires_grad: bool,
        contiguous: bool,
    ) -> ValueId {
        self.values.push(Value { shape, storage, requires_grad, contiguous });
        (self.values.len() - 1) as ValueId
    }

    /// Adds an operator whose output of `shape` gets a new storage.
    pub(super) fn add_node(&mut self, module: &str, node: OperatorNode, shape: Shape) -> ValueId {
        let storage = self.new_storage(module, shape.elements() * FP32, Role::Activation);
        self.add_node_over(module, node, shape, storage, true)
    }

    /// Adds an operator whose output of `shape` is a view of `storage`.
    pub(super) fn add_node_over(
        &mut self,
        module: &str,
        mut node: OperatorNode,
        shape: Shape,
        storage: StorageId,
        contiguous: bool,
    ) -> ValueId {
        let requires_grad = node.inputs.iter().any(|&input| self.value(input).requires_grad)
            || node.parameters.iter().any(|&parameter| self.parameter(parameter).trainable);
        if !requires_grad {
            // Without a gradient to compute, autograd makes no node and saves nothing.
            node.saved.clear();
        }
        node.saved.retain(|&saved| !matches!(self.storage(saved).role, Role::Parameter { .. }));
        let output = self.new_value(shape, storage, requires_grad, contiguous);
        self.nodes.push(OperatorNode { module: module.to_owned(), output, ..node });
        output
    }

    pub(super) fn trains(&self, parameter: ParameterId) -> bool {
        self.parameter(parameter).trainable
    }

    pub(super) fn needs_grad(&self, value: ValueId) -> bool {
        self.value(value).requires_grad
    }

    pub(super) fn storage_of(&self, value: ValueId) -> StorageId {
        self.value(value).storage
    }

    /// The size of the last dimension that `module` must find on `value`.
    pub(super) fn expect_rank(&self, module: &str, op: &Op, value: ValueId, rank: usize, expected: &str) -> Result<()> {
        ensure!(self.shape(value).rank() == rank, self.shape_error(module, op, &[value], expected));
        Ok(())
    }

    pub(super) fn shape_error(&self, module: &str, op: &Op, values: &[ValueId], expected: &str) -> WorkloadError {
        let got = values.iter().map(|&v| self.shape(v).to_string()).collect::<Vec<_>>().join(" and ");
        WorkloadError::Shape { module: module.to_owned(), operator: op.name(), got, expected: expected.to_owned() }
    }
}
