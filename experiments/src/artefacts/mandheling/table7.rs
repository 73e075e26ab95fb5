//! Table 7: which cores, and at which frequency; time and energy of VGG-16.

use haversack_devices::{ClusterClass, CoreSelection, CpuCores, Device, Frequency};
use haversack_reports::figure::Cloud;

use super::roofline;
use super::setting::{Batch, Network, XIAOMI_11_PRO, batch, method_names, on, on_xiaomi_11_pro};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact =
    on_xiaomi_11_pro("table7", "time and energy of a batch, by cores and frequency", run);

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
    let mut scenario = Scenario::new(XIAOMI_11_PRO, Network::called("vgg16").ok()?.model);
    method.clone_into(&mut scenario.policy);
    scenario.batch = batch;
    Some(on(&scenario, *selection, *frequency))
}

/// The cores that the reference calls `cores`, at the frequency that its metrics end in.
pub(super) fn chosen(device: &Device, cores: &str, frequency: &str) -> Option<CpuCores> {
    let (.., selection) = CORES.iter().find(|(id, ..)| *id == cores)?;
    let (_, frequency) = FREQUENCIES.iter().find(|(id, _)| *id == frequency)?;
    device.cpu()?.choose(*selection, *frequency).ok()
}

/// One method: simulated points and the paper's, each seconds and joules.
#[derive(Default)]
struct Points {
    simulated: Vec<(f64, f64)>,
    paper: Vec<(f64, f64)>,
}

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let samples = context.reading_number("batch")? as u64;
    let device = context.device(XIAOMI_11_PRO)?;
    let cores_of = |cores: &str, frequency: &str| chosen(&device, cores, frequency);
    let mut outcome = Outcome::default();
    let mut table =
        Table::new(["method", "cores", "frequency", "time_s", "energy_j", "paper_time_s", "paper_energy_j"]);
    let mut points = Vec::new();
    for (method, _) in METHODS {
        let mut found = Points::default();
        for (cores, ..) in CORES {
            for (frequency, _) in FREQUENCIES {
                let Some(scenario) = of_row(cores, method, frequency, samples) else { continue };
                let Batch { time, energy } = batch(context, &scenario)?;
                let mut paper = Vec::new();
                for (quantity, value) in [("time", time.seconds()), ("energy", energy.0)] {
                    let id = format!("mandheling/table7/{cores}/{method}/{quantity}-{frequency}");
                    paper.push(context.row(&id)?.number());
                    outcome.number(id, value);
                }
                found.simulated.push((time.seconds(), energy.0));
                found.paper.extend(paper[0].zip(paper[1]));
                let head = [method.into(), cores.into(), frequency.into()];
                let numbers = [time.seconds().into(), energy.0.into(), paper[0].into(), paper[1].into()];
                table.push(head.into_iter().chain(numbers))?;
            }
        }
        points.push(found);
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
    outcome.figure = Some(figure(&points));
    outcome.table = Some(table);
    Ok(outcome)
}

fn figure(points: &[Points]) -> Figure {
    let (mut simulated, mut paper) = (Front::new(), Front::new());
    for ((_, name), found) in METHODS.iter().zip(points) {
        simulated = simulated.cloud(*name, found.simulated.clone());
        let cloud = Cloud { name: (*name).to_owned(), points: found.paper.clone(), look: Look::Hatched };
        paper.clouds.push(cloud);
    }
    let panel = |front: Front, title: &str| {
        let time = Axis::new("time of a batch").unit("s").log();
        Panel::new(front).title(title).x(time).y(Axis::new("energy of a batch").unit("J").log())
    };
    Figure::new("Mandheling, table 7: which cores and which frequency, VGG-16 at batch 64 on the Xiaomi 11 Pro")
        .note("Six choices of cores at two frequencies each. Withheld cells have no mark of the paper: two big cores of MNN's, four little ones of all three.")
        .order(method_names())
        .columns(2)
        .panel_size(470, 380)
        .share_x()
        .share_y()
        .panel(panel(simulated, "simulated"))
        .panel(panel(paper, "paper"))
}
