//! Figure 13: the arena under a budget that falls within an iteration, for three steps.

use crate::artefacts::prelude::*;
use crate::scenario::Step;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let [before, after] = context.reading_numbers("budget-cut")?[..] else {
        bail!("the reading `budget-cut` is not two numbers")
    };
    let budgets = [before, after].map(|megabytes| Bytes((megabytes * 1e6) as u64));
    let header = "effective_mb,paging_ms,gradients_given_up,iteration_ms,effective,paging_s,allowed_mb,allowed";
    swept(context, header, |scenario, ids| {
        let share: f64 = ids[0].parse()?;
        let mut scenario = scenario.clone();
        scenario.activation_budget = Some(Budget::Bytes(budgets[0]));
        let forward = context.run(&scenario)?.forward;
        let at = if share < 1.0 { Nanos((forward.0 as f64 * share) as u64) } else { forward };
        scenario.budget_walls.activations = vec![Step { at, budget: Budget::Bytes(budgets[1]) }];
        let record = context.run(&scenario)?;
        // What saved tensors take right after the cut, and the time of system calls and copying.
        let effective = record.saved_after_cut.unwrap_or_default();
        let [paging, iteration] = [record.breakdown.paging, record.iteration].map(|time| time.seconds() * 1e3);
        let found = [effective.megabytes(), paging, record.given_up as f64, iteration];
        Ok((found, effective.as_f64(), record.breakdown.paging.seconds(), after, budgets[1].as_f64()))
    })
}
