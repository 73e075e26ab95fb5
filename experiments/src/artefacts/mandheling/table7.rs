//! Table 7: which cores, and at which frequency; time and energy of VGG-16.

use haversack_devices::{CoreSelection, CpuCores, Device, Frequency};

use super::roofline;
use super::setting::{BatchCost, XIAOMI_11_PRO, batch};
use crate::artefacts::prelude::*;

/// The methods of the table.
pub(crate) const METHODS: [(&str, &str); 3] =
    [("mnn-fp32", "MNN-FP32"), ("mnn-int8", "MNN-INT8"), ("mandheling", "Mandheling")];
/// The cores that the reference calls `cores`: `big-4`, or all eight.
fn selection(cores: &str) -> Option<CoreSelection> {
    if cores == "hybrid-8" { Some(CoreSelection::All) } else { cores.replace('-', ":").parse().ok() }
}

/// The frequency that a metric ends in.
fn frequency(metric: &str) -> Option<Frequency> {
    [("high", Frequency::Highest), ("low", Frequency::Lowest)]
        .into_iter()
        .find(|(end, _)| metric.ends_with(end))
        .map(|found| found.1)
}

/// The scenario of a row: its cores, its method, and the frequency that its metric ends in.
pub(crate) fn of_row(cores: &str, method: &str, metric: &str, batch: u64) -> Option<Scenario> {
    let scenario = trained(XIAOMI_11_PRO, "vgg16-cifar", method, batch);
    Some(Scenario { cores: Some(selection(cores)?), frequency: frequency(metric)?, ..scenario })
}

/// The cores that the reference calls `cores`, at the frequency that its metrics end in.
pub(super) fn chosen(device: &Device, cores: &str, metric: &str) -> Option<CpuCores> {
    device.cpu()?.choose(selection(cores)?, frequency(metric)?).ok()
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let samples = context.reading_number("batch")? as u64;
    let device = context.device(XIAOMI_11_PRO)?;
    let records = records(context, "time_s,energy_j", |_, ids| {
        let scenario = of_row(&ids[1], &ids[0], &ids[2], samples);
        let BatchCost { time, energy } = batch(context, &scenario.context("no such cores or frequency")?)?;
        Ok([time.seconds(), energy.0])
    })?;
    let cores_of = |cores: &str, frequency: &str| chosen(&device, cores, frequency);
    let mut outcome = Outcome::default();
    outcome.nulls_of(&context.rows, |row| roofline::of_table7(context.reference, row, &cores_of));
    show(context, records, outcome)
}
