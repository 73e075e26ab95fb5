//! Figure 5: what recomputation under Melon costs by the memory that it is given.

use haversack_devices::units::Bytes;
use haversack_reports::figure::{Axis, BarSeries, Bars, Figure, Lines, Look, Panel, Series};
use haversack_reports::table::{Cell, Table};
use haversack_training::Record;
use haversack_workloads::Role;

use super::setting::{BERT, MELON, MOBILENET, NOTE10, PICTURES, S22, TEXTS, phone_name, run_if_it_fits, scenario};
use crate::artefacts::mandheling::setting::compare_with_null;
use crate::reproduce::{ArtefactError, Context, Outcome};
use crate::run::Plan;
use crate::scenario::{Budget, Scenario};

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
        let plan = Plan::new(&scenario, context.cache)?;
        let state = Bytes(plan.graph.bytes_of(|role| role == Role::OptimiserState).at(batch));
        Ok(Self { enough: plan.run()?, scenario, state })
    }

    /// An iteration within `budget` beside the optimiser's state, or why there is none.
    fn within(&self, context: &Context<'_>, budget: Bytes) -> Result<Result<Record, String>, ArtefactError> {
        let memory_budget = Some(Budget::Bytes(budget + self.state));
        run_if_it_fits(context, &Plan::new(&Scenario { memory_budget, ..self.scenario.clone() }, context.cache)?)
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

pub(super) fn s22(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    on(context, S22, "figure5a")
}

pub(super) fn note10(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
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
    let (mut lines, mut names, mut simulated, mut paper) = (Lines::new(), Vec::new(), Vec::new(), Vec::new());
    for ((model, name), batch, subject) in LINES {
        let id = format!("fedhybrid/{artefact}/{subject_phone}-{subject}/melon/latency-overhead");
        let given = context.row(&id)?.number();
        if let Some(null) = context.reference.fedhybrid_null(&id) {
            outcome.null(id.clone(), null);
        }
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
        names.push(name);
        paper.push(given);
        simulated.push(last.as_ref().ok().map(|record| line.overhead(record)));
        match last {
            Ok(record) => outcome.number(id, line.overhead(&record)),
            Err(words) => outcome.not_modelled(id, words),
        }
    }
    compare_with_null(context, &mut outcome, &[("latency-overhead", "figure 5")]);
    let bars = Bars::new(names)
        .series(BarSeries::new("Melon", simulated))
        .series(BarSeries::new("Melon", paper).look(Look::Hatched))
        .show_values();
    let part = artefact.trim_start_matches("figure");
    let x = Axis::new("memory budget beside the optimiser's state").unit("MB");
    outcome.figure = Some(
        Figure::new(format!("FedHybrid, figure {part}: time under Melon by its memory budget, {}", phone_name(phone)))
            .note("MobileNetV2 at batch 32, BERT at batch 8. A budget without a point has no plan.")
            .columns(2)
            .panel_size(430, 320)
            .panel(Panel::new(lines).title("by budget").x(x).y(Axis::new("overhead").unit("x")))
            .panel(
                Panel::new(bars)
                    .title(format!("at {} MB", least.megabytes()))
                    .y(Axis::new("overhead").unit("x").from_zero()),
            ),
    );
    outcome.table = Some(table);
    notes(&mut outcome, phone);
    Ok(outcome)
}

fn notes(outcome: &mut Outcome, phone: &str) {
    let notes = &mut outcome.notes;
    notes.calibrated.push(
        "Nothing: Melon's rule and what it is told are its authors', and what operators take is the stack's.".into(),
    );
    notes.predicted.push("Every point.".into());
    if phone == NOTE10 {
        notes.left_out.push("Two more threads: the phone has two big cores, which train alone.".into());
    }
    notes
        .left_out
        .push("Melon's planning before a task, on the phone: plans are made again for each budget, at no cost.".into());
    notes.misses.push("How much the planner is told decides everything where memory is as short as here: on the Galaxy S22, from 58 % to 54 % BERT goes from two to eight times as long, and at half of it the gradients alone fill it, so that nothing else stays; MobileNetV2 rises to 2.3 at half and no further. The share is another batch's of another phone. Temporaries of operators and gaps between tensors, for which the authors leave the rest, are not in the model.".into());
}
