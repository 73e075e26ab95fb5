//! How fast commands run side by side, by how many of each kind there are.

use crate::storage::flash::{Demand, Holds};

/// How fast commands run beside each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Of the time that a command takes alone, what is done in a time.
    pub(super) forward: f64,
    /// The time that it takes to do what alone takes a time.
    pub(super) back: f64,
}

impl Pace {
    /// As fast as alone.
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
/// There are few kinds of commands, and the same numbers of each come again and again: a pace that was worked out is kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Paces {
    kinds: Vec<Kind>,
    /// That of the command that came last: most that come are of it, too.
    last: usize,
    /// Commands that keep dies from reading.
    holding: u32,
    /// Kinds with more commands than `counts` tells apart.
    crowded: u32,
    /// How many there are of each kind: a byte each, the first kind's the lowest.
    counts: u64,
    /// Paces that were worked out, with the counts that they are of; empty until the first.
    known: Vec<(u64, Pace)>,
}

/// Kinds whose numbers `counts` holds; of more the paces are not kept.
const COUNTED: usize = 8;
/// The most of a kind that `counts` tells apart.
const MOST: u32 = 255;
/// Paces that are kept, a power of two.
const KEPT: usize = 256;
/// Kinds that are kept while no command is of them.
const IDLE_KINDS: usize = 4;

impl Paces {
    /// Another command; its kind.
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

    /// A command of this kind has ended.
    pub(super) fn leave(&mut self, kind: usize) {
        self.kinds[kind].count -= 1;
        self.crowded -= u32::from(self.kinds[kind].count == MOST);
        self.holding -= u32::from(self.kinds[kind].demand.holds != Holds::Nothing);
        self.counts = self.counts.wrapping_sub(one(kind));
    }

    /// A new kind, in the place of one that is not there any more where kinds are many.
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

    /// The shares of dies that program and that erase, which is how likely a read is to meet one; `None` if none does.
    pub(super) fn held(&self) -> Option<[f64; 2]> {
        (self.holding > 0).then(|| {
            [Holds::Program, Holds::Erase].map(|holds| {
                let of_it = self.kinds.iter().filter(|kind| kind.demand.holds == holds);
                1.0 - of_it.map(|kind| power(1.0 - kind.busy, kind.count)).product::<f64>()
            })
        })
    }

    /// The pace of those that are there.
    pub(super) fn now(&mut self) -> Pace {
        if self.kinds.len() > COUNTED || self.crowded > 0 {
            return self.work_out();
        }
        if self.known.is_empty() {
            // No command has no pace.
            self.known.resize(KEPT, (0, Pace::ALONE));
        }
        // Multiplied, so that the counts of all kinds stir the upper bits.
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
        // One alone runs at its own pace; of two halves together 3/4 are kept busy where 1 is asked for.
        let half = paces.enter(command(0.5));
        assert_eq!(paces.now().forward, 1.0);
        paces.enter(command(0.5));
        assert_eq!((paces.now().forward, paces.now().back), (0.75, 4.0 / 3.0));
        // With one that asks for all: 1 of 2.
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
        // More kinds at once than are counted: ten shares of a hundredth to a tenth.
        let kinds: Vec<usize> = (1..=10).map(|step| paces.enter(command(f64::from(step) / 100.0))).collect();
        let idle: f64 = (1..=10).map(|step| 1.0 - f64::from(step) / 100.0).product();
        assert!((paces.now().forward - (1.0 - idle) / 0.55).abs() < 1e-12);
        kinds.into_iter().for_each(|kind| paces.leave(kind));
    }
}
