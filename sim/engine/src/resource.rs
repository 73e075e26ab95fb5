//! Shared resources as pure models: they have no event queue and draw no random numbers.
//!
//! All share one pattern. `insert(now, …)` adds work, `next_completion()` returns when the next piece ends if nothing
//! changes, `advance(now)` moves the clock to the next completion or to `now`, whichever is first, and returns the
//! completed work, and `cancel(now, id)` removes work. Call `advance` until it returns `None`:
//!
//! ```text
//! while let Some(done) = resource.advance(now)? { … }
//! ```
//!
//! # Rules of time
//!
//! * Clocks are integer nanoseconds and never go back ([`ResourceError::Past`]).
//! * A completion that is due must be collected before the clock passes it ([`ResourceError::Uncollected`]): a model
//!   never drops or reorders completions that its owner has not seen. Changes at exactly the nanosecond of a due
//!   completion are allowed.
//! * Work that is due at `now` has completed, collected or not; cancelling it then does nothing.
//! * A call that returns an error has changed nothing.
//!
//! Rates and work as integers, so that sharing is exact and repeatable.
//!
//! Work is counted in units of 2⁻⁴⁰ bytes and rates in units a nanosecond: 1 GB/s is exactly 2⁴⁰, and
//! one unit is 0.0009 B/s. 2⁶⁴ bytes are 2¹⁰⁴ units, and the highest rate over the longest time is
//! 2⁶² · 2⁶⁴ = 2¹²⁶ units: no sum of work overflows 128 bits.

mod shared_bandwidth;

pub use shared_bandwidth::SharedBandwidth;

use haversack_devices::{Bytes, BytesPerSecond, Nanos, ensure};
use thiserror::Error;

use crate::slots::Key;

/// Identifies a flow of a [`SharedBandwidth`]; stale once the flow has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowId(Key);

/// A completed piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion<T> {
    /// The time at which it ended.
    pub time: Nanos,
    /// The owner's item for it.
    pub item: T,
}

/// A cancelled piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled<T, R> {
    /// The owner's item for it.
    pub item: T,
    /// The remaining work: time of service, or bytes.
    pub remaining: R,
}

/// Why a resource rejects a call, which leaves it unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// The time has passed.
    #[error("the clock of the resource is at {clock}, later than {now}")]
    Past {
        /// The requested time.
        now: Nanos,
        /// The clock of the resource.
        clock: Nanos,
    },
    /// A completion has to be collected with `advance` first.
    #[error("the completion at {due} must be collected before {now}")]
    Uncollected {
        /// The requested time.
        now: Nanos,
        /// The time of the first uncollected completion.
        due: Nanos,
    },
    /// A capacity that is negative, infinite, not a number or above 4·10¹⁵ B/s.
    #[error("{0} is not a capacity: expected a rate from 0 B/s to 4e15 B/s")]
    Capacity(BytesPerSecond),
    /// A cap that is not a number, or below 10⁻³ B/s.
    #[error("{0} is not a cap for a flow: expected a rate of at least 1e-3 B/s")]
    Cap(BytesPerSecond),
}

/// The two rules that every change of a resource at `now` obeys.
fn check(now: Nanos, clock: Nanos, due: Option<Nanos>) -> Result<(), ResourceError> {
    ensure!(now >= clock, ResourceError::Past { now, clock });
    match due {
        Some(due) if due < now => Err(ResourceError::Uncollected { now, due }),
        _ => Ok(()),
    }
}

const FRACTION_BITS: u32 = 40;
const UNITS_PER_BYTE: f64 = (1u64 << FRACTION_BITS) as f64;
const MAX_RATE: u64 = 1 << 62;

/// The nearest whole rate of a capacity; `None` outside what can be represented.
fn capacity_units(rate: BytesPerSecond) -> Option<u64> {
    let units = (rate.0 / 1e9 * UNITS_PER_BYTE).round();
    (rate.0 >= 0.0 && units <= MAX_RATE as f64).then_some(units as u64)
}

/// The nearest whole rate of a cap; a cap above every capacity counts as the highest capacity.
fn cap_units(rate: BytesPerSecond) -> Option<u64> {
    // The cast saturates, and turns negative values and NaN into zero.
    let units = (rate.0 / 1e9 * UNITS_PER_BYTE).round() as u64;
    (units > 0).then_some(units.min(MAX_RATE))
}

fn rate_of(units: u64) -> BytesPerSecond {
    BytesPerSecond(units as f64 / UNITS_PER_BYTE * 1e9)
}

fn work_units(volume: Bytes) -> u128 {
    u128::from(volume.0) << FRACTION_BITS
}

fn whole_bytes(work: u128) -> Bytes {
    Bytes((work >> FRACTION_BITS) as u64)
}

/// The bytes of `work`, rounded up: a partly moved byte still remains.
fn bytes_begun(work: u128) -> Bytes {
    Bytes(work.div_ceil(1 << FRACTION_BITS) as u64)
}

/// The first whole nanosecond at which `rate`, above zero, has done `work`.
#[inline]
fn span(work: u128, rate: u64) -> u128 {
    // 64-bit division is several times cheaper, and suffices up to 16 MB.
    match u64::try_from(work) {
        Ok(work) => u128::from(work.div_ceil(rate)),
        Err(_) => work.div_ceil(u128::from(rate)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gigabyte_a_second_is_a_byte_a_nanosecond() {
        assert_eq!(capacity_units(BytesPerSecond(1e9)), Some(1 << 40));
        assert_eq!(rate_of(1 << 40), BytesPerSecond(1e9));
        // 1 B/s = 2⁴⁰ / 10⁹ = 1099.51 units, rounded to 1100.
        assert_eq!(capacity_units(BytesPerSecond(1.0)), Some(1100));
    }

    #[test]
    fn rates_outside_the_range_are_refused() {
        // 2⁶² units = 2²² B/ns = 4.194304e15 B/s.
        assert_eq!(capacity_units(BytesPerSecond(4.194_304e15)), Some(MAX_RATE));
        for rate in [-1.0, 4.2e15, f64::INFINITY, f64::NAN] {
            assert_eq!(capacity_units(BytesPerSecond(rate)), None, "{rate}");
        }
        for rate in [-1.0, 0.0, 4e-4, f64::NAN] {
            assert_eq!(cap_units(BytesPerSecond(rate)), None, "{rate}");
        }
        assert_eq!(cap_units(BytesPerSecond(f64::INFINITY)), Some(MAX_RATE));
    }

    #[test]
    fn spans_round_up_alike_below_and_above_64_bits() {
        assert_eq!([span(0, 3), span(1, 3), span(3, 3), span(4, 3)], [0, 1, 1, 2]);
        // 2⁶⁴ = 3 · 6148914691236517205 + 1.
        assert_eq!(span(1 << 64, 3), 6_148_914_691_236_517_206);
        assert_eq!(span((1 << 64) - 1, 3), 6_148_914_691_236_517_205);
    }

    #[test]
    fn a_byte_begun_remains() {
        let work = work_units(Bytes(7)) + 1;
        assert_eq!((whole_bytes(work), bytes_begun(work)), (Bytes(7), Bytes(8)));
        assert_eq!(bytes_begun(work_units(Bytes::MAX)), Bytes::MAX);
    }
}
