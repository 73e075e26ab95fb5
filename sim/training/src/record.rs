//! What a run yields.
//!
//! What an iteration takes once the first is over: the mean of those after it.

mod bound;
mod fidelity;
mod phone;

pub(crate) use bound::OperatorTimes;
pub use bound::{BoundBy, OperatorTime};
pub(crate) use fidelity::codec_bits;
pub use fidelity::{Fidelity, FidelityClass};
pub(crate) use phone::Watch;
pub use phone::{PhoneReport, PhoneSpan, Stalls, ThreadStates, TrainerKill};

use std::ops::AddAssign;

use haversack_devices::{Bytes, Celsius, Hertz, Joules, Nanos, OperatorKind};
use haversack_memory::pages::Fragmentation;
use haversack_numerics::Loss;
use haversack_policies::{Planning, Rounding, Storage};
use haversack_workloads::TensorId;

use crate::timeline::{PhoneTrack, Timeline};

/// Declares the parts beside the operators' own time once: for the struct, and for all that goes through them.
macro_rules! breakdown {
    ($($(#[$doc:meta])* $part:ident,)+) => {
        /// Where an iteration's time went; the parts sum to the iteration exactly.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Breakdown {
            kinds: [Nanos; OperatorKind::ALL.len()],
            $($(#[$doc])* pub $part: Nanos,)+
        }

        impl Breakdown {
            /// The parts beside the operators' own time, by name.
            const NAMES: &[&str] = &[$(stringify!($part)),+];

            fn times(&self) -> impl Iterator<Item = Nanos> {
                self.kinds.into_iter().chain([$(self.$part),+])
            }

            fn times_mut(&mut self) -> impl Iterator<Item = &mut Nanos> {
                self.kinds.iter_mut().chain([$(&mut self.$part),+])
            }
        }
    };
}

breakdown! {
    /// Launching kernels, and the framework's own work between them.
    launch,
    /// Computing dropped tensors again, launches included.
    recompute,
    /// Work on samples that were then dropped from the micro-batch, and on iterations that a kill has ended.
    discarded,
    /// Statistics of tensors that are to be quantised.
    control,
    /// Packing and unpacking, and waiting for whoever does it.
    packing,
    /// System calls for the arena's blocks, and copying within it.
    paging,
    /// Crossing between the CPU and the DSP: calls, and the copies of tensors.
    crossing,
    /// Preparing a graph anew for the batch, and subgraphs of the DSP.
    preparation,
    /// The host, for whose next launch an accelerator waits.
    host,
    /// Waiting for a new plan: its making, and the way there and back where a server makes it.
    planning,
    /// Compressing tensors and getting them back.
    compression,
    /// Waiting for tensors that are written to flash or read from it.
    swapping,
    /// Work of the kernel for this process: faults, and direct reclaim.
    reclaim,
    /// Uninterruptible sleep: waiting for pages that are read from flash.
    refault,
    /// Ready to run, but not running.
    runnable,
}

impl Breakdown {
    pub(crate) fn add(&mut self, kind: OperatorKind, busy: Nanos) {
        self.kinds[kind as usize] += busy;
    }

    /// Moves `numerator / denominator` of all useful time to what is discarded.
    pub(crate) fn discard(&mut self, numerator: u64, denominator: u64) {
        let share =
            |time: Nanos| Nanos((u128::from(time.0) * u128::from(numerator) / u128::from(denominator.max(1))) as u64);
        let mut lost = std::mem::take(&mut self.discarded);
        for part in self.times_mut() {
            let less = share(*part);
            *part -= less;
            lost += less;
        }
        self.discarded = lost;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (own, more) in self.times_mut().zip(other.times()) {
            *own += more;
        }
    }

    /// All parts by name, in a fixed order.
    pub fn parts(&self) -> Vec<(&'static str, Nanos)> {
        let kinds = OperatorKind::ALL.iter().map(|kind| kind.name());
        kinds.chain(Self::NAMES.iter().copied()).zip(self.times()).collect()
    }

    /// The sum of all parts.
    pub fn total(&self) -> Nanos {
        self.times().sum()
    }
}

/// Seconds of the threads of the process that trains.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadTime {
    /// In which they were on a core, spinning or at work.
    pub all: f64,
    /// Of these, in the system's kernel: pages that are brought in, and threads that spin and give their core away.
    pub kernel: f64,
}

impl AddAssign for ThreadTime {
    fn add_assign(&mut self, other: Self) {
        (self.all, self.kernel) = (self.all + other.all, self.kernel + other.kernel);
    }
}

/// A tensor at the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its name in the graph.
    pub name: String,
    /// Bytes of this form of it.
    pub bytes: Bytes,
    /// How it is held.
    pub hold: String,
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

/// How saved tensors are held between forward and backward.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredForms {
    /// How quantised ones are rounded.
    pub rounding: Rounding,
    /// Those that are not whole, and how they are stored.
    pub tensors: Vec<(TensorId, Storage)>,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The whole iteration; with the times and the energy below, of a run the mean of those after the first, and of an only one
    /// that.
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
    /// The most that was held from the system, over the whole run: by the allocator and by an arena.
    pub reserved: Bytes,
    /// The most that saved tensors took, in the form in which they are stored.
    pub peak_saved: Bytes,
    /// The most that packing and unpacking held beside them, in flight between two processors.
    pub peak_staging: Bytes,
    /// The arena when it was fullest, where the policy has one.
    pub arena: Option<Fragmentation>,
    /// What saved tensors took in their stored form right after the activation budget was last cut.
    pub saved_after_cut: Option<Bytes>,
    /// Weight gradients that were given up.
    pub given_up: u64,
    /// What the run gives up of its gradients, over all its iterations.
    pub fidelity: Fidelity,
    /// Bytes of tensors that the run has swapped to flash, over all its iterations.
    pub flash_written: Bytes,
    /// Energy of the iteration, above the idle device.
    pub energy: Joules,
    /// The sizes of the micro-batches, in order.
    pub micro_batches: Vec<u64>,
    /// Operators computed again.
    pub recomputed: u64,
    /// Of the time of computing again, layout transformations'.
    pub recomputed_layout: Nanos,
    /// Where the time went.
    pub breakdown: Breakdown,
    /// What it was bound by.
    pub bound_by: BoundBy,
    /// How long its threads were on cores.
    pub threads: ThreadTime,
    /// Pages that were touched for the first time.
    pub minor_faults: u64,
    /// How long each operator took, in the order of the graph; empty where it was not asked for.
    pub operators: Vec<OperatorTime>,
    /// What is resident at the peak, where it was asked for.
    pub peak: Option<PeakReport>,
    /// The timeline, where it was asked for.
    pub timeline: Option<Timeline>,
    /// How saved tensors were held when forward of the last micro-batch had ended, where it was asked for.
    pub stored: Option<StoredForms>,
    /// What was learned from, where the run carries data.
    pub loss: Option<Loss>,
    /// The importance of tensors that the policy was told of before the iteration, by tensor; empty if none was measured.
    pub measured: Vec<f64>,
    /// The scale factors that it was told of, by tensor; empty if no data is carried in integers.
    pub factors: Vec<Option<u32>>,
    /// How long each iteration of the run took.
    pub iterations: Vec<Nanos>,
    /// When the run ended, since it began: iterations, and before them the seconds for which a rule for the budget watched
    /// the phone.
    pub ended: Nanos,
    /// The budget that each began with, where a rule decides it.
    pub planned: Vec<Bytes>,
    /// The plans that the policy had, where it plans ahead.
    pub plans: Vec<PlanReport>,
    /// What the phone's kernel saw, where the run was on a phone in use.
    pub phone: Option<PhoneReport>,
    /// What happened there from second to second, where it was asked for.
    pub track: Option<PhoneTrack>,
    /// How hot the device was after each iteration of the run; empty where no surroundings were given.
    pub heat: Vec<HeatPoint>,
}

/// A plan that a policy had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanReport {
    /// The iteration before which it had it, from 0.
    pub iteration: u64,
    /// What it is, and what it counted.
    pub planning: Planning,
    /// From asking for it until it was there; `None` where the stack does not say what plans cost. Nobody waits for the
    /// first of a run.
    pub time: Option<Nanos>,
}

/// The device after an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeatPoint {
    /// Since the run began.
    pub at: Nanos,
    /// The temperature of the die.
    pub die: Celsius,
    /// The temperature of the chassis.
    pub chassis: Celsius,
    /// The temperature of the battery.
    pub battery: Celsius,
    /// The frequency of the fastest core in that iteration; zero if no core trains.
    pub frequency: Hertz,
}

impl Record {
    /// Samples a second.
    pub fn samples_per_second(&self) -> f64 {
        self.batch as f64 / self.iteration.seconds()
    }

    /// The share of the iteration that is spent computing dropped tensors again.
    pub fn recompute_share(&self) -> f64 {
        self.breakdown.recompute.0 as f64 / (self.iteration.0 as f64).max(1.0)
    }
}

/// The sums of what iterations took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken {
    iterations: u64,
    iteration: Nanos,
    phases: [Nanos; 3],
    breakdown: Breakdown,
    bound_by: BoundBy,
    energy: Joules,
    threads: ThreadTime,
    minor_faults: u64,
    recomputed_layout: Nanos,
}

impl Taken {
    /// Another iteration. The first does not count once there is a second.
    pub(crate) fn note(&mut self, record: &Record, number: usize) {
        if number == 1 {
            *self = Self::default();
        }
        self.iterations += 1;
        self.iteration += record.iteration;
        let phases = [record.forward, record.backward, record.update];
        self.phases.iter_mut().zip(phases).for_each(|(sum, more)| *sum += more);
        self.breakdown.merge(&record.breakdown);
        self.bound_by += record.bound_by;
        self.energy += record.energy;
        self.threads += record.threads;
        self.minor_faults += record.minor_faults;
        self.recomputed_layout += record.recomputed_layout;
    }

    /// Has `record`, of the last of them, say the means.
    pub(crate) fn into_means(mut self, record: &mut Record) {
        let count = self.iterations;
        if count < 2 {
            return;
        }
        let iteration = Nanos(self.iteration.0 / count);
        share(self.phases.iter_mut(), iteration, count);
        share(self.breakdown.times_mut(), iteration, count);
        share(self.bound_by.times_mut(), iteration, count);
        record.iteration = iteration;
        [record.forward, record.backward, record.update] = self.phases;
        (record.breakdown, record.bound_by) = (self.breakdown, self.bound_by);
        record.energy = self.energy * (1.0 / count as f64);
        let [all, kernel] = [self.threads.all, self.threads.kernel].map(|sum| sum / count as f64);
        record.threads = ThreadTime { all, kernel };
        record.minor_faults = self.minor_faults / count;
        record.recomputed_layout = Nanos(self.recomputed_layout.0 / count);
    }
}

/// Divides sums by `count`; what rounding leaves of `whole` is the longest part's.
fn share<'p>(parts: impl Iterator<Item = &'p mut Nanos>, whole: Nanos, count: u64) {
    let mut parts: Vec<&mut Nanos> = parts.collect();
    parts.iter_mut().for_each(|part| part.0 /= count);
    let left = whole.saturating_sub(parts.iter().map(|part| **part).sum());
    if let Some(longest) = parts.into_iter().max_by_key(|part| part.0).filter(|_| left.0 < count * 64) {
        *longest += left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_iteration_is_no_part_of_the_mean_and_parts_sum_to_it() {
        let of = |first: u64, second: u64| {
            let mut breakdown = Breakdown::default();
            (breakdown.launch, breakdown.host) = (Nanos(first), Nanos(second));
            Record { iteration: Nanos(first + second), breakdown, ..Record::default() }
        };
        let mut taken = Taken::default();
        let records = [of(1000, 0), of(10, 5), of(11, 6), of(12, 8)];
        for (number, record) in records.iter().enumerate() {
            taken.note(record, number);
        }
        let mut last = records[3].clone();
        taken.into_means(&mut last);
        // 52 over 3 is 17, of which 11 and 6 and a third more.
        assert_eq!((last.iteration, last.breakdown.launch, last.breakdown.host), (Nanos(17), Nanos(11), Nanos(6)));
        assert_eq!(last.breakdown.total(), last.iteration);
    }
}
