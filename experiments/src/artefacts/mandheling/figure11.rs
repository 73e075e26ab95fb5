//! Figure 11: other algorithms of mixed precision, on the DSP and on the CPU.

use super::setting::{
    Batch, Batches, Network, QUANTITIES, XIAOMI_11_PRO, batch, method_names, on_xiaomi_11_pro, scenario,
};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact =
    on_xiaomi_11_pro("figure11", "time and energy of a batch under three algorithms of mixed precision", run);

const NETWORKS: [&str; 2] = ["vgg11", "vgg16"];
/// The algorithms, as the reference and the policies name them and for people.
const ALGORITHMS: [(&str, &str); 3] = [("niti", "NITI"), ("mls", "MLS"), ("wageubn", "WAGEUBN")];
/// What Mandheling is compared with, as the reference and the data name it and for people.
const BASELINES: [(&str, &str, &str); 2] =
    [("mnn-fp32", "mnn-fp32", "MNN-FP32"), ("mnn-same-algorithm", "mnn", "MNN, same algorithm")];
const OWN: &str = "mandheling";

/// The batches of both networks, by network, algorithm and method.
fn measure(context: &Context<'_>, networks: &[Network]) -> Result<Batches, ArtefactError> {
    let mut batches = Batches::default();
    for network in networks {
        let of = |method: &str| scenario(context, XIAOMI_11_PRO, *network, method);
        let floats = batch(context, &of("mnn-fp32")?)?;
        for (algorithm, _) in ALGORITHMS {
            let under = |method: &str| batch(context, &with(&of(method)?, &[("algorithm", algorithm)]));
            for (method, batch) in [("mnn-fp32", floats), ("mnn", under("mnn-int8")?), (OWN, under(OWN)?)] {
                batches.put([network.name, algorithm, method], Some(batch));
            }
        }
    }
    Ok(batches)
}

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let networks = NETWORKS.map(Network::called).into_iter().collect::<Result<Vec<_>, _>>()?;
    let batches = measure(context, &networks)?;
    // What `ratio` makes of Mandheling and a baseline.
    let against = |network: &Network, algorithm: &str, baseline: &str, ratio: fn(Batch, Batch) -> f64| {
        let of = |method: &str| batches.of([network.name, algorithm, method]);
        Some(ratio(of(OWN)?, of(baseline)?))
    };
    let mut outcome = Outcome::default();
    let mut speed_ups = Grid::default();
    for (algorithm, name) in ALGORITHMS {
        for (id, baseline, of) in BASELINES {
            let id = format!("mandheling/figure11/{algorithm}/mandheling/{id}/speedup");
            let each = networks.iter().filter_map(|network| against(network, algorithm, baseline, Batch::speed_up));
            let Some(mean) = mean(&each.collect::<Vec<_>>()) else { continue };
            speed_ups.answer((context, &mut outcome), &id, [name, of, "speed-up"], mean)?;
        }
    }
    for (baseline, ..) in BASELINES {
        let id = format!("mandheling/figure11/niti/mandheling/{baseline}/speedup");
        outcome.remark(id, "the paper's number contradicts its table 7");
    }
    // The reductions of energy that the text gives, which are no rows.
    for network in &networks {
        let reduction = |(algorithm, _)| against(network, algorithm, "mnn-fp32", Batch::energy_reduction);
        if let Some(mean) = mean(&ALGORITHMS.into_iter().filter_map(reduction).collect::<Vec<_>>()) {
            let id = network.id.0;
            let line = format!("figure 11, {id}: {mean:.1} times less energy than MNN-FP32, mean of the three");
            outcome.summary.push(line);
        }
    }
    let mut figure = Figure::new("Mandheling, figure 11: algorithms of mixed precision, Xiaomi 11 Pro, batch 64")
        .note("Frequency left to the governor. Which of the paper's numbers belongs to MLS and which to WAGEUBN is inferred.")
        .columns(3)
        .order(method_names())
        .panel_size(400, 300);
    let groups = || networks.iter().flat_map(|network| ALGORITHMS.map(|algorithm| (network, algorithm)));
    for (label, unit, value) in QUANTITIES {
        let names = groups().map(|(network, (_, name))| format!("{} {name}", network.name));
        let mut bars = Bars::new(names);
        for (method, name) in BASELINES.map(|(_, method, name)| (method, name)).into_iter().chain([(OWN, "Mandheling")])
        {
            let at =
                |(network, (algorithm, _)): (&Network, (&str, &str))| batches.of([network.name, algorithm, method]);
            bars = bars.series(BarSeries::new(name, groups().map(|group| at(group).map(value))));
        }
        figure = figure.panel(titled(bars, &format!("{label} of a batch"), unit));
    }
    let bars = speed_ups.bars("speed-up").show_values();
    let panel =
        Panel::new(bars).title("speed-up of Mandheling over").y(Axis::new("mean of VGG-11 and VGG-16").unit("x"));
    Ok(outcome.drawn(figure.panel(panel), batches.table(["network", "algorithm", "method"])?))
}
