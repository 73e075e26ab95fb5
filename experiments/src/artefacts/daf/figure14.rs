//! Figure 14: energy of an iteration under all methods.

use super::figure11::iterations;
use super::setting::{METHODS, Network, artefact};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact = artefact("figure14", "energy of an iteration under all methods", run);

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let found = iterations(context, Network::ResNetCifar)?;
    let mut outcome = Outcome::default();
    let mut table = Table::new(["method", "energy_j", "iteration_ms"]);
    for (method, record) in &found {
        table.push([(*method).into(), record.energy.0.into(), (record.iteration.seconds() * 1e3).into()])?;
        outcome.quantity(&format!("energy of {method}"), "J", [record.energy.0]);
    }
    context.judge(&mut outcome, "daf/figure14/resnet18/original,actnn->-daf/energy")?;
    let bars = Bars::new(METHODS.map(|(_, name)| name))
        .series(BarSeries::new("energy", found.iter().map(|(_, record)| record.energy.0)))
        .show_values();
    let figure = Figure::new("DAF, figure 14: energy of an iteration of ResNet-18, Jetson AGX Xavier")
        .panel_size(700, 320)
        .panel(Panel::new(bars).y(Axis::new("energy").unit("J").from_zero()));
    Ok(outcome.drawn(figure, table))
}
