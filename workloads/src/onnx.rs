//! ONNX import: the graph of a file as a [`Network`] to train, with what PyTorch would save for backward.
//!
//! Only the graph, its attributes and the shapes of its weights are read, so weights that are stored outside the file
//! need not exist; their values are kept if training with data needs them. The batch stays symbolic. Shape sub-graphs
//! are computed, composed functions (GELU, layer normalisation, products with a bias) are recombined, and the rest is
//! taken operator by operator. The file is read as a network in training: the trained weights are those that
//! [`Reading`], the file's signature, or else its graph and numbers identify as weights, batch normalisation uses the
//! batch's statistics, dropout drops unless its ratio is zero or its training mode is false, and ReLU and ReLU6 run in
//! place if their input has no other reader, as in torchvision. The loss is the cross-entropy of the output, or of all
//! outputs side by side.
//!
//! An `If` is replaced by the branch that its condition chooses, if that is known before the samples are.
//!
//! Not here: other sub-graphs (`Loop`), local functions, quantised and sparse tensors.

mod branches;
mod composed;
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
mod rebatch;
mod refold;
mod roles;
mod samples;
mod slices;
mod tables;

use std::fmt::Display;
use std::path::Path;

use prost::Message;
use prost::bytes::Bytes;

use crate::{Network, WorkloadError};

use branches::Branch;
use constant::{Constant, Holder, KEPT, Kind, Number, Origin};
use graph::{Graph, OnnxNode};
use importer::Importer;
use items::{Item, Opaque, Order, Provenance, Source, Weight};
pub use operators::{carries_gradients, operators};
use proto::{AttributeProto, Dimension, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use samples::Samples;

/// How a file is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reading {
    /// The shape of a sample; the file's if none is given.
    pub input: Option<Vec<u64>>,
    /// Names of the only weights to train, or patterns with stars; those that the file trains if the list is empty.
    pub trainable: Vec<String>,
    /// The same for weights that are not trained.
    pub frozen: Vec<String>,
    /// The outputs that the loss covers; all that depend on a trained weight if none is named.
    pub outputs: Vec<String>,
    /// Whether the values of weights and running statistics are kept for training: the network then keeps the file's
    /// bytes, and [`Network::initial_floats`] converts them to numbers.
    pub values: bool,
}

/// The network of the ONNX file at `path`; [`Network::notes`] lists the assumptions that were made.
///
/// # Errors
/// A file that cannot be read, is not ONNX, or contains a graph that cannot be trained; the message names the node and
/// its operator if there is one. A weight or an output that the file lacks.
pub fn read(path: &Path, reading: &Reading) -> Result<Network, WorkloadError> {
    let file = path.display().to_string();
    let stem = path.file_stem().map_or_else(|| file.clone(), |stem| stem.to_string_lossy().into_owned());
    let bytes = std::fs::read(path).map_err(|error| Fault::new(format!("cannot be read: {error}")).of(&file))?;
    decode(&stem, bytes.into(), reading).map_err(|fault| fault.of(&file))
}

/// As [`read`], from bytes; `name` replaces the path in messages and names the network.
///
/// # Errors
/// As [`read`].
pub fn import_bytes(name: &str, bytes: &[u8], reading: &Reading) -> Result<Network, WorkloadError> {
    decode(name, Bytes::copy_from_slice(bytes), reading).map_err(|fault| fault.of(name))
}

fn decode(name: &str, bytes: Bytes, reading: &Reading) -> Result<Network> {
    let model = proto::ModelProto::decode(bytes).map_err(|error| {
        Fault::new(format!("not a whole ONNX model: {error}; expected a file that ONNX tools load"))
    })?;
    branches::choose(model, |model, assumed| import(name, model, assumed, reading))
}

/// The network of `model`, for which `assumed` has been assumed already.
fn import(name: &str, model: ModelProto, assumed: &[String], reading: &Reading) -> Result<Network> {
    let mut graph = Graph::new(model)?;
    graph.assumed = assumed.to_vec();
    graph.check()?;
    graph.choose(&reading.outputs)?;
    refold::refold(&mut graph);
    graph.arrange()?;
    let error = match walk(name, &graph, reading, false) {
        Ok(network) => return Ok(network),
        Err(error @ Fault(_, Some(_))) => return Err(error),
        Err(error) => error,
    };
    // The batch may be fixed in constants and sizes.
    let is_sized = samples::read(&graph, reading.input.as_deref(), true).is_ok_and(|samples| samples.batch.is_some());
    if is_sized { walk(name, &graph, reading, true).map_err(|_| error) } else { Err(error) }
}

/// The network of `graph`, operator by operator, at the file's own batch where it is `fixed`.
fn walk(name: &str, graph: &Graph, reading: &Reading, fixed: bool) -> Result<Network> {
    let samples = samples::read(graph, reading.input.as_deref(), fixed)?;
    let mut importer = Importer::new(name, graph, samples, roles::parts(graph, reading)?, fixed)?;
    for node in &graph.nodes {
        let counted = operators::apply(&mut importer, node).and_then(|()| importer.count());
        counted.map_err(|fault| fault.at(node))?;
    }
    importer.finish(reading.values)
}

/// The result of a part of the import.
type Result<T, E = Fault> = std::result::Result<T, E>;

/// A fault, before the file and the node are known; or a request to replace an `If` by its branch.
#[derive(Debug)]
struct Fault(String, Option<Box<Branch>>);

impl Fault {
    fn new(message: impl Into<String>) -> Self {
        Self(message.into(), None)
    }

    /// An operator that cannot take what it was given.
    fn mismatch(got: impl Display, expected: impl Display) -> Self {
        Self::new(format!("cannot take {got}; expected {expected}"))
    }

    /// The fault at `node`.
    fn at(self, node: &graph::OnnxNode) -> Self {
        Self(format!("node '{}' ({}): {}", node.name, node.operator, self.0), self.1)
    }

    fn of(self, file: &str) -> WorkloadError {
        WorkloadError::Refused(format!("{file}: {}", self.0))
    }
}

impl From<WorkloadError> for Fault {
    fn from(error: WorkloadError) -> Self {
        match error {
            // The caller that catches the fault names the node.
            WorkloadError::Shape { got, expected, .. } => Self::mismatch(got, expected),
            other => Self::new(other.to_string()),
        }
    }
}
