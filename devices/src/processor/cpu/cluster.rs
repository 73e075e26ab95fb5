//! A CPU cluster: the operations per cycle of its cores, and their common table of operating points.

use crate::device::{DvfsCurve, PowerConstants};
use crate::{ClusterConstants, Factor, FlopsPerCycle, Hertz, Int8Kernels, Precision, Watts};

/// Frequencies that differ by less than this are equal, since data sheets and tables round.
const TOLERANCE: f64 = 0.0005;

/// A cluster of equal cores.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    pub(super) constants: ClusterConstants,
    /// CoreMark iterations per cycle, if known.
    pub(super) coremark: Option<Factor>,
    /// The lowest frequency that the governor sets.
    pub(super) floor: Hertz,
    /// The operating points except for the highest, rising.
    below: Vec<Hertz>,
    /// The highest.
    pub(super) highest: Hertz,
    /// The measured curve, rising; empty if there is none.
    curve: Vec<(Hertz, Watts)>,
    power: PowerConstants,
}

impl Cluster {
    /// The cluster that `constants` describe.
    ///
    /// Its operating points are those of the curve up to its highest frequency; without a curve there are two, the
    /// floor and the highest.
    pub(crate) fn new(constants: &ClusterConstants, curve: Option<&DvfsCurve>, power: &PowerConstants) -> Self {
        let (floor, highest) = (constants.frequency_lowest.value, constants.frequency.value);
        let table = curve.map_or_else(|| vec![floor], |curve| curve.frequency.values.clone());
        let curve = curve.map(|curve| curve.frequency.values.iter().copied().zip(curve.power.values.iter().copied()));
        Self {
            constants: constants.clone(),
            coremark: constants.coremark.as_ref().map(|per_megahertz| per_megahertz.value * 1e-6),
            floor,
            below: table.into_iter().filter(|point| point.0 < highest.0 * (1.0 - TOLERANCE)).collect(),
            highest,
            curve: curve.map_or_else(Vec::new, Iterator::collect),
            power: power.clone(),
        }
    }

    /// Operations a cycle in `precision`, with a stack's way of multiplying eight-bit integers.
    pub(super) fn rate(&self, precision: Precision, int8: Int8Kernels) -> FlopsPerCycle {
        let rates = &self.constants;
        let widening = rates.int8_widening_rate.as_ref().unwrap_or(&rates.fp32_rate).value;
        match (precision, int8) {
            (Precision::Fp32 | Precision::Int32, _) => rates.fp32_rate.value,
            (Precision::Fp16, _) => rates.fp16_rate.value,
            (Precision::Int8, Int8Kernels::DotProduct) => rates.int8_rate.value,
            (Precision::Int8, Int8Kernels::Widening) => widening,
            // Half the lanes of eight-bit ones.
            (Precision::Int16, _) => widening * 0.5,
        }
    }

    /// The operating points, rising.
    pub(super) fn points(&self) -> impl DoubleEndedIterator<Item = Hertz> + '_ {
        self.below.iter().copied().chain([self.highest])
    }

    /// The lowest operating point.
    pub(super) fn lowest(&self) -> Hertz {
        self.below.first().copied().unwrap_or(self.highest)
    }

    /// The highest operating point at or below `frequency`; the lowest of all if there is none.
    pub(super) fn at_or_below(&self, frequency: Hertz) -> Hertz {
        let bound = frequency.0 * (1.0 + TOLERANCE);
        self.points().rev().find(|point| point.0 <= bound).unwrap_or_else(|| self.lowest())
    }

    /// The lowest operating point at or above `frequency`; the highest of all if there is none.
    pub(super) fn at_or_above(&self, frequency: Hertz) -> Hertz {
        let bound = frequency.0 * (1.0 - TOLERANCE);
        self.points().find(|point| point.0 >= bound).unwrap_or(self.highest)
    }

    /// The operating point at `frequency`, if there is one; otherwise its neighbours below and above.
    pub(super) fn point(&self, frequency: Hertz) -> Result<Hertz, [Option<Hertz>; 2]> {
        let near = |point: &Hertz| (point.0 - frequency.0).abs() <= TOLERANCE * point.0;
        self.points().find(near).ok_or_else(|| {
            let below = self.points().rev().find(|point| point.0 < frequency.0);
            [below, self.points().find(|point| point.0 > frequency.0)]
        })
    }

    /// Power of a core that is busy with vector kernels at `frequency`: from the measured curve, or scaled by frequency
    /// and voltage from the power at the highest frequency.
    pub(super) fn power_at(&self, frequency: Hertz) -> Watts {
        let scalar = interpolate(&self.curve, frequency).unwrap_or_else(|| {
            let ratio = frequency.0 / self.highest.0;
            let lowest = self.power.voltage_lowest.value.0;
            let voltage = lowest + (1.0 - lowest) * ratio;
            self.constants.power.value * (ratio * voltage.powi(2))
        });
        scalar * self.power.vector_factor.value.0
    }
}

/// The power on the curve at `frequency`; outside the curve, that of the nearest end.
fn interpolate(curve: &[(Hertz, Watts)], frequency: Hertz) -> Option<Watts> {
    let mut points = curve.iter().copied();
    let (mut low, mut low_power) = points.next()?;
    if frequency.0 <= low.0 {
        return Some(low_power);
    }
    for (high, high_power) in points {
        if frequency.0 <= high.0 {
            let share = (frequency.0 - low.0) / (high.0 - low.0);
            return Some(low_power * (1.0 - share) + high_power * share);
        }
        (low, low_power) = (high, high_power);
    }
    Some(low_power)
}
