//! The counts of a meter, and the contents of its buffers.

use haversack_numerics::Meter;

#[test]
fn live_and_peak_bytes_are_counted() {
    let meter = Meter::default();
    let floats = meter.zeros(10);
    let integers = meter.integers(3);
    // 10 · 4 + 3 · 8.
    assert_eq!((meter.live(), meter.peak()), (64, 64));
    drop(floats);
    let bytes = meter.copy(&[7_u8; 5]);
    // 24 + 5; the peak stays.
    assert_eq!((meter.live(), meter.peak()), (29, 64));
    assert_eq!((integers.size(), &bytes[..]), (24, &[7; 5][..]));
    let twin = meter.clone();
    drop((integers, bytes));
    assert_eq!(twin.live(), 0, "clones count together");
}

#[test]
fn blocks_come_back_and_zeros_are_zeros() {
    let meter = Meter::default();
    let mut first = meter.floats(1000);
    first.fill(3.0);
    let place = first.as_ptr();
    drop(first);
    assert_eq!(meter.kept(), 4000);
    let again = meter.zeros(1000);
    assert_eq!((again.as_ptr(), meter.kept()), (place, 0));
    assert!(again.iter().all(|&x| x == 0.0));
}

#[test]
fn no_more_is_kept_than_was_said() {
    let meter = Meter::keeping(100);
    let (small, large) = (meter.floats(20), meter.floats(21));
    drop(large);
    drop(small);
    // 84 bytes fit, 80 more do not.
    assert_eq!((meter.kept(), meter.live()), (84, 0));
}
