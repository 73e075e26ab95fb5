//! Order, cancellation, memory and the run driver of the event queue.

use std::convert::Infallible;

use haversack_devices::units::Nanos;
use haversack_engine::{EventHandle, EventQueue, ScheduleError};
use proptest::prelude::*;

#[test]
fn events_come_by_time_and_then_in_the_order_of_scheduling() {
    let mut queue = EventQueue::new();
    for (delay, name) in [(7, 'd'), (3, 'a'), (7, 'e'), (3, 'b'), (5, 'c')] {
        queue.schedule_in(Nanos(delay), name);
    }
    let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, name)| name).collect();
    assert_eq!(order, "abcde");
    assert_eq!(queue.now(), Nanos(7));
}

#[test]
fn the_past_is_refused_and_the_present_allowed() {
    let mut queue = EventQueue::new();
    queue.schedule_in(Nanos(10), 0);
    queue.pop();
    let refused = queue.schedule_at(Nanos(9), 1);
    assert_eq!(refused, Err(ScheduleError::Past { time: Nanos(9), now: Nanos(10) }));
    assert_eq!(queue.len(), 0);
    assert!(queue.schedule_at(Nanos(10), 2).is_ok());
    assert_eq!(queue.pop(), Some((Nanos(10), 2)));
}

#[test]
fn a_delay_beyond_the_end_of_time_means_the_end_of_time() {
    let mut queue = EventQueue::new();
    queue.schedule_in(Nanos(1), 'a');
    queue.pop();
    queue.schedule_in(Nanos::MAX, 'b');
    assert_eq!(queue.pop(), Some((Nanos::MAX, 'b')));
}

#[test]
fn a_fired_or_cancelled_event_cannot_be_cancelled() {
    let mut queue = EventQueue::new();
    let fired = queue.schedule_in(Nanos(1), 'a');
    queue.pop();
    // 'b' takes the slot of 'a'; the stale handle must not touch it.
    let second = queue.schedule_in(Nanos(1), 'b');
    assert_eq!(queue.cancel(fired), None);
    assert_eq!(queue.get(second), Some(&'b'));
    assert_eq!(queue.cancel(second), Some('b'));
    assert_eq!(queue.cancel(second), None);
    assert_eq!((queue.len(), queue.next_time(), queue.pop()), (0, None, None));
}

#[test]
fn a_cancelled_event_is_dropped_at_once() {
    let payload = std::rc::Rc::new(());
    let mut queue = EventQueue::new();
    queue.schedule_in(Nanos(1), payload.clone());
    let later = queue.schedule_in(Nanos(2), payload.clone());
    drop(queue.cancel(later));
    // The test's own reference and the pending event's; the leftover node has none.
    assert_eq!(std::rc::Rc::strong_count(&payload), 2);
}

#[test]
fn the_next_time_is_never_that_of_a_cancelled_event() {
    let mut queue = EventQueue::new();
    let handles: Vec<_> = (1..=10).map(|delay| queue.schedule_in(Nanos(delay), delay)).collect();
    // 2 first, so that a cancelled event is behind the front when 1 is removed.
    queue.cancel(handles[1]);
    queue.cancel(handles[0]);
    assert_eq!(queue.next_time(), Some(Nanos(3)));
    queue.cancel(handles[3]);
    queue.pop();
    assert_eq!(queue.next_time(), Some(Nanos(5)));
}

#[test]
fn a_pending_event_takes_at_most_32_bytes() {
    // Node: time 8 + sequence 4 + slot 4 = 16. Slot: tag and padding 4 + generation 4 + event 8 = 16.
    assert_eq!(EventQueue::<u64>::BYTES_PER_EVENT, 32);
    assert_eq!(EventQueue::<(u32, u32)>::BYTES_PER_EVENT, 32);
    // A smaller event makes a smaller slot: 4 + 4 + 4 = 12.
    assert_eq!(EventQueue::<u32>::BYTES_PER_EVENT, 28);
    // Nothing but nodes and slots is allocated: 2¹⁴ events fill two vectors of that capacity.
    let mut queue = EventQueue::with_capacity(1 << 14);
    let room = queue.footprint();
    assert_eq!(room.0, 32 << 14);
    for event in 0..1u64 << 14 {
        queue.schedule_in(Nanos(event), event);
    }
    assert_eq!(queue.footprint(), room);
}

#[test]
fn a_million_pending_events_take_at_most_49_bytes_each() {
    let mut queue = EventQueue::with_capacity(1 << 20);
    for event in 0..1u64 << 20 {
        queue.schedule_in(Nanos(event * 7_919 % 1_000_003), event);
    }
    // 2²⁰ slots of 16 bytes; nodes of 16 bytes in vectors that grow by doubling, so that at most as much again is
    // unused; and less than a byte an event for the vectors themselves: 11 levels × 64 × 24 B = 17 kB, and 2¹⁴ near
    // nodes of 16 bytes, 0.26 MB.
    assert!(queue.footprint().0 <= 49 << 20, "{}", queue.footprint());
    let mut last = Nanos::ZERO;
    for _ in 0..1 << 20 {
        let (time, event) = queue.pop().unwrap();
        assert!(time >= last && event * 7_919 % 1_000_003 == time.0);
        last = time;
    }
    assert_eq!(queue.pop(), None);
}

#[test]
fn five_million_cancelled_events_leave_the_memory_flat() {
    let mut queue = EventQueue::new();
    for event in 0..100u64 {
        queue.schedule_in(Nanos(1_000 + event), event);
    }
    // At most twice 101 live nodes and 32 more: 234 < 256 nodes of 16 bytes; and at most as many
    // slots, each in use or waiting for its node: 256 of 16 bytes. 256 × 32 = 8192.
    let mut fired = None;
    for round in 0..5_000_000u64 {
        // After, among and before the pending events.
        let handle = queue.schedule_in(Nanos(round % 3_000), round);
        assert!(queue.cancel(handle).is_some());
        if let Some(stale) = fired {
            assert!(queue.cancel(stale).is_none());
        }
        if round % 1_000 == 0 {
            fired = Some(queue.schedule_in(Nanos::ZERO, round));
            queue.pop();
        }
    }
    assert_eq!(queue.len(), 100);
    assert!(queue.footprint().0 <= 8192, "{}", queue.footprint());
}

#[test]
fn cancelling_in_batches_leaves_the_memory_flat() {
    let mut queue = EventQueue::new();
    let mut batch = Vec::new();
    let mut after_first = None;
    for round in 0..1_000 {
        batch.extend((0..1_000).map(|i| queue.schedule_in(Nanos(i * 7_919 % 1_000), i)));
        for handle in batch.drain(..) {
            queue.cancel(handle);
        }
        // 1,000 pending events need 1,024 nodes and slots, in the first round and in the last.
        let footprint = queue.footprint();
        assert_eq!(*after_first.get_or_insert(footprint), footprint, "round {round}");
    }
    assert_eq!(after_first.unwrap().0, 1024 * 32);
}

#[test]
fn a_run_ends_with_the_last_event() {
    let mut queue = EventQueue::new();
    queue.schedule_in(Nanos(3), 4);
    let mut seen = Vec::new();
    let done: Result<(), Infallible> = queue.run(|queue, now, left| {
        seen.push((now.0, left));
        if left > 0 {
            queue.schedule_in(Nanos(10), left - 1);
        }
        Ok(())
    });
    assert_eq!(done, Ok(()));
    assert_eq!(seen, [(3, 4), (13, 3), (23, 2), (33, 1), (43, 0)]);
}

#[test]
fn a_run_stops_at_the_first_error_and_can_be_continued() {
    let mut queue = EventQueue::new();
    for delay in 1..=3 {
        queue.schedule_in(Nanos(delay), delay);
    }
    let failing = queue.run(|_, _, event| if event == 2 { Err("two") } else { Ok(()) });
    assert_eq!((failing, queue.now(), queue.len()), (Err("two"), Nanos(2), 1));
    assert_eq!(queue.run(|_, _, _| Ok::<(), &str>(())), Ok(()));
    assert_eq!(queue.now(), Nanos(3));
}

/// The slow twin: a list, searched from end to end.
#[derive(Default)]
struct Twin {
    now: u64,
    scheduled: usize,
    /// Time, number and event.
    pending: Vec<(u64, usize, u32)>,
}

impl Twin {
    fn schedule(&mut self, time: u64, event: u32) -> usize {
        self.pending.push((time, self.scheduled, event));
        self.scheduled += 1;
        self.scheduled - 1
    }

    fn cancel(&mut self, number: usize) -> Option<u32> {
        let index = self.pending.iter().position(|entry| entry.1 == number)?;
        Some(self.pending.remove(index).2)
    }

    fn pop(&mut self) -> Option<(u64, u32)> {
        let first = *self.pending.iter().min()?;
        self.pending.retain(|entry| *entry != first);
        self.now = first.0;
        Some((first.0, first.2))
    }
}

#[derive(Clone, Debug)]
enum Step {
    ScheduleIn(u64),
    /// An absolute time, often in the past.
    ScheduleAt(u64),
    /// Any handle returned so far, live or stale.
    Cancel(prop::sample::Index),
    Pop,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..20u64).prop_map(Step::ScheduleIn),
        1 => (0..60u64).prop_map(Step::ScheduleAt),
        3 => any::<prop::sample::Index>().prop_map(Step::Cancel),
        2 => Just(Step::Pop),
    ]
}

proptest! {
    #![proptest_config(crate::scripts(300))]

    #[test]
    fn the_queue_and_its_twin_agree(steps in prop::collection::vec(step(), 1..400)) {
        let mut queue = EventQueue::new();
        let mut twin = Twin::default();
        let mut handles: Vec<(EventHandle, usize)> = Vec::new();
        for (event, step) in (0u32..).zip(steps) {
            match step {
                Step::ScheduleIn(delay) => {
                    handles.push((queue.schedule_in(Nanos(delay), event), twin.schedule(twin.now + delay, event)));
                }
                Step::ScheduleAt(time) => {
                    let scheduled = queue.schedule_at(Nanos(time), event);
                    prop_assert_eq!(scheduled.is_ok(), time >= twin.now);
                    if let Ok(handle) = scheduled {
                        handles.push((handle, twin.schedule(time, event)));
                    }
                }
                Step::Cancel(index) if !handles.is_empty() => {
                    let (handle, number) = handles[index.index(handles.len())];
                    prop_assert_eq!(queue.cancel(handle), twin.cancel(number));
                }
                Step::Cancel(_) => {}
                Step::Pop => {
                    prop_assert_eq!(queue.pop().map(|(time, event)| (time.0, event)), twin.pop());
                    prop_assert_eq!(queue.now(), Nanos(twin.now));
                }
            }
            prop_assert_eq!(queue.len(), twin.pending.len());
            prop_assert_eq!(queue.next_time().map(|time| time.0), twin.pending.iter().min().map(|entry| entry.0));
        }
    }
}

#[test]
fn the_clock_passes_what_is_free_of_events() {
    let mut queue = EventQueue::new();
    assert!(queue.pass_to(Nanos(7)) && !queue.pass_to(Nanos(6)));
    let event = queue.schedule_in(Nanos(3), 'a');
    // The event is at 10: up to 9 the clock may advance.
    assert!(queue.pass_to(Nanos(9)) && !queue.pass_to(Nanos(10)) && queue.now() == Nanos(9));
    queue.cancel(event);
    assert!(queue.pass_to(Nanos(10)));
    assert_eq!(queue.schedule_at(Nanos(9), 'b').map_err(|_| ()), Err(()));
}
