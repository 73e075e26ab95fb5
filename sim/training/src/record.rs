//! The results of a run.
//!
//! The time of an iteration, without the first: the mean of those after it.

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

/// Declares the parts of the breakdown other than operators once: for the struct, and for everything that iterates over
/// them.
macro_rules! breakdown {
    ($($(#[$doc:meta])* $part:ident,)+) => {
        /// Where an iteration's time went; the parts sum to the iteration exactly.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Breakdown {
            kinds: [Nanos; OperatorKind::ALL.len()],
            $($(#[$doc])* pub $part: Nanos,)+
        }

        impl Breakdown {
            /// The parts other than operators, by name.
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
    /// Packing and unpacking, and waiting for the cores that do it.
    packing,
    /// System calls for the arena's blocks, and copying within it.
    paging,
    /// Crossing between the CPU and the DSP: calls, and the copies of tensors.
    crossing,
    /// Preparing a graph for a new batch, and subgraphs of the DSP.
    preparation,
    /// Waiting of an accelerator for the host's next launch.
    host,
    /// Waiting for a new plan: making it, and transfers to and from a server if one makes it.
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

    /// Moves `numerator / denominator` of all useful time to the discarded time.
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
    /// Of these, in the system's kernel: faulting pages in, and yielding the core while spinning.
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
    /// How it is stored.
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

/// How saved tensors are stored between forward and backward.
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
    /// The time of the whole iteration. This, the other times and the energy below are means over the iterations after
    /// the first, or the values of the only iteration.
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
    /// The same above the memory resident before forward: weights, states, samples.
    pub peak_growth: Bytes,
    /// The most memory reserved from the system, over the whole run: by the allocator and by an arena.
    pub reserved: Bytes,
    /// The most that saved tensors took, in the form in which they are stored.
    pub peak_saved: Bytes,
    /// The largest size of temporaries for packing and unpacking, in flight between two processors.
    pub peak_staging: Bytes,
    /// The arena when it was fullest, where the policy has one.
    pub arena: Option<Fragmentation>,
    /// Size of saved tensors in their stored form right after the activation budget was last cut.
    pub saved_after_cut: Option<Bytes>,
    /// Weight gradients that were given up.
    pub given_up: u64,
    /// Losses in the run's gradients, over all its iterations.
    pub fidelity: Fidelity,
    /// Bytes of tensors that the run has swapped to flash, over all its iterations.
    pub flash_written: Bytes,
    /// Energy of the iteration, above the idle device.
    pub energy: Joules,
    /// The sizes of the micro-batches, in order.
    pub micro_batches: Vec<u64>,
    /// Operators computed again.
    pub recomputed: u64,
    /// The part of recomputation time that layout transformations took.
    pub recomputed_layout: Nanos,
    /// Where the time went.
    pub breakdown: Breakdown,
    /// Its bottlenecks.
    pub bound_by: BoundBy,
    /// How long its threads were on cores.
    pub threads: ThreadTime,
    /// Pages that were touched for the first time.
    pub minor_faults: u64,
    /// How long each operator took, in the order of the graph; empty if not requested.
    pub operators: Vec<OperatorTime>,
    /// The tensors resident at the peak, if requested.
    pub peak: Option<PeakReport>,
    /// The timeline, if requested.
    pub timeline: Option<Timeline>,
    /// How saved tensors were stored when forward of the last micro-batch had ended, if requested.
    pub stored: Option<StoredForms>,
    /// The loss, if the run carries data.
    pub loss: Option<Loss>,
    /// The importance of tensors passed to the policy before the iteration, by tensor; empty if none was measured.
    pub measured: Vec<f64>,
    /// The scale factors passed to the policy, by tensor; empty without integer data.
    pub factors: Vec<Option<u32>>,
    /// How long each iteration of the run took.
    pub iterations: Vec<Nanos>,
    /// When the run ended, since it began: iterations, and before them the seconds in which a rule for the budget
    /// observed the phone.
    pub ended: Nanos,
    /// The budget that each began with, where a rule decides it.
    pub planned: Vec<Bytes>,
    /// The plans that the policy had, where it plans ahead.
    pub plans: Vec<PlanReport>,
    /// The kernel's statistics, if the run was on a phone in use.
    pub phone: Option<PhoneReport>,
    /// The phone second by second, if requested.
    pub track: Option<PhoneTrack>,
    /// How hot the device was after each iteration of the run; empty without an ambient temperature.
    pub heat: Vec<HeatPoint>,
}

/// A plan that a policy had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanReport {
    /// The iteration before which it arrived, from 0.
    pub iteration: u64,
    /// The plan's room and operation counts.
    pub planning: Planning,
    /// From requesting it until it arrived; `None` if the stack defines no planning costs. Training does not wait for
    /// the first plan of a run.
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

/// Sums over iterations.
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
    /// Adds another iteration. The first does not count once a second has been added.
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

    /// Replaces the times of `record`, the last iteration's, by the means.
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

/// Divides sums by `count`; the rounding remainder of `whole` goes to the longest part.
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
