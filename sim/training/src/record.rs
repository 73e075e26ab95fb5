//! What a run yields.

use haversack_devices::units::{Bytes, Joules, Nanos};
use haversack_devices::work::OperatorKind;

use crate::timeline::Timeline;

/// Where an iteration's time went; the parts sum to the iteration exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    kinds: [Nanos; OperatorKind::ALL.len()],
    /// Launching kernels and the framework's own work.
    pub launch: Nanos,
    /// Computing dropped tensors again, launches included.
    pub recompute: Nanos,
    /// Work on samples that were then dropped from the micro-batch.
    pub discarded: Nanos,
}

impl Breakdown {
    pub(crate) fn add(&mut self, kind: OperatorKind, busy: Nanos) {
        self.kinds[slot(kind)] += busy;
    }

    /// Time of operators of `kind`.
    #[must_use]
    pub fn of(&self, kind: OperatorKind) -> Nanos {
        self.kinds[slot(kind)]
    }

    /// Moves `numerator / denominator` of all useful time to what is discarded.
    pub(crate) fn discard(&mut self, numerator: u64, denominator: u64) {
        let share =
            |time: Nanos| Nanos((u128::from(time.0) * u128::from(numerator) / u128::from(denominator.max(1))) as u64);
        for part in self.kinds.iter_mut().chain([&mut self.launch, &mut self.recompute]) {
            let lost = share(*part);
            *part -= lost;
            self.discarded += lost;
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (own, more) in self.kinds.iter_mut().zip(other.kinds) {
            *own += more;
        }
        self.launch += other.launch;
        self.recompute += other.recompute;
        self.discarded += other.discarded;
    }

    /// All parts by name, in a fixed order.
    #[must_use]
    pub fn parts(&self) -> Vec<(&'static str, Nanos)> {
        let kinds = OperatorKind::ALL.iter().map(|&kind| (kind.name(), self.of(kind)));
        let rest = [("launch", self.launch), ("recompute", self.recompute), ("discarded", self.discarded)];
        kinds.chain(rest).collect()
    }

    /// The sum of all parts.
    #[must_use]
    pub fn total(&self) -> Nanos {
        self.parts().into_iter().map(|(_, time)| time).sum()
    }
}

fn slot(kind: OperatorKind) -> usize {
    OperatorKind::ALL.iter().position(|&k| k == kind).unwrap_or(0)
}

/// A tensor at the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub bytes: Bytes,
    /// How it is held.
    pub hold: &'static str,
}

/// Memory at its peak.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeakReport {
    /// The operator that was running.
    pub node: String,
    /// The micro-batch.
    pub micro_batch: u64,
    /// The ten largest tensors.
    pub largest: Vec<Held>,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The whole iteration.
    pub iteration: Nanos,
    /// From the samples to the loss, over all micro-batches.
    pub forward: Nanos,
    /// From the loss to the gradients, recomputation included.
    pub backward: Nanos,
    /// The update of the weights.
    pub update: Nanos,
    /// Samples of the mini-batch.
    pub batch: u64,
    /// The largest sum of resident tensors: weights, gradients and states included.
    pub peak_memory: Bytes,
    /// The same above what is resident before forward: weights, states, samples.
    pub peak_growth: Bytes,
    /// The most that the allocator held from the system, over the whole run.
    pub reserved: Bytes,
    /// Energy of the iteration, above the idle device.
    pub energy: Joules,
    /// The sizes of the micro-batches, in order.
    pub micro_batches: Vec<u64>,
    /// Operators computed again.
    pub recomputed: u64,
    /// Where the time went.
    pub breakdown: Breakdown,
    /// What is resident at the peak, where it was asked for.
    pub peak: Option<PeakReport>,
    /// The timeline, where it was asked for.
    pub timeline: Option<Timeline>,
}

impl Record {
    /// Samples a second.
    #[must_use]
    pub fn samples_per_second(&self) -> f64 {
        self.batch as f64 / self.iteration.seconds()
    }

    /// The share of the iteration that is spent computing dropped tensors again.
    #[must_use]
    pub fn recompute_share(&self) -> f64 {
        self.breakdown.recompute.0 as f64 / (self.iteration.0 as f64).max(1.0)
    }
}
