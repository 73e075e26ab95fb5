//! The device at work on the commands in its slots.

use std::cmp::Ordering;

use crate::storage::flash::Demand;
use crate::units::Nanos;

/// A command in a slot.
#[derive(Clone, Debug)]
struct Served<T> {
    item: T,
    sequence: u64,
    /// What is left of the time that it takes alone, in nanoseconds.
    remaining: f64,
    /// The share of the device that it keeps busy when it is alone.
    busy: f64,
}

/// Commands that run side by side until they meet on a die.
///
/// A command alone keeps the share `b` of the device busy: its occupation over its time. Commands fall on dies at
/// random, so that several keep 1 − Π(1 − b) of it busy, where side by side they would ask for Σ b; all run at the
/// quotient of the two, their *pace*. A command that keeps all of it busy shares it evenly with its like, which is
/// processor sharing; pages that keep little of it busy fill it by and by with depth; and nobody is beside others
/// without slowing them.
///
/// The pace is worked out once for all changes of a moment, when it is next asked what ends first: a command that ends
/// usually makes room for another.
#[derive(Clone, Debug)]
pub(super) struct Sharing<T> {
    served: Vec<Served<T>>,
    sequence: u64,
    pace: f64,
    /// When commands came or went since the pace was worked out, if any did.
    changed: Option<Nanos>,
    /// Which command ends first if nothing changes, and when.
    first: Option<(usize, Nanos)>,
}

/// Time that counts as none, in nanoseconds: what sums of floats leave over.
const NOTHING: f64 = 1e-6;

impl<T> Sharing<T> {
    pub(super) fn new(slots: usize) -> Self {
        // Slots are few; a calibration with absurdly many does not reserve memory for them.
        Self { served: Vec::with_capacity(slots.min(64)), sequence: 0, pace: 1.0, changed: None, first: None }
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
        self.served.push(Served { item, sequence: self.sequence, remaining: demand.alone, busy });
        self.sequence += 1;
        self.changed = Some(now);
    }

    /// Works for `span`, in which no command ends.
    pub(super) fn progress(&mut self, span: Nanos) {
        self.settle();
        let done = self.pace * span.0 as f64;
        for served in &mut self.served {
            served.remaining -= done;
        }
    }

    /// Takes the command that is due at `now`, the one that came first if there are several.
    pub(super) fn take(&mut self, now: Nanos) -> Option<T> {
        self.settle();
        let (index, _) = self.first.filter(|&(_, due)| due <= now)?;
        self.changed = Some(now);
        Some(self.served.swap_remove(index).item)
    }

    /// Works out the pace and what ends first, if commands came or went.
    fn settle(&mut self) {
        let Some(now) = self.changed.take() else { return };
        let (mut asked, mut idle, mut least) = (0.0, 1.0, f64::INFINITY);
        for served in &self.served {
            asked += served.busy;
            idle *= 1.0 - served.busy;
            least = f64::min(least, served.remaining);
        }
        let pace = (1.0 - idle) / asked;
        // A float cast saturates, and turns what is below zero into it.
        let span = |remaining: f64| (remaining.max(0.0) / pace - NOTHING).ceil() as u64;
        let shortest = span(least);
        // Only what has hardly more left than the least can end in the same nanosecond.
        let later = |remaining: f64| remaining.partial_cmp(&(least + 2.0 * pace)) == Some(Ordering::Greater);
        let close = self.served.iter().enumerate().filter(|(_, served)| !later(served.remaining));
        let first = close.filter(|(_, served)| span(served.remaining) == shortest).min_by_key(|(_, s)| s.sequence);
        self.first = first.map(|(index, _)| (index, Nanos(now.0.saturating_add(shortest))));
        self.pace = pace;
    }
}
