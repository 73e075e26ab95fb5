//! The cost of iterations on a device within budgets.

use std::collections::BTreeMap;

use haversack_devices::units::Bytes;

use super::iteration::Cost;
use crate::error::Result;

/// An iteration within a budget is also used for budgets up to this much larger ...
const STEP: f64 = 1.04;
/// ... unless it is slower by this factor than that of the next larger known budget.
const LONGER: f64 = 1.015;

/// Iterations on a device: with unlimited memory, and within budgets.
pub(super) struct OnDevice {
    pub(super) unbounded: Cost,
    /// By budget; `None` where no plan fits.
    within: BTreeMap<Bytes, Option<Cost>>,
    /// The least budget that a plan fits.
    least: Bytes,
}

impl OnDevice {
    pub(super) const fn new(unbounded: Cost) -> Self {
        Self { unbounded, within: BTreeMap::new(), least: Bytes::ZERO }
    }

    /// Finds the least budget with a plan, and that plan, by bisecting the evictable memory, to within a
    /// hundredth of the peak.
    ///
    /// # Errors
    /// The error of `simulate`.
    pub(super) fn find_least(&mut self, simulate: impl Fn(Bytes) -> Result<Option<Cost>>) -> Result<()> {
        let Cost { peak, growth, .. } = self.unbounded;
        (self.least, self.within) = (peak, BTreeMap::new());
        let mut without = peak.saturating_sub(growth);
        while self.least.saturating_sub(without).0 > peak.0 / 100 {
            let middle = Bytes(without.0.midpoint(self.least.0));
            if let Some(cost) = simulate(middle)? {
                (self.least, self.within) = (middle, BTreeMap::from([(middle, Some(cost))]));
            } else {
                without = middle;
            }
        }
        Ok(())
    }

    /// The plan with the smallest peak.
    pub(super) fn least_plan(&self) -> Cost {
        self.within.get(&self.least).copied().flatten().unwrap_or(self.unbounded)
    }

    /// Simulates an iteration within `budget`, unless one within a slightly smaller budget is known.
    ///
    /// # Errors
    /// The error of `simulate`.
    pub(super) fn simulate(&mut self, budget: Bytes, simulate: impl Fn(Bytes) -> Result<Option<Cost>>) -> Result<()> {
        if budget >= self.least && self.within(budget).is_none() && !self.within.contains_key(&budget) {
            self.within.insert(budget, simulate(budget)?);
        }
        Ok(())
    }

    /// Simulates an iteration within `budget` if the one used for it is much slower than that of the next larger
    /// budget: a little more memory may allow a much faster plan.
    ///
    /// # Errors
    /// The error of `simulate`.
    pub(super) fn refine(&mut self, budget: Bytes, simulate: impl Fn(Bytes) -> Result<Option<Cost>>) -> Result<()> {
        let above = self.within.range(budget..).find_map(|(_, cost)| cost.as_ref()).unwrap_or(&self.unbounded);
        let is_steep = |cost: Cost| cost.seconds > LONGER * above.seconds;
        if !self.within.contains_key(&budget) && self.within(budget).is_some_and(is_steep) {
            self.within.insert(budget, simulate(budget)?);
        }
        Ok(())
    }

    /// An iteration within the memory left; `None` if no plan fits.
    pub(super) fn within(&self, left: Bytes) -> Option<Cost> {
        if left >= self.unbounded.peak {
            return Some(self.unbounded);
        }
        let (known, cost) = self.within.range(..=left).next_back()?;
        cost.filter(|_| left.as_f64() <= known.as_f64() * STEP)
    }

    /// All iterations, each with the fraction of evictable memory that its budget leaves.
    pub(super) fn shares(&self) -> impl Iterator<Item = (&Cost, f64)> {
        let Cost { peak, growth, .. } = self.unbounded;
        let share = move |budget: Bytes| {
            let left = growth.as_f64() - peak.saturating_sub(budget).as_f64();
            (left / growth.as_f64().max(1.0)).clamp(0.0, 1.0)
        };
        let within = self.within.iter().filter_map(move |(budget, cost)| Some((cost.as_ref()?, share(*budget))));
        std::iter::once((&self.unbounded, 1.0)).chain(within)
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
    fn the_least_budget_that_holds_a_plan_is_found_by_few_looks() {
        let cost =
            |peak| Cost { plan: 0, seconds: 1.0, joules: 1.0, peak: Bytes(peak), growth: Bytes(8000), making: None };
        let least = |holds: u64| {
            let (mut device, looks) = (OnDevice::new(cost(10_000)), std::cell::Cell::new(0));
            let simulate = |budget: Bytes| {
                looks.set(looks.get() + 1);
                Ok((budget.0 >= holds).then_some(cost(budget.0)))
            };
            device.find_least(simulate).unwrap();
            (device.least.0, device.least_plan().peak.0, looks.get())
        };
        // Weights take 2,000 and cannot be reduced; a hundredth of the peak is 100, so seven halvings
        // of 8,000 are enough.
        assert_eq!(least(0), (2062, 2062, 7));
        assert_eq!(least(9999), (10_000, 10_000, 7));
        let (found, peak, looks) = least(6430);
        assert!((6430..6530).contains(&found) && peak == found && looks == 7, "{found}, {looks}");
    }

    #[test]
    fn where_little_memory_costs_much_time_more_iterations_are_simulated() {
        let cost =
            |seconds| Cost { plan: 0, seconds, joules: 1.0, peak: Bytes(9000), growth: Bytes(5000), making: None };
        // A plan for less than 1020 takes a tenth longer, and one for 1020 or more as long as without a budget.
        let simulate = |budget: Bytes| Ok(Some(cost(if budget.0 < 1020 { 1.1 } else { 1.0 })));
        let mut device = OnDevice::new(cost(1.0));
        let budgets = [1000, 1010, 1020, 1030].map(Bytes);
        budgets.iter().for_each(|&budget| device.simulate(budget, simulate).unwrap());
        assert_eq!(device.within(Bytes(1030)).unwrap().seconds, 1.1);
        budgets.iter().for_each(|&budget| device.refine(budget, simulate).unwrap());
        assert_eq!(budgets.map(|budget| device.within(budget).unwrap().seconds), [1.1, 1.1, 1.0, 1.0]);
        // 1030 is not simulated: the iteration within 1020 is used for it.
        assert_eq!(device.within.len(), 3);
    }

    #[test]
    fn an_iteration_stands_for_those_within_little_more_and_none_for_less() {
        let cost = |peak| Cost {
            plan: 0,
            seconds: 1.0,
            joules: 1.0,
            peak: Bytes(peak),
            growth: Bytes(peak / 2),
            making: None,
        };
        let mut device = OnDevice::new(cost(10_000));
        let fits = |budget: Bytes| Ok((budget.0 >= 1010).then(|| cost(budget.0)));
        for budget in [1000, 1020, 1050, 1070] {
            device.simulate(Bytes(budget), fits).unwrap();
        }
        // No plan fits 1000, so 1020 is simulated; 1050 is 3% more, 1070 is 5% more.
        let peaks =
            [1000, 1020, 1050, 1070, 2000, 10_000].map(|left| device.within(Bytes(left)).map(|cost| cost.peak.0));
        assert_eq!(peaks, [None, Some(1020), Some(1020), Some(1070), None, Some(10_000)]);
        assert_eq!(device.plans().count(), 2);
        // Of the 5,000 evictable bytes all but 20 and 70 are missing; fractions below zero are clamped to zero.
        device.simulate(Bytes(9000), fits).unwrap();
        // 1,000 of 5,000 are missing.
        assert_eq!(device.shares().map(|(_, share)| share).collect::<Vec<_>>(), [1.0, 0.0, 0.0, 0.8]);
    }
}
