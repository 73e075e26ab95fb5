//! A policy that is tried.

use haversack_devices::units::Bytes;
use haversack_policies::entry::Entry;
use haversack_reports::pareto::{BOTH_MINIMISED, front};
use serde_json::{Value, json};

use super::By;
use crate::cache::Cache;
use crate::checked::doubt;
use crate::run::{Outcome, Plan, Results, Status};
use crate::scenario::Scenario;

/// A policy, and what became of its run.
pub(super) struct Candidate {
    pub(super) policy: &'static Entry,
    /// The stack that it runs on, and the number format of its arithmetic; `None` if its scenario cannot be.
    pub(super) runs_as: Option<(String, &'static str)>,
    pub(super) outcome: Outcome,
    /// The memory budget, if it has one.
    pub(super) memory_budget: Option<Bytes>,
    /// What the user may not expect of its run, a sentence each.
    pub(super) notes: Vec<String>,
    /// Whether no other that fits is both faster and smaller.
    pub(super) is_best: bool,
}

impl Candidate {
    /// Runs `scenario` under `policy`.
    pub(super) fn run(policy: &'static Entry, scenario: &Scenario, cache: &Cache) -> Self {
        let none =
            |outcome| Self { policy, runs_as: None, outcome, memory_budget: None, notes: Vec::new(), is_best: false };
        match Plan::new(scenario, cache) {
            Err(error) => none(Outcome::refused(&error)),
            Ok(plan) => {
                let resolved = plan.scenario();
                let runs_as = (resolved.stack.clone().unwrap_or_default(), plan.arithmetic().name());
                Self {
                    runs_as: Some(runs_as),
                    memory_budget: plan.budgets.memory,
                    notes: plan.resolved.notes.iter().cloned().chain(doubt(&plan)).collect(),
                    ..none(Outcome::of(&plan, cache))
                }
            }
        }
    }

    /// Whether its scenario cannot be at all.
    pub(super) const fn is_refused(&self) -> bool {
        self.runs_as.is_none()
    }

    /// Its figures, if it fits.
    pub(super) fn fits(&self) -> Option<&Results> {
        self.outcome.results.as_ref().filter(|_| self.outcome.status == Status::Ok)
    }

    /// By what it is ranked: the less, the better; nothing is worse than not to fit.
    pub(super) fn rank(&self, by: By) -> f64 {
        self.fits().map_or(f64::INFINITY, |results| match by {
            By::Time => results.iteration_time_s,
            By::Energy => results.energy_j,
            By::Memory => results.peak_memory_bytes as f64,
        })
    }

    pub(super) fn to_json(&self) -> Value {
        let of = |figure: fn(&Results) -> Value| self.outcome.results.as_ref().map_or(Value::Null, figure);
        let (stack, precision) = self.runs_as.as_ref().map(|(stack, precision)| (stack, precision)).unzip();
        json!({
            "policy": self.policy.id,
            "status": self.outcome.status.word(),
            "pareto": self.is_best,
            "stack": stack,
            "precision": precision,
            "iteration_time_s": of(|results| json!(results.iteration_time_s)),
            "samples_per_s": of(|results| json!(results.samples_per_s)),
            "energy_j": of(|results| json!(results.energy_j)),
            "peak_memory_bytes": of(|results| json!(results.peak_memory_bytes)),
            "memory_budget_bytes": self.memory_budget.map(|bytes| bytes.0),
            "least_memory_bytes": self.outcome.least_memory.map(|bytes| bytes.0),
            "reason": self.outcome.reason,
        })
    }
}

/// Marks those that fit and that none which fits beats both in time and in memory.
pub(super) fn mark_best(candidates: &mut [Candidate]) {
    let place = |candidate: &Candidate| {
        let results = candidate.fits();
        results.map_or((f64::NAN, f64::NAN), |r| (r.peak_memory_bytes as f64, r.iteration_time_s))
    };
    let points: Vec<(f64, f64)> = candidates.iter().map(place).collect();
    let best = front(&points, BOTH_MINIMISED);
    // Of equal points the front has one; all of them are as good.
    let best: Vec<(f64, f64)> = best.into_iter().filter_map(|place| points.get(place).copied()).collect();
    for (candidate, point) in candidates.iter_mut().zip(&points) {
        candidate.is_best = best.contains(point);
    }
}
