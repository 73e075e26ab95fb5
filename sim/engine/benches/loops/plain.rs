//! The baseline: a minimal loop around `std::collections::BinaryHeap`, without handles.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::draw::Draw;

struct Pending<E> {
    time: u64,
    sequence: u64,
    event: E,
}

impl<E> Ord for Pending<E> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.sequence).cmp(&(self.time, self.sequence))
    }
}

impl<E> PartialOrd for Pending<E> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Pending<E> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Pending<E> {}

struct Loop<E> {
    heap: BinaryHeap<Pending<E>>,
    now: u64,
    sequence: u64,
}

impl<E> Loop<E> {
    fn new() -> Self {
        Self { heap: BinaryHeap::new(), now: 0, sequence: 0 }
    }

    #[inline]
    fn schedule_in(&mut self, delay: u64, event: E) {
        self.heap.push(Pending { time: self.now + delay, sequence: self.sequence, event });
        self.sequence += 1;
    }

    #[inline]
    fn pop(&mut self) -> Option<(u64, E)> {
        let pending = self.heap.pop()?;
        self.now = pending.time;
        Some((pending.time, pending.event))
    }
}

enum Customer {
    Arrival,
    Departure,
}

/// M/M/1 at 80 % load; returns the integral of the queue length over time.
pub(crate) fn mm1(events: u64) -> u64 {
    let mut draw = Draw(1);
    let mut queue = Loop::new();
    let (mut length, mut area, mut last) = (0u64, 0u64, 0u64);
    queue.schedule_in(draw.exponential(1000.0), Customer::Arrival);
    for _ in 0..events {
        let Some((now, event)) = queue.pop() else { break };
        area += length * (now - last);
        last = now;
        match event {
            Customer::Arrival => {
                length += 1;
                queue.schedule_in(draw.exponential(1000.0), Customer::Arrival);
                if length == 1 {
                    queue.schedule_in(draw.exponential(800.0), Customer::Departure);
                }
            }
            Customer::Departure => {
                length -= 1;
                if length > 0 {
                    queue.schedule_in(draw.exponential(800.0), Customer::Departure);
                }
            }
        }
    }
    area
}

/// The hold model: `count` entities, each with one random delay after another, at a mean of one event per nanosecond;
/// returns a digest of the order.
pub(crate) fn entities(count: u32, events: u64) -> u64 {
    let (mut draw, mean) = (Draw(2), f64::from(count));
    let mut queue = Loop::new();
    for entity in 0..count {
        queue.schedule_in(draw.exponential(mean), entity);
    }
    let mut digest = 0u64;
    for _ in 0..events {
        let Some((now, entity)) = queue.pop() else { break };
        digest = digest.rotate_left(5) ^ now ^ u64::from(entity);
        queue.schedule_in(draw.exponential(mean), entity);
    }
    digest
}
