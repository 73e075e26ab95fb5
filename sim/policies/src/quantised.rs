//! Quantised storage: the rules by which a policy stores saved tensors with fewer bits, and their stored sizes.
//!
//! The parts of a tensor that backward needs determine how it can be stored: values are quantised, the signs that a
//! ReLU needs are kept at a bit, positions of a pooling at a byte, a shape costs nothing, means and deviations stay
//! whole.

use haversack_devices::Bytes;
use haversack_kernels::quantise::{Bits, Grouping, Layout, packed_bytes};
use haversack_workloads::{Element, Extent, Need, Phase, Role, TensorId, TrainingGraph};
use serde::{Deserialize, Serialize};

/// Which saved tensors a policy can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Those that modules keep: a framework's hooks do not see what functional code saves.
    Modules,
    /// All: the policy is part of the runtime.
    Everything,
}

/// How many times a tensor kept by several operators is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Copies {
    /// Once for each module that keeps it, since modules are independent of each other.
    PerModule,
    /// Once.
    PerTensor,
}

/// Where the minimum, the maximum and the importance of a tensor are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// In separate kernels that read the tensor again, one statistic at a time.
    OwnKernels,
    /// In the kernel that makes the tensor (DAF, section 3.2.3).
    #[default]
    Fused,
}

/// The processors that pack in forward and unpack in backward (DAF, section 3.3 and table 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Packing {
    /// The GPU does both.
    Gpu,
    /// The CPU does both; an unpacked map waits in memory for the GPU.
    Cpu,
    /// The CPU packs, the GPU unpacks the CPU's interleaved order.
    Shared,
    /// The same in the unified layout: the GPU unpacks in shared memory, inside the kernels that read.
    Unified,
    /// The faster of `Gpu` and `Unified` for each tensor, by a profile made once before training.
    #[default]
    Profiled,
}

impl Packing {
    /// Whether the CPU may have to pack.
    pub const fn cpu_packs(self) -> bool {
        !matches!(self, Self::Gpu)
    }
}

/// How values become codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rounding {
    /// To the nearest (DAF, equation 1).
    #[default]
    Nearest,
    /// Up or down at random, so that the mean is right (ActNN, section 3.1; GACT, section 3).
    Stochastic,
}

/// An arena of pages for quantised tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArenaPlan {
    /// Bytes of a page.
    pub page: Bytes,
    /// Bytes by which it grows and shrinks.
    pub step: Bytes,
}

/// The rules by which a policy stores quantised tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantisation {
    /// Which tensors.
    pub reach: Reach,
    /// The number of copies.
    pub copies: Copies,
    /// Whether dropout's masks are drawn again from their seed instead of being kept.
    pub redraw_masks: bool,
    /// Whether the policy's own operators write signs and masks as bits while they run; otherwise a kernel packs them.
    pub writes_signs: bool,
    /// Where statistics are computed.
    pub control: Control,
    /// The processors that pack.
    pub packing: Packing,
    /// How values become codes.
    pub rounding: Rounding,
    /// The place: in a separate arena, or wherever the framework's allocator puts them.
    pub arena: Option<ArenaPlan>,
}

/// The sizes of elements in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementBytes {
    /// Of a value that mixed precision may make smaller.
    pub value: u64,
    /// Of a dropout mask.
    pub mask: u64,
}

/// The bits of a tensor that is stored as it was made.
pub const WHOLE: u8 = 32;

/// The contents of a saved tensor in its stored form, in this order; for a number of samples, or as a function of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct StoredParts<N = u64> {
    /// Bytes of the tensor as it was made.
    pub whole: N,
    /// Values of one copy.
    pub values: N,
    /// The number of copies of its values.
    pub copies: u64,
    /// Elements stored with one bit: whether a ReLU or a mask lets them through.
    pub bits: N,
    /// Elements stored with one byte: positions within a window.
    pub positions: N,
}

impl StoredParts {
    /// Bytes with `bits` a value (32 is whole): codes, the scale and minimum of every 256 values, and the stored signs,
    /// masks and positions.
    pub fn bytes_at(&self, bits: u8) -> u64 {
        if bits == WHOLE {
            // Modules share the whole tensor, and signs are read from it.
            return self.whole;
        }
        self.packed_bytes(bits) + self.bits.div_ceil(8) + self.positions
    }

    /// Bytes of all copies of the values only.
    pub fn packed_bytes(&self, bits: u8) -> u64 {
        self.copy_bytes(bits) * if bits == WHOLE { 1 } else { self.copies }
    }

    /// Bytes of one copy of the values; a whole tensor has one copy for all.
    pub fn copy_bytes(&self, bits: u8) -> u64 {
        if bits == WHOLE {
            return self.whole;
        }
        match Bits::new(bits) {
            Ok(bits) => packed_bytes(self.values as usize, bits, Grouping::Group256, Layout::Interleaved),
            // Half floats have no scales, and zero values have zero bytes.
            Err(_) => self.values * u64::from(bits) / 8,
        }
    }

    /// Where the bits for elements let through lie; empty if there are none.
    pub fn bit_range(&self, bits: u8) -> std::ops::Range<usize> {
        let first = self.packed_bytes(bits) as usize;
        if bits == WHOLE { first..first } else { first..first + self.bits.div_ceil(8) as usize }
    }
}

/// The stored sizes of all saved tensors of a graph under a policy's rules.
#[derive(Clone, Debug)]
#[must_use]
pub struct Quantised {
    parts: Vec<Option<StoredParts<Extent>>>,
}

impl Quantised {
    /// Finds the parts of each saved tensor of `graph` that backward needs.
    pub fn new(graph: &TrainingGraph, rules: &Quantisation, sizes: ElementBytes) -> Self {
        let mut parts: Vec<Option<StoredParts<Extent>>> = vec![None; graph.tensors.len()];
        for tensor in graph.saved() {
            parts[tensor as usize] = Some(StoredParts { whole: graph.tensor(tensor).bytes, ..StoredParts::default() });
        }
        for node in graph.nodes.iter().filter(|node| node.phase == Phase::Backward) {
            for &input in &node.inputs {
                let slot = &mut parts[input as usize];
                let Some(found) = slot else { continue };
                let saved = node.saved.iter().find(|saved| saved.tensor == input);
                let (need, by_module) = saved.map_or((Need::Values, true), |saved| (saved.need, saved.by_module));
                if need == Need::Statistics || (rules.reach == Reach::Modules && !by_module) {
                    *slot = None;
                    continue;
                }
                let tensor = graph.tensor(input);
                let value = if tensor.element == Element::FullFloat { 4 } else { sizes.value };
                match need {
                    Need::Values => {
                        found.values = tensor.bytes.times(1, value);
                        found.copies = if rules.copies == Copies::PerModule { found.copies + 1 } else { 1 };
                    }
                    Need::Signs => found.bits = tensor.bytes.times(1, value),
                    Need::Mask if rules.redraw_masks => {}
                    Need::Mask => found.bits = tensor.bytes.times(1, sizes.mask),
                    Need::Indices => found.positions = tensor.bytes.times(1, size_of::<i64>() as u64),
                    Need::Shape | Need::Statistics => {}
                }
            }
        }
        Self { parts }
    }

    fn of(&self, tensor: TensorId) -> Option<&StoredParts<Extent>> {
        self.parts.get(tensor as usize).and_then(Option::as_ref)
    }

    /// Whether the tensor is saved and within reach.
    pub fn reaches(&self, tensor: TensorId) -> bool {
        self.of(tensor).is_some()
    }

    /// Values that have to be packed, all copies counted.
    pub fn packed_values(&self, tensor: TensorId, samples: u64) -> u64 {
        self.of(tensor).map_or(0, |parts| parts.values.at(samples) * parts.copies)
    }

    /// Values of one copy.
    pub fn values(&self, tensor: TensorId, samples: u64) -> u64 {
        self.of(tensor).map_or(0, |parts| parts.values.at(samples))
    }

    /// The contents of a tensor of `samples` samples in its stored form; `None` if it is out of reach.
    pub fn parts(&self, tensor: TensorId, samples: u64) -> Option<StoredParts> {
        self.of(tensor).map(|parts| StoredParts {
            whole: parts.whole.at(samples),
            values: parts.values.at(samples),
            copies: parts.copies,
            bits: parts.bits.at(samples),
            positions: parts.positions.at(samples),
        })
    }

    /// Bytes of the tensor with `bits` a value (32 is whole): codes, the scale and minimum of every 256 values, and the
    /// stored signs, masks and positions.
    pub fn bytes(&self, tensor: TensorId, bits: u8, samples: u64) -> Bytes {
        self.parts(tensor, samples).map_or(Bytes::ZERO, |parts| Bytes(parts.bytes_at(bits)))
    }
}

/// The peak memory of a batch of `samples` in addition to the saved tensors' stored form: state, temporaries,
/// gradients, and each saved tensor whole while forward still works on it or one backward node reads it.
pub fn working_memory(graph: &TrainingGraph, samples: u64) -> Bytes {
    let mut last = vec![None; graph.tensors.len()];
    let mut is_saved = vec![false; graph.tensors.len()];
    for tensor in graph.saved() {
        is_saved[tensor as usize] = true;
    }
    for (position, node) in graph.nodes.iter().enumerate() {
        for tensor in node.uses().filter(|&tensor| !(is_saved[tensor as usize] && node.phase == Phase::Backward)) {
            last[tensor as usize] = Some(position);
        }
    }
    // Sizes are rounded up as in allocators of GPU frameworks.
    let size = |tensor: TensorId| graph.tensor(tensor).bytes.at(samples).next_multiple_of(512);
    // Samples stay until their part has ended, regardless of their last reader.
    let stays = |role: Role| role.is_state() || matches!(role, Role::Input | Role::Target);
    let state: u64 =
        (0..).zip(&graph.tensors).filter(|(_, held)| stays(held.role)).map(|(tensor, _)| size(tensor)).sum();
    let mut live = 0;
    let mut resident = vec![false; graph.tensors.len()];
    let mut peak = 0;
    for (position, node) in graph.nodes.iter().enumerate() {
        let mut read_whole = 0;
        for &tensor in node.inputs.iter().chain(&node.outputs).filter(|&&tensor| !stays(graph.tensor(tensor).role)) {
            if is_saved[tensor as usize] && node.phase == Phase::Backward {
                read_whole += size(tensor);
            } else if !std::mem::replace(&mut resident[tensor as usize], true) {
                live += size(tensor);
            }
        }
        peak = peak.max(live + read_whole);
        for tensor in node.uses() {
            if last[tensor as usize] == Some(position) && std::mem::take(&mut resident[tensor as usize]) {
                live -= size(tensor);
            }
        }
    }
    Bytes(state + peak)
}
