//! Table 7: which cores, and at which frequency; time and energy of VGG-16.

use haversack_devices::{ClusterClass, CoreSelection, CpuCores, Device, Frequency};
use haversack_reports::figure::Cloud;

use super::roofline;
use super::setting::{BatchCost, MandhelingNetwork, XIAOMI_11_PRO, batch};
use crate::artefacts::prelude::*;

/// The configurations of the CPU as the reference names them, and for people.
pub(crate) const CORES: [(&str, &str, CoreSelection); 6] = [
    ("big-1", "big 1", CoreSelection::Some { class: ClusterClass::Big, count: 1 }),
    ("big-2", "big 2", CoreSelection::Some { class: ClusterClass::Big, count: 2 }),
    ("big-4", "big 4", CoreSelection::Some { class: ClusterClass::Big, count: 4 }),
    ("little-1", "little 1", CoreSelection::Some { class: ClusterClass::Little, count: 1 }),
    ("little-4", "little 4", CoreSelection::Some { class: ClusterClass::Little, count: 4 }),
    ("hybrid-8", "hybrid 8", CoreSelection::All),
];
/// The methods of the table.
pub(crate) const METHODS: [(&str, &str); 3] =
    [("mnn-fp32", "MNN-FP32"), ("mnn-int8", "MNN-INT8"), ("mandheling", "Mandheling")];
/// The frequencies as the metrics name them.
pub(crate) const FREQUENCIES: [(&str, Frequency); 2] = [("high", Frequency::Highest), ("low", Frequency::Lowest)];

/// The scenario of a row: its cores, its method, and the frequency that its metric ends in.
pub(crate) fn of_row(cores: &str, method: &str, metric: &str, batch: u64) -> Option<Scenario> {
    let (.., selection) = CORES.iter().find(|(id, ..)| *id == cores)?;
    let (_, frequency) = FREQUENCIES.iter().find(|(id, _)| metric.ends_with(id))?;
    let scenario = trained(XIAOMI_11_PRO, MandhelingNetwork::called("vgg16").ok()?.model, method, batch);
    Some(Scenario { cores: Some(*selection), frequency: *frequency, ..scenario })
}

/// The cores that the reference calls `cores`, at the frequency that its metrics end in.
pub(super) fn chosen(device: &Device, cores: &str, frequency: &str) -> Option<CpuCores> {
    let (.., selection) = CORES.iter().find(|(id, ..)| *id == cores)?;
    let (_, frequency) = FREQUENCIES.iter().find(|(id, _)| *id == frequency)?;
    device.cpu()?.choose(*selection, *frequency).ok()
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let samples = context.reading_number("batch")? as u64;
    let device = context.device(XIAOMI_11_PRO)?;
    let cores_of = |cores: &str, frequency: &str| chosen(&device, cores, frequency);
    let mut outcome = Outcome::of("method,cores,frequency,time_s,energy_j,paper_time_s,paper_energy_j");
    let (mut all, mut papers) = (Front::new(), Front::new());
    for (method, name) in METHODS {
        let (mut simulated, mut stated) = (Vec::new(), Vec::new());
        for (cores, ..) in CORES {
            for (frequency, _) in FREQUENCIES {
                let Some(scenario) = of_row(cores, method, frequency, samples) else { continue };
                let BatchCost { time, energy } = batch(context, &scenario)?;
                let found = [time.seconds(), energy.0];
                let id = |quantity: &str| format!("mandheling/table7/{cores}/{method}/{quantity}-{frequency}");
                let paper = [context.paper(&id("time"))?, context.paper(&id("energy"))?];
                outcome.number(id("time"), found[0]);
                outcome.number(id("energy"), found[1]);
                outcome.row((method, cores, frequency, found, paper))?;
                simulated.push((found[0], found[1]));
                stated.extend(paper[0].zip(paper[1]));
            }
        }
        all = all.cloud(name, simulated);
        papers.clouds.push(Cloud { name: name.to_owned(), points: stated, look: Look::Hatched });
    }
    for method in ["mnn-fp32", "mnn-int8"] {
        for (frequency, _) in FREQUENCIES {
            let id = |cores: &str| format!("mandheling/table7/{cores}/{method}/time-{frequency}");
            outcome.remark(id("hybrid-8"), "contradicts one little core under the same engine");
            outcome.remark(id("little-1"), "contradicts all eight cores under the same engine");
        }
    }
    outcome.nulls_of(&context.rows, |row| roofline::of_table7(context.reference, row, &cores_of));
    outcome.compare_with_null(&context.rows, "time", "table 7, time");
    outcome.compare_with_null(&context.rows, "energy", "table 7, energy");
    for (title, front) in [("simulated", all), ("paper", papers)] {
        let time = axis("time of a batch", "s").log();
        outcome.panel(title, front, time, axis("energy of a batch", "J").log());
    }
    Ok(outcome)
}
