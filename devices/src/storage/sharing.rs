//! The device at work on the commands in its slots.

use std::collections::VecDeque;

use crate::storage::flash::Demand;
use crate::storage::paces::{Pace, Paces};
use crate::units::Nanos;

/// A command in a slot.
#[derive(Clone, Debug)]
struct Served<T> {
    item: T,
    sequence: u64,
    /// It ends when the device has done so much on each command, in nanoseconds of one alone.
    end: f64,
    /// Its kind.
    kind: usize,
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
/// it must have come to: time that passes touches no command. The [`Paces`] follow from kinds of commands, and are looked up
/// once for all changes of a moment, when it is next asked what ends first: a command that ends usually makes room for
/// another.
#[derive(Clone, Debug)]
pub(super) struct Sharing<T> {
    /// In the order in which they end.
    served: VecDeque<Served<T>>,
    paces: Paces,
    sequence: u64,
    done: f64,
    pace: Pace,
    /// When commands came or went since the pace was worked out, if any did.
    changed: Option<Nanos>,
    /// Which command ends first if nothing changes.
    first: usize,
    /// When it does; the end of time where there is none.
    due: Nanos,
}

/// Time that counts as none, in nanoseconds: what sums of floats leave over.
const NOTHING: f64 = 1e-6;
/// What is done is counted anew from here, in nanoseconds, so that floats keep a fraction of [`NOTHING`] apart.
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

    /// The shares of dies that program and that erase; `None` if none does.
    pub(super) fn held(&self) -> Option<[f64; 2]> {
        self.paces.held()
    }

    /// When the next command ends if nothing changes; the end of time if there is none.
    pub(super) fn due(&mut self) -> Nanos {
        self.settle();
        self.due
    }

    /// Starts a command.
    pub(super) fn insert(&mut self, now: Nanos, item: T, demand: Demand) {
        let kind = self.paces.enter(demand);
        let end = self.done + demand.alone;
        let served = Served { item, sequence: self.sequence, end, kind };
        // Behind all that end no later: it came last, and most that come end last.
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
        // Signed, which processors turn into floats at once; no span takes centuries.
        self.done += self.pace.forward * span.0 as i64 as f64;
    }

    /// Takes the command that is due at `now`, the one that came first if there are several.
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

    /// Works out the pace and what ends first, if commands came or went.
    fn settle(&mut self) {
        let Some(now) = self.changed.take() else { return };
        self.count_anew();
        let Some(end) = self.served.front().map(|served| served.end) else {
            self.due = Nanos::MAX;
            return;
        };
        self.pace = self.paces.now();
        let shortest = self.span(end);
        // Only what has hardly more left than the least can end in the same nanosecond.
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

    /// How long it is at this pace until what is done comes to `end`, in whole nanoseconds.
    fn span(&self, end: f64) -> u64 {
        let span = (end - self.done).max(0.0) * self.pace.back - NOTHING;
        // Rounds up. A float cast saturates, and what is just below zero becomes zero; signed, which processors do at once.
        match span as i64 {
            i64::MAX => u64::MAX,
            whole => whole as u64 + u64::from(whole as f64 != span && span > 0.0),
        }
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
