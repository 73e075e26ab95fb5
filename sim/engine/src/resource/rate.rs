//! Rates and work as integers, so that sharing is exact and repeatable.
//!
//! Work is counted in units of 2⁻⁴⁰ bytes and rates in units a nanosecond: 1 GB/s is exactly 2⁴⁰, and
//! one unit is 0.0009 B/s. 2⁶⁴ bytes are 2¹⁰⁴ units, and the highest rate over the longest time is
//! 2⁶² · 2⁶⁴ = 2¹²⁶ units: no sum of work overflows 128 bits.

use haversack_devices::units::{Bytes, BytesPerSecond};

const FRACTION_BITS: u32 = 40;
const UNITS_PER_BYTE: f64 = (1u64 << FRACTION_BITS) as f64;
const MAX_RATE: u64 = 1 << 62;

/// The nearest whole rate of a capacity; `None` outside what can be represented.
pub(super) fn capacity_units(rate: BytesPerSecond) -> Option<u64> {
    let units = (rate.0 / 1e9 * UNITS_PER_BYTE).round();
    (rate.0 >= 0.0 && units <= MAX_RATE as f64).then_some(units as u64)
}

/// The nearest whole rate of a cap; one above every capacity is as good as the highest capacity.
pub(super) fn cap_units(rate: BytesPerSecond) -> Option<u64> {
    // The cast saturates, and makes zero of what is negative or not a number.
    let units = (rate.0 / 1e9 * UNITS_PER_BYTE).round() as u64;
    (units > 0).then_some(units.min(MAX_RATE))
}

pub(super) fn rate_of(units: u64) -> BytesPerSecond {
    BytesPerSecond(units as f64 / UNITS_PER_BYTE * 1e9)
}

pub(super) fn work_units(volume: Bytes) -> u128 {
    u128::from(volume.0) << FRACTION_BITS
}

pub(super) fn whole_bytes(work: u128) -> Bytes {
    Bytes((work >> FRACTION_BITS) as u64)
}

/// A byte that is partly moved still remains.
pub(super) fn bytes_begun(work: u128) -> Bytes {
    Bytes(work.div_ceil(1 << FRACTION_BITS) as u64)
}

/// The first whole nanosecond by which `rate`, above zero, has done `work`.
#[inline]
pub(super) fn span(work: u128, rate: u64) -> u128 {
    // Division of 64 bits is several times cheaper, and does for 16 MB.
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
