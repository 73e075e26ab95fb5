//! Exact evicted neighbourhoods, for h_DTR (both directions) and h_MSPS (ancestors).
//!
//! For each storage and direction, this keeps the evicted storages that it reaches through evicted ones (the interior),
//! the resident ones where that ends (the frontier), and the interior's cost. A storage's cost is added when it joins,
//! and does not follow later changes; that is the rule.

use crate::program::{CHILDREN, Op, PARENTS, Program};
use crate::runtime::{Bookkeeping, State, per_byte, per_byte_and_staleness};
use crate::spanset::SpanSet;

#[derive(Clone, Default)]
struct Region {
    interior: SpanSet,
    frontier: SpanSet,
    compute: u64,
}

impl Region {
    fn clear(&mut self) {
        self.interior.clear();
        self.frontier.clear();
        self.compute = 0;
    }

    /// `storage`, which was on the frontier, has been evicted: adds everything that it reaches.
    fn absorb(&mut self, storage: u32, its: &Self, costs: &[u64]) {
        self.frontier.remove(storage);
        self.frontier.union(&its.frontier, |_| {});
        // Its own cost is added even if it is in the interior already.
        let mut compute = self.compute.saturating_add(costs[storage as usize]);
        self.interior.union(&its.interior, |new| {
            if new != storage {
                compute = compute.saturating_add(costs[new as usize]);
            }
        });
        self.interior.insert(storage);
        self.compute = compute;
    }
}

/// The regions of every storage.
#[derive(Default)]
struct Regions {
    /// By direction and storage.
    of: [Vec<Region>; 2],
    stack: Vec<u32>,
    beyond: [SpanSet; 2],
}

impl Regions {
    fn new(program: &Program) -> Self {
        let regions = vec![Region::default(); program.roots.len()];
        Self { of: [regions.clone(), regions], ..Self::default() }
    }

    /// Explores again from `base`.
    fn rebuild(&mut self, state: &State<'_>, base: u32, direction: usize) {
        let region = &mut self.of[direction][base as usize];
        region.clear();
        self.stack.push(base);
        while let Some(storage) = self.stack.pop() {
            for next in state.program.neighbours(direction, storage, state.created) {
                if state.material[next as usize] {
                    if next != base {
                        region.frontier.insert(next);
                    }
                } else if region.interior.insert(next) {
                    region.compute = region.compute.saturating_add(state.compute[next as usize]);
                    self.stack.push(next);
                }
            }
        }
    }

    /// Calls `changed` for every storage whose regions have changed.
    fn evicted(&mut self, state: &State<'_>, storage: u32, mut changed: impl FnMut(&Self, usize)) {
        let gone = self.of.each_mut().map(|regions| std::mem::take(&mut regions[storage as usize]));
        for (from, direction) in [(PARENTS, CHILDREN), (CHILDREN, PARENTS)] {
            // Pinned storages are never evicted, so their neighbourhoods are not needed.
            for next in gone[from].frontier.iter().map(|s| s as usize).filter(|&s| !state.pinned[s]) {
                self.of[direction][next].absorb(storage, &gone[direction], &state.compute);
                changed(self, next);
            }
        }
        // Views can make a storage its own neighbour: clears what it has absorbed of itself, too.
        self.of.iter_mut().for_each(|regions| regions[storage as usize].clear());
    }

    fn materialised(&mut self, state: &State<'_>, storages: &[u32], mut changed: impl FnMut(&Self, usize)) {
        let mut beyond = std::mem::take(&mut self.beyond);
        beyond.iter_mut().for_each(SpanSet::clear);
        for &storage in storages {
            for direction in [CHILDREN, PARENTS] {
                self.rebuild(state, storage, direction);
                beyond[direction].union(&self.of[direction][storage as usize].frontier, |_| {});
            }
            changed(self, storage as usize);
        }
        for (from, direction) in [(PARENTS, CHILDREN), (CHILDREN, PARENTS)] {
            for storage in beyond[from].iter().filter(|&s| !state.pinned[s as usize]) {
                self.rebuild(state, storage, direction);
                changed(self, storage as usize);
            }
        }
        self.beyond = beyond;
    }
}

/// The bookkeeping of h_DTR, the neighbourhood in both directions over size and staleness, and of h_MSPS, which uses
/// only the evicted ancestors and no staleness.
pub(crate) struct Regional<const BOTH: bool>(Regions);

/// The bookkeeping of h_DTR.
pub(crate) type Neighbourhoods = Regional<true>;
/// The bookkeeping of h_MSPS.
pub(crate) type Ancestors = Regional<false>;

impl<const BOTH: bool> Regional<BOTH> {
    fn update(regions: &Regions, compute: &[u64], cost: &mut [f64], s: usize) {
        let forward = if BOTH { regions.of[CHILDREN][s].compute } else { 0 };
        let neighbourhood = forward.saturating_add(regions.of[PARENTS][s].compute);
        cost[s] = compute[s].saturating_add(neighbourhood) as f64;
    }
}

impl<const BOTH: bool> Bookkeeping for Regional<BOTH> {
    fn new(program: &Program) -> Self {
        Self(Regions::new(program))
    }

    fn created(&mut self, state: &mut State<'_>, op: &Op) {
        for &s in &op.stores {
            Self::update(&self.0, &state.compute, &mut state.cost, s as usize);
        }
    }

    fn evicted(&mut self, state: &mut State<'_>, storage: u32) {
        let mut cost = std::mem::take(&mut state.cost);
        self.0.evicted(state, storage, |regions, s| Self::update(regions, &state.compute, &mut cost, s));
        state.cost = cost;
    }

    fn materialised(&mut self, state: &mut State<'_>, storages: &[u32]) {
        let mut cost = std::mem::take(&mut state.cost);
        self.0.materialised(state, storages, |regions, s| Self::update(regions, &state.compute, &mut cost, s));
        state.cost = cost;
    }

    #[inline]
    fn score(state: &State<'_>, s: usize, now: f64) -> f64 {
        let (cost, size) = (state.cost[s], state.program.sizes[s]);
        if BOTH { per_byte_and_staleness(cost, size, now - state.last_access[s]) } else { per_byte(cost, size) }
    }
}
