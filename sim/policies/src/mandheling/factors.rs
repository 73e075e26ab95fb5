//! All scale factors of a run, batch by batch; and when each is recomputed (section 3.4): twice as often as it was seen
//! to change.
//!
//! Without data on how a factor changes, the changes are drawn, batch by batch (figure 4).
//! A scale factor is the number of bits by which the largest magnitude of a tensor exceeds seven (listing 1): log₂ of
//! that magnitude, rounded up. Late in training the logarithm stays at a level, and mini-batches scatter around it
//! independently. The factor jumps between the integers next to the level: rarely if the level is halfway between two,
//! in half of the batches if it is an integer. The scatter of mini-batches was measured on a network that trains in
//! integers, by kind of tensor; the position of levels between integers is drawn.

use haversack_devices::FactorConstants;
use haversack_engine::Stream;
use haversack_workloads::{Role, Tensor, TensorId, TrainingGraph};
use rand::RngExt;
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};

use crate::Learned;

/// The scale factors of a graph's tensors and the decision when each is recomputed.
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
    /// The random process of its changes; `None` if the data show them.
    #[serde(skip)]
    process: Option<ScaleProcess>,
    rescaler: Rescaler,
    held: Option<u32>,
    due: bool,
}

impl Factors {
    /// The factors of the tensors that nodes of `graph` rescale, as observed in data; each decision remembers `history`
    /// batches. They continue from the state [`learned`](Factors::learned) before, unless that is for another number of
    /// factors.
    pub(super) fn told(graph: &TrainingGraph, history: u64, learned: Option<&Learned>) -> Self {
        let factors = Self::new(graph, history, |_| None);
        let before = learned.and_then(|learned| <(u64, Vec<Factor>)>::deserialize(learned).ok());
        match before.filter(|(_, all)| all.len() == factors.all.len()) {
            Some((batch, all)) => Self { batch, all, ..factors },
            None => factors,
        }
    }

    /// The same, drawn under `seed` by the tensors' names, with the scatter in `constants`.
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

    /// The number of batches, and the state of each factor.
    pub(super) fn learned(&self) -> Learned {
        serde_json::to_value((self.batch, &self.all)).unwrap_or_default()
    }

    /// The next batch of drawn factors: those that are due are recomputed.
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

    /// The next batch of a run that carries data. `seen` contains the factors after the previous batch, by tensor:
    /// those that were due then have been recomputed.
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

    /// Whether the factor of `tensor` is recomputed in this batch; unknown ones always are.
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

/// The longest interval between changes that is assumed, in batches: the upper end of figure 4(b).
pub const LONGEST_INTERVAL: u64 = 60;

/// The shortest meaningful history: over three batches, a change in none and a change in every one are too similar.
pub const LEAST_HISTORY: u64 = 4;

/// Decides in which batches one scale factor is recomputed.
///
/// The history consists of K batches in which that was done, and determines the next K: if it shows a change every f
/// batches on average, the factor is recomputed every f / 2 batches, and at least once in [`LONGEST_INTERVAL`] / 2. The
/// first K batches have no history: the factor is recomputed in each of them.
///
/// A check sees only whether the factor differs from the last one computed. If a factor jumps between two values, the
/// check misses every even number of jumps, so counting the changes seen would lengthen the interval with the period,
/// and then the period with the interval. If such jumps come at random every f batches, a share s = (1 − exp(−2g / f))
/// / 2 of checks g batches apart sees a change; f is computed from that. If none sees one, or half of them or more,
/// half a change is added or taken away.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[must_use]
pub struct Rescaler {
    /// K.
    remembered: u64,
    /// The offset of its first turn after the first factor's, as a fraction of a period.
    place: (u64, u64),
    period: u64,
    last: Option<u64>,
    next: u64,
    checks: u64,
    changes: u64,
    /// Batches since the history began.
    reach: u64,
}

impl Rescaler {
    /// Remembers `remembered` batches, at least [`LEAST_HISTORY`]; it is number `place` of `of` factors, whose turns
    /// are spread evenly over the batches.
    pub fn new(remembered: u64, place: u64, of: u64) -> Self {
        let (remembered, place) = (remembered.max(LEAST_HISTORY), (place % of.max(1), of.max(1)));
        Self { remembered, place, period: 1, last: None, next: 0, checks: 0, changes: 0, reach: 0 }
    }

    /// Whether the factor is to be recomputed in `batch`.
    pub fn due(&self, batch: u64) -> bool {
        batch >= self.next
    }

    /// The factor was recomputed in `batch`; `changed` is whether it differed from the previous value.
    pub fn observe(&mut self, batch: u64, changed: bool) {
        self.reach += self.last.map_or(1, |last| batch.saturating_sub(last));
        self.last = Some(batch);
        self.checks += 1;
        self.changes += u64::from(changed);
        if self.checks == self.remembered {
            let half = (self.interval() / 2.0).floor() as u64;
            self.period = half.clamp(1, LONGEST_INTERVAL / 2);
            (self.checks, self.changes, self.reach) = (0, 0, 0);
        }
        self.next = self.turn_after(batch);
    }

    /// Batches from one turn to the next.
    pub fn period(&self) -> u64 {
        self.period
    }

    /// Batches from one change to the next, f.
    fn interval(&self) -> f64 {
        let checks = self.checks as f64;
        let gap = self.reach as f64 / checks;
        let share = (self.changes as f64).clamp(0.5, checks / 2.0 - 0.5) / checks;
        -2.0 * gap / (1.0 - 2.0 * share).ln()
    }

    /// The first batch after `batch` that is its turn.
    fn turn_after(&self, batch: u64) -> u64 {
        let (place, of) = self.place;
        let own = place * self.period / of;
        let passed = (batch + self.period - own) % self.period;
        batch + self.period - passed
    }
}

/// The integer below each level. Only changes of a factor matter, but it must not be negative.
const BELOW: f64 = 8.0;

/// The scale factor of one layer's tensor, batch by batch.
#[derive(Debug)]
#[must_use]
pub struct ScaleProcess {
    stream: Stream,
    level: f64,
    /// The standard deviation around the level.
    scatter: f64,
}

impl ScaleProcess {
    /// The factor of `tensor` under `seed`; equal names have equal draws.
    pub fn of(tensor: &Tensor, seed: u64, constants: &FactorConstants) -> Self {
        let own = match tensor.role {
            Role::Gradient => constants.input_gradient.as_ref(),
            Role::ParameterGradient => constants.weight_gradient.as_ref(),
            _ => None,
        };
        let scatter = own.unwrap_or(&constants.output);
        let mut stream = Stream::new(seed, &tensor.name, "scale factor");
        let level = BELOW + stream.random::<f64>();
        Self { stream, level, scatter: scatter.value.0 }
    }

    /// The factor of the next batch; on the first call, of the first batch.
    pub fn next_batch(&mut self) -> u32 {
        let drawn: f64 = self.stream.sample(StandardNormal);
        // Casting a negative value gives zero.
        (self.level + self.scatter * drawn).ceil() as u32
    }
}
