//! Plans: before an iteration there is one for the memory that there is then, and the run waits for it.

use haversack_devices::units::Nanos;
use haversack_policies::planning::Room;

use super::Executor;
use crate::error::RunError;
use crate::record::PlanReport;

impl Executor<'_> {
    /// Has the planner see to its plan. The first comes with the model, before the first iteration, so that nobody waits.
    pub(super) fn plan(&mut self) -> Result<(), RunError> {
        let limits = self.tensors.limits();
        let room = Room { memory: limits.memory, activations: limits.activations };
        let Some(planner) = &mut self.planner else { return Ok(()) };
        let Some(planning) = planner.plan_within(self.tensors.graph(), room)? else { return Ok(()) };
        let time = self.costs.machine().planning_time(&planning);
        let began = self.clock.now();
        if !self.plans.is_empty() && time.is_some_and(|time| time > Nanos::ZERO) {
            self.pause(time.unwrap_or_default())?;
            self.clock.charge(began, |part| &mut part.planning);
        }
        self.plans.push(PlanReport { iteration: self.iterations.saturating_sub(1) as u64, planning, time });
        Ok(())
    }
}
