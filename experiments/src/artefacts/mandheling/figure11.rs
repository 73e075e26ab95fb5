//! Figure 11: other algorithms of mixed precision, on the DSP and on the CPU.

use haversack_reports::figure::{Axis, BarSeries, Bars, Figure, Look, Panel};
use haversack_reports::table::Table;

use super::setting::{Batch, Network, batch, mean, method_names, scenario, with};
use crate::reproduce::{ArtefactError, Context, Outcome};

const PHONE: &str = "xiaomi-11-pro";
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
        let of = |method: &str| scenario(context, PHONE, network, method);
        let floats = batch(context, &of("mnn-fp32")?)?;
        for algorithm in ALGORITHMS {
            let under = |method: &str| batch(context, &with(&of(method)?, &[("algorithm", algorithm.0)]));
            let (on_cpu, own) = (under("mnn-int8")?, under("mandheling")?);
            measured.push(Measured { network, algorithm, floats, on_cpu, own });
        }
    }
    Ok(measured)
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let measured = measure(context)?;
    let mut outcome = Outcome::default();
    // By baseline: simulated speed-ups and the paper's, an algorithm each.
    let mut speed_ups = vec![(Vec::new(), Vec::new()); BASELINES.len()];
    for (algorithm, _) in ALGORITHMS {
        let under = || measured.iter().filter(|found| found.algorithm.0 == algorithm);
        for ((baseline, _), (simulated, paper)) in BASELINES.iter().zip(&mut speed_ups) {
            let id = format!("mandheling/figure11/{algorithm}/mandheling/{baseline}/speedup");
            let each: Vec<f64> = under().map(|found| found.own.speed_up(found.baseline(baseline))).collect();
            paper.push(context.row(&id)?.number());
            simulated.push(mean(&each));
            if let Some(mean) = mean(&each) {
                outcome.number(id, mean);
            }
        }
    }
    for (baseline, _) in BASELINES {
        let id = format!("mandheling/figure11/niti/mandheling/{baseline}/speedup");
        outcome.remark(id, "the paper's number contradicts its table 7");
    }
    summarise(&mut outcome, &measured);
    outcome.table = Some(table(&measured)?);
    outcome.figure = Some(figure(&measured, &speed_ups));
    notes(&mut outcome);
    Ok(outcome)
}

/// The reductions of energy that the text gives, which are no rows.
fn summarise(outcome: &mut Outcome, measured: &[Measured]) {
    for id in NETWORKS {
        let of = measured.iter().filter(|found| found.network.id.0 == id);
        let each: Vec<f64> = of.map(|found| found.own.energy_reduction(found.floats)).collect();
        if let Some(mean) = mean(&each) {
            outcome
                .summary
                .push(format!("figure 11, {id}: {mean:.1} times less energy than MNN-FP32, mean of the three"));
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

/// Simulated speed-ups and the paper's.
type Pair = (Vec<Option<f64>>, Vec<Option<f64>>);

fn figure(measured: &[Measured], speed_ups: &[Pair]) -> Figure {
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
        let series = |of: fn(&Measured) -> Batch| measured.iter().map(|found| value(of(found))).collect::<Vec<_>>();
        let bars = Bars::new(names)
            .series(BarSeries::new(BASELINES[0].1, series(|found| found.floats)))
            .series(BarSeries::new(BASELINES[1].1, series(|found| found.on_cpu)))
            .series(BarSeries::new("Mandheling", series(|found| found.own)));
        figure = figure.panel(Panel::new(bars).title(label).y(Axis::new(label).unit(unit)));
    }
    let mut bars = Bars::new(ALGORITHMS.map(|(_, name)| name)).show_values();
    for ((_, name), (simulated, paper)) in BASELINES.iter().zip(speed_ups) {
        bars = bars.series(BarSeries::new(*name, simulated.clone()));
        bars = bars.series(BarSeries::new(*name, paper.clone()).look(Look::Hatched));
    }
    let panel =
        Panel::new(bars).title("speed-up of Mandheling over").y(Axis::new("mean of VGG-11 and VGG-16").unit("x"));
    figure.panel(panel)
}

fn notes(outcome: &mut Outcome) {
    let notes = &mut outcome.notes;
    notes.calibrated.push("Nothing on this figure: NITI is what tables 7, 8 and figure 10 are of.".into());
    notes
        .predicted
        .push("MLS and WAGEUBN on both processors: what their rules keep in more bits and do in floats.".into());
    notes.left_out.push("What the paper's implementations of MLS and WAGEUBN do beyond table 1's rules.".into());
    notes.misses.push("The text gives 3.08, 2.34 and 7.1 without saying which algorithm each is of: NITI is the fastest by the text, the match of the other two is by inference, from the order in which section 4.5 names them.".into());
    notes.misses.push("NITI's numbers here and table 7's are of one network and phone and disagree: 7.1 and 3.83 make MNN's integer training 1.85 times as fast as its training in floats, table 7 has 1.2. The constants follow table 7.".into());
}
