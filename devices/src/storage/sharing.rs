//! The device at work on the commands in its slots.

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
    /// When it ends if nothing changes.
    due: Nanos,
}

/// Commands that run side by side until they meet on a die.
///
/// A command alone keeps the share `b` of the device busy: its occupation over its time. Commands fall on dies at
/// random, so that several keep 1 − Π(1 − b) of it busy, where side by side they would ask for Σ b; all run at the
/// quotient of the two, their *pace*. A command that keeps all of it busy shares it evenly with its like, which is
/// processor sharing; pages that keep little of it busy fill it by and by with depth; and nobody is beside others
/// without slowing them.
#[derive(Clone, Debug)]
pub(super) struct Sharing<T> {
    served: Vec<Served<T>>,
    sequence: u64,
    pace: f64,
}

/// Time that counts as none, in nanoseconds: what sums of floats leave over.
const NOTHING: f64 = 1e-6;

impl<T> Sharing<T> {
    pub(super) fn new(slots: usize) -> Self {
        // Slots are few; a calibration with absurdly many does not reserve memory for them.
        Self { served: Vec::with_capacity(slots.min(64)), sequence: 0, pace: 1.0 }
    }

    /// Commands at work.
    pub(super) fn len(&self) -> usize {
        self.served.len()
    }

    /// When the next command ends if nothing changes.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.served.iter().map(|served| served.due).min()
    }

    /// Starts a command.
    pub(super) fn insert(&mut self, now: Nanos, item: T, demand: Demand) {
        let busy = (demand.occupation / demand.alone).min(1.0);
        self.served.push(Served { item, sequence: self.sequence, remaining: demand.alone, busy, due: Nanos::MAX });
        self.sequence += 1;
        self.set_pace(now);
    }

    /// Works for `span`, in which no command ends.
    pub(super) fn progress(&mut self, span: Nanos) {
        let done = self.pace * span.0 as f64;
        for served in &mut self.served {
            served.remaining -= done;
        }
    }

    /// Takes the command that is due at `now`, the one that came first where there are several.
    pub(super) fn take(&mut self, now: Nanos) -> Option<T> {
        let due = self.served.iter().enumerate().filter(|(_, served)| served.due <= now);
        let (index, _) = due.min_by_key(|(_, served)| (served.due, served.sequence))?;
        let served = self.served.swap_remove(index);
        self.set_pace(now);
        Some(served.item)
    }

    fn set_pace(&mut self, now: Nanos) {
        let asked: f64 = self.served.iter().map(|served| served.busy).sum();
        let idle: f64 = self.served.iter().map(|served| 1.0 - served.busy).product();
        self.pace = (1.0 - idle) / asked;
        for served in &mut self.served {
            let span = (served.remaining.max(0.0) / self.pace - NOTHING).ceil();
            // A float cast saturates, and turns what is below nought into it.
            served.due = Nanos(now.0.saturating_add(span as u64));
        }
    }
}
