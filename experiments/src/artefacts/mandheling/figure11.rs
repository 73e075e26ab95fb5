//! Figure 11: other algorithms of mixed precision, on the DSP and on the CPU.

use haversack_reports::figure::{Axis, BarSeries, Bars, Figure, Panel};
use haversack_reports::table::Table;

use super::setting::{Batch, Network, XIAOMI_11_PRO, batch, method_names, on_xiaomi_11_pro, scenario};
use crate::artefacts::grid::{Grid, titled};
use crate::artefacts::setting::{mean, with};
use crate::reproduce::{Artefact, ArtefactError, Context, Outcome};

pub(super) static ARTEFACT: Artefact =
    on_xiaomi_11_pro("figure11", "time and energy of a batch under three algorithms of mixed precision", run);

const NETWORKS: [&str; 2] = ["vgg11", "vgg16"];
/// The algorithms, as the reference and the policies name them and for people.
const ALGORITHMS: [(&str, &str); 3] = [("niti", "NITI"), ("mls", "MLS"), ("wageubn", "WAGEUBN")];
/// What Mandheling is compared with, as the reference names it and for people.
const BASELINES: [(&str, &str); 2] = [("mnn-fp32", "MNN-FP32"), ("mnn-same-algorithm", "MNN, same algorithm")];

/// Batches of one network under one algorithm.
struct Measured {
    network: Network,
    algorithm: (&'static str, &'static str),
    floats: Batch,
    on_cpu: Batch,
    own: Batch,
}

impl Measured {
    fn baseline(&self, id: &str) -> Batch {
        if id == "mnn-fp32" { self.floats } else { self.on_cpu }
    }
}

fn measure(context: &Context<'_>) -> Result<Vec<Measured>, ArtefactError> {
    let mut measured = Vec::new();
    for id in NETWORKS {
        let network = Network::called(id)?;
        let of = |method: &str| scenario(context, XIAOMI_11_PRO, network, method);
        let floats = batch(context, &of("mnn-fp32")?)?;
        for algorithm in ALGORITHMS {
            let under = |method: &str| batch(context, &with(&of(method)?, &[("algorithm", algorithm.0)]));
            let (on_cpu, own) = (under("mnn-int8")?, under("mandheling")?);
            measured.push(Measured { network, algorithm, floats, on_cpu, own });
        }
    }
    Ok(measured)
}

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let measured = measure(context)?;
    let mut outcome = Outcome::default();
    let mut speed_ups = Grid::default();
    for (algorithm, name) in ALGORITHMS {
        for (baseline, of) in BASELINES {
            let id = format!("mandheling/figure11/{algorithm}/mandheling/{baseline}/speedup");
            let under = measured.iter().filter(|found| found.algorithm.0 == algorithm);
            let each: Vec<f64> = under.map(|found| found.own.speed_up(found.baseline(baseline))).collect();
            let Some(mean) = mean(&each) else { continue };
            speed_ups.answer((context, &mut outcome), &id, [name, of, "speed-up"], mean)?;
        }
    }
    for (baseline, _) in BASELINES {
        let id = format!("mandheling/figure11/niti/mandheling/{baseline}/speedup");
        outcome.remark(id, "the paper's number contradicts its table 7");
    }
    summarise(&mut outcome, &measured);
    outcome.table = Some(table(&measured)?);
    outcome.figure = Some(figure(&measured, &speed_ups));
    Ok(outcome)
}

/// The reductions of energy that the text gives, which are no rows.
fn summarise(outcome: &mut Outcome, measured: &[Measured]) {
    for id in NETWORKS {
        let of = measured.iter().filter(|found| found.network.id.0 == id);
        let each: Vec<f64> = of.map(|found| found.own.energy_reduction(found.floats)).collect();
        if let Some(mean) = mean(&each) {
            let line = format!("figure 11, {id}: {mean:.1} times less energy than MNN-FP32, mean of the three");
            outcome.summary.push(line);
        }
    }
}

fn table(measured: &[Measured]) -> Result<Table, ArtefactError> {
    let mut table = Table::new(["network", "algorithm", "method", "time_s", "energy_j"]);
    for found in measured {
        let methods = [("mnn-fp32", found.floats), ("mnn", found.on_cpu), ("mandheling", found.own)];
        for (method, batch) in methods {
            let names = [found.network.name, found.algorithm.0, method].map(Into::into);
            table.push(names.into_iter().chain([batch.time.seconds().into(), batch.energy.0.into()]))?;
        }
    }
    Ok(table)
}

fn figure(measured: &[Measured], speed_ups: &Grid) -> Figure {
    let mut figure = Figure::new("Mandheling, figure 11: algorithms of mixed precision, Xiaomi 11 Pro, batch 64")
        .note("Frequency left to the governor. Which of the paper's numbers belongs to MLS and which to WAGEUBN is inferred.")
        .columns(3)
        .order(method_names())
        .panel_size(400, 300);
    type Value = fn(Batch) -> f64;
    let quantities: [(&str, &str, Value); 2] =
        [("time of a batch", "s", |batch| batch.time.seconds()), ("energy of a batch", "J", |batch| batch.energy.0)];
    for (label, unit, value) in quantities {
        let names = measured.iter().map(|found| format!("{} {}", found.network.name, found.algorithm.1));
        let series = |of: fn(&Measured) -> Batch| measured.iter().map(move |found| value(of(found)));
        let bars = Bars::new(names)
            .series(BarSeries::new(BASELINES[0].1, series(|found| found.floats)))
            .series(BarSeries::new(BASELINES[1].1, series(|found| found.on_cpu)))
            .series(BarSeries::new("Mandheling", series(|found| found.own)));
        figure = figure.panel(titled(bars, label, unit));
    }
    let bars = speed_ups.bars("speed-up").show_values();
    let panel =
        Panel::new(bars).title("speed-up of Mandheling over").y(Axis::new("mean of VGG-11 and VGG-16").unit("x"));
    figure.panel(panel)
}
