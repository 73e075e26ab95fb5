//! Exact evicted neighbourhoods, for h_DTR (both directions) and h_MSPS (ancestors).
//!
//! Each storage keeps, by direction, the evicted storages that it reaches through evicted ones
//! (the interior), the resident ones at which that stops (the frontier), and the interior's cost.
//! The cost is cached when a storage joins: it does not follow later changes, and that is the rule.

use crate::program::{Op, Program};
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

    /// `storage`, which was on the frontier, has been evicted: what it reached is now reached.
    fn absorb(&mut self, storage: u32, its: &Self, costs: &[u64]) {
        self.frontier.remove(storage);
        self.frontier.union(&its.frontier, |_| {});
        // Its own cost is added even where the interior knows it already.
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

#[derive(Clone, Copy)]
enum Direction {
    Children,
    Parents,
}

/// The regions of every storage.
#[derive(Default)]
struct Regions {
    forward: Vec<Region>,
    reverse: Vec<Region>,
    stack: Vec<u32>,
    above: SpanSet,
    below: SpanSet,
}

impl Regions {
    fn new(program: &Program) -> Self {
        let storages = program.roots.len();
        Self {
            forward: vec![Region::default(); storages],
            reverse: vec![Region::default(); storages],
            ..Self::default()
        }
    }

    /// Explores anew from `base`.
    fn rebuild(&mut self, state: &State<'_>, base: u32, direction: Direction) {
        let region = match direction {
            Direction::Children => &mut self.forward[base as usize],
            Direction::Parents => &mut self.reverse[base as usize],
        };
        region.clear();
        let stack = &mut self.stack;
        let mut visit = |stack: &mut Vec<u32>, storage: u32| {
            if state.material[storage as usize] {
                if storage != base {
                    region.frontier.insert(storage);
                }
            } else if region.interior.insert(storage) {
                region.compute = region.compute.saturating_add(state.compute[storage as usize]);
                stack.push(storage);
            }
        };
        stack.push(base);
        while let Some(storage) = stack.pop() {
            match direction {
                Direction::Children => {
                    state.program.children(storage, state.created).for_each(|next| visit(stack, next));
                }
                Direction::Parents => {
                    state.program.parents(storage, state.created).for_each(|next| visit(stack, next));
                }
            }
        }
    }

    /// `changed` hears of every storage whose regions are not what they were.
    fn evicted(&mut self, state: &State<'_>, storage: u32, mut changed: impl FnMut(&Self, usize)) {
        let forward = std::mem::take(&mut self.forward[storage as usize]);
        let reverse = std::mem::take(&mut self.reverse[storage as usize]);
        // What is pinned never goes, so nobody asks for its neighbourhood.
        for parent in reverse.frontier.iter().map(|s| s as usize).filter(|&s| !state.pinned[s]) {
            self.forward[parent].absorb(storage, &forward, &state.compute);
            changed(self, parent);
        }
        for child in forward.frontier.iter().map(|s| s as usize).filter(|&s| !state.pinned[s]) {
            self.reverse[child].absorb(storage, &reverse, &state.compute);
            changed(self, child);
        }
        // Views can make a storage its own neighbour: what it absorbed of itself goes too.
        self.forward[storage as usize].clear();
        self.reverse[storage as usize].clear();
    }

    fn materialised(&mut self, state: &State<'_>, storages: &[u32], mut changed: impl FnMut(&Self, usize)) {
        let (mut above, mut below) = (std::mem::take(&mut self.above), std::mem::take(&mut self.below));
        above.clear();
        below.clear();
        for &storage in storages {
            self.rebuild(state, storage, Direction::Children);
            self.rebuild(state, storage, Direction::Parents);
            above.union(&self.reverse[storage as usize].frontier, |_| {});
            below.union(&self.forward[storage as usize].frontier, |_| {});
            changed(self, storage as usize);
        }
        for storage in above.iter().filter(|&s| !state.pinned[s as usize]) {
            self.rebuild(state, storage, Direction::Children);
            changed(self, storage as usize);
        }
        for storage in below.iter().filter(|&s| !state.pinned[s as usize]) {
            self.rebuild(state, storage, Direction::Parents);
            changed(self, storage as usize);
        }
        (self.above, self.below) = (above, below);
    }
}

/// The bookkeeping of h_DTR, the neighbourhood in both directions over size and staleness, and of h_MSPS, which looks at
/// the evicted ancestors alone and leaves staleness out.
pub(crate) struct Regional<const BOTH: bool>(Regions);

/// The bookkeeping of h_DTR.
pub(crate) type Neighbourhoods = Regional<true>;
/// The bookkeeping of h_MSPS.
pub(crate) type Ancestors = Regional<false>;

impl<const BOTH: bool> Regional<BOTH> {
    fn update(regions: &Regions, compute: &[u64], cost: &mut [f64], s: usize) {
        let forward = if BOTH { regions.forward[s].compute } else { 0 };
        let neighbourhood = forward.saturating_add(regions.reverse[s].compute);
        cost[s] = compute[s].saturating_add(neighbourhood) as f64;
    }
}

impl<const BOTH: bool> Bookkeeping for Regional<BOTH> {
    fn new(program: &Program) -> Self {
        Self(Regions::new(program))
    }

    fn created(&mut self, state: &mut State<'_>, op: &Op) {
        for &s in state.program.output_storages(op) {
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
