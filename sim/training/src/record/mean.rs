//! What an iteration takes once the first is over: the mean of those after it.

use haversack_devices::units::{Joules, Nanos};

use super::{BoundBy, Breakdown, Record, ThreadTime};

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
