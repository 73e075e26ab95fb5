//! `oom_score_adj`: a whole number that may be below zero, unlike the quantities of other constants.

use crate::calibration::{Dimension, Quantity, Unit};

/// How readily a process is killed under memory pressure: the higher, the sooner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OomScore(pub i32);

impl OomScore {
    /// A process that is never killed.
    pub const LOWEST: Self = Self(-1000);
    /// Above every process.
    pub const HIGHEST: Self = Self(1001);
}

/// In a calibration its unit is `count`.
impl Quantity for OomScore {
    const DIMENSION: Dimension = Dimension::Count;

    fn from_base(value: f64) -> Self {
        Self(value as i32)
    }

    fn base(self) -> f64 {
        f64::from(self.0)
    }

    fn convert(value: f64, _: &Unit) -> Result<Self, String> {
        let (lowest, highest) = (Self::LOWEST.0, Self::HIGHEST.0);
        if value.fract() == 0.0 && (f64::from(lowest)..=f64::from(highest)).contains(&value) {
            Ok(Self::from_base(value))
        } else {
            Err(format!("a whole number from {lowest} to {highest}"))
        }
    }
}
