//! Quantities with their units, so that no bare number crosses a module border.
//!
//! Time is an integer number of nanoseconds and sizes are integer bytes; rates, powers and
//! energies are floating point. Nothing here compares floats to decide an order of events.

mod dimension;

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use serde::{Deserialize, Serialize};

pub use dimension::{Dimension, Quantity, Unit};

/// A point in, or a span of, simulated time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[must_use]
pub struct Nanos(pub u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[must_use]
pub struct Bytes(pub u64);

/// The arithmetic of all quantities: addition, subtraction, multiplication by a plain number, and summation in order.
macro_rules! arithmetic {
    ($name:ident, $zero:literal, $number:ty, $add:expr, $times:expr) => {
        impl $name {
            /// The zero of the quantity.
            pub const ZERO: Self = Self($zero);
        }
        impl Add for $name {
            type Output = Self;
            #[inline]
            fn add(self, other: Self) -> Self {
                Self($add(self.0, other.0))
            }
        }
        impl AddAssign for $name {
            #[inline]
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }
        impl Sub for $name {
            type Output = Self;
            #[inline]
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
        impl Mul<$number> for $name {
            type Output = Self;
            fn mul(self, factor: $number) -> Self {
                Self($times(self.0, factor))
            }
        }
        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
                iter.fold(Self::ZERO, Add::add)
            }
        }
    };
}

macro_rules! integer_quantity {
    ($name:ident) => {
        // A saturated time stays saturated, and marks a run without a finite time.
        arithmetic!($name, 0, u64, u64::saturating_add, u64::saturating_mul);
        impl $name {
            /// The largest representable quantity.
            pub const MAX: Self = Self(u64::MAX);

            /// The difference, or zero where `other` is the larger.
            #[inline]
            pub fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }
        impl SubAssign for $name {
            #[inline]
            fn sub_assign(&mut self, other: Self) {
                self.0 -= other.0;
            }
        }
    };
}
integer_quantity!(Nanos);
integer_quantity!(Bytes);

impl Nanos {
    /// The span nearest to `seconds`, clamped to the valid range; NaN becomes zero.
    pub fn from_seconds(seconds: f64) -> Self {
        // A float cast saturates, and turns NaN into zero.
        Self((seconds * 1e9).round() as u64)
    }

    /// The span in seconds.
    #[inline]
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// The span times `factor`; saturates, and negative results become zero.
    pub fn times(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, ["ns", "µs", "ms", "s"])
    }
}

/// Writes `number` in one of `units`, each a thousand times the one before: the first that needs at most five digits.
fn scaled(f: &mut fmt::Formatter<'_>, number: u64, units: [&str; 4]) -> fmt::Result {
    let [one, thousand, million, billion] = units;
    match number {
        n if n < 10_000 => write!(f, "{n} {one}"),
        n if n < 10_000_000 => write!(f, "{:.1} {thousand}", n as f64 * 1e-3),
        n if n < 10_000_000_000 => write!(f, "{:.1} {million}", n as f64 * 1e-6),
        n => write!(f, "{:.2} {billion}", n as f64 * 1e-9),
    }
}

impl Bytes {
    /// The size as a float, for rates and ratios.
    #[inline]
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// The size in decimal megabytes.
    pub fn megabytes(self) -> f64 {
        self.0 as f64 * 1e-6
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, ["B", "kB", "MB", "GB"])
    }
}

macro_rules! real_quantities {
    ($($(#[$doc:meta])* $name:ident $(: $dimension:ident)? = $unit:literal;)+) => {$(
        $(#[$doc])*
        #[must_use]
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
        pub struct $name(pub f64);

        arithmetic!($name, 0.0, f64, f64::add, f64::mul);
        impl Div<f64> for $name {
            type Output = Self;
            fn div(self, divisor: f64) -> Self {
                Self(self.0 / divisor)
            }
        }
        $(impl Quantity for $name {
            const DIMENSION: Dimension = Dimension::$dimension;

            fn from_base(value: f64) -> Self {
                Self(value)
            }

            fn base(self) -> f64 {
                self.0
            }
        })?
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} {}", self.0, $unit)
            }
        }
    )+};
}
real_quantities! {
    /// A rate of moving bytes.
    BytesPerSecond: Bandwidth = "B/s";
    /// An energy.
    Joules: Energy = "J";
    /// A power.
    Watts: Power = "W";
    /// A frequency.
    Hertz: Frequency = "Hz";
    /// A number of floating-point operations; a multiply-add counts as two.
    Flops = "FLOP";
    /// A rate of floating-point (or integer) operations.
    FlopsPerSecond: Throughput = "FLOP/s";
    /// A span too fine for whole nanoseconds; to be multiplied before it becomes [`Nanos`].
    Interval: Time = "s";
    /// A number of cores, threads, outputs or operations.
    Count: Count = "count";
    /// A share between zero and one.
    Fraction: Fraction = "fraction";
    /// A dimensionless multiplier or exponent.
    Factor: Factor = "factor";
    /// Arithmetic operations per clock cycle; a multiply-add counts as two.
    FlopsPerCycle: FlopsPerCycle = "FLOP/cycle";
    /// Bytes moved per clock cycle.
    BytesPerCycle: BytesPerCycle = "B/cycle";
    /// Bytes moved per arithmetic operation.
    BytesPerFlop: BytesPerFlop = "B/FLOP";
    /// A temperature.
    Celsius: Temperature = "°C";
    /// Temperature rise per watt of heat flow.
    KelvinPerWatt: ThermalResistance = "K/W";
    /// The heat that raises a temperature by one kelvin.
    JoulesPerKelvin: HeatCapacity = "J/K";
    /// The energy of moving one byte.
    JoulesPerByte: EnergyPerByte = "J/B";
}

/// The types of products of two quantities.
macro_rules! products {
    ($($left:ident * $right:ident = $product:ident;)+) => {$(
        impl Mul<$right> for $left {
            type Output = $product;
            fn mul(self, other: $right) -> $product {
                $product(self.0 * other.base())
            }
        }
    )+};
}
products! {
    FlopsPerCycle * Hertz = FlopsPerSecond;
    BytesPerCycle * Hertz = BytesPerSecond;
    JoulesPerByte * Bytes = Joules;
    Watts * Nanos = Joules;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_of_seconds_rounds_to_the_nearest_nanosecond() {
        // 1.5 ns rounds to 2 ns; NaN and negative spans become zero.
        assert_eq!(Nanos::from_seconds(1.5e-9), Nanos(2));
        assert_eq!(Nanos::from_seconds(f64::NAN), Nanos::ZERO);
        assert_eq!(Nanos::from_seconds(-1.0), Nanos::ZERO);
        assert_eq!(Nanos::from_seconds(f64::INFINITY), Nanos::MAX);
    }

    #[test]
    fn power_over_time_is_energy() {
        // 4 W for 250 ms is 1 J.
        assert_eq!(Watts(4.0) * Nanos(250_000_000), Joules(1.0));
    }

    #[test]
    fn sizes_print_in_decimal_units() {
        assert_eq!(Bytes(1_208_000_000).to_string(), "1208.0 MB");
        assert_eq!(Bytes(512).to_string(), "512 B");
    }
}
