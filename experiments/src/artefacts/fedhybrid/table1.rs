//! Table 1: what layout transformations take of the time that recomputation costs.

use haversack_reports::figure::{Axis, BarSeries, Bars, Figure, Look, Panel, Stack};
use haversack_reports::table::Table;
use haversack_training::Record;

use super::setting::{MELON, S22, run_if_it_fits, scenario};
use crate::artefacts::mandheling::setting::compare_with_null;
use crate::reproduce::{ArtefactError, Context, Outcome};
use crate::run::Plan;
use crate::scenario::Budget;

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

/// What layout transformations take of all that is computed again, in per cent; nothing where nothing is.
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
    Ok(Plan::new(&scenario, context.cache)?)
}

/// The run that answers a row; nothing where no network is the row's.
pub(crate) fn plan_of_row(context: &Context<'_>, id: &str) -> Result<Option<Plan>, ArtefactError> {
    let network = NETWORKS.iter().find(|(subject, ..)| row_of(subject) == id);
    network.map(|&(_, _, model, sample)| plan(context, model, batch(context, sample)?)).transpose()
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    let mut table =
        Table::new(["network", "batch", "budget_mb", "layout_ms", "other_ms", "layout_percent", "paper_percent"]);
    let (mut names, mut layouts, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let (mut shares, mut paper) = (Vec::new(), Vec::new());
    for (subject, name, model, sample) in NETWORKS {
        let id = row_of(subject);
        let given = context.row(&id)?.number();
        if let Some(null) = context.reference.fedhybrid_null(&id) {
            outcome.null(id.clone(), null);
        }
        let batch = batch(context, sample)?;
        let plan = plan(context, model, batch)?;
        let ran = run_if_it_fits(context, &plan)?;
        names.push(name);
        paper.push(given);
        let (layout, other) = ran.as_ref().map_or((0.0, 0.0), parts);
        layouts.push(layout);
        others.push(other);
        let share = ran.as_ref().ok().and_then(share);
        shares.push(share);
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
    compare_with_null(context, &mut outcome, &[("layout", "table 1")]);
    let times = Stack::new(names.clone()).part("layout", layouts).part("other", others).show_shares().show_totals();
    let bars = Bars::new(names)
        .series(BarSeries::new("layout", shares))
        .series(BarSeries::new("layout", paper).look(Look::Hatched))
        .show_values();
    outcome.figure = Some(
        Figure::new("FedHybrid, table 1: layout transformations in what Melon computes again, Galaxy S22")
            .note("An iteration in which saved tensors get half of what they would take. A network without a bar computes nothing again, or has no plan there.")
            .columns(2)
            .panel_size(460, 320)
            .panel(Panel::new(times).title("computed again").y(Axis::new("time").unit("ms").from_zero()))
            .panel(Panel::new(bars).title("share of layouts").y(Axis::new("share").unit("%").range(0.0, 100.0))),
    );
    outcome.table = Some(table);
    notes(&mut outcome);
    Ok(outcome)
}

fn notes(outcome: &mut Outcome) {
    let notes = &mut outcome.notes;
    notes
        .calibrated
        .push("The rate at which MNN lays tensors out anew: one number of the stack, on the fit rows of this table (`haversack calibrate galaxy-s22 --stack mnn-2`). Nothing is a network's.".into());
    notes.predicted.push("ResNet-50 and Swin-T; how the shares of the others stand to each other.".into());
    notes.left_out.push("Fine-tuning: the Swin-T here trains all its weights.".into());
    notes.left_out.push("What a kernel lays out anew for itself: the windows that the gradient of a weight gathers, and the panels of a product's tiles.".into());
    notes.misses.push("Melon drops what is cheap to compute again beside its size, and it does not count layouts in that cost. So the set that is dropped decides the share: it rises steeply with smaller budgets, and the paper does not state its own.".into());
    notes.misses.push("BERT: MNN's converter makes a convolution of every product with a weight, between a conversion of what it reads and one of what it gives, and Melon, which does not count conversions, drops what they make first. That brings most of the share. The rest of what BERT saves are the pieces of GELU, softmax and normalisation, which one pass each brings back; MNN copies for reshapes and gathers between some of them, too, which is not in the graph.".into());
}
