//! The choice of the tensor that goes and of the technique: the one that saves the most memory for its time (algorithm
//! 1, lines 11 to 16). It makes plans, and decides in situations that no plan covers.

use haversack_devices::units::{Bytes, Nanos};
use haversack_workloads::{NodeId, TensorId};

use super::parameters::Parameters;
use super::plan::Operations;
use crate::ranking::{Ranking, Scored, promised};
use crate::restore::{Layouts, RestoreCosts, Snapshot, Technique, absences, availability, saved_alone, worth};
use crate::{MemoryView, Policy, PolicyError, Relief, Setting, Want};

/// Chooses the tensors that give way.
#[derive(Clone, Debug)]
pub(super) struct Chooser {
    parameters: Parameters,
    pub(super) costs: RestoreCosts,
    /// Tensors by memory saved for its time, and by their next use.
    ranking: Ranking<2>,
}

impl Chooser {
    /// A chooser with the times and prices of `setting`; nothing was given up yet.
    pub(super) fn new(parameters: Parameters, setting: &Setting<'_>) -> Self {
        Self { parameters, costs: RestoreCosts::new(setting, parameters.layouts()), ranking: Ranking::default() }
    }

    /// The number of scores computed so far, and of operators visited for them.
    pub(super) const fn operations(&self) -> Operations {
        Operations { scores: self.ranking.scored(), operators: self.costs.visited }
    }

    /// Chooses tensors so that `wanted` becomes free, in order; less if no candidates are left.
    pub(super) fn choose(&mut self, wanted: Bytes, memory: &MemoryView<'_>) -> Vec<(TensorId, Technique)> {
        let Self { parameters, costs, ranking } = self;
        let (held, samples) = (availability(memory), memory.micro_batch);
        let snapshot = Snapshot { graph: memory.graph, held: &held, at: memory.at, samples };
        let stale = costs.take_in(memory);
        ranking.refresh(memory, &stale, |_, tensor| Some([f64::INFINITY, costs.start(tensor.next_use)]));
        costs.begin_choice();
        let (now, ratio) = (costs.start(memory.at), costs.ratio(samples));
        let bound = |&[rate, next_use]: &[f64; 2]| promised(rate, (next_use - now) * ratio);
        let mut chosen = Vec::new();
        let mut freed = Bytes::ZERO;
        while freed < wanted {
            let victim = ranking.take_best(bound, |tensor| {
                let Some(best) = parameters.best(costs, tensor, memory, &snapshot) else { return Scored::Never };
                let next_use = memory.tensors[tensor as usize].next_use;
                Scored::At(best.terms.mps(), [best.rate, costs.start(next_use)])
            });
            let Some(victim) = victim else { break };
            let Some(best) = parameters.best(costs, victim, memory, &snapshot) else { break };
            costs.give_up(victim, best.technique);
            freed += best.terms.saved;
            chosen.push((victim, best.technique));
        }
        chosen
    }

    /// Records that the tensor was given up by a choice made elsewhere.
    pub(super) fn note(&mut self, tensor: TensorId, technique: Technique) {
        self.costs.give_up(tensor, technique);
    }

    /// Memory that giving up a tensor of `bytes` frees; zero if no codec can compress it.
    pub(super) fn freed(&self, tensor: TensorId, bytes: Bytes, technique: Technique, samples: u64) -> Bytes {
        let compressed = || self.costs.compression(tensor, samples).map_or(bytes, |found| found.bytes);
        if technique == Technique::Compress { bytes.saturating_sub(compressed()) } else { bytes }
    }
}

/// Decides as memory runs short, without a plan; plans are recorded from this.
impl Policy for Chooser {
    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        let chosen = self.choose(want.bytes(), memory);
        Ok(chosen.into_iter().map(|(tensor, technique)| technique.relief(tensor)).collect())
    }
}

/// Savings and costs of giving up a tensor of `bytes` by `technique` while it is away from one node to another.
fn terms(
    costs: &mut RestoreCosts,
    tensor: TensorId,
    bytes: Bytes,
    technique: Technique,
    snapshot: &Snapshot<'_>,
    from: NodeId,
    to: NodeId,
) -> Option<Terms> {
    let samples = snapshot.samples;
    let lifetime = costs.between(from, to, samples);
    Some(match technique {
        Technique::Recompute => {
            let regain = costs.recomputation(tensor, to, snapshot) + costs.layout_path(to, samples);
            Terms { saved: bytes, lifetime, purge: Nanos::ZERO, regain }
        }
        Technique::Compress => {
            let found = costs.compression(tensor, samples).filter(|found| found.bytes < bytes)?;
            Terms { saved: bytes - found.bytes, lifetime, purge: found.compress, regain: found.decompress }
        }
        Technique::Swap => {
            let found = costs.swapping(tensor, samples)?;
            Terms { saved: bytes, lifetime, purge: found.out, regain: found.back }
        }
    })
}

/// The best way to give a tensor up.
struct Best {
    technique: Technique,
    terms: Terms,
    /// The most memory that any technique saves for its time.
    rate: f64,
}

impl Parameters {
    /// The technique with the largest MPS. Ties: compression before recomputation (algorithm 1, lines 13 to 16), and
    /// both before swapping.
    fn best(
        self,
        costs: &mut RestoreCosts,
        tensor: TensorId,
        memory: &MemoryView<'_>,
        snapshot: &Snapshot<'_>,
    ) -> Option<Best> {
        let state = &memory.tensors[tensor as usize];
        let mut best: Option<Best> = None;
        for technique in self.allowed() {
            let (from, to) = (snapshot.at, state.next_use);
            let Some(terms) = terms(costs, tensor, state.bytes, technique, snapshot, from, to) else { continue };
            let before = best.as_ref().map_or(0.0, |best| best.rate);
            let rate = before.max(worth(terms.saved.as_f64(), terms.purge + terms.regain));
            match &mut best {
                Some(best) if terms.mps().total_cmp(&best.terms.mps()).is_le() => best.rate = rate,
                best => *best = Some(Best { technique, terms, rate }),
            }
        }
        best
    }
}

/// Savings and costs of giving a tensor up in one way (equation 5): MPS = SM × FLT / (PC + RC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// SM: memory saved.
    pub saved: Bytes,
    /// FLT: how long it stays saved.
    pub lifetime: Nanos,
    /// PC: the time of giving the tensor up.
    pub purge: Nanos,
    /// RC: the time of getting it back.
    pub regain: Nanos,
}

impl Terms {
    /// RW: memory saved times how long, in byte-nanoseconds.
    pub fn reward(&self) -> f64 {
        self.saved.as_f64() * self.lifetime.0 as f64
    }

    /// MPS: bytes saved times their duration, per time spent (byte-seconds a second). Zero if nothing is saved;
    /// infinite if it costs nothing.
    pub fn mps(&self) -> f64 {
        worth(self.reward(), self.purge + self.regain)
    }
}

/// The MPS of every saved tensor by each technique, if it is the only tensor given up and stays away from its last use
/// in forward to its first in backward (figure 7). Tensors that forward does not save are gone by then.
pub fn survey(setting: &Setting<'_>, layouts: Layouts) -> Vec<Surveyed> {
    let mut costs = RestoreCosts::new(setting, layouts);
    let saved = setting.graph.saved();
    let held = saved_alone(setting, &saved);
    let absences = absences(setting.graph);
    saved
        .iter()
        .filter_map(|&tensor| {
            let (from, at) = absences[tensor as usize]?;
            let snapshot = Snapshot { graph: setting.graph, held: &held, at, samples: setting.batch };
            let bytes = Bytes(setting.graph.tensor(tensor).bytes.at(setting.batch));
            let mut terms = |technique| terms(&mut costs, tensor, bytes, technique, &snapshot, from, at);
            Some(Surveyed {
                tensor,
                recompute: terms(Technique::Recompute)?,
                compress: terms(Technique::Compress),
                swap: terms(Technique::Swap),
            })
        })
        .collect()
}

/// The value of giving up one saved tensor.
#[derive(Clone, Copy, Debug)]
pub struct Surveyed {
    /// The tensor.
    pub tensor: TensorId,
    /// By computing it again.
    pub recompute: Terms,
    /// By compression; `None` if no codec can compress it.
    pub compress: Option<Terms>,
    /// By swapping; `None` without flash.
    pub swap: Option<Terms>,
}
