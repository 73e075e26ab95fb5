//! Iterations on a device within budgets.

use std::collections::BTreeMap;

use haversack_devices::units::Bytes;

use super::iteration::Cost;
use crate::error::CommandError;

/// An iteration stands for those within so much more.
const STEP: f64 = 1.04;

/// A device as if it had all the memory that is asked for, and within budgets.
pub(super) struct OnDevice {
    pub(super) unbounded: Cost,
    /// By budget; `None` where no plan fits.
    within: BTreeMap<Bytes, Option<Cost>>,
}

impl OnDevice {
    pub(super) const fn new(unbounded: Cost) -> Self {
        Self { unbounded, within: BTreeMap::new() }
    }

    /// Has an iteration within `budget` simulated, unless one within hardly less is known.
    ///
    /// # Errors
    /// What `simulate` fails with.
    pub(super) fn simulate(
        &mut self,
        budget: Bytes,
        simulate: impl Fn(Bytes) -> Result<Option<Cost>, CommandError>,
    ) -> Result<(), CommandError> {
        if self.within(budget).is_none() && !self.within.contains_key(&budget) {
            self.within.insert(budget, simulate(budget)?);
        }
        Ok(())
    }

    /// An iteration within what is left; `None` where no plan fits.
    pub(super) fn within(&self, left: Bytes) -> Option<Cost> {
        if left >= self.unbounded.peak {
            return Some(self.unbounded);
        }
        let (known, cost) = self.within.range(..=left).next_back()?;
        cost.filter(|_| left.as_f64() <= known.as_f64() * STEP)
    }

    /// Iterations within budgets.
    pub(super) fn plans(&self) -> impl Iterator<Item = &Cost> {
        self.within.values().flatten()
    }

    pub(super) fn costs(&mut self) -> impl Iterator<Item = &mut Cost> {
        std::iter::once(&mut self.unbounded).chain(self.within.values_mut().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iteration_stands_for_those_within_little_more_and_none_for_less() {
        let cost = |peak| Cost { plan: 0, seconds: 1.0, joules: 1.0, peak: Bytes(peak), making: None };
        let mut device = OnDevice::new(cost(10_000));
        let fits = |budget: Bytes| Ok((budget.0 >= 1010).then(|| cost(budget.0)));
        for budget in [1000, 1020, 1050, 1070] {
            device.simulate(Bytes(budget), fits).unwrap();
        }
        // 1000 holds nothing, so 1020 has its own; 1050 is 3% more, 1070 is 5% more.
        let peaks =
            [1000, 1020, 1050, 1070, 2000, 10_000].map(|left| device.within(Bytes(left)).map(|cost| cost.peak.0));
        assert_eq!(peaks, [None, Some(1020), Some(1020), Some(1070), None, Some(10_000)]);
        assert_eq!(device.plans().count(), 2);
    }
}
