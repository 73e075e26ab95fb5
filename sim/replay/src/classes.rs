//! Union-find classes of evicted storages, for h_DTR_eq.
//!
//! A storage that is evicted joins the classes of its evicted neighbours; the value of a class is the compute of its
//! members. Classes are never split: a storage that returns subtracts its compute and leaves, so the rest may
//! overestimate, or drift below zero. The heuristic is defined this way; it is not a bug.
//!
//! Classes are relabelled, the smaller into the larger, rather than linked: finding a class is a single look-up, and a
//! class without members is reused. A candidate's sum over the classes around it is cached until one of them changes;
//! each class knows the candidates to invalidate.

use crate::program::{CHILDREN, Op, PARENTS, Program};
use crate::runtime::{Bookkeeping, State};

const NONE: u32 = u32::MAX;

#[derive(Default)]
struct Class {
    value: i64,
    members: Vec<u32>,
    /// Storages whose sum contains the value; some are listed several times.
    watchers: Vec<u32>,
    /// The sum that last contained this class.
    seen: u64,
}

/// The sums that are out of date.
struct Stale {
    stale: Vec<bool>,
    /// Candidates to be summed before the next scan.
    queue: Vec<u32>,
    queued: Vec<bool>,
}

impl Stale {
    fn mark(&mut self, storage: u32, candidate: bool) {
        self.stale[storage as usize] = true;
        if candidate {
            self.enqueue(storage);
        }
    }

    fn enqueue(&mut self, storage: u32) {
        if !std::mem::replace(&mut self.queued[storage as usize], true) {
            self.queue.push(storage);
        }
    }
}

/// The classes and their members.
pub(crate) struct Classes {
    classes: Vec<Class>,
    free: Vec<u32>,
    /// By storage: its class, and its index among the members.
    class_of: Vec<u32>,
    place: Vec<u32>,
    sums: u64,
    stale: Stale,
}

impl Classes {
    /// Adds a storage to a new class.
    fn join_new(&mut self, storage: u32, value: i64) {
        let class = self.free.pop().unwrap_or_else(|| {
            self.classes.push(Class::default());
            self.classes.len() as u32 - 1
        });
        let entry = &mut self.classes[class as usize];
        entry.value = value;
        entry.members.push(storage);
        self.class_of[storage as usize] = class;
        self.place[storage as usize] = 0;
    }

    /// Invalidates the sums of the candidates around a class whose value, or which itself, has changed.
    fn tell(&mut self, state: &State<'_>, class: u32) {
        let watchers = &mut self.classes[class as usize].watchers;
        for storage in watchers.drain(..) {
            self.stale.mark(storage, state.pool.contains(storage));
        }
    }

    fn merge(&mut self, state: &State<'_>, a: u32, b: u32) {
        if a == b {
            return;
        }
        self.tell(state, a);
        self.tell(state, b);
        let larger = |x: u32| self.classes[x as usize].members.len();
        let (into, from) = if larger(a) >= larger(b) { (a, b) } else { (b, a) };
        let mut gone = std::mem::take(&mut self.classes[from as usize]);
        let class = &mut self.classes[into as usize];
        class.value = class.value.saturating_add(gone.value);
        for storage in gone.members.drain(..) {
            self.class_of[storage as usize] = into;
            self.place[storage as usize] = class.members.len() as u32;
            class.members.push(storage);
        }
        // The emptied lists keep their capacity for the next class.
        gone.value = 0;
        self.classes[from as usize] = gone;
        self.free.push(from);
    }

    /// Removes a storage that is resident again from its class.
    fn leave(&mut self, state: &State<'_>, storage: u32) {
        let class = std::mem::replace(&mut self.class_of[storage as usize], NONE);
        if class == NONE {
            return;
        }
        self.tell(state, class);
        let entry = &mut self.classes[class as usize];
        let compute = i64::try_from(state.compute[storage as usize]).unwrap_or(i64::MAX);
        entry.value = entry.value.saturating_sub(compute);
        let place = self.place[storage as usize];
        entry.members.swap_remove(place as usize);
        if let Some(&moved) = entry.members.get(place as usize) {
            self.place[moved as usize] = place;
        }
        if entry.members.is_empty() {
            self.free.push(class);
        }
    }

    /// The sum of the distinct classes around a candidate, which starts to watch them.
    fn sum(&mut self, state: &State<'_>, storage: u32) -> i64 {
        self.sums += 1;
        let mut sum: i64 = 0;
        for other in neighbours(state, storage) {
            let class = self.class_of[other as usize];
            if state.material[other as usize] || other == storage || class == NONE {
                continue;
            }
            let class = &mut self.classes[class as usize];
            if class.seen != self.sums {
                class.seen = self.sums;
                sum = sum.saturating_add(class.value);
                watch(&mut class.watchers, storage);
            }
        }
        sum
    }
}

/// Adds a watcher. Before the list grows, duplicates are removed, so that a class that stays unchanged for long does
/// not collect an unlimited number of them.
fn watch(watchers: &mut Vec<u32>, storage: u32) {
    if watchers.len() == watchers.capacity() && watchers.len() >= 64 {
        watchers.sort_unstable();
        watchers.dedup();
        let room = watchers.len();
        watchers.reserve(room);
    }
    watchers.push(storage);
}

fn neighbours<'p>(state: &State<'p>, storage: u32) -> impl Iterator<Item = u32> + use<'p> {
    let (program, created) = (state.program, state.created);
    [PARENTS, CHILDREN].into_iter().flat_map(move |direction| program.neighbours(direction, storage, created))
}

impl Bookkeeping for Classes {
    fn new(program: &Program) -> Self {
        let storages = program.roots.len();
        Self {
            classes: Vec::new(),
            free: Vec::new(),
            class_of: vec![NONE; storages],
            place: vec![0; storages],
            sums: 0,
            stale: Stale { stale: vec![true; storages], queue: Vec::new(), queued: vec![false; storages] },
        }
    }

    fn created(&mut self, state: &mut State<'_>, op: &Op) {
        let program = state.program;
        for tensor in op.outputs.clone() {
            let storage = program.tensor_storage[tensor as usize];
            if program.roots[storage as usize] == tensor {
                self.join_new(storage, 0);
            }
        }
        // A view changes its base's compute, and the arguments have new neighbours.
        let args = op.args.iter().map(|&arg| program.tensor_storage[arg as usize]);
        for storage in args.chain(op.stores.iter().copied()) {
            self.stale.mark(storage, state.pool.contains(storage));
        }
    }

    fn evicted(&mut self, state: &mut State<'_>, storage: u32) {
        let compute = i64::try_from(state.compute[storage as usize]).unwrap_or(i64::MAX);
        self.join_new(storage, compute);
        for other in neighbours(state, storage) {
            if state.material[other as usize] {
                self.stale.mark(other, state.pool.contains(other));
            } else if other != storage && self.class_of[other as usize] != NONE {
                self.merge(state, self.class_of[other as usize], self.class_of[storage as usize]);
            }
        }
    }

    fn materialised(&mut self, state: &mut State<'_>, storages: &[u32]) {
        for &storage in storages {
            self.leave(state, storage);
            self.stale.mark(storage, state.pool.contains(storage));
        }
    }

    fn pooled(&mut self, storage: u32) {
        if self.stale.stale[storage as usize] {
            self.stale.enqueue(storage);
        }
    }

    fn settle(&mut self, state: &mut State<'_>) {
        let mut queue = std::mem::take(&mut self.stale.queue);
        for storage in queue.drain(..) {
            self.stale.queued[storage as usize] = false;
            if state.pool.contains(storage) && self.stale.stale[storage as usize] {
                let own = i64::try_from(state.compute[storage as usize]).unwrap_or(i64::MAX);
                state.cost[storage as usize] = own.saturating_add(self.sum(state, storage)) as f64;
                self.stale.stale[storage as usize] = false;
            }
        }
        self.stale.queue = queue;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Log;
    use crate::runtime::{Limits, run};

    /// The naive version: recomputes every sum before every scan.
    struct Unkept(Classes);

    impl Bookkeeping for Unkept {
        fn new(program: &Program) -> Self {
            Self(Classes::new(program))
        }
        fn created(&mut self, state: &mut State<'_>, op: &Op) {
            self.0.created(state, op);
        }
        fn evicted(&mut self, state: &mut State<'_>, storage: u32) {
            self.0.evicted(state, storage);
        }
        fn materialised(&mut self, state: &mut State<'_>, storages: &[u32]) {
            self.0.materialised(state, storages);
        }
        fn settle(&mut self, state: &mut State<'_>) {
            for &storage in &state.pool.members {
                self.0.stale.mark(storage, true);
            }
            self.0.settle(state);
        }
        fn score(state: &State<'_>, storage: usize, now: f64) -> f64 {
            Classes::score(state, storage, now)
        }
    }

    #[test]
    fn a_kept_sum_is_the_sum() {
        let logs = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/synthetic_logs/syn");
        let mut evictions = 0;
        for number in 0..8 {
            let log = Log::read(format!("{logs}{number}.log")).unwrap();
            for ratio in [0.35, 0.45, 0.55, 0.7, 0.9] {
                let limits = Limits::new(&log.program, ratio, 4.0);
                let kept = run::<Classes>(&log.program, limits);
                assert_eq!(kept, run::<Unkept>(&log.program, limits), "log {number} at {ratio}");
                evictions += kept.heuristic_evictions;
            }
        }
        assert!(evictions > 1000, "the comparison saw {evictions} evictions only");
    }

    #[test]
    fn watchers_are_rid_of_repetitions_before_the_list_grows() {
        let mut watchers = Vec::new();
        for i in 0..10_000 {
            watch(&mut watchers, i % 10);
        }
        assert!(watchers.capacity() < 256);
    }
}
