//! Table 1: what layout transformations take of the time that recomputation costs.

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

/// The networks of the table as the reference names them, for people, and as models.
const NETWORKS: [(&str, &str, &str, Sample); 5] = [
    ("resnet34", "ResNet-34", "resnet34", Sample::Picture),
    ("mobilenetv2", "MobileNetV2", "mobilenetv2", Sample::Picture),
    ("resnet50", "ResNet-50", "resnet50", Sample::Picture),
    ("bert", "BERT", "bert-base", Sample::Text),
    ("swin-finetune", "Swin-T", "swin-t", Sample::Picture),
];

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
    let mut records = Records::of("network,name,batch,budget_percent,budget_mb,layout_ms,other_ms,layout_percent");
    let mut outcome = Outcome::default();
    for (subject, name, model, sample) in NETWORKS {
        let batch = batch(context, sample)?;
        for percent in BAND {
            let plan = plan(context, model, batch, percent)?;
            let ran = run_if_it_fits(context, &plan)?;
            let parts = ran.as_ref().map_or([0.0; 2], parts);
            let share = ran.as_ref().ok().and_then(share);
            let budget = plan.budgets.activations.map(Bytes::megabytes);
            records.row((subject, name, batch, percent, budget, parts, share))?;
            if percent == HALF && share.is_none() {
                let why = ran.err().unwrap_or_else(|| "nothing is computed again".to_owned());
                let id = format!("fedhybrid/table1/{subject}/recomputation/layout-transformation-share");
                outcome.not_modelled(id, why);
            }
        }
    }
    outcome.nulls_of(&context.rows, |row| null(context.reference, row));
    show(context, records, outcome)
}
