//! Figure 7: time and energy of a batch over batch sizes.

use super::setting::{BatchCost, Batches, MandhelingNetwork, QUANTITIES, XIAOMI_11_PRO, batch, scenario_of};
use crate::artefacts::prelude::*;

const NETWORKS: [&str; 2] = ["vgg16", "inceptionv3"];
const BASELINE: &str = "mnn-fp32";
/// The methods of the figure, as the policies name them and for people.
const METHODS: [(&str, &str); 4] =
    [("tflite-fp32", "TFLite-FP32"), (BASELINE, "MNN-FP32"), ("mnn-int8", "MNN-INT8"), ("mandheling", "Mandheling")];

const MEAN: &str = "mandheling/figure7/vgg16,inceptionv3-on-xiaomi-11-pro/mandheling/speedup";
const LARGEST: &str = "mandheling/figure7/batch-128/mandheling/speedup";

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let sizes = context.reading_numbers("figure7-batches")?;
    let networks = NETWORKS.map(MandhelingNetwork::called).into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut batches = Batches::default();
    for network in &networks {
        for (method, _) in METHODS {
            for size in sizes {
                let scenario = scenario_of(context, XIAOMI_11_PRO, *network, method, *size as u64)?;
                batches.put([network.name, method, &size.to_string()], Some(batch(context, &scenario)?));
            }
        }
    }
    // Mandheling's speed-up over the baseline by network and size.
    let gain = |network: &MandhelingNetwork, size: &f64| {
        let of = |method: &str| batches.of([network.name, method, &size.to_string()]);
        Some(of("mandheling")?.speed_up(of(BASELINE)?))
    };
    let gains: Vec<Vec<f64>> =
        networks.iter().map(|network| sizes.iter().filter_map(|size| gain(network, size)).collect()).collect();
    let mut outcome = batches.data("network,method,batch")?;
    if let Some(mean) = mean(&gains.concat()) {
        outcome.number(MEAN, mean);
    }
    let at_the_end = gains.iter().filter_map(|gains| gains.last().copied());
    if let Some(largest) = at_the_end.max_by(f64::total_cmp) {
        outcome.number(LARGEST, largest);
    }
    let id = "mandheling/figure7/all/mandheling/gap-grows-with-batch-size";
    let at = |size: usize| gains.iter().map(|gains| gains[size]).collect::<Vec<_>>();
    let means: Vec<f64> = (0..sizes.len()).filter_map(|size| mean(&at(size))).collect();
    outcome.quantity("mean speed-up by batch", "", means.iter().copied());
    context.judge(&mut outcome, id)?;
    let shown: Vec<String> = sizes.iter().zip(&means).map(|(size, mean)| format!("{size}: {mean:.2}")).collect();
    outcome.remark(id, format!("mean of the two networks by batch: {}", shown.join(", ")));
    let ends = [sizes.first(), sizes.last()].into_iter().flatten().copied();
    let level: Vec<_> = ends.zip([context.paper(MEAN)?; 2]).filter_map(|(size, mean)| Some((size, mean?))).collect();
    let mark: Vec<_> = sizes.last().copied().zip(context.paper(LARGEST)?).into_iter().collect();
    let size = || Axis::new("batch").log().ticks_at(sizes);
    for (network, gains) in networks.iter().zip(gains) {
        let of_network: Vec<_> = batches.iter().filter(|([known, ..], _)| *known == network.name).collect();
        for (label, unit, value) in QUANTITIES {
            let name = |method: &str| METHODS.iter().find(|(id, _)| *id == method).map_or("", |(_, name)| name);
            let point =
                |(labels, batch): &([&str; 3], Option<BatchCost>)| Some((labels[2].parse().ok()?, value((*batch)?)));
            let lines = curves(&of_network, |(labels, _)| name(labels[1]), point);
            outcome.panel(&format!("{}: {label}", network.name), lines, size(), axis(label, unit).log());
        }
        let points: Vec<_> = sizes.iter().copied().zip(gains).collect();
        let lines = Lines::new()
            .series(Series::new("Mandheling", points))
            .series(Series::new("Mandheling", level.clone()).look(Look::Hatched).unmarked())
            .series(Series::new("Mandheling", mark.clone()).look(Look::Hatched).stroke(Stroke::None));
        let gain = from_zero("speed-up over MNN-FP32", "x");
        outcome.panel(&format!("{}: speed-up", network.name), lines, size(), gain);
    }
    Ok(outcome)
}
