//! The units of constants in a calibration, and their conversion on load.

use std::fmt::Debug;

use super::{Bytes, Nanos};

/// The dimension of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// A span of time; base second.
    Time,
    /// A size; base byte.
    Size,
    /// Bytes per second.
    Bandwidth,
    /// Arithmetic operations per second.
    Throughput,
    /// Cycles per second.
    Frequency,
    /// Base watt.
    Power,
    /// Base joule.
    Energy,
    /// Joules per byte.
    EnergyPerByte,
    /// Arithmetic operations per clock cycle.
    FlopsPerCycle,
    /// Bytes per clock cycle.
    BytesPerCycle,
    /// Bytes per arithmetic operation.
    BytesPerFlop,
    /// Degrees Celsius.
    Temperature,
    /// Kelvin per watt.
    ThermalResistance,
    /// Joules per kelvin.
    HeatCapacity,
    /// A number of things.
    Count,
    /// A share between zero and one.
    Fraction,
    /// A dimensionless multiplier, or an exponent (of two, if it is in bits).
    Factor,
}

/// A unit's symbol, its dimension, and its size in base units.
#[derive(Debug, PartialEq)]
pub struct Unit {
    /// As written in a calibration.
    pub symbol: &'static str,
    /// Its dimension.
    pub dimension: Dimension,
    /// Base units in one of it.
    pub scale: f64,
}

macro_rules! units {
    ($($dimension:ident from $least:literal to $most:literal: $($symbol:literal = $scale:literal),+;)+) => {
        /// Every unit; within a dimension the customary one comes first.
        static UNITS: &[Unit] =
            &[$($(Unit { symbol: $symbol, dimension: Dimension::$dimension, scale: $scale }),+),+];

        impl Dimension {
            /// The smallest value other than zero and the largest value of a constant, in base units. Both are far
            /// beyond any machine, real or idealised, and times computed from values between them stay representable.
            const fn range(self) -> [f64; 2] {
                match self {
                    $(Self::$dimension => [$least, $most],)+
                }
            }
        }
    };
}

units! {
    Time from 0.0 to 1e6: "us" = 1e-6, "ns" = 1e-9, "ms" = 1e-3, "s" = 1.0, "µs" = 1e-6;
    Size from 0.0 to 4e15:
        "B" = 1.0, "KiB" = 1024.0, "MiB" = 1_048_576.0, "GiB" = 1_073_741_824.0, "KB" = 1e3, "MB" = 1e6, "GB" = 1e9;
    Bandwidth from 1.0 to 4e15: "GB/s" = 1e9, "MB/s" = 1e6, "B/s" = 1.0;
    Throughput from 1.0 to 1e21: "GFLOP/s" = 1e9, "TFLOP/s" = 1e12, "MFLOP/s" = 1e6, "GOP/s" = 1e9, "TOP/s" = 1e12;
    Frequency from 1e3 to 1e12: "MHz" = 1e6, "GHz" = 1e9, "kHz" = 1e3, "Hz" = 1.0;
    Power from 0.0 to 1e6: "W" = 1.0, "mW" = 1e-3;
    Energy from 0.0 to 1e9: "J" = 1.0, "kJ" = 1e3, "mJ" = 1e-3, "Wh" = 3600.0;
    EnergyPerByte from 0.0 to 1e-3: "pJ/B" = 1e-12, "nJ/B" = 1e-9;
    FlopsPerCycle from 1e-3 to 1e9: "FLOP/cycle" = 1.0, "OP/cycle" = 1.0;
    BytesPerCycle from 1e-3 to 1e9: "B/cycle" = 1.0;
    BytesPerFlop from 0.0 to 1e3: "B/FLOP" = 1.0;
    Temperature from 0.0 to 1e3: "C" = 1.0;
    ThermalResistance from 1e-9 to 1e6: "K/W" = 1.0;
    HeatCapacity from 1e-9 to 1e9: "J/K" = 1.0;
    Count from 0.0 to 1e6: "count" = 1.0;
    Fraction from 0.0 to 1.0: "fraction" = 1.0, "%" = 0.01;
    Factor from 0.0 to 1e9: "factor" = 1.0, "bits" = 1.0;
}

impl Dimension {
    /// The symbols that a field of this dimension accepts.
    pub fn symbols(self) -> impl Iterator<Item = &'static str> {
        UNITS.iter().filter(move |unit| unit.dimension == self).map(|unit| unit.symbol)
    }

    /// The unit with this symbol; `None` if it measures something else.
    pub fn unit(self, symbol: &str) -> Option<&'static Unit> {
        UNITS.iter().find(|unit| unit.dimension == self && unit.symbol == symbol)
    }

    /// The customary unit.
    pub(crate) fn customary(self) -> &'static Unit {
        UNITS.iter().find(|unit| unit.dimension == self).unwrap_or(&UNITS[0])
    }

    /// Whether the models divide by quantities of this dimension: work by a rate, heat by a capacity.
    pub(crate) const fn is_divisor(self) -> bool {
        self.range()[0] > 0.0
    }
}

/// A typed quantity of a constant in a calibration.
pub trait Quantity: Copy + Debug + 'static {
    /// Its dimension.
    const DIMENSION: Dimension;
    /// From base units (seconds, bytes, joules …).
    fn from_base(value: f64) -> Self;
    /// In base units.
    fn base(self) -> f64;
    /// `value` in `unit` as this quantity.
    ///
    /// # Errors
    /// The valid range in `unit`, if `value` is outside it.
    fn convert(value: f64, unit: &Unit) -> Result<Self, String> {
        let (base, [least, most]) = (value * unit.scale, unit.dimension.range());
        if base == 0.0 || (least..=most).contains(&base) {
            return Ok(Self::from_base(base));
        }
        let [least, most] = [least, most].map(|end| end / unit.scale);
        let most = if most < 1e3 { most } else { most.floor() };
        let most = if most < 1e6 { most.to_string() } else { format!("{most:e}") };
        let zero = if least > 0.0 { "0, or " } else { "" };
        Err(format!("{zero}a number from {least} to {most}"))
    }
}

impl Quantity for Nanos {
    const DIMENSION: Dimension = Dimension::Time;
    fn from_base(value: f64) -> Self {
        Self::from_seconds(value)
    }
    fn base(self) -> f64 {
        self.seconds()
    }
}

impl Quantity for Bytes {
    const DIMENSION: Dimension = Dimension::Size;
    fn from_base(value: f64) -> Self {
        // A float cast saturates, and turns NaN into zero.
        Self(value.round() as u64)
    }
    fn base(self) -> f64 {
        self.as_f64()
    }
}
