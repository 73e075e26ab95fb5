//! The differentiable graph of a network, built operator by operator as PyTorch would run it.
//!
//! Every builder method checks shapes, adds one node and records what autograd saves for it
//! (the rules of PyTorch 2.6 on a CPU, in fp32). Storage and view are kept apart: an in-place ReLU
//! or a reshape yields a new value over the old storage, and saved bytes are counted by storage.

mod builder;
mod computable;
mod convolutional;
mod elementwise;
mod imported;
pub mod initial;
pub mod layout;
mod text;

pub use imported::Imported;
pub(crate) use imported::{ImportedTensor, NumberFormat};
pub use initial::Initial;

use std::sync::Arc;

use crate::error::Result;
use crate::{Element, Extent, Op, Role, Shape, Tensor, WorkloadError};

/// A value of a network: a shape over a storage.
pub type ValueId = u32;
/// A storage of a network.
pub type StorageId = u32;
/// A parameter of a network.
pub type ParameterId = u32;

/// Bytes of one element.
pub const FP32: u64 = 4;
/// Bytes of an index, a label or a position.
pub const INT64: u64 = 8;

/// A piece of memory that values view.
#[derive(Clone, Debug)]
pub struct Storage {
    /// The module that made it.
    pub name: String,
    /// Its size in bytes.
    pub bytes: Extent,
    /// Its role: input, target, buffer, parameter or activation.
    pub role: Role,
    /// Whether it is a dropout mask, whose width differs between stacks.
    pub dropout_mask: bool,
    /// The numbers in it, as mixed precision treats them.
    pub element: Element,
    /// Its content before training; `None` if that is not known before a step runs.
    pub initial: Option<Initial>,
}

impl Storage {
    /// Its tensor in a training graph.
    pub(crate) fn tensor(&self) -> Tensor {
        Tensor { element: self.element, ..Tensor::new(&self.name, self.bytes, self.role) }
    }
}

/// A shaped view of a storage.
#[derive(Clone, Debug)]
pub struct Value {
    /// The shape seen.
    pub shape: Shape,
    /// The storage behind it.
    pub storage: StorageId,
    /// Whether a gradient flows to it.
    pub requires_grad: bool,
    /// Whether its elements lie in row-major order, so that products can read it without a copy.
    pub contiguous: bool,
}

/// A weight or a bias: values that an optimiser may train.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The module and the part, such as `layer1.0.conv1.weight`.
    pub name: String,
    /// The number of its values.
    pub elements: u64,
    /// Its dimensions as PyTorch has them: outputs, inputs, then positions.
    pub dims: Vec<u64>,
    /// Whether it is trained.
    pub trainable: bool,
    /// The storage of its values.
    pub storage: StorageId,
}

/// One operator of the network.
#[derive(Clone, Debug)]
pub struct OperatorNode {
    /// The operator.
    pub op: Op,
    /// The module or ONNX node that it belongs to.
    pub module: String,
    /// Values that it reads.
    pub inputs: Vec<ValueId>,
    /// Weights that it reads: the weight, then the bias if there is one.
    pub parameters: Vec<ParameterId>,
    /// Buffers that it reads and saves.
    pub buffers: Vec<StorageId>,
    /// The value that it makes.
    pub output: ValueId,
    /// Storages that autograd saves for its backward, in PyTorch's order; parameters are left out.
    pub saved: Vec<StorageId>,
    /// Multiply-adds in forward, counted as two operations each; zero if it contains no product.
    pub flops: Extent,
}

/// A network: values, storages, weights and operators in the order of execution.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Network {
    /// The model or the file that it was built from.
    pub name: String,
    /// All values, by [`ValueId`].
    pub values: Vec<Value>,
    /// All storages, by [`StorageId`].
    pub storages: Vec<Storage>,
    /// All weights and biases, by [`ParameterId`].
    pub parameters: Vec<Parameter>,
    /// All operators, in the order of execution.
    pub nodes: Vec<OperatorNode>,
    /// The loss, once there is one.
    pub loss: Option<ValueId>,
    /// The rest of the file that it was imported from.
    pub imported: Option<Arc<Imported>>,
}

impl Network {
    /// How ambiguities in the imported file were resolved, a sentence each.
    pub fn notes(&self) -> &[String] {
        self.imported.as_ref().map_or(&[], |file| &file.notes)
    }

    /// The parameters that the file names and its graph lacks.
    pub fn missing_parameters(&self) -> &[String] {
        self.imported.as_ref().map_or(&[], |file| &file.missing)
    }

    /// An empty network.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// The same network, except that an in-place activation saves its result, as PyTorch 1.6 does, and no
    /// copy of its input.
    pub fn saving_results(&self) -> Self {
        let mut network = self.clone();
        for node in &mut network.nodes {
            let result = network.values[node.output as usize].storage;
            if matches!(node.op, Op::Unary { in_place: true, .. }) {
                node.saved.iter_mut().for_each(|saved| *saved = result);
            }
        }
        network
    }

    /// The loss.
    ///
    /// # Errors
    /// A network without one.
    pub(crate) fn loss(&self) -> Result<ValueId> {
        self.loss.ok_or_else(|| WorkloadError::NoLoss(self.name.clone()))
    }

    /// The value at this position.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id as usize]
    }

    /// The shape of a value.
    pub fn shape(&self, id: ValueId) -> &Shape {
        &self.value(id).shape
    }

    /// The parameter at this position.
    pub fn parameter(&self, id: ParameterId) -> &Parameter {
        &self.parameters[id as usize]
    }

    /// The storage at this position.
    pub fn storage(&self, id: StorageId) -> &Storage {
        &self.storages[id as usize]
    }
}
