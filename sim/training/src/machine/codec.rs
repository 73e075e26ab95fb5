//! What compressing and swapping a tensor would cost on a machine, as a policy profiles it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use haversack_devices::processor::{CoreSelection, CpuCores, Frequency};
use haversack_devices::units::{Bytes, BytesPerCycle, BytesPerSecond, Nanos};
use haversack_devices::work::OperatorKind;
use haversack_kernels::Isa;
use haversack_kernels::compress::{Bound, Codec, Kind, Mode, Shape, ratio_on_synthetic};
use haversack_policies::setting::{Compression, RestoreProfile, Swapping};
use haversack_workloads::{Phase, TensorId, TrainingGraph};

use super::Machine;

/// The share of a tensor's range that a value may be off by that FedHybrid's codec has compressed; the paper prints none.
pub const BOUND: f32 = 0.01;
/// Values are of four bytes.
const VALUE: u64 = 4;

/// The map of one sample, as far as the codec's ratio depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Map {
    channels: u64,
    positions: u64,
    /// Whether its positions are those of a picture; tokens otherwise.
    spatial: bool,
}

/// Ratios are found by really compressing a map, each once in a process.
static RATIOS: Mutex<BTreeMap<Map, f64>> = Mutex::new(BTreeMap::new());

impl Map {
    /// How many times smaller the codec makes it.
    fn ratio(self) -> f64 {
        let mut known = RATIOS.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(self).or_insert_with(|| self.measured())
    }

    /// The same, by the mixed codec on a synthetic map of this shape; never larger than it was.
    fn measured(self) -> f64 {
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let edge = self.positions.isqrt();
        let (height, width, kind) = if self.spatial && edge * edge == self.positions {
            (size(edge), size(edge), Kind::Rectified)
        } else {
            (1, size(self.positions), Kind::Tokens)
        };
        let shape = Shape { channels: size(self.channels), height, width };
        // Every instruction set makes the same bytes.
        let codec = Codec::new(Mode::mixed(Bound::OfTensor(BOUND)), Isa::Scalar);
        codec.and_then(|codec| ratio_on_synthetic(&codec, shape, kind)).map_or(1.0, |ratio| ratio.max(1.0))
    }
}

/// The maps of a graph's tensors, and how fast a machine compresses and swaps them.
pub(crate) struct CodecProfile<'a> {
    graph: &'a TrainingGraph,
    maps: Vec<Map>,
    /// How fast values are compressed and got back; `None` if the stack has no codec.
    codec: Option<(BytesPerSecond, BytesPerSecond)>,
    machine: &'a Machine,
}

impl<'a> CodecProfile<'a> {
    pub(crate) fn new(machine: &'a Machine, graph: &'a TrainingGraph) -> Self {
        Self { graph, maps: maps(graph), codec: codec(machine), machine }
    }
}

impl RestoreProfile for CodecProfile<'_> {
    fn compression(&self, tensor: TensorId, samples: u64) -> Option<Compression> {
        let (compress, decompress) = self.codec?;
        let bytes = self.graph.tensor(tensor).bytes.at(samples) as f64;
        let ratio = self.maps[tensor as usize].ratio();
        Some(Compression {
            bytes: Bytes((bytes / ratio).ceil() as u64),
            compress: Nanos::from_seconds(bytes / compress.0),
            decompress: Nanos::from_seconds(bytes / decompress.0),
        })
    }

    fn swapping(&self, bytes: Bytes) -> Option<Swapping> {
        self.machine.swapping(bytes)
    }
}

/// The rates of the stack's codec on the cores of the machine; on all of the device's where a GPU trains.
fn codec(machine: &Machine) -> Option<(BytesPerSecond, BytesPerSecond)> {
    let constants = machine.stack.constants.codec.as_ref()?;
    let beside = || machine.device.cpu()?.choose(CoreSelection::All, Frequency::Highest).ok();
    let cores = machine.cores().cloned().or_else(beside)?;
    let rate = |of_a_core: BytesPerCycle| BytesPerSecond(cycles(&cores) * of_a_core.0);
    Some((rate(constants.compress_rate.value), rate(constants.decompress_rate.value)))
}

/// Cycles a second of all cores together.
fn cycles(cores: &CpuCores) -> f64 {
    cores.cores().iter().map(|core| core.frequency.0).sum()
}

/// The channels of every activation: those of the product that made it, or of what was made into it.
fn maps(graph: &TrainingGraph) -> Vec<Map> {
    let mut maps = vec![Map::default(); graph.tensors.len()];
    for node in graph.nodes.iter().filter(|node| node.phase == Phase::Forward) {
        let inherited = node.inputs.iter().map(|&input| maps[input as usize]).find(|map| map.channels > 0);
        let own = Map {
            channels: node.work.columns,
            positions: 0,
            spatial: matches!(node.work.kind, OperatorKind::Convolution | OperatorKind::DepthwiseConvolution),
        };
        let from = if own.channels > 0 { own } else { inherited.unwrap_or_default() };
        for &output in &node.outputs {
            let values = graph.tensor(output).bytes.per_sample / VALUE;
            let channels =
                if values.is_multiple_of(from.channels.max(1)) && from.channels > 0 { from.channels } else { 1 };
            maps[output as usize] = Map { channels, positions: values / channels, ..from };
        }
    }
    maps
}
