//! `gact`: every saved activation is quantised group by group, whatever operator saves it (Liu et al., ICML 2022).
//!
//! Level L1 gives every tensor the same bits. Level L2 adapts them to how sensitive the gradient is to each tensor: the
//! variance that a tensor adds is its sensitivity over (2^bits − 1)², and from the one whose variance grows least for
//! each bit saved, bits are taken, from 8 to 4 to 2, until the mean over all values is met. The authors measure
//! sensitivity every 1000 iterations, from the first on, by three passes forward and backward for every tensor
//! (`gact/autoprec.py`), whose time is charged here; without data the prior of `importance` is used, which measurements
//! of a run replace. The authors' code lets a few tensors stay whole or fall to one bit; here the range is 2 to 8.
//!
//! Hooks see what autograd saves, so a tensor that two operators save is packed for each (the authors' search for
//! duplicates is off by default); statistics run in separate kernels.

use haversack_workloads::TensorId;
use serde::Deserialize;

use crate::importance::{Metric, of_saved};
use crate::quantised::{Quantisation, Quantised, Reach};
use crate::ranking::{Ranking, Scored};
use crate::{Holding, IterationPlan, MemoryView, Policy, PolicyError, Schedule, Setting, actnn};

/// GACT's rules of storage: ActNN's, except that they cover tensors saved by autograd, which the framework's operators
/// write.
pub const RULES: Quantisation = Quantisation { reach: Reach::Everything, writes_signs: false, ..actnn::RULES };

/// The bit widths that adaptation chooses from, largest first.
pub const BITS: [u8; 3] = [8, 4, 2];

/// Iterations from one adaptation to the next (`adapt_interval`).
const ADAPTED: u64 = 1000;
/// Passes needed for the sensitivity of a tensor: two with one bit, drawn differently, and one with eight.
const PASSES: u64 = 3;

/// How bits are distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Level {
    /// L1: the same for every tensor.
    #[default]
    #[serde(rename = "L1")]
    Fixed,
    /// L2: by sensitivity, with the same mean.
    #[serde(rename = "L2")]
    Adaptive,
}

/// Parameters of `gact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[must_use]
pub struct Parameters {
    /// The level.
    pub level: Level,
    /// Bits a value: of every tensor, or on average.
    pub bits: u8,
    /// The sensitivity of tensors before any was measured.
    #[serde(rename = "importance")]
    pub metric: Metric,
}

/// GACT.
#[derive(Clone, Debug)]
#[must_use]
pub struct Gact {
    parameters: Parameters,
    stored: Option<Quantised>,
    /// Values of each saved tensor, over all copies; zero for tensors out of reach.
    values: Vec<u64>,
    sensitivity: Vec<f64>,
    bits: Vec<u8>,
    /// Iterations that have begun.
    begun: u64,
}

impl Gact {
    /// GACT with `parameters`.
    pub const fn new(parameters: Parameters) -> Self {
        Self { parameters, stored: None, values: Vec::new(), sensitivity: Vec::new(), bits: Vec::new(), begun: 0 }
    }

    fn adapt(&mut self) {
        self.bits = match self.parameters.level {
            Level::Fixed => vec![self.parameters.bits; self.values.len()],
            Level::Adaptive => adapted(&self.sensitivity, &self.values, self.parameters.bits),
        };
    }
}

/// Bits for tensors with these numbers of `values`, at most `mean` on average over all values. Greedily minimises the
/// sum of sensitivity / (2^bits − 1)², taking bits from one tensor after the other.
pub fn adapted(sensitivity: &[f64], values: &[u64], mean: u8) -> Vec<u8> {
    let mut bits = vec![BITS[0]; values.len()];
    let target = values.iter().map(|&values| u128::from(values) * u128::from(mean)).sum::<u128>();
    let mut sum = values.iter().map(|&values| u128::from(values) * u128::from(BITS[0])).sum::<u128>();
    let ease = |tensor: TensorId, from: u8| {
        let id = tensor as usize;
        let variance = |bits: u8| sensitivity[id] / (2f64.powi(i32::from(bits)) - 1.0).powi(2);
        // The added variance per bit saved.
        let harm = |to: u8| (variance(to) - variance(from)) / f64::from(from - to);
        next(from).map_or(f64::NEG_INFINITY, |to| -harm(to) / values[id] as f64)
    };
    let held = (0..).zip(values).filter(|(_, values)| **values > 0).map(|(tensor, _)| tensor);
    let mut queue = Ranking::default();
    held.for_each(|tensor| queue.put(tensor, Some([ease(tensor, BITS[0])])));
    while sum > target {
        let score = |tensor| {
            let ease = ease(tensor, bits[tensor as usize]);
            Scored::At(ease, [ease])
        };
        let Some(tensor) = queue.take_best(|&[ease]| ease, score) else { break };
        let id = tensor as usize;
        let Some(fewer) = next(bits[id]) else { break };
        sum -= u128::from(values[id]) * u128::from(bits[id] - fewer);
        bits[id] = fewer;
        queue.put(tensor, Some([ease(tensor, fewer)]));
    }
    bits
}

/// The next smaller bit width.
fn next(bits: u8) -> Option<u8> {
    BITS.into_iter().find(|&fewer| fewer < bits)
}

impl Policy for Gact {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let stored = Quantised::new(setting.graph, &RULES, setting.elements);
        let all = 0..setting.graph.tensors.len() as TensorId;
        self.values = all.map(|id| stored.packed_values(id, setting.batch)).collect();
        self.sensitivity = of_saved(setting.graph, setting.worth(self.parameters.metric));
        self.stored = Some(stored);
        self.adapt();
        Ok(Schedule { quantisation: Some(RULES), ..Schedule::plain(setting.batch) })
    }

    fn begin_iteration(&mut self, plan: &mut IterationPlan) -> Result<(), PolicyError> {
        if self.parameters.level == Level::Adaptive && self.begun.is_multiple_of(ADAPTED) {
            plan.rehearsals = PASSES * self.values.iter().filter(|&&values| values > 0).count() as u64;
        }
        self.begun += 1;
        if !plan.importance.is_empty() {
            // A tensor that was never measured has sensitivity zero.
            self.sensitivity.fill(0.0);
            self.sensitivity.iter_mut().zip(&plan.importance).for_each(|(held, &measured)| *held = measured);
            self.adapt();
        }
        Ok(())
    }

    fn hold(&mut self, tensor: TensorId, _memory: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        Ok(match self.bits.get(tensor as usize) {
            Some(&bits) if self.stored.as_ref().is_some_and(|stored| stored.reaches(tensor)) => Holding::Quantise(bits),
            _ => Holding::Keep,
        })
    }
}
