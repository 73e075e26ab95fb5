//! Figure 11: six ways to combine accumulation and checkpointing.

use haversack_reports::figure::{Axis, BarSeries, Bars, Figure, Panel};
use haversack_reports::table::Table;

use super::setting::RESNET;
use super::throughput::{Scheme, curves};
use super::{MACHINES, PHONES};
use crate::reproduce::{Answer, ArtefactError, Context, Outcome};

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

pub(super) fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    let mut table = Table::new(["device", "hybrid", "mean_samples_per_s"]);
    let mut figure = Figure::new("Sage, figure 11: mean throughput of six hybrids, ResNet-50")
        .note("Mean over the declared budgets; a budget that a hybrid cannot reach counts as zero.")
        .panel_size(300, 300);
    let on_phones = context.predicate("sage/figure11/resnet50-on-phones/sage-highest-of-six-hybrids/throughput")?;
    let on_server = context.predicate("sage/figure11/resnet50-on-rtx-3090/dgc-first-highest/throughput")?;
    let mut sage_leads = true;
    let mut dgc_leads = false;
    for device in MACHINES {
        let found = curves(context, device, RESNET, &HYBRIDS)?;
        let means: Vec<f64> = (0..HYBRIDS.len()).map(|hybrid| found.mean(hybrid)).collect();
        let best = means.iter().fold(0.0f64, |best, &mean| best.max(mean));
        if PHONES.contains(device) {
            sage_leads &= means[SAGE] >= best * (1.0 - on_phones.tolerance);
        } else {
            dgc_leads = means[DGC_FIRST] >= best * (1.0 - on_server.tolerance);
        }
        for ((name, _, _), &mean) in HYBRIDS.iter().zip(&means) {
            table.push([(*device).into(), (*name).into(), mean.into()])?;
        }
        let bars =
            Bars::new(HYBRIDS.map(|(name, _, _)| name)).series(BarSeries::new("mean throughput", means)).show_values();
        figure = figure.panel(Panel::new(bars).title(*device).y(Axis::new("mean throughput").unit("samples/s")));
    }
    outcome.answer(on_phones.id.clone(), Answer::Order(sage_leads));
    outcome.answer(on_server.id.clone(), Answer::Order(dgc_leads));
    outcome.figure = Some(figure);
    outcome.table = Some(table);
    outcome.notes.predicted.push("All bars.".into());
    Ok(outcome)
}
