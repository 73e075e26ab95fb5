//! Figure 11: six ways to combine accumulation and checkpointing.

use super::setting::{MACHINES, PHONES, RESNET, artefact};
use super::throughput::{Scheme, curves};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact = Artefact {
    devices: MACHINES,
    ..artefact("figure11", "mean throughput of six ways to combine accumulation and checkpointing", run)
};

const HYBRIDS: [Scheme; 6] = [
    ("DGC only", "dgc", &[]),
    ("DGA only", "dga", &[]),
    ("half and half", "sage", &[("order", "half")]),
    ("alternating", "sage", &[("order", "alternate")]),
    ("DGC first", "sage", &[("order", "dgc-first")]),
    ("Sage", "sage", &[]),
];
const DGC_FIRST: usize = 4;
const SAGE: usize = 5;

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    let mut table = Table::new(["device", "hybrid", "mean_samples_per_s"]);
    let mut figure = Figure::new("Sage, figure 11: mean throughput of six hybrids, ResNet-50")
        .note("Mean over the declared budgets; a budget that a hybrid cannot reach counts as zero.")
        .panel_size(300, 300);
    let (mut phones, mut server) = (Vec::new(), Vec::new());
    for device in MACHINES {
        let found = curves(context, device, RESNET, &HYBRIDS)?;
        let means: Vec<f64> = (0..HYBRIDS.len()).map(|hybrid| found.mean(hybrid)).collect();
        let best = means.iter().fold(0.0f64, |best, &mean| best.max(mean));
        if PHONES.contains(device) { &mut phones } else { &mut server }.push((means.clone(), best));
        for ((name, _, _), &mean) in HYBRIDS.iter().zip(&means) {
            table.push([(*device).into(), (*name).into(), mean.into()])?;
        }
        let bars =
            Bars::new(HYBRIDS.map(|(name, _, _)| name)).series(BarSeries::new("mean throughput", means)).show_values();
        figure = figure.panel(Panel::new(bars).title(*device).y(Axis::new("mean throughput").unit("samples/s")));
    }
    outcome.quantity("mean of Sage on the phones", "", phones.iter().map(|(means, _)| means[SAGE]));
    outcome.quantity("highest mean on the phones", "", phones.iter().map(|(_, best)| *best));
    outcome.quantity("mean of checkpointing first on the server", "", server.iter().map(|(means, _)| means[DGC_FIRST]));
    outcome.quantity("highest mean on the server", "", server.iter().map(|(_, best)| *best));
    context.judge(&mut outcome, "sage/figure11/resnet50-on-phones/sage-highest-of-six-hybrids/throughput")?;
    context.judge(&mut outcome, "sage/figure11/resnet50-on-rtx-3090/dgc-first-highest/throughput")?;
    Ok(outcome.drawn(figure, table))
}
