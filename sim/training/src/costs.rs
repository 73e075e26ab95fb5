//! The costs of everything in a run: the machine's prices for its graph, each computed once.
//!
//! Also decides who packs each tensor: the policy's choice, or the faster of two ways in a profile.
//!
//! DAF's library of layouts (section 3.3) has two options "tailored to different hardware and DNN operators", of which
//! "a one-time profiling process determines the most efficient": GPU kernels, or packing by the CPU during forward and
//! unpacking inside the kernels that read. The profile times each operator's tensor in isolation; it ignores that the
//! CPU may still be busy with the previous one.

use std::collections::BTreeMap;
use std::sync::Arc;

use haversack_devices::{Bytes, Cost, CpuCores, Nanos, Precision, ProcessorKind};
use haversack_policies::{
    Compression, Control, ElementBytes, Packing, Quantisation, Quantised, RestoreProfile, Storage, WHOLE,
};
use haversack_workloads::{Need, NodeId, Phase, TensorId, TrainingGraph};

use crate::error::{Result, Stop};
use crate::machine::Machine;
use crate::machine::packing::CodecProfile;
use crate::machine::packing::packing_traffic;
use crate::tensors::Tensors;

/// The prices of a run.
pub(crate) struct RunCosts<'a> {
    pub(crate) machine: Arc<Machine>,
    graph: &'a TrainingGraph,
    precision: Precision,
    /// How the policy stores quantised tensors; `None` if it does not.
    quantiser: Option<Quantiser>,
    /// Costs of compressing tensors.
    codec: &'a CodecProfile<'a>,
    /// Who packs each tensor, once one of several ways was chosen for it.
    ways: BTreeMap<TensorId, Packing>,
    /// Cost of each node at the current micro-batch, filled on first use.
    nodes: Vec<Option<Cost>>,
    /// Costs of computing a tensor's statistics, by its number of values.
    statistics: Vec<(u64, Cost)>,
}

/// How quantised tensors are stored in a run.
pub(crate) struct Quantiser {
    pub(crate) rules: Quantisation,
    pub(crate) stored: Quantised,
}

impl<'a> RunCosts<'a> {
    /// The prices of `graph` on `machine`; quantised tensors are stored by `rules`.
    pub(crate) fn new(
        machine: &Machine,
        graph: &'a TrainingGraph,
        precision: Precision,
        rules: Option<(Quantisation, ElementBytes)>,
        codec: &'a CodecProfile<'a>,
    ) -> Self {
        let quantiser = rules.map(|(rules, sizes)| Quantiser { rules, stored: Quantised::new(graph, &rules, sizes) });
        let (machine, nodes) = (Arc::new(machine.clone()), vec![None; graph.nodes.len()]);
        let (ways, statistics) = (BTreeMap::new(), Vec::new());
        Self { machine, graph, precision, quantiser, codec, ways, nodes, statistics }
    }

    /// The processor that trains.
    pub(crate) fn processor(&self) -> ProcessorKind {
        self.machine.processor.kind()
    }

    /// A governor has changed the CPU's cores.
    pub(crate) fn run_on(&mut self, cores: CpuCores) {
        self.machine = Arc::new(self.machine.with_cores(cores));
        self.forget_nodes();
        self.statistics.clear();
    }

    /// The micro-batch has changed.
    pub(crate) fn forget_nodes(&mut self) {
        self.nodes.fill(None);
    }

    /// The cost of `node` on the processor that trains.
    pub(crate) fn node(&mut self, node: NodeId, samples: u64) -> Cost {
        let (machine, graph, precision) = (&self.machine, self.graph, self.precision);
        *self.nodes[node as usize].get_or_insert_with(|| machine.cost(graph, node as usize, samples, precision))
    }

    /// The same if it reads `less` bytes fewer from memory than the graph defines.
    pub(crate) fn node_reading_less(&self, node: NodeId, samples: u64, less: Bytes) -> Cost {
        self.machine.cost_reading_less(self.graph, node as usize, samples, self.precision, less)
    }

    /// The cost of `node` on the DSP in parts of `split` samples.
    pub(crate) fn on_dsp(&self, node: NodeId, samples: u64, split: u64) -> Cost {
        self.machine.dsp_cost(self.graph, node as usize, samples, self.precision, split).unwrap_or_default()
    }

    /// The workspace that a library takes while it runs `node`.
    pub(crate) fn workspace(&self, node: NodeId, samples: u64) -> Bytes {
        self.machine.workspace(self.graph, node as usize, samples, self.precision)
    }

    /// `tensor` compressed; `None` if no codec reaches it.
    pub(crate) fn compression(&self, tensor: TensorId, samples: u64) -> Option<Compression> {
        self.codec.compression(tensor, samples)
    }

    /// The rules by which tensors are quantised.
    ///
    /// # Errors
    /// A policy that quantises although its schedule does not define how.
    pub(crate) fn quantiser(&self) -> Result<&Quantiser, Stop> {
        let reason = "its schedule does not say how quantised tensors are stored";
        self.quantiser.as_ref().ok_or_else(|| Stop::illegal("quantise a tensor".to_owned(), reason))
    }

    /// Bytes of `tensor` with `bits` bits a value, and the number of its values.
    ///
    /// # Errors
    /// As [`RunCosts::quantiser`].
    pub(crate) fn stored(&self, tensor: TensorId, bits: u8, samples: u64) -> Result<(Bytes, u64), Stop> {
        let stored = &self.quantiser()?.stored;
        Ok((stored.bytes(tensor, bits, samples), stored.values(tensor, samples)))
    }

    /// Bytes that remain of a tensor that is given up: the signs that a ReLU needs.
    pub(crate) fn signs(&self, tensor: TensorId, samples: u64) -> Bytes {
        self.quantiser.as_ref().map_or(Bytes::ZERO, |quantiser| quantiser.stored.bytes(tensor, 0, samples))
    }

    /// The cost of the statistics of `values` values; profiled once per size, as offline profiling does.
    pub(crate) fn statistics(&mut self, values: u64, control: Control) -> Result<Cost> {
        if let Some(&(_, known)) = self.statistics.iter().find(|(size, _)| *size == values) {
            return Ok(known);
        }
        let cost = self.machine.control_cost(values, control)?;
        self.statistics.push((values, cost));
        Ok(cost)
    }

    /// Whether the stored form of a tensor is enough for `node`: signs do not serve an operator that runs again on
    /// values.
    pub(crate) fn serves(&self, node: NodeId, tensor: TensorId, tensors: &Tensors<'_>) -> bool {
        let Some(Storage::Quantised(bits)) = tensors.storage(tensor) else { return true };
        let has_values = bits == WHOLE || (bits > 0 && self.values(tensor, tensors).1 > 0);
        has_values || self.graph.nodes[node as usize].need_of(tensor) != Need::Values
    }

    /// Whether `node` needs the values, in memory, of a tensor that is not stored whole.
    pub(crate) fn reads_values(&self, node: NodeId, tensor: TensorId, tensors: &Tensors<'_>) -> bool {
        let node = &self.graph.nodes[node as usize];
        match tensors.storage(tensor) {
            Some(Storage::Quantised(bits)) => {
                let within = node.phase == Phase::Backward && self.unpacked_within(tensor);
                !within && bits != WHOLE && node.need_of(tensor) == Need::Values
            }
            _ => node.need_of(tensor) != Need::Shape,
        }
    }
}

impl RunCosts<'_> {
    /// Whether tensors may be stored with fewer bits.
    pub(crate) fn quantises(&self) -> bool {
        self.quantiser.is_some()
    }

    /// Who packs `tensor`; `None` if it needs no packing.
    pub(crate) fn packing_of(&self, tensor: TensorId) -> Option<Packing> {
        let asked = self.quantiser.as_ref().map(|quantiser| quantiser.rules.packing);
        self.ways.get(&tensor).copied().or(asked)
    }

    /// Whether backward's kernels unpack `tensor` as they read it.
    fn unpacked_within(&self, tensor: TensorId) -> bool {
        self.packing_of(tensor).is_some_and(|way| self.machine.unpacks_within(way))
    }

    /// Whether the CPU is to pack `tensor`, which is packed with `bits` bits now. The choice made for a tensor by a
    /// profile is kept for the rest of the run.
    pub(crate) fn cpu_packs(&mut self, tensor: TensorId, bits: u8, tensors: &Tensors<'_>) -> bool {
        if self.packing_of(tensor) == Some(Packing::Profiled) {
            let by_gpu = self.by_gpu(tensor, bits, tensors);
            let faster = if self.by_both(tensor, bits, tensors) <= by_gpu { Packing::Unified } else { Packing::Gpu };
            self.ways.insert(tensor, faster);
        }
        self.packing_of(tensor).is_some_and(Packing::cpu_packs)
    }

    /// The time if the GPU packs, and unpacks for each reader.
    fn by_gpu(&self, tensor: TensorId, bits: u8, tensors: &Tensors<'_>) -> Nanos {
        let (all, one) = self.values(tensor, tensors);
        let kernels = all / one.max(1) + self.readers(tensor, tensors).count() as u64;
        Nanos(self.machine.packing_cost(one, bits).alone().0 * kernels)
    }

    /// The time if the CPU packs and readers unpack: the part of the CPU's and DRAM's time that the forward nodes until
    /// the next tensor do not hide, plus the extra time of readers compared with a whole tensor.
    fn by_both(&mut self, tensor: TensorId, bits: u8, tensors: &Tensors<'_>) -> Nanos {
        let Some(cores) = self.machine.packing_cores() else { return Nanos::MAX };
        let (samples, size) = (tensors.samples, tensors.size(tensor));
        let (all, one) = self.values(tensor, tensors);
        let packed = packing_traffic(all, bits).as_f64();
        let (window, moved) = self.until_next(tensor, tensors);
        let by_cores = packed / cores.streaming_bandwidth().0;
        let by_dram = (packed + moved.as_f64()) / self.machine.device.dram().bandwidth.0;
        let mut time = Nanos::from_seconds(by_cores.max(by_dram)).saturating_sub(window);
        let readers: Vec<NodeId> = self.readers(tensor, tensors).collect();
        for reader in readers {
            let columns = self.graph.nodes[reader as usize].work.columns;
            let within = self.machine.unpacking_within(one, bits, columns);
            let less = self.node_reading_less(reader, samples, size).alone();
            time += (within.alone() + less).saturating_sub(self.node(reader, samples).alone());
        }
        time
    }

    /// The number of values in all copies of `tensor`, and in one copy.
    fn values(&self, tensor: TensorId, tensors: &Tensors<'_>) -> (u64, u64) {
        let (stored, samples) = (self.quantiser.as_ref().map(|quantiser| &quantiser.stored), tensors.samples);
        stored.map_or((0, 0), |stored| (stored.packed_values(tensor, samples), stored.values(tensor, samples)))
    }

    /// The nodes of backward that read the values of `tensor`.
    pub(crate) fn readers<'t>(
        &'t self,
        tensor: TensorId,
        tensors: &'t Tensors<'_>,
    ) -> impl Iterator<Item = NodeId> + 't {
        let reads = move |id: &NodeId| {
            let node = &self.graph.nodes[*id as usize];
            node.phase == Phase::Backward && node.inputs.contains(&tensor) && node.need_of(tensor) == Need::Values
        };
        tensors.uses.of(tensor).iter().copied().filter(reads)
    }

    /// The time of the forward nodes between the one after which `tensor` is packed and the one after which the next
    /// tensor is, and the bytes that they move.
    fn until_next(&mut self, tensor: TensorId, tensors: &Tensors<'_>) -> (Nanos, Bytes) {
        let (graph, uses, samples) = (self.graph, &tensors.uses, tensors.samples);
        let Some(last) = uses.last_forward(tensor) else { return (Nanos::ZERO, Bytes::ZERO) };
        let (mut time, mut moved) = (Nanos::ZERO, Bytes::ZERO);
        for (id, node) in (0..).zip(&graph.nodes).skip(last as usize + 1) {
            if node.phase != Phase::Forward {
                break;
            }
            let cost = self.node(id, samples);
            time += cost.alone();
            moved += cost.dram;
            let is_packed = |other: &TensorId| self.values(*other, tensors).1 > 0;
            if node.uses().any(|other| uses.last_forward(other) == Some(id) && is_packed(&other)) {
                break;
            }
        }
        (time, moved)
    }

    /// The additional cost of unpacking inside `node`, and the bytes that it no longer reads whole; `None` if it reads
    /// nothing that is packed.
    pub(crate) fn unpacking_within(&self, node: NodeId, tensors: &Tensors<'_>) -> Option<(Cost, Bytes)> {
        let node = &self.graph.nodes[node as usize];
        if node.phase != Phase::Backward || !self.quantises() {
            return None;
        }
        let mut sum: Option<(Cost, Bytes)> = None;
        for &tensor in node.inputs.iter().filter(|&&tensor| self.unpacked_within(tensor)) {
            let packed = tensors.storage(tensor).is_some() && !tensors.is_whole(tensor);
            let bits = tensors.bits(tensor);
            if !packed || bits == WHOLE || node.need_of(tensor) != Need::Values {
                continue;
            }
            let (_, values) = self.values(tensor, tensors);
            let cost = self.machine.unpacking_within(values, bits, node.work.columns);
            let (total, less) = sum.get_or_insert_default();
            total.busy += cost.busy;
            total.dram += cost.dram;
            *less += tensors.size(tensor);
        }
        sum
    }
}
