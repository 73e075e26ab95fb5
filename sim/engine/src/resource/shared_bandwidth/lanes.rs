//! The two lanes of shared bandwidth, sharing and saturated, and how flows move between them.
//!
//! Everything is in the integer units of [`crate::resource::rate`]; callers handle errors and bytes.

use haversack_devices::Nanos;

use crate::agenda::Agenda;
use crate::resource::span;
use crate::slots::{Key, Slots};

#[derive(Clone, Debug)]
struct Flow<T> {
    /// The flow's number in order of insertion.
    order: u64,
    cap: Option<u64>,
    lane: Lane,
    item: T,
}

#[derive(Clone, Copy, Debug)]
enum Lane {
    /// Ends when the virtual clock reads `end`.
    Sharing { end: u128, entry: Key, by_cap: Option<Key> },
    /// Had `left` to move at `since`, and moves it at `cap`.
    Saturated { since: Nanos, left: u128, cap: u64, entry: Key, by_cap: Key },
}

#[derive(Clone, Debug)]
pub(super) struct Lanes<T> {
    pub(super) now: Nanos,
    pub(super) capacity: u64,
    /// The rate of each sharing flow.
    level: u64,
    /// The total rate of all saturated flows.
    saturated_rate: u64,
    /// The work of a flow that had always been sharing.
    virtual_work: u128,
    pub(super) delivered: u128,
    inserted: u64,
    flows: Slots<Flow<T>>,
    /// Slots of flows by the virtual work at which they end.
    sharing: Agenda<u128, u32>,
    /// Slots of capped sharing flows, the lowest cap first: the next to be saturated if the level rises.
    sharing_by_cap: Agenda<u64, u32>,
    /// Slots of flows by the time at which they end, which may lie beyond the end of the clock.
    saturated: Agenda<u128, u32>,
    /// Slots of saturated flows by !cap, the highest cap first: the next to share if the level falls.
    saturated_by_cap: Agenda<u64, u32>,
}

impl<T> Lanes<T> {
    pub(super) fn new(capacity: u64) -> Self {
        Self {
            now: Nanos::ZERO,
            capacity,
            level: 0,
            saturated_rate: 0,
            virtual_work: 0,
            delivered: 0,
            inserted: 0,
            flows: Slots::with_capacity(0),
            sharing: Agenda::new(),
            sharing_by_cap: Agenda::new(),
            saturated: Agenda::new(),
            saturated_by_cap: Agenda::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.sharing.len() + self.saturated.len()
    }

    pub(super) fn rate(&self, id: Key) -> Option<u64> {
        Some(match self.flows.get(id)?.lane {
            Lane::Sharing { .. } => self.level,
            Lane::Saturated { cap, .. } => cap,
        })
    }

    pub(super) fn remaining(&self, id: Key) -> Option<u128> {
        Some(self.left(self.flows.get(id)?.lane))
    }

    /// Advances the clock at the present rates, never beyond [`Self::next_end`].
    pub(super) fn pass(&mut self, now: Nanos) {
        let elapsed = u128::from((now - self.now).0);
        let rate = u128::from(self.level) * self.sharing.len() as u128 + u128::from(self.saturated_rate);
        self.virtual_work += u128::from(self.level) * elapsed;
        self.delivered += rate * elapsed;
        self.now = now;
    }

    /// Completes a flow that begins now, with no others, and ends before `before`. Returns its end; `None` if it
    /// would end later or never.
    pub(super) fn move_alone(&mut self, now: Nanos, work: u128, cap: Option<u64>, before: Nanos) -> Option<Nanos> {
        let rate = cap.map_or(self.capacity, |cap| cap.min(self.capacity));
        if work > 0 && rate == 0 {
            return None;
        }
        let end = u128::from(now.0) + if work == 0 { 0 } else { span(work, rate) };
        if end >= u128::from(before.0) {
            return None;
        }
        self.delivered += work;
        self.inserted += 1;
        self.now = Nanos(end as u64);
        Some(self.now)
    }

    /// Adds a sharing flow. [`Self::share`] is due after it.
    pub(super) fn insert(&mut self, work: u128, cap: Option<u64>, item: T) -> Key {
        let lane = self.begin_sharing(self.flows.next_slot(), work, cap);
        let order = self.inserted;
        self.inserted += 1;
        self.flows.insert(Flow { order, cap, lane, item })
    }

    /// Removes a flow that is not due. [`Self::share`] is due after it.
    pub(super) fn cancel(&mut self, id: Key) -> Option<(T, u128)> {
        let flow = self.flows.remove(id)?;
        let left = self.left(flow.lane);
        match flow.lane {
            Lane::Sharing { entry, by_cap, .. } => {
                self.sharing.cancel(entry);
                self.leave_sharing(by_cap);
            }
            Lane::Saturated { cap, entry, by_cap, .. } => {
                self.saturated.cancel(entry);
                self.leave_saturated(cap, by_cap);
            }
        }
        Some((flow.item, left))
    }

    /// [`Self::share`] is due after it.
    pub(super) fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
    }

    /// Moves flows that have nothing left to `due`. [`Self::share`] is due after it.
    pub(super) fn collect_due(&mut self, due: &mut Vec<(u64, T)>) {
        while self.sharing.first_rank().is_some_and(|end| end <= self.virtual_work)
            && let Some((end, slot)) = self.sharing.pop()
            && let Some(flow) = self.flows.release(slot)
        {
            // The share's capacity in the rest of the last nanosecond is unused.
            self.delivered -= self.virtual_work - end;
            if let Lane::Sharing { by_cap, .. } = flow.lane {
                self.leave_sharing(by_cap);
            }
            due.push((flow.order, flow.item));
        }
        while self.saturated.first_rank().is_some_and(|end| end <= u128::from(self.now.0))
            && let Some((_, slot)) = self.saturated.pop()
            && let Some(flow) = self.flows.release(slot)
        {
            if let Lane::Saturated { since, left, cap, by_cap, .. } = flow.lane {
                self.delivered -= u128::from(cap) * u128::from((self.now - since).0) - left;
                self.leave_saturated(cap, by_cap);
            }
            due.push((flow.order, flow.item));
        }
    }

    /// Computes the level for the present flows and capacity, and moves the flows whose caps it crosses.
    ///
    /// Moving a flow of cap c moves the level, (capacity − saturated rate) / sharing flows, towards c but not beyond
    /// it. Therefore flows that leave the saturated lane, highest cap first, never have to return, and those that enter
    /// it, lowest cap first, never have to leave again.
    pub(super) fn share(&mut self) {
        while let Some((rank, &slot)) = self.saturated_by_cap.first()
            && !self.level_reaches(!rank)
        {
            self.move_to_sharing(slot);
        }
        while let Some((cap, &slot)) = self.sharing_by_cap.first()
            && self.level_reaches(cap)
        {
            self.move_to_saturated(slot);
        }
        self.level = match self.sharing.len() as u64 {
            0 => 0,
            flows => (self.capacity - self.saturated_rate) / flows,
        };
    }

    /// When the first flow ends at the present rates.
    pub(super) fn next_end(&self) -> Option<Nanos> {
        let sharing = match self.sharing.first_rank() {
            Some(end) if self.level > 0 => {
                Some(u128::from(self.now.0) + span(end.saturating_sub(self.virtual_work), self.level))
            }
            _ => None,
        };
        let first = match (sharing, self.saturated.first_rank()) {
            (Some(sharing), Some(saturated)) => sharing.min(saturated),
            (sharing, saturated) => sharing.or(saturated)?,
        };
        u64::try_from(first).ok().map(Nanos)
    }

    /// Whether the level is at least `cap`: cap ≤ (capacity − saturated rate) / sharing flows, without the division.
    /// Without sharing flows the level is above every cap, unless the saturated flows exceed the capacity.
    fn level_reaches(&self, cap: u64) -> bool {
        self.capacity
            .checked_sub(self.saturated_rate)
            .is_some_and(|rest| u128::from(cap) * self.sharing.len() as u128 <= u128::from(rest))
    }

    fn move_to_sharing(&mut self, slot: u32) {
        let Some(&Flow { lane: Lane::Saturated { cap, entry, by_cap, .. }, .. }) = self.flows.at(slot) else {
            return;
        };
        let Some(left) = self.flows.at(slot).map(|flow| self.left(flow.lane)) else { return };
        self.saturated.cancel(entry);
        self.leave_saturated(cap, by_cap);
        let lane = self.begin_sharing(slot, left, Some(cap));
        if let Some(flow) = self.flows.at_mut(slot) {
            flow.lane = lane;
        }
    }

    fn move_to_saturated(&mut self, slot: u32) {
        let Some(&Flow { cap: Some(cap), lane: Lane::Sharing { end, entry, by_cap }, .. }) = self.flows.at(slot) else {
            return;
        };
        self.sharing.cancel(entry);
        self.leave_sharing(by_cap);
        self.saturated_rate += cap;
        let left = end - self.virtual_work;
        let entry = self.saturated.insert(u128::from(self.now.0) + span(left, cap), slot);
        let by_cap = self.saturated_by_cap.insert(!cap, slot);
        if let Some(flow) = self.flows.at_mut(slot) {
            flow.lane = Lane::Saturated { since: self.now, left, cap, entry, by_cap };
        }
    }

    fn begin_sharing(&mut self, slot: u32, work: u128, cap: Option<u64>) -> Lane {
        let end = self.virtual_work + work;
        let by_cap = cap.map(|cap| self.sharing_by_cap.insert(cap, slot));
        Lane::Sharing { end, entry: self.sharing.insert(end, slot), by_cap }
    }

    fn leave_sharing(&mut self, by_cap: Option<Key>) {
        if let Some(key) = by_cap {
            self.sharing_by_cap.cancel(key);
        }
    }

    fn leave_saturated(&mut self, cap: u64, by_cap: Key) {
        self.saturated_by_cap.cancel(by_cap);
        self.saturated_rate -= cap;
    }

    fn left(&self, lane: Lane) -> u128 {
        match lane {
            Lane::Sharing { end, .. } => end - self.virtual_work,
            Lane::Saturated { since, left, cap, .. } => left - u128::from(cap) * u128::from((self.now - since).0),
        }
    }
}
