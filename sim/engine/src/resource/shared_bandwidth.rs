//! A capacity shared max-min fairly among flows, in fluid approximation.

mod lanes;

use haversack_devices::{Bytes, BytesPerSecond, Nanos};
use lanes::Lanes;

use super::{
    Cancelled, Completion, FlowId, ResourceError, bytes_begun, cap_units, capacity_units, check, rate_of, whole_bytes,
    work_units,
};

/// Flows of bytes that share a capacity max-min fairly, each at no more than its own cap.
///
/// Every flow gets its cap or the *level*, whichever is less, where the level is as high as the capacity allows
/// (Bertsekas and Gallager, *Data Networks*, 2nd edition, section 6.5.2, for one link). Flows whose caps are at or
/// below the level are *saturated*: they run at their caps. The others are *sharing*: they run at the level.
///
/// # Rounding
///
/// Rates are whole multiples of 2⁻⁴⁰ bytes a nanosecond (0.0009 B/s): capacities and caps are rounded to the nearest,
/// the level down, so that the flows together never exceed the capacity. A flow completes at the first whole nanosecond
/// by which its bytes have been moved (its exact end, rounded up); its share of the rest of that nanosecond is unused.
/// Within these rules everything is exact: no byte is lost or moved twice, and completions do not depend on how often
/// the clock is advanced. Completions at the same nanosecond come in the order of insertion.
///
/// # Cost
///
/// Sharing flows count their work on a common virtual clock: the bytes that a flow would have moved if it had always
/// been sharing. They wait in a heap by the reading at which they end, so a change of level updates none of them
/// (compare Parekh and Gallager 1993 on generalised processor sharing). Saturated flows wait in a heap by time.
/// Inserting, cancelling and completing take O((1 + m) log n), where m is the number of flows whose caps the level
/// crosses on that occasion. Flows without a cap, and flows whose cap stays on one side, never move, so that m is zero
/// for them. While the level only falls (arrivals) or only rises (departures) each flow moves at most once; only a
/// level that repeatedly swings across many caps moves them repeatedly, at O(n log n) per swing at worst, which is the
/// cost of recomputing every rate each time.
///
/// ```
/// use haversack_devices::units::{Bytes, BytesPerSecond, Nanos};
/// use haversack_engine::SharedBandwidth;
///
/// let mut dram = SharedBandwidth::new(BytesPerSecond(9e9))?;
/// let cpu = dram.insert(Nanos(0), Bytes(400), Some(BytesPerSecond(2e9)), "cpu")?;
/// let gpu = dram.insert(Nanos(0), Bytes(2_000), None, "gpu")?;
/// // The cpu stays at its cap, the gpu has the rest.
/// assert_eq!(dram.rate(cpu), Some(BytesPerSecond(2e9)));
/// assert_eq!(dram.rate(gpu), Some(BytesPerSecond(7e9)));
/// // 400 B / 2 B/ns = 200 ns; by then the gpu has moved 1,400 of 2,000 B, and 600 / 9 = 66.7 ns follow.
/// assert_eq!(dram.advance(Nanos(300))?.map(|done| done.time), Some(Nanos(200)));
/// assert_eq!(dram.next_completion(), Some(Nanos(267)));
/// # Ok::<(), haversack_engine::ResourceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SharedBandwidth<T> {
    lanes: Lanes<T>,
    /// Flows due now and not yet collected, with their order of insertion; the first is at the back.
    completed: Vec<(u64, T)>,
    /// The end of the first flow, without due ones; cached, because advancing the clock does not change it.
    next: Option<Nanos>,
    /// Whether flows or the capacity changed since the rates and `next` were computed.
    changed: bool,
}

impl<T> SharedBandwidth<T> {
    /// An idle resource with the clock at zero. A capacity of zero moves nothing.
    ///
    /// # Errors
    ///
    /// [`ResourceError::Capacity`].
    pub fn new(capacity: BytesPerSecond) -> Result<Self, ResourceError> {
        let units = capacity_units(capacity).ok_or(ResourceError::Capacity(capacity))?;
        Ok(Self { lanes: Lanes::new(units), completed: Vec::new(), next: None, changed: false })
    }

    /// The clock: the time of the last successful call.
    pub fn now(&self) -> Nanos {
        self.lanes.now
    }

    /// The number of flows that have bytes left to move.
    pub fn in_flight(&self) -> usize {
        self.lanes.len()
    }

    /// The capacity, as rounded.
    pub fn capacity(&self) -> BytesPerSecond {
        rate_of(self.lanes.capacity)
    }

    /// The bytes moved so far for all flows together, rounded down.
    pub fn delivered(&self) -> Bytes {
        whole_bytes(self.lanes.delivered)
    }

    /// The present rate of a flow; `None` once it has completed or was cancelled.
    pub fn rate(&mut self, id: FlowId) -> Option<BytesPerSecond> {
        self.share();
        self.lanes.rate(id.0).map(rate_of)
    }

    /// The remaining bytes of a flow, including a partly moved one.
    pub fn remaining(&self, id: FlowId) -> Option<Bytes> {
        self.lanes.remaining(id.0).map(bytes_begun)
    }

    /// When the next flow ends if nothing changes, including due flows. `None` if nothing moves, or if the end
    /// is beyond [`Nanos::MAX`].
    #[inline]
    pub fn next_completion(&mut self) -> Option<Nanos> {
        if !self.completed.is_empty() {
            return Some(self.now());
        }
        self.share();
        self.next
    }

    /// Adds a flow of `volume` at no more than `cap`. An empty flow is due immediately.
    ///
    /// # Errors
    ///
    /// [`ResourceError::Cap`], [`ResourceError::Past`] and [`ResourceError::Uncollected`].
    pub fn insert(
        &mut self,
        now: Nanos,
        volume: Bytes,
        cap: Option<BytesPerSecond>,
        item: T,
    ) -> Result<FlowId, ResourceError> {
        let cap = cap.map(|cap| cap_units(cap).ok_or(ResourceError::Cap(cap))).transpose()?;
        self.enter(now)?;
        let id = self.lanes.insert(work_units(volume), cap, item);
        self.changed = true;
        if volume == Bytes::ZERO {
            self.collect_due();
        }
        Ok(FlowId(id))
    }

    /// Adds a flow as [`Self::insert`] does and completes it, if no other is in flight or due and it ends before
    /// `before`. The result is the same as advancing until then, without the cost of the heaps. Returns the flow's end;
    /// `None` if nothing was done.
    ///
    /// # Errors
    ///
    /// [`ResourceError::Cap`] and [`ResourceError::Past`].
    #[inline]
    pub fn move_alone(
        &mut self,
        now: Nanos,
        volume: Bytes,
        cap: Option<BytesPerSecond>,
        before: Nanos,
    ) -> Result<Option<Nanos>, ResourceError> {
        let cap = cap.map(|cap| cap_units(cap).ok_or(ResourceError::Cap(cap))).transpose()?;
        check(now, self.now(), None)?;
        if self.in_flight() > 0 || !self.completed.is_empty() {
            return Ok(None);
        }
        Ok(self.lanes.move_alone(now, work_units(volume), cap, before))
    }

    /// Moves the clock to the next completion or to `now`, whichever is first, and returns the completion. Call
    /// it until it returns `None`.
    ///
    /// # Errors
    ///
    /// [`ResourceError::Past`].
    pub fn advance(&mut self, now: Nanos) -> Result<Option<Completion<T>>, ResourceError> {
        check(now, self.now(), None)?;
        if self.completed.is_empty() {
            self.share();
            let due = self.next.filter(|&due| due <= now);
            self.lanes.pass(due.unwrap_or(now));
            if due.is_none() {
                return Ok(None);
            }
            self.collect_due();
        }
        Ok(self.completed.pop().map(|(_, item)| Completion { time: self.now(), item }))
    }

    /// Cancels a flow. Returns `None` if it has completed, is due now, or was cancelled.
    ///
    /// # Errors
    ///
    /// [`ResourceError::Past`] and [`ResourceError::Uncollected`].
    pub fn cancel(&mut self, now: Nanos, id: FlowId) -> Result<Option<Cancelled<T, Bytes>>, ResourceError> {
        self.enter(now)?;
        let cancelled = self.lanes.cancel(id.0);
        self.changed |= cancelled.is_some();
        Ok(cancelled.map(|(item, work)| Cancelled { item, remaining: bytes_begun(work) }))
    }

    /// Changes the capacity from `now` on.
    ///
    /// # Errors
    ///
    /// [`ResourceError::Capacity`], [`ResourceError::Past`] and [`ResourceError::Uncollected`].
    pub fn set_capacity(&mut self, now: Nanos, capacity: BytesPerSecond) -> Result<(), ResourceError> {
        let units = capacity_units(capacity).ok_or(ResourceError::Capacity(capacity))?;
        self.enter(now)?;
        self.lanes.set_capacity(units);
        self.changed = true;
        Ok(())
    }

    /// Advances the clock to the time of a change, after which due flows have completed.
    fn enter(&mut self, now: Nanos) -> Result<(), ResourceError> {
        if now == self.now() {
            // Due flows have been collected, and no time passes.
            return Ok(());
        }
        let due = self.next_completion();
        check(now, self.now(), due)?;
        self.lanes.pass(now);
        self.collect_due();
        Ok(())
    }

    /// Completes due flows; the first to be returned is at the end of the list.
    fn collect_due(&mut self) {
        let before = self.completed.len();
        self.lanes.collect_due(&mut self.completed);
        if self.completed.len() > before {
            self.changed = true;
            self.completed.sort_unstable_by_key(|&(order, _)| std::cmp::Reverse(order));
        }
    }

    /// Recomputes the rates if anything changed. All changes at one moment are handled once, when the next completion
    /// is needed: a flow that ends often makes room for another.
    #[inline]
    fn share(&mut self) {
        if std::mem::take(&mut self.changed) {
            self.lanes.share();
            self.next = self.lanes.next_end();
        }
    }
}
