//! The differentiable graph of a network, built operator by operator as PyTorch would run it.
//!
//! Every builder method checks shapes, adds one node and records what autograd saves for it
//! (the rules of PyTorch 2.6 on a CPU, in fp32). Storage and view are kept apart: an in-place ReLU
//! or a reshape yields a new value over the old storage, and saved bytes are counted by storage.

mod builder;
mod convolutional;
mod elementwise;
mod text;

use crate::operator::Op;
use crate::shape::{Extent, Shape};
use crate::training_graph::{Element, Role};

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

/// A piece of memory that values look at.
#[derive(Clone, Debug)]
pub struct Storage {
    /// The module that made it.
    pub name: String,
    /// Its size.
    pub bytes: Extent,
    /// What it is: input, target, buffer, parameter or activation.
    pub role: Role,
    /// Whether it is a dropout mask, whose width differs between stacks.
    pub dropout_mask: bool,
    /// What it holds.
    pub element: Element,
}

/// A shaped look at a storage.
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

/// A weight.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its elements.
    pub elements: u64,
    /// Whether it is trained.
    pub trainable: bool,
    /// Its storage.
    pub storage: StorageId,
}

/// One operator of the network.
#[derive(Clone, Debug)]
pub struct Node {
    /// The operator.
    pub op: Op,
    /// The module or ONNX node that it belongs to.
    pub module: String,
    /// Values that it reads.
    pub inputs: Vec<ValueId>,
    /// Weights that it reads: weight, then bias where there is one.
    pub parameters: Vec<ParameterId>,
    /// Buffers that it reads and saves.
    pub buffers: Vec<StorageId>,
    /// The value that it makes.
    pub output: ValueId,
    /// Storages that autograd saves for its backward, in PyTorch's order; parameters are left out.
    pub saved: Vec<StorageId>,
    /// Multiply-adds in forward, counted as two operations each; zero where there is no product.
    pub flops: Extent,
}

/// A network: values, storages, weights and operators in the order of execution.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Its name.
    pub name: String,
    /// All values.
    pub values: Vec<Value>,
    /// All storages.
    pub storages: Vec<Storage>,
    /// All weights.
    pub parameters: Vec<Parameter>,
    /// All operators.
    pub nodes: Vec<Node>,
    /// The loss, once there is one.
    pub loss: Option<ValueId>,
}

impl Network {
    /// An empty network.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// A value.
    #[must_use]
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id as usize]
    }

    /// The shape of a value.
    #[must_use]
    pub fn shape(&self, id: ValueId) -> &Shape {
        &self.value(id).shape
    }

    /// A parameter.
    #[must_use]
    pub fn parameter(&self, id: ParameterId) -> &Parameter {
        &self.parameters[id as usize]
    }

    /// A storage.
    #[must_use]
    pub fn storage(&self, id: StorageId) -> &Storage {
        &self.storages[id as usize]
    }
}
