//! The device at work on the commands in its slots.

use crate::storage::flash::Demand;
use crate::units::Nanos;

/// A command in a slot.
#[derive(Clone, Debug)]
struct Served<T> {
    item: T,
    sequence: u64,
    /// It ends when the device has done so much on each command, in nanoseconds of one alone.
    end: f64,
    /// The share of the device that it keeps busy when it is alone.
    busy: f64,
}

/// Commands at work that keep the same share of the device busy.
#[derive(Clone, Copy, Debug)]
struct Alike {
    busy: f64,
    count: u32,
}

/// Commands that run side by side until they meet on a die.
///
/// A command alone keeps the share `b` of the device busy: its occupation over its time. Commands fall on dies at
/// random, so that several keep 1 − Π(1 − b) of it busy, where side by side they would ask for Σ b; all run at the
/// quotient of the two, their *pace*. A command that keeps all of it busy shares it evenly with its like, which is
/// processor sharing; pages that keep little of it busy fill it by and by with depth; and nobody is beside others
/// without slowing them.
///
/// As all run at one pace, what has been *done* on each is one number that grows, and commands end in the order of what
/// it must have come to: time that passes touches no command. The pace is worked out by kinds of commands, once for all
/// changes of a moment, when it is next asked what ends first: a command that ends usually makes room for another.
#[derive(Clone, Debug)]
pub(super) struct Sharing<T> {
    /// The one that ends first is the last.
    served: Vec<Served<T>>,
    alike: Vec<Alike>,
    sequence: u64,
    done: f64,
    pace: f64,
    /// When commands came or went since the pace was worked out, if any did.
    changed: Option<Nanos>,
    /// Which command ends first if nothing changes, and when.
    first: Option<(usize, Nanos)>,
}

/// Time that counts as none, in nanoseconds: what sums of floats leave over.
const NOTHING: f64 = 1e-6;
/// What is done is counted anew from here, in nanoseconds, so that floats keep a fraction of [`NOTHING`] apart.
const ANEW: f64 = 1e6;

impl<T> Sharing<T> {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            // Slots are few; a calibration with absurdly many does not reserve memory for them.
            served: Vec::with_capacity(slots.min(64)),
            alike: Vec::new(),
            sequence: 0,
            done: 0.0,
            pace: 1.0,
            changed: None,
            first: None,
        }
    }

    /// Commands at work.
    pub(super) fn len(&self) -> usize {
        self.served.len()
    }

    /// When the next command ends if nothing changes.
    pub(super) fn due(&mut self) -> Option<Nanos> {
        self.settle();
        self.first.map(|(_, due)| due)
    }

    /// Starts a command.
    pub(super) fn insert(&mut self, now: Nanos, item: T, demand: Demand) {
        let busy = (demand.occupation / demand.alone).min(1.0);
        let end = self.done + demand.alone;
        // Behind all that end no later: it came last.
        let behind = self.served.iter().rev().take_while(|served| served.end <= end).count();
        let place = self.served.len() - behind;
        self.served.insert(place, Served { item, sequence: self.sequence, end, busy });
        self.sequence += 1;
        match self.alike.iter_mut().find(|alike| alike.busy.to_bits() == busy.to_bits()) {
            Some(alike) => alike.count += 1,
            None => self.alike.push(Alike { busy, count: 1 }),
        }
        self.changed = Some(now);
    }

    /// Works for `span`, in which no command ends.
    pub(super) fn progress(&mut self, span: Nanos) {
        self.settle();
        self.done += self.pace * span.0 as f64;
    }

    /// Takes the command that is due at `now`, the one that came first if there are several.
    pub(super) fn take(&mut self, now: Nanos) -> Option<T> {
        self.settle();
        let (index, _) = self.first.filter(|&(_, due)| due <= now)?;
        self.changed = Some(now);
        let Served { item, busy, .. } = self.served.remove(index);
        if let Some(at) = self.alike.iter().position(|alike| alike.busy.to_bits() == busy.to_bits()) {
            self.alike[at].count -= 1;
            if self.alike[at].count == 0 {
                self.alike.swap_remove(at);
            }
        }
        Some(item)
    }

    /// Works out the pace and what ends first, if commands came or went.
    fn settle(&mut self) {
        let Some(now) = self.changed.take() else { return };
        self.count_anew();
        let Some(last) = self.served.last().map(|served| served.end) else {
            self.first = None;
            return;
        };
        let (mut asked, mut idle) = (0.0, 1.0);
        for alike in &self.alike {
            asked += alike.busy * f64::from(alike.count);
            idle *= power(1.0 - alike.busy, alike.count);
        }
        self.pace = (1.0 - idle) / asked;
        let shortest = self.span(last);
        // Only what has hardly more left than the least can end in the same nanosecond.
        let near = last + 2.0 * self.pace;
        let close = self.served.iter().enumerate().rev().take_while(|(_, served)| served.end <= near);
        let first = close.filter(|(_, served)| self.span(served.end) == shortest).min_by_key(|(_, s)| s.sequence);
        self.first = first.map(|(index, _)| (index, Nanos(now.0.saturating_add(shortest))));
    }

    /// How long it is at this pace until what is done comes to `end`, in whole nanoseconds.
    fn span(&self, end: f64) -> u64 {
        let span = (end - self.done).max(0.0) / self.pace - NOTHING;
        // Rounds up. A float cast saturates, and turns what is below zero into it.
        let whole = span as u64;
        whole.saturating_add(u64::from(whole as f64 != span && span > 0.0))
    }

    /// Keeps what is done small.
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
