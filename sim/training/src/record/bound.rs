//! The bottlenecks of an iteration's time.

use std::ops::AddAssign;

use haversack_devices::{Cost, Nanos, Stalls};
use haversack_workloads::NodeId;

/// A time divided by bottleneck; the parts sum to the whole.
///
/// For a kernel whose terms overlap, the longest term counts for all of its time, as the processor model prices it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct BoundBy {
    /// Arithmetic that the network requires.
    pub arithmetic: Nanos,
    /// Integer arithmetic by which generic kernels find the positions of elements.
    pub index_arithmetic: Nanos,
    /// Bytes that DRAM moves, and delays by others that use it at the time.
    pub dram: Nanos,
    /// Bytes that a cache or shared memory moves.
    pub caches: Nanos,
    /// Launching kernels, and a framework's own work between them.
    pub launches: Nanos,
    /// Preparing the graph for a new batch.
    pub preparation: Nanos,
    /// Waiting of an accelerator for the host's next launch.
    pub host: Nanos,
    /// Waiting: for flash, for cores that pack, for another processor and its subgraphs, for pages, at barriers, and
    /// for contended atomics.
    pub waiting: Nanos,
}

impl BoundBy {
    /// The parts of the time `took` in which a kernel of `cost` ran.
    pub(crate) fn of(cost: &Cost, took: Nanos) -> Self {
        let Stalls { dram, caches, waiting, indices } = cost.stalls;
        let mut left = took;
        let mut part = |wanted: Nanos| {
            let part = wanted.min(left);
            left -= part;
            part
        };
        let preparation = part(cost.preparation);
        let before = part(cost.launch.saturating_sub(cost.preparation));
        let (launches, host) = if cost.ahead { (Nanos::ZERO, before) } else { (before, Nanos::ZERO) };
        // A kernel that takes longer than when run alone waits for DRAM, the only shared resource.
        let shared = took.saturating_sub(cost.alone());
        let dram = part(Nanos(dram.0.saturating_add(shared.0)));
        let (caches, waiting, index_arithmetic) = (part(caches), part(waiting), part(indices));
        Self { arithmetic: left, index_arithmetic, dram, caches, launches, preparation, host, waiting }
    }

    pub(crate) fn times_mut(&mut self) -> impl Iterator<Item = &mut Nanos> {
        let Self { arithmetic, index_arithmetic, dram, caches, launches, preparation, host, waiting } = self;
        [arithmetic, index_arithmetic, dram, caches, launches, preparation, host, waiting].into_iter()
    }

    /// All parts by name, in a fixed order.
    pub const fn parts(&self) -> [(&'static str, Nanos); 8] {
        [
            ("arithmetic", self.arithmetic),
            ("index-arithmetic", self.index_arithmetic),
            ("dram", self.dram),
            ("caches", self.caches),
            ("launches", self.launches),
            ("preparation", self.preparation),
            ("host", self.host),
            ("waiting", self.waiting),
        ]
    }

    /// The sum of all parts.
    pub fn total(&self) -> Nanos {
        self.parts().into_iter().map(|(_, time)| time).sum()
    }

    /// The name of the longest part; of equal ones the first.
    pub fn longest(&self) -> &'static str {
        let [first, others @ ..] = self.parts();
        others.into_iter().fold(first, |longest, part| if part.1 > longest.1 { part } else { longest }).0
    }
}

impl AddAssign for BoundBy {
    fn add_assign(&mut self, other: Self) {
        self.times_mut().zip(other.parts()).for_each(|(own, (_, more))| *own += more);
    }
}

/// How long an operator took in an iteration: every time that it ran, computed again or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperatorTime {
    /// The node, by its place in the graph.
    pub node: NodeId,
    /// How often it ran.
    pub times: u64,
    /// How long, launches included.
    pub time: Nanos,
    /// The bottlenecks of that time.
    pub bound_by: BoundBy,
}

/// The times of all operators of an iteration.
#[derive(Default)]
pub(crate) struct OperatorTimes {
    /// By node, up to the last one that has run.
    times: Vec<OperatorTime>,
}

impl OperatorTimes {
    /// `node` has run for `time`.
    pub(crate) fn add(&mut self, node: NodeId, time: Nanos, bound_by: BoundBy) {
        let place = node as usize;
        if place >= self.times.len() {
            self.times.resize(place + 1, OperatorTime::default());
        }
        let operator = &mut self.times[place];
        operator.node = node;
        operator.times += 1;
        operator.time += time;
        operator.bound_by += bound_by;
    }

    /// Those that have run, in the order of the graph.
    pub(crate) fn into_run(self) -> Vec<OperatorTime> {
        self.times.into_iter().filter(|operator| operator.times > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_longer_than_alone_waits_for_dram() {
        let stalls = Stalls { dram: Nanos(30), waiting: Nanos(20), ..Stalls::default() };
        let cost = Cost { launch: Nanos(10), busy: Nanos(100), stalls, ..Cost::default() };
        // Alone it takes 110: 10 of launch, 30 of DRAM, 20 of barriers, the other 50 are arithmetic. In 150 others have
        // taken 40 of DRAM's time.
        let alone = BoundBy::of(&cost, Nanos(110));
        let parts = [50, 0, 30, 0, 10, 0, 0, 20].map(Nanos);
        assert_eq!(alone.parts().map(|(_, time)| time), parts);
        assert_eq!((alone.longest(), alone.total()), ("arithmetic", Nanos(110)));
        let shared = BoundBy::of(&cost, Nanos(150));
        assert_eq!(shared, BoundBy { dram: Nanos(70), ..alone });
        assert_eq!((shared.longest(), shared.total()), ("dram", Nanos(150)));
    }

    #[test]
    fn operators_are_listed_that_have_run() {
        let (mut times, bound_by) = (OperatorTimes::default(), BoundBy { arithmetic: Nanos(5), ..BoundBy::default() });
        times.add(2, Nanos(5), bound_by);
        times.add(2, Nanos(5), bound_by);
        let twice = BoundBy { arithmetic: Nanos(10), ..bound_by };
        assert_eq!(times.into_run(), [OperatorTime { node: 2, times: 2, time: Nanos(10), bound_by: twice }]);
    }
}
