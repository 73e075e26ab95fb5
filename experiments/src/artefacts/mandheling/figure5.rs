//! Figure 5: time of a batch, six networks on three phones under five methods; and what figure 6 shares with it.

use super::setting::{
    Batch, Batches, METHODS, NETWORKS, PHONES, batch_if_it_fits, method_names, of_no_phone, scenario,
};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact =
    on_all_phones("figure5", "time of a batch: six networks, three phones, five methods", run);

/// An artefact on the phones of table 5 under all engines.
pub(super) const fn on_all_phones(id: &'static str, about: &'static str, run: Run) -> Artefact {
    Artefact {
        devices: &["xiaomi-11-pro", "xiaomi-10", "redmi-note9-pro"],
        stacks: &["tflite", "mnn", "mandheling"],
        ..of_no_phone(id, about, run)
    }
}

const OWN: &str = "mandheling";
/// What Mandheling is compared with.
const BASELINES: [&str; 4] = ["tflite-fp32", "mnn-fp32", "mnn-int8", "mnn-fp32-gpu"];

/// Every batch of both figures, by phone, network and method.
pub(super) fn measure(context: &Context<'_>) -> Result<Batches, ArtefactError> {
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

type Ratio = fn(Batch, Batch) -> f64;

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
pub(super) struct Quantity {
    pub(super) artefact: &'static str,
    pub(super) metric: &'static str,
    pub(super) title: &'static str,
    pub(super) axis: (&'static str, &'static str),
    pub(super) gain: &'static str,
    pub(super) value: fn(Batch) -> f64,
    pub(super) ratio: Ratio,
}

const TIME: Quantity = Quantity {
    artefact: "figure5",
    metric: "speedup",
    title: "Mandheling, figure 5: time of a batch of 64",
    axis: ("time", "s"),
    gain: "speed-up",
    value: |batch| batch.time.seconds(),
    ratio: Batch::speed_up,
};

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let batches = measure(context)?;
    let mut outcome = shown(context, &batches, TIME)?;
    for baseline in ["mnn-fp32", "mnn-int8"] {
        let id = format!("mandheling/figure5/all/{baseline}/speedup");
        outcome.remark(id, "the paper's most contradicts its table 7");
    }
    let id = "mandheling/figure5/all/mnn-fp32-gpu/mnn-fp32/latency-ratio";
    if let Some((lo, hi)) = range(ratios(&batches, ["mnn-fp32", "mnn-fp32-gpu"], Batch::speed_up)) {
        outcome.answer(id, Answer::Range(lo, hi));
    }
    let on_gpu = |vgg19: bool, fits: bool| {
        let of_gpu = batches.iter().filter(|([_, network, method], batch)| {
            *method == "mnn-fp32-gpu" && (*network == "VGG-19") == vgg19 && batch.is_some() == fits
        });
        [of_gpu.count() as f64]
    };
    outcome.quantity("phones whose GPU holds VGG-19", "", on_gpu(true, true));
    outcome.quantity("others that a GPU does not hold", "", on_gpu(false, false));
    context.judge(&mut outcome, "mandheling/figure5/vgg19-imagenet/mnn-fp32-gpu/out-of-memory")?;
    let gain = |phone: &str| mean(&ratios_on(&batches, phone, [OWN, "mnn-fp32"], Batch::speed_up));
    let gains: Vec<f64> = PHONES.iter().filter_map(|(phone, _)| gain(phone)).collect();
    outcome.quantity("gain on the Redmi Note9 Pro", "", gain("redmi-note9-pro"));
    outcome.quantity("gains on all phones", "", gains.iter().copied());
    let id = "mandheling/figure5/redmi-note9-pro/mandheling/gain-smallest-of-the-three-phones";
    context.judge(&mut outcome, id)?;
    let words = PHONES.iter().zip(&gains).map(|((_, name), gain)| format!("{name} {gain:.1}"));
    outcome.remark(id, format!("mean speed-up over MNN-FP32: {}", words.collect::<Vec<_>>().join(", ")));
    Ok(outcome)
}

/// The answers, the figure and the table of one quantity.
pub(super) fn shown(context: &Context<'_>, batches: &Batches, quantity: Quantity) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    let mut figure = Figure::new(quantity.title)
        .note("Frequencies left to the governor. VGG-19 under MNN-FP32-GPU has no mark where it is out of memory.")
        .columns(1)
        .panel_size(820, 230)
        .order(method_names());
    let (label, unit) = quantity.axis;
    for (phone, name) in PHONES {
        let mut bars = Bars::new(NETWORKS.map(|network| network.name));
        for (method, method_name) in METHODS {
            let values = NETWORKS.map(|network| batches.of([phone, network.name, method]).map(quantity.value));
            bars = bars.series(BarSeries::new(method_name, values));
        }
        figure = figure.panel(Panel::new(bars).title(name).y(Axis::new(label).unit(unit).log()));
    }
    let panel = gains(context, &mut outcome, batches, quantity)?;
    Ok(outcome.drawn(figure.panel(panel), batches.table(["phone", "network", "method"])?))
}

/// The least and the largest gain over each baseline, as answers and as a panel beside the paper's.
fn gains(
    context: &Context<'_>,
    outcome: &mut Outcome,
    batches: &Batches,
    quantity: Quantity,
) -> Result<Panel, ArtefactError> {
    let mut grid = Grid::default();
    for baseline in BASELINES {
        let id = format!("mandheling/{}/all/{baseline}/{}", quantity.artefact, quantity.metric);
        let Some((lo, hi)) = range(ratios(batches, [OWN, baseline], quantity.ratio)) else { continue };
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
                grid.put([&format!("{name} {which}"), "Mandheling", quantity.gain], Some(value), given);
            }
        }
    }
    let bars = grid.bars(quantity.gain).show_values();
    let title = format!("{} over each baseline, all networks and phones", quantity.gain);
    Ok(Panel::new(bars).title(title).y(Axis::new(quantity.gain).unit("x")))
}
