//! Table 1: what layout transformations take of the time that recomputation costs.

use haversack_training::Record;

use super::null::null;
use super::setting::{MELON, S22, run_if_it_fits, scenario};
use crate::artefacts::prelude::*;

/// The budget of the reading `table1-share`, in percent of what saved tensors take, and those around it.
const HALF: f64 = 50.0;
const BAND: [f64; 6] = [80.0, 70.0, 60.0, HALF, 40.0, 30.0];

/// What a sample is, which decides the batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sample {
    Picture,
    Text,
}

/// The network that the paper fine-tunes.
const FINE_TUNED: &str = "swin-finetune";
/// The networks of the table as the reference names them, for people, and as models.
const NETWORKS: [(&str, &str, &str, Sample); 5] = [
    ("resnet34", "ResNet-34", "resnet34", Sample::Picture),
    ("mobilenetv2", "MobileNetV2", "mobilenetv2", Sample::Picture),
    ("resnet50", "ResNet-50", "resnet50", Sample::Picture),
    ("bert", "BERT", "bert-base", Sample::Text),
    (FINE_TUNED, "Swin-T", "swin-t", Sample::Picture),
];

fn row_of(subject: &str) -> String {
    format!("fedhybrid/table1/{subject}/recomputation/layout-transformation-share")
}

/// Milliseconds of layout transformations and of all else that is computed again.
fn parts(record: &Record) -> [f64; 2] {
    let layout = record.recomputed_layout;
    [layout, record.breakdown.recompute.saturating_sub(layout)].map(|time| time.seconds() * 1e3)
}

/// What layout transformations take of all that is computed again, in per cent; `None` if nothing is.
fn share(record: &Record) -> Option<f64> {
    let [layout, other] = parts(record);
    (layout + other > 0.0).then(|| layout / (layout + other) * 100.0)
}

fn least_of(shares: &[f64]) -> Option<f64> {
    shares.iter().copied().min_by(f64::total_cmp)
}

fn most_of(shares: &[f64]) -> Option<f64> {
    shares.iter().copied().max_by(f64::total_cmp)
}

/// The batch of the reading.
fn batch(context: &Context<'_>, sample: Sample) -> Result<u64> {
    let batches = context.reading_numbers("table1-batch")?;
    let [pictures, texts] = batches else { bail!("the reading `table1-batch` is not two numbers") };
    Ok(if sample == Sample::Picture { *pictures } else { *texts } as u64)
}

fn plan(context: &Context<'_>, model: &str, batch: u64, percent: f64) -> Result<Plan> {
    let mut scenario = scenario(context, S22, model, batch, MELON)?;
    scenario.activation_budget = Some(Budget::Percent(percent));
    context.plan(&scenario)
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome =
        Outcome::of("network,batch,budget_percent,budget_mb,layout_ms,other_ms,layout_percent,paper_percent");
    let (mut times, mut grid, mut points) = (Vec::new(), Grid::default(), Vec::new());
    for (subject, name, model, sample) in NETWORKS {
        let id = row_of(subject);
        let given = context.paper(&id)?;
        let batch = batch(context, sample)?;
        let mut shares = Vec::new();
        for percent in BAND {
            let plan = plan(context, model, batch, percent)?;
            let ran = run_if_it_fits(context, &plan)?;
            let parts = ran.as_ref().map_or([0.0; 2], parts);
            let share = ran.as_ref().ok().and_then(share);
            let budget = plan.budgets.activations.map(Bytes::megabytes);
            outcome.row((subject, batch, percent, budget, parts, share, given))?;
            shares.extend(share);
            points.push((name, percent, share));
            if percent == HALF {
                times.push(parts);
                grid.put([name, "layout", "share"], share, given);
                let why = || ran.err().unwrap_or_else(|| "nothing is computed again".to_owned());
                outcome.number_or(id.clone(), share.ok_or_else(why));
            }
        }
        let band = least_of(&shares).zip(most_of(&shares)).map(|(least, most)| {
            let [first, .., last] = BAND;
            format!("{least:.0} to {most:.0} % from {first} to {last} % of what saved tensors take")
        });
        let trained = (subject == FINE_TUNED).then(|| "all weights are trained, where the paper fine-tunes".to_owned());
        outcome.remark(id, band.into_iter().chain(trained).collect::<Vec<_>>().join("; "));
    }
    outcome.nulls_of(&context.rows, |row| null(context.reference, row));
    outcome.compare_with_null(&context.rows, "layout", "table 1");
    let names = NETWORKS.map(|(_, name, ..)| name);
    let stack = stacks(names, &times, [("layout", |parts| parts[0]), ("other", |parts| parts[1])]);
    outcome.panel("computed again", stack.show_shares().show_totals(), Axis::default(), from_zero("time", "ms"));
    let lines = curves(&points, |point| point.0, |point| Some((point.1, point.2?)));
    let budget = axis("budget, of what saved tensors take", "%");
    outcome.panel("by budget", lines, budget, axis("share of layouts", "%").range(0.0, 100.0));
    outcome.bars("share of layouts", grid.bars("share"), axis("share", "%").range(0.0, 100.0));
    Ok(outcome)
}
