//! Figure 5: what recomputation under Melon costs by the memory that it is given.

use haversack_workloads::Role;

use super::null::null;
use super::setting::{BERT, MELON, MOBILENET, PICTURES, S22, TEXTS, run_if_it_fits, scenario};
use crate::artefacts::prelude::*;

/// The lines: network and samples, and as the reference names them.
const LINES: [((&str, &str), u64, &str); 2] =
    [(MOBILENET, PICTURES, "mobilenetv2-batch-32"), (BERT, TEXTS, "bert-batch-8")];
/// Steps from enough memory down to the reading's budget.
const STEPS: u64 = 8;

/// One network on one phone.
struct Line {
    scenario: Scenario,
    /// What the optimiser keeps of the weights, which is beside every budget.
    state: Bytes,
    /// An iteration that wants for nothing.
    enough: Record,
}

impl Line {
    fn new(context: &Context<'_>, phone: &str, model: &str, batch: u64) -> Result<Self> {
        let stack = Some(context.reading_text("stack")?.to_owned());
        let scenario = Scenario { stack, ..scenario(context, phone, model, batch, MELON)? };
        let plan = context.plan(&scenario)?;
        let state = Bytes(plan.graph.bytes_of(|role| role == Role::OptimiserState).at(batch));
        Ok(Self { enough: plan.run()?, scenario, state })
    }

    /// An iteration within `budget` beside the optimiser's state, or why there is none.
    fn within(&self, context: &Context<'_>, budget: Bytes) -> Result<Result<Record, String>> {
        let memory_budget = Some(Budget::Bytes(budget + self.state));
        run_if_it_fits(context, &context.plan(&Scenario { memory_budget, ..self.scenario.clone() })?)
    }

    fn overhead(&self, record: &Record) -> f64 {
        record.iteration.seconds() / self.enough.iteration.seconds()
    }

    /// Budgets from what training needs down to `least`, which comes last.
    fn budgets(&self, least: Bytes) -> impl Iterator<Item = Bytes> + use<> {
        let spare = self.enough.reserved.saturating_sub(self.state).saturating_sub(least);
        (0..=STEPS).rev().map(move |step| least + Bytes(spare.0 * step / STEPS))
    }
}

pub(super) fn on(context: &Context<'_>, phone: &'static str) -> Result<Outcome> {
    let artefact = context.artefact.id;
    let least = Bytes((context.reading_number("budget")? * 1e6) as u64);
    let subject_phone = if phone == S22 { "s22" } else { phone };
    let mut records = Records::of(
        "network,name,batch,row,budget_mb,budget_with_state_mb,time_s,recomputed_s,micro_batches,overhead,overhead_in_the_end",
    );
    let mut outcome = Outcome::default();
    for ((model, name), batch, subject) in LINES {
        let row = format!("{artefact}/{subject_phone}-{subject}/melon/latency-overhead");
        let line = Line::new(context, phone, model, batch)?;
        let mut last = Err(String::new());
        for budget in line.budgets(least) {
            last = line.within(context, budget)?;
            let Ok(record) = &last else { continue };
            let budgets = [budget, budget + line.state].map(Bytes::megabytes);
            let times = [record.iteration, record.breakdown.recompute].map(Nanos::seconds);
            let overhead = line.overhead(record);
            let overheads = [Some(overhead), (budget == least).then_some(overhead)];
            let case = (model, name, batch, row.as_str());
            records.row((case, budgets, times, record.micro_batches.len() as u64, overheads))?;
        }
        outcome.number_or(format!("fedhybrid/{row}"), last.map(|record| line.overhead(&record)));
    }
    outcome.nulls_of(&context.rows, |row| null(context.reference, row));
    show(context, records, outcome)
}
