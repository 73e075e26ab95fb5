//! Shared bandwidth by hand: small cases with their arithmetic, and the rejected calls.

use haversack_devices::units::{Bytes, BytesPerSecond, Nanos};
use haversack_engine::{Cancelled, FlowId, ResourceError, SharedBandwidth};

/// A byte a nanosecond.
const GB: f64 = 1e9;

fn shared(gigabytes_per_second: f64) -> SharedBandwidth<char> {
    SharedBandwidth::new(BytesPerSecond(gigabytes_per_second * GB)).unwrap()
}

fn insert(link: &mut SharedBandwidth<char>, now: u64, volume: u64, cap: Option<f64>, item: char) -> FlowId {
    link.insert(Nanos(now), Bytes(volume), cap.map(|cap| BytesPerSecond(cap * GB)), item).unwrap()
}

fn collect(link: &mut SharedBandwidth<char>, until: u64) -> Vec<(u64, char)> {
    std::iter::from_fn(|| link.advance(Nanos(until)).unwrap()).map(|done| (done.time.0, done.item)).collect()
}

#[test]
fn a_flow_alone_has_the_whole_capacity_and_ends_on_the_next_nanosecond() {
    let mut link = shared(3.0);
    insert(&mut link, 10, 100, None, 'a');
    // 100 / 3 = 33.3 ns, rounded up.
    assert_eq!(link.next_completion(), Some(Nanos(44)));
    assert_eq!(collect(&mut link, 43), []);
    assert_eq!(collect(&mut link, 44), [(44, 'a')]);
    assert_eq!((link.next_completion(), link.in_flight(), link.delivered()), (None, 0, Bytes(100)));
}

#[test]
fn equal_flows_share_evenly() {
    let mut link = shared(4.0);
    insert(&mut link, 0, 400, None, 'a');
    insert(&mut link, 50, 100, None, 'b');
    // a moves 200 B alone by 50. Then both run at 2: b ends at 50 + 100 / 2 = 100, where a has 100 B
    // left, which take 100 / 4 = 25 ns.
    assert_eq!(collect(&mut link, 1_000), [(100, 'b'), (125, 'a')]);
}

#[test]
fn what_a_cap_leaves_goes_to_the_others() {
    let mut link = shared(10.0);
    let flows = [Some(1.0), Some(4.0), None, None].map(|cap| insert(&mut link, 0, 1_000_000, cap, 'x'));
    // 10 / 4 = 2.5 is above the cap of 1; the other three get (10 - 1) / 3 = 3, below the cap of 4.
    assert_eq!(flows.map(|flow| link.rate(flow).unwrap().0 / GB), [1.0, 3.0, 3.0, 3.0]);
    // Without one of the uncapped: (10 - 1) / 2 = 4.5 is above 4, and 10 - 1 - 4 = 5 remain for the last.
    link.cancel(Nanos(0), flows[3]).unwrap();
    assert_eq!([0, 1, 2].map(|i| link.rate(flows[i]).unwrap().0 / GB), [1.0, 4.0, 5.0]);
    // With half the capacity the level is 5 / 3 = 1.67 at first, then (5 - 1) / 2 = 2.
    link.set_capacity(Nanos(0), BytesPerSecond(5.0 * GB)).unwrap();
    assert_eq!([0, 1, 2].map(|i| link.rate(flows[i]).unwrap().0 / GB), [1.0, 2.0, 2.0]);
}

#[test]
fn capped_flows_may_leave_capacity_unused() {
    let mut link = shared(10.0);
    insert(&mut link, 0, 100, Some(2.0), 'a');
    insert(&mut link, 0, 100, Some(4.0), 'b');
    // 100 / 4 = 25 and 100 / 2 = 50, as if each were alone.
    assert_eq!(collect(&mut link, 50), [(25, 'b'), (50, 'a')]);
    // 200 B in 50 ns, of the 500 that the link could have moved.
    assert_eq!(link.delivered(), Bytes(200));
}

#[test]
fn a_flow_keeps_its_work_when_the_level_crosses_its_cap() {
    let mut link = shared(6.0);
    let capped = insert(&mut link, 0, 100, Some(4.0), 'a');
    // Alone: 4 B/ns, 40 B by 10. With another: 3 B/ns, 30 B by 20. Alone again: 30 B left, 7.5 ns.
    let other = insert(&mut link, 10, 1_000, None, 'b');
    assert_eq!(link.remaining(capped), Some(Bytes(60)));
    assert_eq!(link.next_completion(), Some(Nanos(30)));
    let cancelled = link.cancel(Nanos(20), other).unwrap();
    assert_eq!(cancelled, Some(Cancelled { item: 'b', remaining: Bytes(970) }));
    assert_eq!(link.remaining(capped), Some(Bytes(30)));
    assert_eq!(collect(&mut link, 1_000), [(28, 'a')]);
    // 100 B of a and 30 B of b.
    assert_eq!(link.delivered(), Bytes(130));
}

#[test]
fn capacity_can_stop_and_return() {
    let mut link = shared(2.0);
    insert(&mut link, 0, 100, Some(1.0), 'a');
    link.set_capacity(Nanos(30), BytesPerSecond(0.0)).unwrap();
    assert_eq!(link.next_completion(), None);
    link.set_capacity(Nanos(1_030), BytesPerSecond(0.5 * GB)).unwrap();
    // 70 B left at half a byte a nanosecond: 1030 + 140.
    assert_eq!(collect(&mut link, 2_000), [(1_170, 'a')]);
}

#[test]
fn completions_of_one_nanosecond_come_in_the_order_of_insertion() {
    let mut link = shared(10.0);
    insert(&mut link, 0, 80, None, 'a');
    insert(&mut link, 0, 20, Some(2.0), 'b');
    insert(&mut link, 10, 0, None, 'c');
    // b: 20 / 2 = 10; a: 80 / (10 - 2) = 10; c has nothing to move.
    assert_eq!(link.next_completion(), Some(Nanos(10)));
    assert_eq!(collect(&mut link, 10), [(10, 'a'), (10, 'b'), (10, 'c')]);
}

#[test]
fn a_due_flow_has_completed() {
    let mut link = shared(1.0);
    let flow = insert(&mut link, 0, 10, None, 'a');
    assert_eq!(link.cancel(Nanos(10), flow), Ok(None));
    assert_eq!(link.rate(flow), None);
    // It waits to be collected, and a new flow at the same time gets the whole link.
    let next = insert(&mut link, 10, 10, None, 'b');
    assert_eq!(link.rate(next), Some(BytesPerSecond(GB)));
    assert_eq!(collect(&mut link, 10), [(10, 'a')]);
    assert_eq!(link.next_completion(), Some(Nanos(20)));
}

#[test]
fn the_past_and_a_skipped_completion_are_refused() {
    let mut link = shared(1.0);
    let flow = insert(&mut link, 5, 10, None, 'a');
    let past = ResourceError::Past { now: Nanos(4), clock: Nanos(5) };
    assert_eq!(link.insert(Nanos(4), Bytes(1), None, 'b'), Err(past));
    assert_eq!(link.advance(Nanos(4)), Err(past));
    assert_eq!(link.cancel(Nanos(4), flow), Err(past));
    assert_eq!(link.set_capacity(Nanos(4), BytesPerSecond(1.0)), Err(past));
    let skipped = ResourceError::Uncollected { now: Nanos(16), due: Nanos(15) };
    assert_eq!(link.insert(Nanos(16), Bytes(1), None, 'b'), Err(skipped));
    assert_eq!(link.cancel(Nanos(16), flow), Err(skipped));
    assert_eq!(link.set_capacity(Nanos(16), BytesPerSecond(1.0)), Err(skipped));
    // Collecting one of two that are due is not enough.
    insert(&mut link, 15, 0, None, 'b');
    link.advance(Nanos(15)).unwrap();
    assert_eq!(link.insert(Nanos(16), Bytes(1), None, 'c'), Err(skipped));
    assert_eq!(collect(&mut link, 16), [(15, 'b')]);
}

#[test]
fn rates_that_mean_nothing_are_refused() {
    assert!(matches!(SharedBandwidth::<()>::new(BytesPerSecond(-1.0)), Err(ResourceError::Capacity(_))));
    assert!(matches!(SharedBandwidth::<()>::new(BytesPerSecond(f64::NAN)), Err(ResourceError::Capacity(_))));
    let mut link = shared(1.0);
    assert!(matches!(link.set_capacity(Nanos(0), BytesPerSecond(f64::INFINITY)), Err(ResourceError::Capacity(_))));
    for cap in [0.0, -1.0, f64::NAN] {
        let refused = link.insert(Nanos(9), Bytes(1), Some(BytesPerSecond(cap)), 'a');
        assert!(matches!(refused, Err(ResourceError::Cap(_))), "{cap}");
    }
    assert_eq!((link.in_flight(), link.now()), (0, Nanos(0)));
    // An infinite cap is the same as none.
    link.insert(Nanos(0), Bytes(5), Some(BytesPerSecond(f64::INFINITY)), 'a').unwrap();
    assert_eq!(link.next_completion(), Some(Nanos(5)));
}

#[test]
fn an_end_beyond_the_clock_is_no_completion() {
    let mut link = SharedBandwidth::new(BytesPerSecond(1.0)).unwrap();
    // 2⁶⁴ bytes at 1 B/s take 1.8·10²⁸ ns; the clock ends at 1.8·10¹⁹.
    let flow = link.insert(Nanos(0), Bytes::MAX, Some(BytesPerSecond(1.0)), 'a').unwrap();
    assert_eq!(link.next_completion(), None);
    assert_eq!(link.advance(Nanos::MAX), Ok(None));
    // 2⁶⁴ ns at 1100 units of 2⁻⁴⁰ B/ns are 1100 · 2²⁴ B = 18,454,937,600 B.
    assert_eq!(link.delivered(), Bytes(18_454_937_599));
    assert_eq!(link.remaining(flow), Some(Bytes(u64::MAX - 18_454_937_599)));
}

#[test]
fn a_level_that_swings_across_many_caps_keeps_every_byte() {
    // 64 flows capped at 1 fill a capacity of 64 exactly; an intruder pushes all of them off their caps,
    // to 64 / 65 each, and lets them return, 100 times.
    let mut link = shared(64.0);
    let flows: Vec<_> = (0..64).map(|_| insert(&mut link, 0, 10_000, Some(1.0), 'a')).collect();
    for round in 0..100 {
        let intruder = insert(&mut link, round * 20, 1_000_000, None, 'b');
        assert!(link.rate(flows[0]).unwrap().0 < GB);
        link.cancel(Nanos(round * 20 + 10), intruder).unwrap();
        assert_eq!(link.rate(flows[0]), Some(BytesPerSecond(GB)));
    }
    // By 2000 each flow ran 1,000 ns at 64/65 and 1,000 ns at 1 and moved 984.6 + 1000 = 1984.6 B. The
    // other 8015.4 B end at 10,015.4, rounded up.
    assert_eq!(collect(&mut link, 20_000).iter().map(|done| done.0).collect::<Vec<_>>(), [10_016; 64]);
}

/// `move_alone` gives the same end and the same delivered bytes as inserting a flow; with other flows, or too
/// late an end, it does nothing.
#[test]
fn moving_alone_is_inserting_and_advancing() {
    for (cap, volume) in [(None, 1_000), (Some(2e9), 1_000), (Some(90e9), 7), (None, 0), (Some(0.3e9), 20_000_001)] {
        let cap = cap.map(BytesPerSecond);
        let (mut alone, mut flow) = (shared(3.0), shared(3.0));
        for begin in [5, 1_000_000_000] {
            let end = alone.move_alone(Nanos(begin), Bytes(volume), cap, Nanos::MAX).unwrap().unwrap();
            flow.insert(Nanos(begin), Bytes(volume), cap, 'f').unwrap();
            let done = flow.next_completion().unwrap();
            assert_eq!(flow.advance(done).unwrap().map(|completion| completion.time), Some(end));
            assert_eq!((alone.now(), alone.delivered()), (flow.now(), flow.delivered()));
        }
    }
    // 1,000 B at 3 B/ns take 333.3 ns: until 334.
    let mut link = shared(3.0);
    assert_eq!(link.move_alone(Nanos(0), Bytes(1_000), None, Nanos(334)).unwrap(), None);
    assert_eq!((link.now(), link.delivered()), (Nanos(0), Bytes(0)));
    assert_eq!(link.move_alone(Nanos(0), Bytes(1_000), None, Nanos(335)).unwrap(), Some(Nanos(334)));
    insert(&mut link, 400, 10, None, 'a');
    assert_eq!(link.move_alone(Nanos(400), Bytes(1), None, Nanos::MAX).unwrap(), None);
    assert_eq!(collect(&mut link, 500), [(404, 'a')]);
    assert!(link.move_alone(Nanos(499), Bytes(1), None, Nanos::MAX).is_err());
    // Without capacity nothing moves.
    assert_eq!(shared(0.0).move_alone(Nanos(0), Bytes(1), None, Nanos::MAX).unwrap(), None);
}
