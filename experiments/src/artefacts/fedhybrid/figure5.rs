//! Figure 5: what recomputation under Melon costs by the memory that it is given.

use haversack_training::Record;
use haversack_workloads::Role;

use super::null::null;
use super::setting::{
    BERT, MELON, MOBILENET, NOTE10, PICTURES, S22, TEXTS, on_s22, phone_name, run_if_it_fits, scenario,
};
use crate::artefacts::prelude::*;

pub(super) static FIGURE5A: Artefact = on_s22("figure5a", "time under Melon by its memory budget, Galaxy S22", s22);
pub(super) static FIGURE5B: Artefact =
    Artefact { devices: &[NOTE10], ..on_s22("figure5b", "the same on the Redmi Note 10", note10) };

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
    fn new(context: &Context<'_>, phone: &str, model: &str, batch: u64) -> Result<Self, ArtefactError> {
        let scenario = scenario(context, phone, model, batch, MELON)?;
        let plan = context.plan(&scenario)?;
        let state = Bytes(plan.graph.bytes_of(|role| role == Role::OptimiserState).at(batch));
        Ok(Self { enough: plan.run()?, scenario, state })
    }

    /// An iteration within `budget` beside the optimiser's state, or why there is none.
    fn within(&self, context: &Context<'_>, budget: Bytes) -> Result<Result<Record, String>, ArtefactError> {
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

fn s22(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    on(context, S22, "figure5a")
}

fn note10(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    on(context, NOTE10, "figure5b")
}

fn on(context: &Context<'_>, phone: &'static str, artefact: &str) -> Result<Outcome, ArtefactError> {
    let least = Bytes((context.reading_number("budget")? * 1e6) as u64);
    let subject_phone = if phone == S22 { "s22" } else { phone };
    let mut outcome = Outcome::default();
    let mut table = Table::new([
        "network",
        "batch",
        "budget_mb",
        "budget_with_state_mb",
        "time_s",
        "recomputed_s",
        "micro_batches",
        "overhead",
    ]);
    let (mut lines, mut grid) = (Lines::new(), Grid::default());
    for ((model, name), batch, subject) in LINES {
        let id = format!("fedhybrid/{artefact}/{subject_phone}-{subject}/melon/latency-overhead");
        let given = context.row(&id)?.number();
        let line = Line::new(context, phone, model, batch)?;
        let mut points = Vec::new();
        let mut last = Err(String::new());
        for budget in line.budgets(least) {
            last = line.within(context, budget)?;
            let Ok(record) = &last else { continue };
            points.push((budget.megabytes(), line.overhead(record)));
            let budgets = [budget, budget + line.state].map(|budget| Cell::from(budget.megabytes()));
            let times = [record.iteration, record.breakdown.recompute].map(|time| Cell::from(time.seconds()));
            let rest = [Cell::from(record.micro_batches.len() as u64), line.overhead(record).into()];
            let head = [Cell::from(model), batch.into()];
            table.push(head.into_iter().chain(budgets).chain(times).chain(rest))?;
        }
        lines = lines.series(Series::new(name, points));
        let overhead = last.map(|record| line.overhead(&record));
        grid.put([name, "Melon", "overhead"], overhead.as_ref().ok().copied(), given);
        outcome.number_or(id, overhead);
    }
    outcome.nulls_of(&context.rows, |row| null(context.reference, row));
    outcome.compare_with_null(&context.rows, "latency-overhead", "figure 5");
    let bars = grid.bars("overhead").show_values();
    let part = artefact.trim_start_matches("figure");
    let x = Axis::new("memory budget beside the optimiser's state").unit("MB");
    let figure =
        Figure::new(format!("FedHybrid, figure {part}: time under Melon by its memory budget, {}", phone_name(phone)))
            .note("MobileNetV2 at batch 32, BERT at batch 8. A budget without a point has no plan.")
            .columns(2)
            .panel_size(430, 320)
            .panel(Panel::new(lines).title("by budget").x(x).y(Axis::new("overhead").unit("x")))
            .panel(
                Panel::new(bars)
                    .title(format!("at {} MB", least.megabytes()))
                    .y(Axis::new("overhead").unit("x").from_zero()),
            );
    Ok(outcome.drawn(figure, table))
}
