//! The least budget with which a plan works.

use haversack_devices::units::Bytes;
use haversack_training::{Budgets, Job, Observe, RunError, least_memory, least_that_works, simulate};

use super::Plan;
use crate::cache::Cache;
use crate::scenario::{Key, size_text};

/// The keys that do not decide the least budget.
const INDIFFERENT: [Key; 8] = [
    Key::MemoryBudget,
    Key::BudgetWalls,
    Key::TimeBudget,
    Key::Trace,
    Key::TraceFrom,
    Key::TraceWindow,
    Key::Iterations,
    Key::Seed,
];

/// The least budget that works, of the kind that is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeastBudget {
    /// Of all that the framework holds.
    Memory(Bytes),
    /// Of saved tensors alone: no memory budget would help.
    Activations(Bytes),
}

impl LeastBudget {
    /// The bytes.
    pub const fn bytes(self) -> Bytes {
        match self {
            Self::Memory(bytes) | Self::Activations(bytes) => bytes,
        }
    }

    /// The sentence that tells the user, and how far below it `budgets` are where no wall is.
    pub fn advice(self, budgets: &Budgets) -> String {
        let (kind, flag, given) = match self {
            Self::Memory(_) => ("memory", "memory-budget", budgets.memory),
            Self::Activations(_) => ("activation", "activation-budget", budgets.activations),
        };
        let bytes = self.bytes();
        let missing = given.map(|given| bytes.saturating_sub(given)).filter(|missing| *missing > Bytes::ZERO);
        let short = missing.map(|missing| format!("it is {missing} short: ")).unwrap_or_default();
        format!("{short}the least {kind} budget that works is {bytes} (--{flag} {})", size_text(bytes))
    }
}

impl Plan {
    /// The least memory budget that works, to a thousandth, whatever the plan's own; walls are left out.
    ///
    /// # Errors
    /// What a run without a memory budget yields.
    pub fn least_memory(&self) -> Result<Bytes, RunError> {
        least_memory(self.machine(), &self.job_without_walls(), || self.policy())
    }

    /// The least budget that works, of whichever kind is short. It is searched once a configuration.
    ///
    /// # Errors
    /// What a run without any budget yields.
    pub fn least_budget(&self, cache: &Cache) -> Result<LeastBudget, RunError> {
        let decisive = Key::ALL.into_iter().filter(|key| !INDIFFERENT.contains(key));
        let key = self.scenario().fingerprint(decisive);
        let Ok(found) = cache.get(key, || Ok::<_, std::convert::Infallible>(self.search()));
        (*found).clone()
    }

    fn search(&self) -> Result<LeastBudget, RunError> {
        match self.least_memory() {
            Ok(bytes) => Ok(LeastBudget::Memory(bytes)),
            Err(error) if error.is_infeasible() && self.budgets.activations.is_some() => {
                self.least_activations().map(LeastBudget::Activations)
            }
            Err(error) => Err(error),
        }
    }

    fn job_without_walls(&self) -> Job<'_> {
        let mut job = self.job();
        job.budgets.walls.clear();
        job.budgets.activation_walls.clear();
        job.budgets.traced.clear();
        job
    }

    /// The least activation budget that works where memory is not bounded.
    fn least_activations(&self) -> Result<Bytes, RunError> {
        let mut job = Job { iterations: 1, observe: Observe::default(), ..self.job_without_walls() };
        job.budgets.memory = None;
        let mut attempt = |activations: Option<Bytes>| {
            job.budgets.activations = activations;
            simulate(self.machine(), &job, self.policy()?.as_mut())
        };
        attempt(None)?;
        let whole = self.saved_bytes().max(Bytes(1));
        least_that_works(whole, |budget| attempt(Some(budget)).map(drop))
    }
}
