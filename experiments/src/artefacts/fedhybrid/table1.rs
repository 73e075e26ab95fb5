//! Table 1: what layout transformations take of the time that recomputation costs.

use haversack_training::Record;

use super::null::null;
use super::setting::{MELON, S22, on_s22, run_if_it_fits, scenario};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact =
    on_s22("table1", "share of layout transformations in what is computed again", run);

/// The budget of the reading `table1-share`: half of what saved tensors take.
const BUDGET: Budget = Budget::Percent(50.0);

/// What a sample is, which decides the batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sample {
    Picture,
    Text,
}

/// The networks of the table as the reference names them, for people, and as models.
const NETWORKS: [(&str, &str, &str, Sample); 5] = [
    ("resnet34", "ResNet-34", "resnet34", Sample::Picture),
    ("mobilenetv2", "MobileNetV2", "mobilenetv2", Sample::Picture),
    ("resnet50", "ResNet-50", "resnet50", Sample::Picture),
    ("bert", "BERT", "bert-base", Sample::Text),
    ("swin-finetune", "Swin-T", "swin-t", Sample::Picture),
];

fn row_of(subject: &str) -> String {
    format!("fedhybrid/table1/{subject}/recomputation/layout-transformation-share")
}

/// Milliseconds of layout transformations and of all else that is computed again.
fn parts(record: &Record) -> (f64, f64) {
    let layout = record.recomputed_layout;
    (layout.seconds() * 1e3, record.breakdown.recompute.saturating_sub(layout).seconds() * 1e3)
}

/// What layout transformations take of all that is computed again, in per cent; `None` if nothing is.
pub(crate) fn share(record: &Record) -> Option<f64> {
    let (layout, other) = parts(record);
    (layout + other > 0.0).then(|| layout / (layout + other) * 100.0)
}

/// The batch of the reading.
fn batch(context: &Context<'_>, sample: Sample) -> Result<u64, ArtefactError> {
    let batches = context.reading_numbers("table1-batch")?;
    let [pictures, texts] = batches else { anyhow::bail!("the reading `table1-batch` is not two numbers") };
    Ok(if sample == Sample::Picture { *pictures } else { *texts } as u64)
}

fn plan(context: &Context<'_>, model: &str, batch: u64) -> Result<Plan, ArtefactError> {
    let mut scenario = scenario(context, S22, model, batch, MELON)?;
    scenario.activation_budget = Some(BUDGET);
    context.plan(&scenario)
}

/// The run that answers a row; `None` if no network is the row's.
pub(crate) fn plan_of_row(context: &Context<'_>, id: &str) -> Result<Option<Plan>, ArtefactError> {
    let network = NETWORKS.iter().find(|(subject, ..)| row_of(subject) == id);
    network.map(|&(_, _, model, sample)| plan(context, model, batch(context, sample)?)).transpose()
}

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    let mut table =
        Table::new(["network", "batch", "budget_mb", "layout_ms", "other_ms", "layout_percent", "paper_percent"]);
    let (mut names, mut layouts, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let mut grid = Grid::default();
    for (subject, name, model, sample) in NETWORKS {
        let id = row_of(subject);
        let given = context.row(&id)?.number();
        let batch = batch(context, sample)?;
        let plan = plan(context, model, batch)?;
        let ran = run_if_it_fits(context, &plan)?;
        names.push(name);
        let (layout, other) = ran.as_ref().map_or((0.0, 0.0), parts);
        layouts.push(layout);
        others.push(other);
        let share = ran.as_ref().ok().and_then(share);
        grid.put([name, "layout", "share"], share, given);
        let budget = plan.budgets.activations.map(haversack_devices::units::Bytes::megabytes);
        let numbers = [budget, Some(layout), Some(other), share, given].map(Into::into);
        table.push([subject.into(), batch.into()].into_iter().chain(numbers))?;
        match (share, ran) {
            (Some(share), _) => outcome.number(id, share),
            (None, Err(words)) => outcome.not_modelled(id, words),
            (None, Ok(_)) => outcome.not_modelled(id, "nothing is computed again"),
        }
    }
    outcome.remark(row_of("swin-finetune"), "all weights are trained, where the paper fine-tunes");
    outcome.nulls_of(&context.rows, |row| null(context.reference, row));
    outcome.compare_with_null(&context.rows, "layout", "table 1");
    let times = Stack::new(names).part("layout", layouts).part("other", others).show_shares().show_totals();
    let bars = grid.bars("share").show_values();
    let figure = Figure::new("FedHybrid, table 1: layout transformations in what Melon computes again, Galaxy S22")
            .note("An iteration in which saved tensors get half of what they would take. A network without a bar computes nothing again, or has no plan there.")
            .columns(2)
            .panel_size(460, 320)
            .panel(Panel::new(times).title("computed again").y(Axis::new("time").unit("ms").from_zero()))
            .panel(Panel::new(bars).title("share of layouts").y(Axis::new("share").unit("%").range(0.0, 100.0)));
    Ok(outcome.drawn(figure, table))
}
