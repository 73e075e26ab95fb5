//! Governors: what load and heat make of the cores' frequency.
//!
//! Both give shares of the highest frequency; [`CpuCores::following`] and [`CpuCores::limited`] turn these into
//! operating points.

use crate::processor::CpuCores;
use crate::thermal::{Heat, Thermal};
use crate::units::{Celsius, Fraction, Nanos, Watts};

/// Follows load, as Linux's `schedutil` does: 1.25 times the utilisation that PELT has averaged.
///
/// Utilisation does not depend on frequency: time busy counts by the share of the highest frequency at which it was
/// spent. A share becomes operating points by [`CpuCores::following`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Schedutil {
    floor: Fraction,
    utilisation: Fraction,
}

impl Schedutil {
    /// After so long half of what PELT knew is forgotten.
    pub(crate) const HALF_LIFE: Nanos = Nanos(32_000_000);
    /// The headroom over utilisation.
    const HEADROOM: f64 = 1.25;

    /// For `cores` that have been busy until now.
    pub fn new(cores: &CpuCores) -> Self {
        Self { floor: cores.floor(), utilisation: Fraction(1.0) }
    }

    /// `core` as it runs once its `utilisation`, a share of what it does at its highest frequency, has stayed the same for long.
    pub fn settled(core: &CpuCores, utilisation: Fraction) -> CpuCores {
        core.following(Fraction((Self::HEADROOM * utilisation.0).min(1.0)))
    }

    /// After a `span` of which the cores spent the share `busy` at work, at `share` of their highest frequency.
    pub fn after(self, span: Nanos, busy: Fraction, share: Fraction) -> Self {
        let remembered = (-(span.seconds() / Self::HALF_LIFE.seconds())).exp2();
        let seen = (busy.0 * share.0).clamp(0.0, 1.0);
        Self { utilisation: Fraction(self.utilisation.0 * remembered + seen * (1.0 - remembered)), ..self }
    }

    /// The share of the highest frequency that it wants: at least the floor, at most 1.
    pub fn share(&self) -> Fraction {
        Fraction((Self::HEADROOM * self.utilisation.0).max(self.floor.0).min(1.0))
    }
}

/// Keeps the die cool, as Linux's `step_wise` does: once a second, one operating point down while the die is above
/// the trip temperature and gets hotter, one up when it is below that less the hysteresis.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct StepWise {
    trip: Celsius,
    /// Operating points as shares of the highest frequency, rising.
    shares: Vec<Fraction>,
    /// How many of them are forbidden.
    forbidden: usize,
    seen: Celsius,
    /// Time since it last looked.
    waited: Nanos,
}

impl StepWise {
    /// It looks at the temperature so often.
    pub const PERIOD: Nanos = Nanos(1_000_000_000);
    /// As kernels usually set it for a zone of the CPU.
    pub(crate) const HYSTERESIS: Celsius = Celsius(2.0);

    /// For `cores` in a device that heats up like `thermal`; it limits nothing yet.
    pub fn new(cores: &CpuCores, thermal: &Thermal) -> Self {
        Self {
            trip: thermal.trip(),
            shares: cores.operating_shares(),
            forbidden: 0,
            seen: Celsius(f64::NEG_INFINITY),
            waited: Nanos::ZERO,
        }
    }

    /// The share of the highest frequency that it allows, for [`CpuCores::limited`].
    pub fn share(&self) -> Fraction {
        self.shares.iter().rev().nth(self.forbidden).copied().unwrap_or(Fraction(1.0))
    }

    /// Looks at the die once.
    pub fn poll(&mut self, die: Celsius) {
        if die.0 > self.trip.0 && die.0 > self.seen.0 {
            self.forbidden = (self.forbidden + 1).min(self.shares.len().saturating_sub(1));
        } else if die.0 < self.trip.0 - Self::HYSTERESIS.0 {
            self.forbidden = self.forbidden.saturating_sub(1);
        }
        self.seen = die;
    }

    /// Lets a `span` of constant `power` pass over `heat`, and looks whenever a period ends within it.
    ///
    /// What it decides within the span lowers no power in it: spans much longer than a period overshoot.
    pub fn watch(&mut self, thermal: &Thermal, heat: &mut Heat, power: Watts, span: Nanos) {
        let mut left = span;
        while self.waited + left >= Self::PERIOD {
            let step = Self::PERIOD.saturating_sub(self.waited);
            thermal.advance(heat, power, step);
            self.poll(heat.die);
            (self.waited, left) = (Nanos::ZERO, left - step);
        }
        thermal.advance(heat, power, left);
        self.waited += left;
    }
}
