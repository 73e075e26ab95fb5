//! Heat: a chain of heat capacities from the die through the chassis and the battery to the surroundings.
//!
//! Each part loses heat to the next in proportion to the difference of their temperatures; all power enters at the die.
//! For constant power the solution is a sum of three exponentials, which is evaluated exactly over any span.

use thiserror::Error;

use crate::device::ThermalConstants;
use crate::{Celsius, Device, JoulesPerKelvin, KelvinPerWatt, Nanos, Watts};

/// Temperatures of a device's parts and of its surroundings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heat {
    /// The die, where sensors are and power enters.
    pub die: Celsius,
    /// The chassis.
    pub chassis: Celsius,
    /// The battery and everything else.
    pub battery: Celsius,
    /// The surroundings, whose temperature is constant.
    pub ambient: Celsius,
}

/// Why a device stops or does not start.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum ThermalError {
    /// It is too hot to be started.
    #[error("the device does not start at {}: its limit is {}", degrees(*temperature), degrees(*limit))]
    Start {
        /// Its temperature.
        temperature: Celsius,
        /// The highest that it starts at.
        limit: Celsius,
    },
    /// It grew too hot.
    #[error("the device shuts down: its die is at {}, above its limit of {}", degrees(*temperature), degrees(*limit))]
    Shutdown {
        /// The die's temperature.
        temperature: Celsius,
        /// The highest that it runs at.
        limit: Celsius,
    },
}

fn degrees(temperature: Celsius) -> String {
    format!("{:.1} °C", temperature.0)
}

/// How a device heats up.
#[derive(Clone, Copy, Debug)]
pub struct Thermal {
    capacities: [JoulesPerKelvin; 3],
    resistances: [KelvinPerWatt; 3],
    trip: Celsius,
    limit: Celsius,
    modes: Modes,
}

/// The exponentials of a chain. In temperatures weighted by the root of their capacity its matrix is symmetric, and
/// separates into decays along orthogonal directions.
#[derive(Clone, Copy, Debug)]
struct Modes {
    /// Decay rates per second.
    rates: [f64; 3],
    /// Column j is the direction that decays with rate j.
    directions: [[f64; 3]; 3],
}

impl Device {
    /// How the device heats up, if it is known.
    pub fn thermal(&self) -> Option<Thermal> {
        self.constants.thermal.as_ref().map(Thermal::new)
    }
}

impl Thermal {
    fn new(constants: &ThermalConstants) -> Self {
        let capacities = [&constants.die_capacity, &constants.chassis_capacity, &constants.battery_capacity];
        let resistances = [&constants.die_resistance, &constants.chassis_resistance, &constants.battery_resistance];
        let capacities = capacities.map(|constant| constant.value);
        let resistances = resistances.map(|constant| constant.value);
        Self {
            capacities,
            resistances,
            trip: constants.trip.value,
            limit: constants.limit.value,
            modes: Modes::of(weighted(capacities, resistances)),
        }
    }

    /// The temperature above which the governor lowers frequencies.
    pub fn trip(&self) -> Celsius {
        self.trip
    }

    /// The temperatures of a device that has been off for long.
    pub fn at_rest(ambient: Celsius) -> Heat {
        Heat { die: ambient, chassis: ambient, battery: ambient, ambient }
    }

    /// The same at the start of a run.
    ///
    /// # Errors
    /// Surroundings hotter than the device's limit.
    pub fn start(&self, ambient: Celsius) -> Result<Heat, ThermalError> {
        // Written so that NaN is rejected too.
        if ambient.0 <= self.limit.0 {
            Ok(Self::at_rest(ambient))
        } else {
            Err(ThermalError::Start { temperature: ambient, limit: self.limit })
        }
    }

    /// Checks that a device with the temperatures `heat` does not shut down.
    ///
    /// # Errors
    /// A die above the limit.
    pub fn check(&self, heat: &Heat) -> Result<(), ThermalError> {
        if heat.die.0 <= self.limit.0 {
            Ok(())
        } else {
            Err(ThermalError::Shutdown { temperature: heat.die, limit: self.limit })
        }
    }

    /// The equilibrium under constant `power`: each part is hotter than the next by the power times
    /// the resistance between them.
    pub fn steady(&self, ambient: Celsius, power: Watts) -> Heat {
        let [to_chassis, to_battery, to_ambient] = self.resistances.map(|resistance| resistance.0 * power.0);
        let battery = ambient.0 + to_ambient;
        let chassis = battery + to_battery;
        Heat { die: Celsius(chassis + to_chassis), chassis: Celsius(chassis), battery: Celsius(battery), ambient }
    }

    /// Advances `heat` by a `span` of constant `power`.
    pub fn advance(&self, heat: &mut Heat, power: Watts, span: Nanos) {
        let steady = self.steady(heat.ambient, power);
        let roots = self.capacities.map(|capacity| capacity.0.sqrt());
        let parts = |heat: &Heat| [heat.die.0, heat.chassis.0, heat.battery.0];
        let [now, ends] = [parts(heat), parts(&steady)];
        let away = std::array::from_fn(|part| (now[part] - ends[part]) * roots[part]);
        let left = self.modes.decayed(away, span.seconds());
        let [die, chassis, battery] = std::array::from_fn(|part| Celsius(ends[part] + left[part] / roots[part]));
        *heat = Heat { die, chassis, battery, ambient: heat.ambient };
    }
}

/// The matrix of the chain in weighted temperatures: entry (i, j) is conductance over the roots of the capacities.
fn weighted(capacities: [JoulesPerKelvin; 3], resistances: [KelvinPerWatt; 3]) -> [[f64; 3]; 3] {
    let [a, b, c] = resistances.map(|resistance| 1.0 / resistance.0);
    let conductances = [[a, -a, 0.0], [-a, a + b, -b], [0.0, -b, b + c]];
    let roots = capacities.map(|capacity| capacity.0.sqrt());
    std::array::from_fn(|i| std::array::from_fn(|j| conductances[i][j] / (roots[i] * roots[j])))
}

fn transposed(matrix: [[f64; 3]; 3]) -> [[f64; 3]; 3] {
    std::array::from_fn(|i| matrix.map(|row| row[i]))
}

impl Modes {
    /// The modes of a symmetric matrix, by Jacobi's rotations: each makes one pair of off-diagonal entries zero.
    fn of(mut matrix: [[f64; 3]; 3]) -> Self {
        // More than enough: off-diagonal entries shrink quadratically from sweep to sweep.
        const SWEEPS: usize = 30;
        let mut directions = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        for (p, q) in [(0, 1), (0, 2), (1, 2)].into_iter().cycle().take(3 * SWEEPS) {
            if matrix[p][q] == 0.0 {
                continue;
            }
            let half = (matrix[q][q] - matrix[p][p]) / (2.0 * matrix[p][q]);
            let tangent = half.signum() / (half.abs() + half.hypot(1.0));
            let cosine = 1.0 / tangent.hypot(1.0);
            let sine = tangent * cosine;
            let rotated = |matrix: [[f64; 3]; 3]| {
                matrix.map(|mut row| {
                    (row[p], row[q]) = (cosine * row[p] - sine * row[q], sine * row[p] + cosine * row[q]);
                    row
                })
            };
            // Rotating columns, then rows, keeps the matrix symmetric.
            matrix = rotated(transposed(rotated(matrix)));
            directions = rotated(directions);
        }
        Self { rates: [matrix[0][0], matrix[1][1], matrix[2][2]], directions }
    }

    /// The deviation that remains of `away` after `seconds`.
    fn decayed(&self, away: [f64; 3], seconds: f64) -> [f64; 3] {
        let along: [f64; 3] = std::array::from_fn(|mode| {
            let projection: f64 = (0..3).map(|part| self.directions[part][mode] * away[part]).sum();
            projection * (-self.rates[mode] * seconds).exp()
        });
        std::array::from_fn(|part| (0..3).map(|mode| self.directions[part][mode] * along[mode]).sum())
    }
}
