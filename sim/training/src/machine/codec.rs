//! What compressing and swapping a tensor would cost on a machine, as a policy profiles it.
//!
//! How many times smaller the codec makes a map is the stack's, as it was measured on trained networks, by what made the
//! map. A run with data compresses the values themselves, and has the sizes that come of that.

use haversack_devices::processor::{CoreSelection, CpuCores, Frequency};
use haversack_devices::stack::{CodecConstants, CodecRatios};
use haversack_devices::units::{Bytes, BytesPerCycle, BytesPerSecond, Nanos};
use haversack_devices::work::OperatorKind;
use haversack_policies::setting::{Compression, RestoreProfile, Swapping};
use haversack_workloads::{MapKind, Phase, TensorId, TrainingGraph};

use super::Machine;

/// The share of a tensor's range that a value may be off by that FedHybrid's codec has compressed; the paper prints none.
pub const BOUND: f32 = 0.01;

/// How many times smaller the tensors of a graph become, and how fast a machine compresses and swaps them.
pub(crate) struct CodecProfile<'a> {
    graph: &'a TrainingGraph,
    /// What compressing comes to; `None` if the stack has no codec.
    codec: Option<Codec>,
    machine: &'a Machine,
}

/// A stack's codec on a machine.
struct Codec {
    /// How many times smaller each tensor becomes.
    ratios: Vec<f64>,
    compress: BytesPerSecond,
    decompress: BytesPerSecond,
}

impl<'a> CodecProfile<'a> {
    pub(crate) fn new(machine: &'a Machine, graph: &'a TrainingGraph) -> Self {
        Self { graph, codec: Codec::new(machine, graph), machine }
    }
}

impl RestoreProfile for CodecProfile<'_> {
    fn compression(&self, tensor: TensorId, samples: u64) -> Option<Compression> {
        let codec = self.codec.as_ref()?;
        let bytes = self.graph.tensor(tensor).bytes.at(samples) as f64;
        Some(Compression {
            bytes: Bytes((bytes / codec.ratios[tensor as usize]).ceil() as u64),
            compress: Nanos::from_seconds(bytes / codec.compress.0),
            decompress: Nanos::from_seconds(bytes / codec.decompress.0),
        })
    }

    fn swapping(&self, bytes: Bytes) -> Option<Swapping> {
        self.machine.swapping(bytes)
    }
}

impl Codec {
    /// The stack's codec on the cores of the machine; on all of the device's where a GPU trains.
    fn new(machine: &Machine, graph: &TrainingGraph) -> Option<Self> {
        let constants = machine.stack.constants.codec.as_ref()?;
        let beside = || machine.device.cpu()?.choose(CoreSelection::All, Frequency::Highest).ok();
        let cores = machine.cores().cloned().or_else(beside)?;
        let rate = |of_a_core: BytesPerCycle| BytesPerSecond(cycles(&cores) * of_a_core.0);
        Some(Self {
            ratios: ratios(constants, graph),
            compress: rate(constants.compress_rate.value),
            decompress: rate(constants.decompress_rate.value),
        })
    }
}

/// Cycles a second of all cores together.
fn cycles(cores: &CpuCores) -> f64 {
    cores.cores().iter().map(|core| core.frequency.0).sum()
}

/// How many times smaller each tensor becomes; what is no map stays as large as it is.
fn ratios(codec: &CodecConstants, graph: &TrainingGraph) -> Vec<f64> {
    let ratio = |(kind, is_picture): (Option<MapKind>, bool)| {
        let ratios = if is_picture { &codec.pictures } else { &codec.tokens };
        kind.map_or(1.0, |kind| ratio_of(ratios, kind))
    };
    graph.map_kinds().into_iter().zip(pictures(graph)).map(ratio).collect()
}

/// How many times smaller a stack's codec makes what is of a kind.
pub fn ratio_of(ratios: &CodecRatios, kind: MapKind) -> f64 {
    let own = match kind {
        MapKind::Dense => None,
        MapKind::Rectified => ratios.rectified.as_ref(),
        MapKind::Normalised => ratios.normalised.as_ref(),
        MapKind::Smooth => ratios.smooth.as_ref(),
        MapKind::Attention => ratios.attention.as_ref(),
    };
    own.unwrap_or(&ratios.dense).value.0
}

/// Whether each tensor is of pictures: made by a convolution, or of what one has made by something that is no product.
fn pictures(graph: &TrainingGraph) -> Vec<bool> {
    let mut pictures = vec![false; graph.tensors.len()];
    for node in graph.nodes.iter().filter(|node| node.phase == Phase::Forward) {
        let is_picture = match node.work.kind {
            OperatorKind::Convolution | OperatorKind::DepthwiseConvolution => true,
            OperatorKind::Gemm => false,
            _ => node.inputs.iter().any(|&input| pictures[input as usize]),
        };
        node.outputs.iter().for_each(|&output| pictures[output as usize] = is_picture);
    }
    pictures
}
