//! The device's concurrent work on the commands in its slots.
//!
//! The speed of concurrent commands depends on how many there are of each kind.

use std::collections::VecDeque;

use super::flash::{Demand, Holds};
use crate::Nanos;

/// A command in a slot.
#[derive(Clone, Debug)]
struct Served<T> {
    item: T,
    sequence: u64,
    /// It completes when the device has done this much work on each command, in nanoseconds of a command that runs
    /// alone.
    end: f64,
    /// Its kind.
    kind: usize,
}

/// Commands that run in parallel unless they meet on a die.
///
/// A command that runs alone keeps the share `b` of the device busy: its occupation over its time. Commands fall
/// on dies at random, so several keep 1 − Π(1 − b) of it busy, where without conflicts they would need Σ b; all
/// run at the quotient of the two, their *pace*. Commands that each keep all of the device busy share it evenly,
/// which is processor sharing. Pages that keep little of it busy fill it gradually with depth. Every concurrent
/// command slows the others.
///
/// Since all run at one pace, the work *done* on each is a single growing number. Commands complete in the order of
/// the value that it must reach, so passing time updates no command. The [`Paces`] follow from the kinds of commands.
/// They are looked up once for all changes at one moment, when the next completion is needed: a completed command
/// usually makes room for another.
#[derive(Clone, Debug)]
pub(super) struct Sharing<T> {
    /// In the order of completion.
    served: VecDeque<Served<T>>,
    paces: Paces,
    sequence: u64,
    done: f64,
    pace: Pace,
    /// The time at which commands came or went since the pace was computed, if any did.
    changed: Option<Nanos>,
    /// The index of the next command to complete if nothing changes.
    first: usize,
    /// The time at which it completes; the end of time if there is none.
    due: Nanos,
}

/// Time that counts as zero, in nanoseconds: rounding errors of float sums.
const NOTHING: f64 = 1e-6;
/// From this value on, the work done is counted from zero again, in nanoseconds, so that floats still resolve
/// a fraction of [`NOTHING`].
const ANEW: f64 = 1e6;

impl<T> Sharing<T> {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            // Slots are few; a calibration with absurdly many does not reserve memory for them.
            served: VecDeque::with_capacity(slots.min(64)),
            paces: Paces::default(),
            sequence: 0,
            done: 0.0,
            pace: Pace::ALONE,
            changed: None,
            first: 0,
            due: Nanos::MAX,
        }
    }

    /// Commands at work.
    pub(super) fn len(&self) -> usize {
        self.served.len()
    }

    /// The shares of dies that program and that erase; `None` if no die does.
    pub(super) fn held(&self) -> Option<[f64; 2]> {
        self.paces.held()
    }

    /// The time of the next completion if nothing changes; the end of time if there is none.
    pub(super) fn due(&mut self) -> Nanos {
        self.settle();
        self.due
    }

    /// Starts a command.
    pub(super) fn insert(&mut self, now: Nanos, item: T, demand: Demand) {
        let kind = self.paces.enter(demand);
        let end = self.done + demand.alone;
        let served = Served { item, sequence: self.sequence, end, kind };
        // Behind all that end no later: among equal ends it came last, and usually its end is the last.
        if self.served.back().is_none_or(|other| other.end <= end) {
            self.served.push_back(served);
        } else {
            let place = self.served.partition_point(|other| other.end <= end);
            self.served.insert(place, served);
        }
        self.sequence += 1;
        self.changed = Some(now);
    }

    /// Works for `span`, in which no command ends.
    pub(super) fn progress(&mut self, span: Nanos) {
        self.settle();
        // Conversion from a signed integer is a single instruction; no span takes centuries.
        self.done += self.pace.forward * span.0 as i64 as f64;
    }

    /// Removes the command that is due at `now`; the one that started first if there are several.
    pub(super) fn take(&mut self, now: Nanos) -> Option<T> {
        self.settle();
        if self.due > now {
            return None;
        }
        self.changed = Some(now);
        let taken = if self.first == 0 { self.served.pop_front() } else { self.served.remove(self.first) };
        let Served { item, kind, .. } = taken?;
        self.paces.leave(kind);
        Some(item)
    }

    /// Computes the pace and the next completion, if commands came or went.
    fn settle(&mut self) {
        let Some(now) = self.changed.take() else { return };
        self.count_anew();
        let Some(end) = self.served.front().map(|served| served.end) else {
            self.due = Nanos::MAX;
            return;
        };
        self.pace = self.paces.now();
        let shortest = self.span(end);
        // Only commands with nearly the least work left can end in the same nanosecond.
        let near = end + 2.0 * self.pace.forward;
        let mut first = 0;
        let mut index = 1;
        while let Some(other) = self.served.get(index).filter(|other| other.end <= near) {
            if other.sequence < self.served[first].sequence && self.span(other.end) == shortest {
                first = index;
            }
            index += 1;
        }
        (self.first, self.due) = (first, Nanos(now.0.saturating_add(shortest)));
    }

    /// The time at this pace until the work done reaches `end`, in whole nanoseconds.
    fn span(&self, end: f64) -> u64 {
        let span = (end - self.done).max(0.0) * self.pace.back - NOTHING;
        // Rounds up. A float cast saturates, and values just below zero become zero; conversion to a signed
        // integer is a single instruction.
        match span as i64 {
            i64::MAX => u64::MAX,
            whole => whole as u64 + u64::from(whole as f64 != span && span > 0.0),
        }
    }

    /// Resets the work done to zero before it gets large.
    fn count_anew(&mut self) {
        if self.served.is_empty() {
            self.done = 0.0;
        } else if self.done > ANEW {
            for served in &mut self.served {
                served.end -= self.done;
            }
            self.done = 0.0;
        }
    }
}

/// The speed of concurrent commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Work done per time, relative to a command that runs alone.
    pub(super) forward: f64,
    /// Time per work: the inverse of `forward`.
    pub(super) back: f64,
}

impl Pace {
    /// The pace of a command that runs alone.
    pub(super) const ALONE: Self = Self { forward: 1.0, back: 1.0 };
}

/// Commands that keep the same share of the device busy.
#[derive(Clone, Copy, Debug)]
struct Kind {
    demand: Demand,
    busy: f64,
    count: u32,
}

/// The pace of commands that each keep a share `b` of the device busy: (1 − Π(1 − b)) / Σ b.
///
/// There are few kinds of commands, and the same counts recur, so computed paces are cached.
#[derive(Clone, Debug, Default)]
pub(super) struct Paces {
    kinds: Vec<Kind>,
    /// The kind of the latest command, which is usually that of the next, too.
    last: usize,
    /// Number of commands that keep dies from being read.
    holding: u32,
    /// Number of kinds with more commands than `counts` can count.
    crowded: u32,
    /// The number of commands of each kind: one byte per kind, the first kind's the lowest.
    counts: u64,
    /// Cached paces with the counts that they belong to; empty until the first.
    known: Vec<(u64, Pace)>,
}

/// Number of kinds in `counts`; with more kinds, paces are not cached.
const COUNTED: usize = 8;
/// The largest number of a kind in `counts`.
const MOST: u32 = 255;
/// Number of cached paces, a power of two.
const KEPT: usize = 256;
/// Number of kinds that are kept without commands.
const IDLE_KINDS: usize = 4;

impl Paces {
    /// Adds a command; returns its kind.
    pub(super) fn enter(&mut self, demand: Demand) -> usize {
        let again = self.kinds.get(self.last).is_some_and(|kind| kind.demand == demand);
        if !again {
            let found = self.kinds.iter().position(|kind| kind.demand == demand);
            self.last = found.unwrap_or_else(|| self.add(demand));
        }
        let kind = self.last;
        self.kinds[kind].count += 1;
        self.crowded += u32::from(self.kinds[kind].count == MOST + 1);
        self.holding += u32::from(demand.holds != Holds::Nothing);
        self.counts = self.counts.wrapping_add(one(kind));
        kind
    }

    /// Removes a command of this kind.
    pub(super) fn leave(&mut self, kind: usize) {
        self.kinds[kind].count -= 1;
        self.crowded -= u32::from(self.kinds[kind].count == MOST);
        self.holding -= u32::from(self.kinds[kind].demand.holds != Holds::Nothing);
        self.counts = self.counts.wrapping_sub(one(kind));
    }

    /// Adds a kind. It replaces one without commands once there are many kinds.
    fn add(&mut self, demand: Demand) -> usize {
        let busy = (demand.occupation / demand.alone).min(1.0);
        let kind = Kind { demand, busy, count: 0 };
        let idle = self.kinds.iter().skip(IDLE_KINDS).position(|kind| kind.count == 0);
        match idle.map(|place| place + IDLE_KINDS) {
            Some(place) => {
                self.kinds[place] = kind;
                self.known.clear();
                place
            }
            None => {
                self.kinds.push(kind);
                self.kinds.len() - 1
            }
        }
    }

    /// The shares of dies that program and that erase, which are the probabilities that a read meets
    /// one; `None` if both are zero.
    pub(super) fn held(&self) -> Option<[f64; 2]> {
        (self.holding > 0).then(|| {
            [Holds::Program, Holds::Erase].map(|holds| {
                let of_it = self.kinds.iter().filter(|kind| kind.demand.holds == holds);
                1.0 - of_it.map(|kind| power(1.0 - kind.busy, kind.count)).product::<f64>()
            })
        })
    }

    /// The current pace.
    pub(super) fn now(&mut self) -> Pace {
        if self.kinds.len() > COUNTED || self.crowded > 0 {
            return self.work_out();
        }
        if self.known.is_empty() {
            // An entry without commands has no pace.
            self.known.resize(KEPT, (0, Pace::ALONE));
        }
        // Multiplied, so that the counts of all kinds affect the upper bits.
        let place = (self.counts.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % KEPT;
        if self.known[place].0 != self.counts {
            self.known[place] = (self.counts, self.work_out());
        }
        self.known[place].1
    }

    fn work_out(&self) -> Pace {
        let (mut asked, mut idle) = (0.0, 1.0);
        for kind in &self.kinds {
            asked += kind.busy * f64::from(kind.count);
            idle *= power(1.0 - kind.busy, kind.count);
        }
        let busy = 1.0 - idle;
        Pace { forward: busy / asked, back: asked / busy }
    }
}

/// One command of a kind in `counts`.
const fn one(kind: usize) -> u64 {
    if kind < COUNTED { 1 << (8 * kind) } else { 0 }
}

/// `base` to the power of `exponent`, by squares.
fn power(mut base: f64, mut exponent: u32) -> f64 {
    let mut power = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command that keeps `busy` of the device busy for 100 ns.
    fn command(busy: f64) -> Demand {
        Demand { occupation: 100.0 * busy, alone: 100.0, holds: Holds::Nothing }
    }

    #[test]
    fn a_read_meets_a_die_that_programs_as_likely_as_one_does() {
        let mut paces = Paces::default();
        paces.enter(command(0.5));
        assert_eq!(paces.held(), None);
        let held = |busy, holds| Demand { holds, ..command(busy) };
        let programs = [0.5, 0.5, 0.25].map(|busy| paces.enter(held(busy, Holds::Program)));
        let erases = paces.enter(held(0.25, Holds::Erase));
        // 1 − 1/2 · 1/2 · 3/4, and a quarter.
        assert_eq!(paces.held(), Some([0.8125, 0.25]));
        programs.into_iter().for_each(|kind| paces.leave(kind));
        assert_eq!(paces.held(), Some([0.0, 0.25]));
        paces.leave(erases);
        assert_eq!(paces.held(), None);
    }

    #[test]
    fn a_kept_pace_is_that_of_the_commands_that_are_there() {
        let mut paces = Paces::default();
        // One alone runs at its own pace; two halves together keep 3/4 busy where 1 is needed.
        let half = paces.enter(command(0.5));
        assert_eq!(paces.now().forward, 1.0);
        paces.enter(command(0.5));
        assert_eq!((paces.now().forward, paces.now().back), (0.75, 4.0 / 3.0));
        // With one that needs all: 1 of 2.
        let whole = paces.enter(command(1.0));
        assert_eq!(paces.now().forward, 0.5);
        paces.leave(whole);
        assert_eq!(paces.now().forward, 0.75);
        paces.leave(half);
        assert_eq!(paces.now().forward, 1.0);
    }

    #[test]
    fn many_kinds_one_after_another_take_each_others_places() {
        let mut paces = Paces::default();
        let quarter = paces.enter(command(0.25));
        for step in 1..=100 {
            // A quarter and another share: 1 − 3/4 (1 − b) of 1/4 + b.
            let busy = f64::from(step) / 100.0;
            let other = paces.enter(command(busy));
            let expected = (1.0 - 0.75 * (1.0 - busy)) / (0.25 + busy);
            assert!((paces.now().forward - expected).abs() < 1e-12, "{busy}");
            paces.leave(other);
        }
        assert!(paces.kinds.len() <= IDLE_KINDS + 1, "{}", paces.kinds.len());
        paces.leave(quarter);
        // More simultaneous kinds than are counted: ten shares of a hundredth to a tenth.
        let kinds: Vec<usize> = (1..=10).map(|step| paces.enter(command(f64::from(step) / 100.0))).collect();
        let idle: f64 = (1..=10).map(|step| 1.0 - f64::from(step) / 100.0).product();
        assert!((paces.now().forward - (1.0 - idle) / 0.55).abs() < 1e-12);
        kinds.into_iter().for_each(|kind| paces.leave(kind));
    }
}
