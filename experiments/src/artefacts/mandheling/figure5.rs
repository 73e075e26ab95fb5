//! Figures 5 and 6: time and energy of a batch, six networks on three phones under five methods.

use super::setting::{
    BatchCost, BatchQuantity, Batches, METHODS, NETWORKS, PHONES, QUANTITIES, batch_if_it_fits, scenario,
};
use crate::artefacts::prelude::*;

const OWN: &str = "mandheling";
/// What Mandheling is compared with.
const BASELINES: [&str; 4] = ["tflite-fp32", "mnn-fp32", "mnn-int8", "mnn-fp32-gpu"];

/// Every batch of both figures, by phone, network and method.
fn measure(context: &Context<'_>) -> Result<Batches> {
    let mut batches = Batches::default();
    for (phone, _) in PHONES {
        for network in NETWORKS {
            for (method, _) in METHODS {
                let batch = batch_if_it_fits(context, &scenario(context, phone, network, method)?)?;
                batches.put([phone, network.name, method], batch);
            }
        }
    }
    Ok(batches)
}

type Ratio = fn(BatchCost, BatchCost) -> f64;

/// What `ratio` makes of `method` and of `baseline` on one phone, for each network that both run.
fn ratios_on(batches: &Batches, phone: &str, [method, baseline]: [&str; 2], ratio: Ratio) -> Vec<f64> {
    let of = |network: &str, method: &str| batches.of([phone, network, method]);
    let both = |name| Some(ratio(of(name, method)?, of(name, baseline)?));
    NETWORKS.iter().filter_map(|network| both(network.name)).collect()
}

/// The same on all phones.
fn ratios(batches: &Batches, methods: [&str; 2], ratio: Ratio) -> Vec<f64> {
    PHONES.iter().flat_map(|(phone, _)| ratios_on(batches, phone, methods, ratio)).collect()
}

/// What one of the figures shows.
#[derive(Clone, Copy)]
struct Shown {
    artefact: &'static str,
    metric: &'static str,
    quantity: BatchQuantity,
    gain: &'static str,
    ratio: Ratio,
}

const TIME: Shown = Shown {
    artefact: "figure5",
    metric: "speedup",
    quantity: QUANTITIES[0],
    gain: "speed-up",
    ratio: BatchCost::speed_up,
};

pub(super) fn time(context: &Context<'_>) -> Result<Outcome> {
    let batches = measure(context)?;
    let mut outcome = show(context, &batches, TIME)?;
    for baseline in ["mnn-fp32", "mnn-int8"] {
        let id = format!("mandheling/figure5/all/{baseline}/speedup");
        outcome.remark(id, "the paper's most contradicts its table 7");
    }
    let id = "mandheling/figure5/all/mnn-fp32-gpu/mnn-fp32/latency-ratio";
    outcome.range(id, ratios(&batches, ["mnn-fp32", "mnn-fp32-gpu"], BatchCost::speed_up));
    let on_gpu = |vgg19: bool, fits: bool| {
        let of_gpu = batches.iter().filter(|([_, network, method], batch)| {
            *method == "mnn-fp32-gpu" && (*network == "VGG-19") == vgg19 && batch.is_some() == fits
        });
        [of_gpu.count() as f64]
    };
    outcome.quantity("phones whose GPU holds VGG-19", "", on_gpu(true, true));
    outcome.quantity("others that a GPU does not hold", "", on_gpu(false, false));
    context.judge(&mut outcome, "mandheling/figure5/vgg19-imagenet/mnn-fp32-gpu/out-of-memory")?;
    let gain = |phone: &str| mean(&ratios_on(&batches, phone, [OWN, "mnn-fp32"], BatchCost::speed_up));
    let gains: Vec<f64> = PHONES.iter().filter_map(|(phone, _)| gain(phone)).collect();
    outcome.quantity("gain on the Redmi Note9 Pro", "", gain("redmi-note9-pro"));
    outcome.quantity("gains on all phones", "", gains.iter().copied());
    let id = "mandheling/figure5/redmi-note9-pro/mandheling/gain-smallest-of-the-three-phones";
    context.judge(&mut outcome, id)?;
    let words = PHONES.iter().zip(&gains).map(|((_, name), gain)| format!("{name} {gain:.1}"));
    outcome.remark(id, format!("mean speed-up over MNN-FP32: {}", words.collect::<Vec<_>>().join(", ")));
    Ok(outcome)
}

const ENERGY: Shown = Shown {
    artefact: "figure6",
    metric: "energy-reduction",
    quantity: QUANTITIES[1],
    gain: "reduction of energy",
    ratio: BatchCost::energy_reduction,
};

pub(super) fn energy(context: &Context<'_>) -> Result<Outcome> {
    show(context, &measure(context)?, ENERGY)
}

/// The answers, the panels and the data of one quantity.
fn show(context: &Context<'_>, batches: &Batches, shown: Shown) -> Result<Outcome> {
    let mut outcome = batches.data("phone,network,method")?;
    let (label, unit, value) = shown.quantity;
    for (phone, name) in PHONES {
        let mut grid = Grid::default();
        for (network, (method, method_name)) in NETWORKS.iter().flat_map(|n| METHODS.map(|method| (n.name, method))) {
            grid.put([network, method_name, label], batches.of([phone, network, method]).map(value), None);
        }
        outcome.panel(name, grid.bars(label), Axis::default(), axis(label, unit).log());
    }
    gains(context, &mut outcome, batches, shown)?;
    Ok(outcome)
}

/// The least and the largest gain over each baseline, as answers and as a panel beside the paper's.
fn gains(
    context: &Context<'_>,
    outcome: &mut Outcome,
    batches: &Batches,
    Shown { artefact, metric, gain, ratio, .. }: Shown,
) -> Result<()> {
    let mut grid = Grid::default();
    for baseline in BASELINES {
        let id = format!("mandheling/{artefact}/all/{baseline}/{metric}");
        let Some((lo, hi)) = range(ratios(batches, [OWN, baseline], ratio)) else { continue };
        let name = METHODS.iter().find(|(method, _)| *method == baseline).map_or(baseline, |(_, name)| name);
        let (least, most, answer) = match context.row(&id)?.claim {
            Claim::Range { lo: least, hi: most } => (Some(least), Some(most), Answer::Range(lo, hi)),
            Claim::Max(most) => (None, Some(most), Answer::Number(hi)),
            _ => (None, None, Answer::Number(hi)),
        };
        outcome.answer(id, answer);
        // Of MNN-INT8 the paper gives the most alone.
        for (which, value, given) in [("least", lo, least), ("most", hi, most)] {
            if given.is_some() {
                grid.put([&format!("{name} {which}"), "Mandheling", gain], Some(value), given);
            }
        }
    }
    let title = format!("{gain} over each baseline, all networks and phones");
    outcome.bars(&title, grid.bars(gain), axis(gain, "x"));
    Ok(())
}
