//! `dtr`: dynamic tensor rematerialisation (Kirisame et al., ICLR 2021): under pressure the tensor with the lowest
//! score is dropped, and computed again when it is read. The scores are those of the replay.

use haversack_devices::Nanos;
use haversack_replay::{Candidate, Heuristic};
use haversack_workloads::{NodeId, TensorId, TrainingGraph};

use crate::ranking::{Ranking, Scored, Stamps, Watchers, at_most};
use crate::{Form, MemoryView, Policy, PolicyError, Relief, Schedule, Setting, TensorState, Want};

/// Dynamic tensor rematerialisation.
#[derive(Clone, Debug)]
#[must_use]
pub struct Dtr {
    heuristic: Heuristic,
    ranking: Ranking<2>,
    neighbours: Option<Neighbours>,
}

impl Dtr {
    /// Ranks tensors by `heuristic`.
    pub fn new(heuristic: Heuristic) -> Self {
        Self { heuristic, ranking: Ranking::default(), neighbours: None }
    }
}

/// The score of a tensor at the clock `now`, given the cost of its dropped neighbours; the lowest goes.
fn score(heuristic: Heuristic, tensor: &TensorState, neighbourhood: Nanos, now: Nanos) -> f64 {
    heuristic.score(&Candidate {
        compute: tensor.cost,
        neighbourhood: i64::try_from(neighbourhood.0).unwrap_or(i64::MAX),
        size: tensor.bytes,
        last_access: tensor.last_use,
        // The runtime's clock starts at one, so that the last use is always in the past.
        now: now + Nanos(1),
    })
}

/// The keys of a tensor's score: the score as if used just now, and the time of its last use.
fn keys(heuristic: Heuristic, tensor: &TensorState, neighbourhood: Nanos) -> [f64; 2] {
    [-score(heuristic, tensor, neighbourhood, tensor.last_use), -(tensor.last_use.0 as f64)]
}

impl Policy for Dtr {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let descendants = matches!(self.heuristic, Heuristic::Dtr | Heuristic::DtrEq);
        let looks = descendants || self.heuristic == Heuristic::Msps;
        self.neighbours = looks.then(|| Neighbours::new(setting.graph, descendants));
        Ok(Schedule::plain(setting.batch))
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        let (heuristic, neighbours) = (self.heuristic, &mut self.neighbours);
        let cheaper = neighbours.as_mut().map(|neighbours| neighbours.take_in(memory)).unwrap_or_default();
        // Neighbours only make a score higher.
        self.ranking.refresh(memory, &cheaper, |_, tensor| Some(keys(heuristic, tensor, Nanos::ZERO)));
        let ages = matches!(heuristic, Heuristic::Dtr | Heuristic::DtrEq | Heuristic::DtrLocal);
        let now = memory.now.0 as f64 + 1.0;
        let bound = |&[fresh, last_use]: &[f64; 2]| match ages {
            true => at_most(fresh / (now + last_use).max(1.0)),
            false => fresh,
        };
        Ok(self.ranking.evict(want.bytes(), memory, bound, |id| {
            let tensor = &memory.tensors[id as usize];
            let around = neighbours.as_mut().map_or(Nanos::ZERO, |neighbours| neighbours.dropped_around(id, memory));
            Scored::At(-score(heuristic, tensor, around, memory.now), keys(heuristic, tensor, around))
        }))
    }
}

/// The graph of tensors along which dropped neighbours are found.
#[derive(Clone, Debug)]
struct Neighbours {
    /// The outputs of the nodes that read each tensor; `None` if only ancestors count.
    readers: Option<Vec<Vec<TensorId>>>,
    /// Whether each tensor was dropped at the last look.
    dropped: Vec<bool>,
    watchers: Watchers,
    seen: Stamps,
}

impl Neighbours {
    fn new(graph: &TrainingGraph, descendants: bool) -> Self {
        let tensors = graph.tensors.len();
        let readers = descendants.then(|| readers(graph));
        Self { readers, dropped: vec![false; tensors], watchers: Watchers::new(tensors), seen: Stamps::new(tensors) }
    }

    /// Updates the dropped tensors from the changes; returns the tensors around which one came back.
    fn take_in(&mut self, memory: &MemoryView<'_>) -> Vec<TensorId> {
        let mut cheaper = Vec::new();
        for tensor in memory.changed.iter() {
            let dropped = memory.form(tensor) == Form::Dropped;
            // A tensor that came back and was dropped again may have become cheaper in between.
            if std::mem::replace(&mut self.dropped[tensor as usize], dropped) {
                cheaper.extend(self.watchers.take(tensor));
            }
        }
        cheaper
    }

    /// The cost of the dropped tensors around `tensor`: ancestors, and descendants where they count.
    fn dropped_around(&mut self, tensor: TensorId, memory: &MemoryView<'_>) -> Nanos {
        self.seen.begin();
        self.seen.first(tensor);
        let ancestors = self.visit(tensor, memory, |id| match memory.producers[id as usize] {
            NodeId::MAX => &[],
            node => &memory.graph.nodes[node as usize].inputs,
        });
        let readers = self.readers.take();
        let descendants = readers.as_ref().map(|readers| self.visit(tensor, memory, |id| &readers[id as usize]));
        self.readers = readers;
        ancestors + descendants.unwrap_or_default()
    }

    /// The cost of the dropped tensors to which `next` leads from `start`, without those already seen.
    fn visit<'a>(
        &mut self,
        start: TensorId,
        memory: &MemoryView<'_>,
        next: impl Fn(TensorId) -> &'a [TensorId],
    ) -> Nanos {
        let mut total = Nanos::ZERO;
        let mut open = vec![start];
        while let Some(id) = open.pop() {
            for &near in next(id) {
                if memory.form(near) == Form::Dropped && self.seen.first(near) {
                    total += memory.tensors[near as usize].cost;
                    self.watchers.watch(near, start);
                    open.push(near);
                }
            }
        }
        total
    }
}

/// The outputs of the nodes that read each tensor.
fn readers(graph: &TrainingGraph) -> Vec<Vec<TensorId>> {
    let mut readers = vec![Vec::new(); graph.tensors.len()];
    for node in &graph.nodes {
        for &input in &node.inputs {
            readers[input as usize].extend(node.outputs.iter().filter(|&&output| output != input));
        }
    }
    readers
}
