//! Figure 11: other algorithms of mixed precision, on the DSP and on the CPU.

use super::setting::{BatchCost, Batches, MandhelingNetwork, QUANTITIES, XIAOMI_11_PRO, batch, scenario};
use crate::artefacts::prelude::*;

const NETWORKS: [&str; 2] = ["vgg11", "vgg16"];
/// The algorithms, as the reference and the policies name them and for people.
const ALGORITHMS: [(&str, &str); 3] = [("niti", "NITI"), ("mls", "MLS"), ("wageubn", "WAGEUBN")];
/// What Mandheling is compared with, as the reference and the data name it and for people.
const BASELINES: [(&str, &str, &str); 2] =
    [("mnn-fp32", "mnn-fp32", "MNN-FP32"), ("mnn-same-algorithm", "mnn", "MNN, same algorithm")];
const OWN: &str = "mandheling";
/// The methods as the data name them, and for people.
const SHOWN: [(&str, &str); 3] = [("mnn-fp32", "MNN-FP32"), ("mnn", "MNN, same algorithm"), (OWN, "Mandheling")];

/// The batches of both networks, by network, algorithm and method.
fn measure(context: &Context<'_>, networks: &[MandhelingNetwork]) -> Result<Batches> {
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

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let networks = NETWORKS.map(MandhelingNetwork::called).into_iter().collect::<Result<Vec<_>, _>>()?;
    let batches = measure(context, &networks)?;
    // What `ratio` makes of Mandheling and a baseline.
    let against =
        |network: &MandhelingNetwork, algorithm: &str, baseline: &str, ratio: fn(BatchCost, BatchCost) -> f64| {
            let of = |method: &str| batches.of([network.name, algorithm, method]);
            Some(ratio(of(OWN)?, of(baseline)?))
        };
    let mut outcome = batches.data("network,algorithm,method")?;
    for (label, unit, value) in QUANTITIES {
        let mut grid = Grid::default();
        for network in &networks {
            for (algorithm, name) in ALGORITHMS {
                for (method, method_name) in SHOWN {
                    let found = batches.of([network.name, algorithm, method]).map(value);
                    grid.put([&format!("{} {name}", network.name), method_name, label], found, None);
                }
            }
        }
        let title = format!("{label} of a batch");
        outcome.panel(&title, grid.bars(label), Axis::default(), axis(&title, unit));
    }
    let mut speed_ups = Grid::default();
    for (algorithm, name) in ALGORITHMS {
        for (id, baseline, of) in BASELINES {
            let id = format!("mandheling/figure11/{algorithm}/mandheling/{id}/speedup");
            let each = networks.iter().filter_map(|network| against(network, algorithm, baseline, BatchCost::speed_up));
            let Some(mean) = mean(&each.collect::<Vec<_>>()) else { continue };
            speed_ups.answer(context, &mut outcome, &id, [name, of, "speed-up"], mean)?;
        }
    }
    for (baseline, ..) in BASELINES {
        let id = format!("mandheling/figure11/niti/mandheling/{baseline}/speedup");
        outcome.remark(id, "the paper's number contradicts its table 7");
    }
    // The reductions of energy that the text gives, which are no rows.
    for network in &networks {
        let reduction = |(algorithm, _)| against(network, algorithm, "mnn-fp32", BatchCost::energy_reduction);
        if let Some(mean) = mean(&ALGORITHMS.into_iter().filter_map(reduction).collect::<Vec<_>>()) {
            let id = network.id.0;
            let line = format!("figure 11, {id}: {mean:.1} times less energy than MNN-FP32, mean of the three");
            outcome.summary.push(line);
        }
    }
    let mean = axis("mean of VGG-11 and VGG-16", "x");
    outcome.bars("speed-up of Mandheling over", speed_ups.bars("speed-up"), mean);
    Ok(outcome)
}
