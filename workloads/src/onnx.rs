//! ONNX import: the graph of a file as a [`Network`] to train, with what PyTorch would save for backward.
//!
//! Only the graph, its attributes and the shapes of its weights are read, so weights that lie outside
//! the file need not exist; their values are kept where training with data asks for them. The batch stays symbolic. Shape sub-graphs are computed, composed
//! functions (GELU, layer normalisation, products with a bias) are put together again, and the rest
//! is taken operator by operator. The file is read as a network in training: every floating-point
//! initialiser that is read is a trained weight (running statistics apart), batch normalisation uses the
//! batch's statistics, dropout drops unless its ratio is zero or its training mode is false, and
//! ReLU and ReLU6 run in place where nobody else reads their input, as torchvision has them. The
//! loss is the cross-entropy of the last output.
//!
//! Not here: sub-graphs (`If`, `Loop`), local functions, quantised and sparse tensors.

mod constant;
mod evaluate;
mod further;
mod graph;
mod importer;
mod items;
mod layers;
mod operators;
mod pointwise;
mod proto;
mod rearrange;
mod refold;
mod samples;
mod slices;

use std::fmt::Display;
use std::path::Path;

use prost::Message;
use prost::bytes::Bytes;

use crate::{Network, WorkloadError};

use constant::{Constant, Holder, KEPT, Kind, Number, Origin};
use graph::{Graph, OnnxNode};
use importer::Importer;
use items::{Item, Opaque, Order, Provenance, Source, Weight};
pub use operators::{carries_gradients, operators};
use proto::{AttributeProto, Dimension, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use samples::Samples;

/// A network that was imported, with what had to be assumed.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The network.
    pub network: Network,
    /// What the file left open and how it was taken, a sentence each.
    pub notes: Vec<String>,
}

/// The network of the ONNX file at `path`, for samples of shape `input` or of the file's own if none is given.
///
/// # Errors
/// A file that cannot be read, is not ONNX, or holds a graph that cannot be trained; the message
/// names the node and its operator if there is one.
pub fn import(path: &Path, input: Option<&[u64]>) -> Result<Network, WorkloadError> {
    read(path, input).map(|imported| imported.network)
}

/// As [`import`], from bytes; `name` stands for the file and names the network.
///
/// # Errors
/// As [`import`].
pub fn import_bytes(name: &str, bytes: &[u8], input: Option<&[u64]>) -> Result<Network, WorkloadError> {
    let imported = decode(name, Bytes::copy_from_slice(bytes), input, false);
    imported.map(|imported| imported.network).map_err(|fault| fault.of(name))
}

/// As [`import`], with what had to be assumed.
///
/// # Errors
/// As [`import`].
pub fn read(path: &Path, input: Option<&[u64]>) -> Result<Imported, WorkloadError> {
    read_file(path, input, false)
}

/// As [`read`], with the values of the file's weights and running statistics for training: the network keeps the file's
/// bytes, and turns them into numbers where [`Network::initial_floats`] asks for them.
///
/// # Errors
/// As [`import`].
pub fn read_with_values(path: &Path, input: Option<&[u64]>) -> Result<Imported, WorkloadError> {
    read_file(path, input, true)
}

fn read_file(path: &Path, input: Option<&[u64]>, keep_values: bool) -> Result<Imported, WorkloadError> {
    let file = path.display().to_string();
    let stem = path.file_stem().map_or_else(|| file.clone(), |stem| stem.to_string_lossy().into_owned());
    let bytes = std::fs::read(path).map_err(|error| Fault::new(format!("cannot be read: {error}")).of(&file))?;
    decode(&stem, bytes.into(), input, keep_values).map_err(|fault| fault.of(&file))
}

fn decode(name: &str, bytes: Bytes, input: Option<&[u64]>, keep_values: bool) -> Result<Imported> {
    let model = proto::ModelProto::decode(bytes).map_err(|error| {
        Fault::new(format!("not a whole ONNX model: {error}; expected a file that ONNX tools load"))
    })?;
    build(name, Graph::new(model)?, input, keep_values)
}

/// The network of `graph`, operator by operator, whose loss is over the last output.
fn build(name: &str, mut graph: Graph, input: Option<&[u64]>, keep_values: bool) -> Result<Imported> {
    graph.check()?;
    let output = graph.outputs.pop().unwrap_or_default();
    let left_out = |other| format!("output '{other}' is left out: the loss is over '{output}', the last one");
    let notes = graph.outputs.iter().map(left_out).collect();
    graph.outputs = vec![output.clone()];
    refold::refold(&mut graph);
    graph.arrange(&output)?;
    let mut importer = Importer::new(name, &graph, samples::read(&graph, input)?, notes)?;
    for node in &graph.nodes {
        let counted = operators::apply(&mut importer, node).and_then(|()| importer.count());
        counted.map_err(|fault| fault.at(node))?;
    }
    importer.finish(&output, keep_values)
}

/// What a part of the import gives.
type Result<T, E = Fault> = std::result::Result<T, E>;

/// What is wrong, before the file and the node are known.
#[derive(Debug)]
struct Fault(String);

impl Fault {
    fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// An operator that cannot take what it was given.
    fn mismatch(got: impl Display, expected: impl Display) -> Self {
        Self(format!("cannot take {got}; expected {expected}"))
    }

    /// The fault at `node`.
    fn at(self, node: &graph::OnnxNode) -> Self {
        Self(format!("node '{}' ({}): {}", node.name, node.operator, self.0))
    }

    fn of(self, file: &str) -> WorkloadError {
        WorkloadError::Refused(format!("{file}: {}", self.0))
    }
}

impl From<WorkloadError> for Fault {
    fn from(error: WorkloadError) -> Self {
        match error {
            // The node is named by whoever catches the fault.
            WorkloadError::Shape { got, expected, .. } => Self::mismatch(got, expected),
            other => Self(other.to_string()),
        }
    }
}
