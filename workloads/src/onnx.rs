//! ONNX import: the graph of a file as a [`Network`] to train, with what PyTorch would save for backward.
//!
//! Only the graph, its attributes and the shapes of its weights are read, so weights that lie outside
//! the file need not exist; their values are kept where training with data asks for them. The batch stays symbolic. Shape sub-graphs are computed, composed
//! functions (GELU, layer normalisation, products with a bias) are put together again, and the rest
//! is taken operator by operator. The file is read as a network in training: what [`Reading`], the file's signature, or
//! else its graph and numbers show to be a weight is trained, batch normalisation uses the
//! batch's statistics, dropout drops unless its ratio is zero or its training mode is false, and
//! ReLU and ReLU6 run in place where nobody else reads their input, as torchvision has them. The
//! loss is the cross-entropy of the output, or of all outputs side by side.
//!
//! Of an `If` the branch that its condition chooses stands in its place, where that is known before the samples are.
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
    /// The shape of a sample; the file's own if none is given.
    pub input: Option<Vec<u64>>,
    /// Names of weights, or patterns with stars, that alone are trained; what the file says if there are none.
    pub trainable: Vec<String>,
    /// Likewise, of weights that are not trained.
    pub frozen: Vec<String>,
    /// The outputs that the loss is over; all that depend on a trained weight if none is named.
    pub outputs: Vec<String>,
    /// Whether the values of weights and running statistics are kept for training: the network then keeps the file's bytes,
    /// and turns them into numbers where [`Network::initial_floats`] asks for them.
    pub values: bool,
}

/// The network of the ONNX file at `path`; [`Network::notes`] says what had to be assumed.
///
/// # Errors
/// A file that cannot be read, is not ONNX, or holds a graph that cannot be trained; the message names the node and its
/// operator if there is one. A weight or an output that the file has not.
pub fn read(path: &Path, reading: &Reading) -> Result<Network, WorkloadError> {
    let file = path.display().to_string();
    let stem = path.file_stem().map_or_else(|| file.clone(), |stem| stem.to_string_lossy().into_owned());
    let bytes = std::fs::read(path).map_err(|error| Fault::new(format!("cannot be read: {error}")).of(&file))?;
    decode(&stem, bytes.into(), reading).map_err(|fault| fault.of(&file))
}

/// As [`read`], from bytes; `name` stands for the file and names the network.
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

/// The network of `model`, of which `assumed` is known already.
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
    // A batch that is baked into constants and sizes.
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

/// What a part of the import gives.
type Result<T, E = Fault> = std::result::Result<T, E>;

/// What is wrong, before the file and the node are known; or the branch that is to stand where it was met.
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
            // The node is named by whoever catches the fault.
            WorkloadError::Shape { got, expected, .. } => Self::mismatch(got, expected),
            other => Self::new(other.to_string()),
        }
    }
}
