//! All scale factors of a run, batch by batch; and how often each is taken anew (section 3.4): half as often as it was seen
//! to change.
//!
//! Where no data say how a factor changes, that is drawn, batch by batch (figure 4).
//! A scale factor is the number of bits by which the largest magnitude of a tensor exceeds seven (listing 1): log₂ of
//! that magnitude, rounded up. Late in training the logarithm keeps its level, and mini-batches scatter around it, each
//! for itself. The factor jumps between the whole numbers next to the level: seldom where that lies halfway between
//! two, in half of the batches where it is one. How far mini-batches scatter was measured on a network that trains in
//! integers, by what the tensor is; where levels lie between whole numbers is drawn.

use haversack_devices::FactorConstants;
use haversack_engine::Stream;
use haversack_workloads::{Role, Tensor, TensorId, TrainingGraph};
use rand::RngExt;
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};

use crate::Learned;

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

/// The longest interval between changes that is believed in, in batches: the upper end of figure 4(b).
pub const LONGEST_INTERVAL: u64 = 60;

/// The shortest history that tells much: of three batches, none with a change and all with one are too alike.
pub const LEAST_HISTORY: u64 = 4;

/// Decides in which batches one scale factor is taken anew.
///
/// Each K batches in which that was done are the history from which the next K follow: where they show a change every
/// f batches on average, the factor is taken anew every f / 2 batches, and at least once in [`LONGEST_INTERVAL`] / 2.
/// The first K batches have no history: in each of them the factor is taken anew.
///
/// A check sees only whether the factor differs from the last one that was taken. Of a factor that jumps between two
/// values it misses every even number of jumps, so that counting what it sees would lengthen the interval with the
/// period, and then the period with the interval. Where such jumps come at random every f batches, a share
/// s = (1 − exp(−2g / f)) / 2 of checks g batches apart sees a change; f is worked out from that. Where none sees one,
/// or half of them or more, half a change is added or taken away.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[must_use]
pub struct Rescaler {
    /// K.
    remembered: u64,
    /// Its share of a period, as a fraction, by which it comes after the first of all factors.
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
    /// Remembers `remembered` batches, at least [`LEAST_HISTORY`]; it is number `place` of `of` factors, whose turns are spread
    /// evenly over the batches so that all batches have as many.
    pub fn new(remembered: u64, place: u64, of: u64) -> Self {
        let (remembered, place) = (remembered.max(LEAST_HISTORY), (place % of.max(1), of.max(1)));
        Self { remembered, place, period: 1, last: None, next: 0, checks: 0, changes: 0, reach: 0 }
    }

    /// Whether the factor is to be taken anew in `batch`.
    pub fn due(&self, batch: u64) -> bool {
        batch >= self.next
    }

    /// The factor was taken anew in `batch`, and had `changed` or not since it last was.
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

    /// The first batch after `batch` that is its own of a period's.
    fn turn_after(&self, batch: u64) -> u64 {
        let (place, of) = self.place;
        let own = place * self.period / of;
        let passed = (batch + self.period - own) % self.period;
        batch + self.period - passed
    }
}

/// The whole number below each level. Nobody reads more of a factor than whether it is another one, but none is negative.
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

    /// The factor of the next batch, at first the first.
    pub fn next_batch(&mut self) -> u32 {
        let drawn: f64 = self.stream.sample(StandardNormal);
        // A cast of what lies below zero is zero.
        (self.level + self.scatter * drawn).ceil() as u32
    }
}
