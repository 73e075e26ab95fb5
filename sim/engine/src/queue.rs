//! The event queue: a clock of integer nanoseconds and the pending events.

use haversack_devices::{Bytes, Nanos, ensure};
use thiserror::Error;

use crate::agenda::Agenda;
use crate::slots::Key;

/// Identifies a scheduled event of an [`EventQueue`].
///
/// A handle becomes stale with its event: using it after the event fired or was cancelled does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventHandle(Key);

/// Why an event cannot be scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The time has passed. The queue is unchanged.
    #[error("an event at {time} cannot be scheduled: the clock is at {now}")]
    Past {
        /// The requested time.
        time: Nanos,
        /// The clock of the queue.
        now: Nanos,
    },
}

/// Pending events of one type `E`, in the order (time, order of scheduling).
///
/// # Memory
///
/// A pending event takes [`Self::BYTES_PER_EVENT`]: a node of 16 bytes (time 8, sequence number 4, slot 4) and a slot
/// (tag and padding 4, generation 4, event 8 for an `E` of 8 bytes aligned to 8): 16 + 16 = 32 bytes. Both are in
/// vectors that grow by doubling, so up to the same amount again may be allocated and unused; [`Self::footprint`]
/// includes that. A cancelled event is dropped immediately; its node stays until cancelled nodes outnumber live ones,
/// when one sweep removes them all.
///
/// # Cost
///
/// Up to 16,384 events wait in a binary heap: scheduling is O(log n) at worst and O(1) on average for random times,
/// popping O(log n). With more, only the next events do; the others are unsorted in buckets by time (a ladder queue),
/// where each moves a few times before it is near. Cancelling is O(1) amortised. Sequence numbers have 32 bits; when
/// they run out, once in 2³² events, the pending events are renumbered in order.
///
/// # Panics
///
/// With 2³² − 1 events pending (128 GiB), as a `Vec` does when its capacity overflows.
///
/// ```
/// use haversack_devices::units::Nanos;
/// use haversack_engine::EventQueue;
///
/// let mut queue = EventQueue::new();
/// queue.schedule_in(Nanos(20), "end");
/// let timeout = queue.schedule_in(Nanos(10), "timeout");
/// queue.schedule_at(Nanos(5), "start")?;
/// assert_eq!(queue.pop(), Some((Nanos(5), "start")));
/// assert_eq!(queue.cancel(timeout), Some("timeout"));
/// assert_eq!(queue.cancel(timeout), None);
/// assert_eq!(queue.pop(), Some((Nanos(20), "end")));
/// # Ok::<(), haversack_engine::ScheduleError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct EventQueue<E> {
    agenda: Agenda<u64, E>,
    now: Nanos,
}

impl<E> EventQueue<E> {
    /// Memory per pending event, heap node and slot together.
    pub const BYTES_PER_EVENT: usize = Agenda::<u64, E>::BYTES_PER_ENTRY;

    /// An empty queue with the clock at zero.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// An empty queue with room for `capacity` pending events.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { agenda: Agenda::with_capacity(capacity), now: Nanos::ZERO }
    }

    /// The clock: the time of the last popped event.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The number of pending events.
    pub fn len(&self) -> usize {
        self.agenda.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.agenda.is_empty()
    }

    /// The time of the next event.
    #[inline]
    pub fn next_time(&self) -> Option<Nanos> {
        self.agenda.first_rank().map(Nanos)
    }

    /// The bytes allocated for events, used or not.
    pub fn footprint(&self) -> Bytes {
        Bytes(self.agenda.footprint() as u64)
    }

    /// Schedules `event` at `time`, after all events already scheduled for that time.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Past`] if `time` lies before the clock; the present is allowed.
    #[inline]
    pub fn schedule_at(&mut self, time: Nanos, event: E) -> Result<EventHandle, ScheduleError> {
        ensure!(time >= self.now, ScheduleError::Past { time, now: self.now });
        Ok(EventHandle(self.agenda.insert(time.0, event)))
    }

    /// Schedules `event` after `delay`; a sum beyond [`Nanos::MAX`] (584 years) becomes the end of time.
    #[inline]
    pub fn schedule_in(&mut self, delay: Nanos, event: E) -> EventHandle {
        EventHandle(self.agenda.insert(self.now.0.saturating_add(delay.0), event))
    }

    /// Cancels the event and returns it. Returns `None` if it has fired or was cancelled, which is not an error.
    pub fn cancel(&mut self, handle: EventHandle) -> Option<E> {
        self.agenda.cancel(handle.0)
    }

    /// The event, if it is still pending.
    pub fn get(&self, handle: EventHandle) -> Option<&E> {
        self.agenda.get(handle.0)
    }

    /// Takes the next event and moves the clock to its time.
    #[inline]
    pub fn pop(&mut self) -> Option<(Nanos, E)> {
        let (time, event) = self.agenda.pop()?;
        self.now = Nanos(time);
        Some((self.now, event))
    }

    /// Advances the clock to `time` if no event is scheduled before or at it; returns whether it did.
    #[inline]
    pub fn pass_to(&mut self, time: Nanos) -> bool {
        let free = time >= self.now && self.next_time().is_none_or(|next| next > time);
        if free {
            self.now = time;
        }
        free
    }

    /// Passes every event to `handler`, which may schedule and cancel, until none is left.
    ///
    /// # Errors
    ///
    /// The first error of `handler`. The run stops there and may be resumed.
    pub fn run<X>(&mut self, mut handler: impl FnMut(&mut Self, Nanos, E) -> Result<(), X>) -> Result<(), X> {
        while let Some((time, event)) = self.pop() {
            handler(self, time, event)?;
        }
        Ok(())
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}
