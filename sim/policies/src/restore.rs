//! The cost of getting a tensor back that has left memory: by recomputation, from a codec, from flash.
//!
//! Times are those of the whole mini-batch as profiled before the first iteration; a smaller part takes its share.

use haversack_devices::{Bytes, Nanos, OperatorKind};
use haversack_workloads::{NodeId, Phase, Role, TensorId, TrainingGraph};
use serde::Serialize;

use crate::ranking::{Stamps, Watchers};
use crate::{Compression, Form, MemoryView, Relief, Setting, Swapping};

/// How a tensor leaves memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Technique {
    /// It is computed again.
    Recompute,
    /// It is compressed.
    Compress,
    /// It is written to flash.
    Swap,
}

impl Technique {
    /// The relief that applies this to `tensor`.
    pub const fn relief(self, tensor: TensorId) -> Relief {
        match self {
            Self::Recompute => Relief::Rematerialise(tensor),
            Self::Compress => Relief::Compress(tensor),
            Self::Swap => Relief::Swap(tensor),
        }
    }
}

/// How layout transformations count in the cost of computing a tensor again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layouts {
    /// Not at all: they belong to the framework, and a tensor costs the time of the operators themselves (Melon,
    /// Capuchin; FedHybrid, section 4.3).
    Overlooked,
    /// By equation 6 of FedHybrid: those on the way count with a factor (ψ: 2 where they cross from one processor to
    /// another, else 1).
    Counted {
        /// ψ.
        times: u64,
    },
}

/// Whether a tensor is available when a computation needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// In memory.
    Whole,
    /// Compressed or on flash.
    Stored,
    /// Nowhere: it is computed again.
    Gone,
}

/// The point of an iteration at which tensors are weighed.
pub struct Snapshot<'a> {
    /// The graph.
    pub graph: &'a TrainingGraph,
    /// The availability of each tensor.
    pub held: &'a dyn Fn(TensorId) -> Availability,
    /// The current node; only tensors written before it can be written again.
    pub at: NodeId,
    /// Samples of the current part.
    pub samples: u64,
}

/// The availability of each tensor of `memory`.
pub fn availability<'a>(memory: &'a MemoryView<'a>) -> impl Fn(TensorId) -> Availability + 'a {
    |tensor| match memory.form(tensor) {
        _ if memory.producers[tensor as usize] == NodeId::MAX => Availability::Whole,
        Form::Whole | Form::InFlight(_) => Availability::Whole,
        Form::Stored(_) => Availability::Stored,
        Form::Absent | Form::Dropped => Availability::Gone,
    }
}

/// In backward only tensors saved by forward, and those without a producer, are available.
pub(crate) fn saved_alone(setting: &Setting<'_>, saved: &[TensorId]) -> impl Fn(TensorId) -> Availability + use<> {
    let mut there = vec![true; setting.graph.tensors.len()];
    for &output in setting.graph.nodes.iter().flat_map(|node| &node.outputs) {
        there[output as usize] = false;
    }
    for &tensor in saved {
        there[tensor as usize] = true;
    }
    move |tensor| if there[tensor as usize] { Availability::Whole } else { Availability::Gone }
}

/// The interval in which a saved tensor is not used: from the node after the last that uses it in forward to the first
/// that uses it in backward. By tensor; `None` for those that lack one of the two.
pub(crate) fn absences(graph: &TrainingGraph) -> Vec<Option<(NodeId, NodeId)>> {
    let mut last = vec![None; graph.tensors.len()];
    let mut absences = vec![None; graph.tensors.len()];
    for (id, node) in (0..).zip(&graph.nodes) {
        for tensor in node.uses() {
            match node.phase {
                Phase::Forward => last[tensor as usize] = Some(id + 1),
                Phase::Backward => {
                    let absence = &mut absences[tensor as usize];
                    *absence = absence.or(Some(id));
                }
                Phase::Update => {}
            }
        }
    }
    last.into_iter().zip(absences).map(|(from, to)| from.zip(to)).collect()
}

/// The costs of getting back all tensors of a graph.
///
/// A price stays valid until one of the tensors that counted in it comes back: `take_in` returns those that may be
/// cheaper than they were. All other events make tensors more expensive.
#[derive(Clone, Debug)]
#[must_use]
pub struct RestoreCosts {
    batch: u64,
    layouts: Layouts,
    times: Vec<Nanos>,
    /// When each node begins if nothing is given up; one more for the end.
    starts: Vec<Nanos>,
    is_layout: Vec<bool>,
    /// From each node on, the layout transformations up to the first operator of another kind.
    layout_paths: Vec<Nanos>,
    /// Nodes that write each tensor, in order.
    writers: Vec<Vec<NodeId>>,
    /// The last node that uses each tensor made by a node; other tensors are never released.
    released: Vec<NodeId>,
    compression: Vec<Option<Compression>>,
    pub(crate) swapping: Vec<Option<Swapping>>,
    /// How each tensor left memory last.
    left: Vec<Option<Technique>>,
    /// The choice in which it was given up.
    given_in: Vec<u32>,
    choice: u32,
    /// Tensors given up in this choice.
    given_up: Vec<TensorId>,
    /// The availability of each tensor when prices last counted it.
    held: Vec<Availability>,
    watchers: Watchers,
    seen_nodes: Stamps,
    seen_tensors: Stamps,
    /// Operators that were visited for the cost of computing something again.
    pub(crate) visited: u64,
}

impl RestoreCosts {
    /// The costs for the graph, the times and the prices of a setting.
    pub fn new(setting: &Setting<'_>, layouts: Layouts) -> Self {
        let graph = setting.graph;
        let (nodes, tensors) = (graph.nodes.len(), graph.tensors.len());
        let times: Vec<Nanos> = (0..nodes).map(|id| setting.times().get(id).copied().unwrap_or_default()).collect();
        let mut starts = Vec::with_capacity(nodes + 1);
        let mut clock = Nanos::ZERO;
        for &time in &times {
            starts.push(clock);
            clock += time;
        }
        starts.push(clock);
        let (mut writers, mut released) = (vec![Vec::new(); tensors], vec![NodeId::MAX; tensors]);
        for (id, node) in (0..).zip(&graph.nodes) {
            for &output in &node.outputs {
                writers[output as usize].push(id);
            }
            for tensor in node.uses().filter(|&tensor| graph.tensor(tensor).role == Role::Activation) {
                released[tensor as usize] = id;
            }
        }
        let is_layout: Vec<bool> = graph.nodes.iter().map(|node| node.work.kind == OperatorKind::Layout).collect();
        let activations = || graph.tensors.iter().map(|tensor| tensor.role == Role::Activation);
        let bytes = |id: TensorId| Bytes(graph.tensor(id).bytes.at(setting.batch));
        let compress = |id| setting.restore?.compression(id, setting.batch);
        let swap = |id| setting.restore?.swapping(bytes(id));
        Self {
            batch: setting.batch.max(1),
            layouts,
            layout_paths: layout_paths(graph, &times, &is_layout),
            times,
            starts,
            is_layout,
            writers,
            released,
            compression: (0..).zip(activations()).map(|(id, made)| if made { compress(id) } else { None }).collect(),
            swapping: (0..).zip(activations()).map(|(id, made)| if made { swap(id) } else { None }).collect(),
            left: vec![None; tensors],
            given_in: vec![0; tensors],
            choice: 0,
            given_up: Vec::new(),
            held: vec![Availability::Whole; tensors],
            watchers: Watchers::new(tensors),
            seen_nodes: Stamps::new(nodes),
            seen_tensors: Stamps::new(tensors),
            visited: 0,
        }
    }

    /// All times and prices that it was made from, as numbers in a fixed order.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let compression = self.compression.iter().flat_map(|found| {
            found.map_or([u64::MAX; 3], |found| [found.bytes.0, found.compress.0, found.decompress.0])
        });
        let swapping =
            self.swapping.iter().flat_map(|found| found.map_or([u64::MAX; 2], |found| [found.out.0, found.back.0]));
        let times = self.times.iter().map(|time| time.0);
        std::iter::once(self.batch).chain(times).chain(compression).chain(swapping)
    }

    /// Starts a choice: no tensor is given up in it so far.
    pub(crate) fn begin_choice(&mut self) {
        self.choice += 1;
    }

    /// Updates from the changes since the last call; returns the tensors to be priced again: those that may be cheaper
    /// now, and those given up. One may be named several times.
    pub(crate) fn take_in(&mut self, memory: &MemoryView<'_>) -> Vec<TensorId> {
        let now = availability(memory);
        let mut cheaper = Vec::new();
        // A tensor that was given up may have another form than chosen: flash may still be writing it.
        let given_up = std::mem::take(&mut self.given_up);
        for tensor in memory.changed.iter().chain(given_up.iter().copied()) {
            let held = now(tensor);
            let before = std::mem::replace(&mut self.held[tensor as usize], held);
            if before != Availability::Whole && before != held {
                cheaper.extend(self.watchers.take(tensor));
            }
        }
        cheaper.extend(given_up);
        cheaper
    }

    /// The tensor is given up in this choice; others that need it cost more from now on.
    pub fn give_up(&mut self, tensor: TensorId, technique: Technique) {
        self.left[tensor as usize] = Some(technique);
        self.given_in[tensor as usize] = self.choice;
        self.given_up.push(tensor);
        self.held[tensor as usize] = match technique {
            Technique::Recompute => Availability::Gone,
            Technique::Compress | Technique::Swap => Availability::Stored,
        };
    }

    /// The time from the beginning of one node to that of another, or to the end of the iteration, if nothing is given
    /// up.
    pub fn between(&self, from: NodeId, to: NodeId, samples: u64) -> Nanos {
        let start = |node: NodeId| self.starts[(node as usize).min(self.times.len())];
        self.share(start(to).saturating_sub(start(from)), samples)
    }

    /// When `node` begins with the whole mini-batch if nothing is given up, in nanoseconds.
    pub fn start(&self, node: NodeId) -> f64 {
        self.starts[(node as usize).min(self.times.len())].0 as f64
    }

    /// The share of `samples` in the time of the whole mini-batch.
    pub fn ratio(&self, samples: u64) -> f64 {
        samples as f64 / self.batch as f64
    }

    /// Whether any tensor can be given up by this technique.
    pub fn offers(&self, technique: Technique) -> bool {
        match technique {
            Technique::Recompute => true,
            Technique::Compress => self.compression.iter().any(Option::is_some),
            Technique::Swap => self.swapping.iter().any(Option::is_some),
        }
    }

    /// Compression of the tensor; `None` if no codec can compress it.
    pub fn compression(&self, tensor: TensorId, samples: u64) -> Option<Compression> {
        self.compression[tensor as usize].map(|whole| Compression {
            bytes: Bytes(share(whole.bytes.0, samples, self.batch)),
            compress: self.share(whole.compress, samples),
            decompress: self.share(whole.decompress, samples),
        })
    }

    /// Swapping of the tensor; `None` without flash.
    pub fn swapping(&self, tensor: TensorId, samples: u64) -> Option<Swapping> {
        self.swapping[tensor as usize]
            .map(|whole| Swapping { out: self.share(whole.out, samples), back: self.share(whole.back, samples) })
    }

    /// The time of layout transformations from `reader` on up to the operator that uses the tensor; zero if they are
    /// overlooked.
    pub fn layout_path(&self, reader: NodeId, samples: u64) -> Nanos {
        let Layouts::Counted { times } = self.layouts else { return Nanos::ZERO };
        self.share(self.layout_paths.get(reader as usize).copied().unwrap_or_default() * times, samples)
    }

    /// The last node that uses a tensor that a node makes; `NodeId::MAX` for all others.
    pub fn released(&self, tensor: TensorId) -> NodeId {
        self.released[tensor as usize]
    }

    /// The time of computing `tensor` again for node `wanted`: its operators, and everything that has to be computed,
    /// decompressed or read first because it is not in memory either, or will be released by then, each once.
    ///
    /// For the output of a layout transformation, this includes the operator that made the transformation's input,
    /// unless that input is in memory.
    pub fn recomputation(&mut self, tensor: TensorId, wanted: NodeId, snapshot: &Snapshot<'_>) -> Nanos {
        self.seen_nodes.begin();
        self.seen_tensors.begin();
        self.seen_tensors.first(tensor);
        let mut total = Nanos::ZERO;
        let mut open = vec![tensor];
        while let Some(made) = open.pop() {
            for place in 0..self.writers[made as usize].len() {
                let writer = self.writers[made as usize][place];
                if writer >= snapshot.at || !self.seen_nodes.first(writer) {
                    continue;
                }
                self.visited += 1;
                total += self.weight(writer);
                for &input in &snapshot.graph.nodes[writer as usize].inputs {
                    if !self.seen_tensors.first(input) {
                        continue;
                    }
                    if self.released[input as usize] < wanted {
                        open.push(input);
                        continue;
                    }
                    match self.availability(input, snapshot) {
                        Availability::Whole => continue,
                        Availability::Stored => total += self.fetching(input),
                        Availability::Gone => open.push(input),
                    }
                    self.watchers.watch(input, tensor);
                }
            }
        }
        self.share(total, snapshot.samples)
    }

    /// The time that an operator counts with.
    fn weight(&self, node: NodeId) -> Nanos {
        let time = self.times[node as usize];
        match self.layouts {
            _ if !self.is_layout[node as usize] => time,
            Layouts::Counted { times } => time * times,
            Layouts::Overlooked => Nanos::ZERO,
        }
    }

    fn availability(&self, tensor: TensorId, snapshot: &Snapshot<'_>) -> Availability {
        let id = tensor as usize;
        let given = self.choice > 0 && self.given_in[id] == self.choice;
        let found = if given { Availability::Stored } else { (snapshot.held)(tensor) };
        // A tensor stored in an unknown way counts as gone.
        let otherwise = matches!(self.left[id], Some(Technique::Compress | Technique::Swap));
        if found == Availability::Stored && !otherwise { Availability::Gone } else { found }
    }

    /// The time of restoring a tensor from its stored form, for the whole mini-batch.
    fn fetching(&self, tensor: TensorId) -> Nanos {
        let id = tensor as usize;
        match self.left[id] {
            Some(Technique::Compress) => self.compression[id].map_or(Nanos::ZERO, |found| found.decompress),
            Some(Technique::Swap) => self.swapping[id].map_or(Nanos::ZERO, |found| found.back),
            _ => Nanos::ZERO,
        }
    }

    fn share(&self, time: Nanos, samples: u64) -> Nanos {
        Nanos(share(time.0, samples, self.batch))
    }
}

/// The share of `samples` of a batch in `whole`.
fn share(whole: u64, samples: u64, batch: u64) -> u64 {
    if samples == batch {
        return whole;
    }
    u64::try_from(u128::from(whole) * u128::from(samples) / u128::from(batch)).unwrap_or(u64::MAX)
}

/// For each node, its time and that of the nodes after it as long as each is a layout transformation of the previous
/// one's output; zero for other operators.
fn layout_paths(graph: &TrainingGraph, times: &[Nanos], is_layout: &[bool]) -> Vec<Nanos> {
    let mut paths = vec![Nanos::ZERO; times.len()];
    // The first node after the current one that reads each tensor.
    let mut reader: Vec<Option<NodeId>> = vec![None; graph.tensors.len()];
    for (id, node) in graph.nodes.iter().enumerate().rev() {
        if is_layout[id] {
            let next = node.outputs.first().and_then(|&output| reader[output as usize]);
            paths[id] = times[id] + next.map_or(Nanos::ZERO, |next| paths[next as usize]);
        }
        for &input in &node.inputs {
            reader[input as usize] = Some(id as NodeId);
        }
    }
    paths
}

/// The gain per nanosecond of cost: zero without a gain, infinite without a cost.
pub fn worth(won: f64, cost: Nanos) -> f64 {
    if won > 0.0 { won / cost.0 as f64 } else { 0.0 }
}
