//! The points of the comparison: every policy at every budget.

use haversack_policies::POLICIES;
use haversack_training::FidelityClass;
use serde::Deserialize;

use crate::Cache;
use crate::artefacts::prelude::*;
use crate::run::Results;

/// A network, the samples of a mini-batch, and what its stand-ins learn.
pub(super) type Network = (&'static str, u64, &'static str);
/// Budgets in percent of what training needs on the device's usual engine without a policy.
pub(super) const PERCENTS: [f64; 4] = [80.0, 50.0, 25.0, 15.0];
/// The settings of minimum cuts: exact, and with fewer bits.
const CUTS: [Set<'static>; 2] = [&[("tries", "24")], &[("tries", "24"), ("fidelity", "stored")]];
/// A policy at a budget, a row of the data.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Point {
    pub(super) device: String,
    pub(super) model: String,
    pub(super) policy: String,
    pub(super) stack: String,
    /// Whether the stack is the one that the device usually trains with.
    pub(super) is_usual: bool,
    pub(super) budget_percent: Option<f64>,
    pub(super) budget_gb: Option<f64>,
    /// The peak, and the time of an iteration; `None` where no plan fits.
    pub(super) memory_gb: Option<f64>,
    pub(super) time_s: Option<f64>,
    pub(super) gradients: Option<FidelityClass>,
    /// A time that no plan beats which is as faithful.
    pub(super) bound_s: Option<f64>,
    /// The share by which the time may be off.
    pub(super) off: Option<f64>,
}

impl Point {
    /// Simulates `scenario`; `None` where its engine does not run here.
    pub(super) fn of(cache: &Cache, scenario: &Scenario, is_usual: bool) -> Option<Self> {
        let plan = Plan::new(scenario, cache).ok()?;
        let found = plan.run_within_device(cache).ok().map(|record| Results::new(&plan, &record));
        let found = found.as_ref();
        let percent = match scenario.memory_budget {
            Some(Budget::Percent(percent)) => Some(percent),
            _ => None,
        };
        Some(Self {
            device: scenario.device.clone(),
            model: scenario.model.clone(),
            policy: scenario.policy.clone(),
            stack: plan.machine().stack.id.clone(),
            is_usual,
            budget_percent: percent,
            budget_gb: plan.budgets.memory.map(|budget| budget.as_f64() / 1e9),
            memory_gb: found.map(|found| found.peak_memory_bytes as f64 / 1e9),
            time_s: found.map(|found| found.iteration_time_s),
            gradients: found.map(|found| found.fidelity),
            bound_s: found.and_then(|found| found.lower_bound_s),
            off: None,
        })
    }

    pub(super) fn is_exact(&self) -> bool {
        self.gradients == Some(FidelityClass::Exact)
    }

    /// Memory and time.
    pub(super) fn place(&self) -> Option<(f64, f64)> {
        self.memory_gb.zip(self.time_s)
    }
}

/// Every policy at every budget, and whether it runs on the engine that the device usually trains with.
pub(super) fn scenarios(device: &str, network: Network, seed: u64) -> Vec<(Scenario, bool)> {
    let ((model, batch, _), mut wanted) = (network, Vec::new());
    for entry in POLICIES.iter() {
        let is_usual = entry.engine.is_none();
        let own = Scenario { seed, iterations: is_usual.then_some(2), ..trained(device, model, entry.id, batch) };
        let own = if entry.id == "mincut" { CUTS.map(|set| with(&own, set)).to_vec() } else { vec![own] };
        // Nothing gives way without a budget; but DAF stores two bits then.
        let mut budgets = if entry.gives_way { PERCENTS.map(Some).to_vec() } else { Vec::new() };
        if entry.stores_floats || !entry.gives_way {
            budgets.push(None);
        }
        for scenario in own {
            let within = |percent: &Option<f64>| {
                let memory_budget = percent.map(Budget::Percent);
                (Scenario { memory_budget, ..scenario.clone() }, is_usual)
            };
            // Each search for cuts is dozens of runs: only where memory is short.
            let first = scenario.set.len();
            wanted.extend(budgets[first..].iter().map(within));
        }
    }
    wanted
}

/// The points of a network on a device, without those whose engine does not run there.
pub(super) fn points(cache: &Cache, device: &str, network: Network, seed: u64) -> Vec<Point> {
    let wanted = scenarios(device, network, seed);
    wanted.par_iter().filter_map(|(scenario, is_usual)| Point::of(cache, scenario, *is_usual)).collect()
}
