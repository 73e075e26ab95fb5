//! All scale factors of a run, batch by batch.

use haversack_devices::stack::FactorConstants;
use haversack_workloads::training_graph::Tensor;
use haversack_workloads::{TensorId, TrainingGraph};
use serde::{Deserialize, Serialize};

use super::rescaling::Rescaler;
use super::scales::ScaleProcess;
use crate::setting::Learned;

/// The scale factors of a graph's tensors and who decides when each is taken anew.
#[derive(Debug, Default)]
#[must_use]
pub struct Factors {
    all: Vec<Factor>,
    /// The factor of each tensor.
    of: Vec<Option<usize>>,
    batch: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Factor {
    /// What draws it; `None` where the data tell it.
    #[serde(skip)]
    process: Option<ScaleProcess>,
    rescaler: Rescaler,
    held: Option<u32>,
    due: bool,
}

impl Factors {
    /// Those of the tensors that nodes of `graph` rescale, as data tell them; each decision remembers `history` batches. They
    /// go on from what was [`learned`](Factors::learned) before, unless that is of another number of factors.
    pub(super) fn told(graph: &TrainingGraph, history: u64, learned: Option<&Learned>) -> Self {
        let factors = Self::new(graph, history, |_| None);
        let before = learned.and_then(|learned| <(u64, Vec<Factor>)>::deserialize(learned).ok());
        match before.filter(|(_, all)| all.len() == factors.all.len()) {
            Some((batch, all)) => Self { batch, all, ..factors },
            None => factors,
        }
    }

    /// The same, drawn under `seed` by the tensors' names, as `constants` say.
    pub fn drawn(graph: &TrainingGraph, seed: u64, history: u64, constants: &FactorConstants) -> Self {
        Self::new(graph, history, |tensor| Some(ScaleProcess::of(tensor, seed, constants)))
    }

    fn new(graph: &TrainingGraph, history: u64, process: impl Fn(&Tensor) -> Option<ScaleProcess>) -> Self {
        let mut of = vec![None; graph.tensors.len()];
        let mut tensors: Vec<TensorId> = Vec::new();
        for tensor in graph.nodes.iter().filter_map(|node| node.rescales) {
            if let Some(place @ None) = of.get_mut(tensor as usize) {
                *place = Some(tensors.len());
                tensors.push(tensor);
            }
        }
        let count = tensors.len() as u64;
        let factor = |(place, &tensor): (u64, &TensorId)| Factor {
            process: process(graph.tensor(tensor)),
            rescaler: Rescaler::new(history, place, count),
            held: None,
            due: true,
        };
        Self { all: (0..).zip(&tensors).map(factor).collect(), of, batch: 0 }
    }

    /// The number of batches, and what is known of each factor.
    pub(super) fn learned(&self) -> Learned {
        serde_json::to_value((self.batch, &self.all)).unwrap_or_default()
    }

    /// The next batch of drawn factors: what is due is taken anew.
    pub fn advance(&mut self) {
        for Factor { process, rescaler, held, due } in &mut self.all {
            let Some(process) = process else { continue };
            *due = rescaler.due(self.batch);
            let scale = process.next_batch();
            if *due {
                let changed = held.replace(scale).is_some_and(|held| held != scale);
                rescaler.observe(self.batch, changed);
            }
        }
        self.batch += 1;
    }

    /// The next batch of a run that carries data, whose factors the batch before has left as `seen`, by tensor: what was due
    /// then has been taken anew.
    pub fn observe(&mut self, seen: &[Option<u32>]) {
        for (tensor, place) in self.of.iter().enumerate() {
            let Some(factor) = place.and_then(|place| self.all.get_mut(place)) else { continue };
            let found = seen.get(tensor).copied().flatten();
            if self.batch > 0 && factor.due {
                let changed = factor.held.is_some() && factor.held != found;
                factor.rescaler.observe(self.batch - 1, changed);
            }
            factor.held = found;
            factor.due = factor.rescaler.due(self.batch);
        }
        self.batch += 1;
    }

    /// Whether the factor of `tensor` is taken anew in this batch; one that is not known here always is.
    pub fn due(&self, tensor: TensorId) -> bool {
        self.factor(tensor).is_none_or(|factor| factor.due)
    }

    /// The tensors whose factors stay as they are in this batch.
    pub fn kept(&self) -> impl Iterator<Item = TensorId> + '_ {
        (0..self.of.len() as TensorId).filter(|&tensor| !self.due(tensor))
    }

    /// Batches from one turn of the factor of `tensor` to the next.
    pub fn period(&self, tensor: TensorId) -> u64 {
        self.factor(tensor).map_or(1, |factor| factor.rescaler.period())
    }

    fn factor(&self, tensor: TensorId) -> Option<&Factor> {
        let place = self.of.get(tensor as usize).copied().flatten()?;
        self.all.get(place)
    }
}
