//! The same workloads on this crate's event queue.

use haversack_devices::units::Nanos;
use haversack_engine::EventQueue;

use crate::draw::Draw;

enum Customer {
    Arrival,
    Departure,
}

/// M/M/1 at 80 % load; returns the integral of the queue length over time.
pub(crate) fn mm1(events: u64) -> u64 {
    let mut draw = Draw(1);
    let mut queue = EventQueue::new();
    let (mut length, mut area, mut last) = (0u64, 0u64, 0u64);
    queue.schedule_in(Nanos(draw.exponential(1000.0)), Customer::Arrival);
    for _ in 0..events {
        let Some((Nanos(now), event)) = queue.pop() else { break };
        area += length * (now - last);
        last = now;
        match event {
            Customer::Arrival => {
                length += 1;
                queue.schedule_in(Nanos(draw.exponential(1000.0)), Customer::Arrival);
                if length == 1 {
                    queue.schedule_in(Nanos(draw.exponential(800.0)), Customer::Departure);
                }
            }
            Customer::Departure => {
                length -= 1;
                if length > 0 {
                    queue.schedule_in(Nanos(draw.exponential(800.0)), Customer::Departure);
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
    let mut queue = EventQueue::new();
    for entity in 0..count {
        queue.schedule_in(Nanos(draw.exponential(mean)), entity);
    }
    let mut digest = 0u64;
    for _ in 0..events {
        let Some((Nanos(now), entity)) = queue.pop() else { break };
        digest = digest.rotate_left(5) ^ now ^ u64::from(entity);
        queue.schedule_in(Nanos(draw.exponential(mean)), entity);
    }
    digest
}

/// Schedules and cancels one event after another, with `pending` others in the queue; returns the bytes
/// allocated before and after.
pub(crate) fn cancels(pending: u64, count: u64) -> (u64, u64) {
    let mut draw = Draw(4);
    let mut queue = EventQueue::new();
    for event in 0..pending {
        queue.schedule_in(Nanos(draw.exponential(1000.0)), event);
    }
    let mut warm = 0;
    for event in 0..count {
        let handle = queue.schedule_in(Nanos(draw.exponential(1000.0)), event);
        queue.cancel(handle);
        if event == count / 100 {
            warm = queue.footprint().0;
        }
    }
    (warm, queue.footprint().0)
}
