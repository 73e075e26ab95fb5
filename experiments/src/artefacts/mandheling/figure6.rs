//! Figure 6: energy of a batch, six networks on three phones under five methods.

use super::figure5::{Shown, measure, on_all_phones, show};
use super::setting::{BatchCost, QUANTITIES};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact =
    on_all_phones("figure6", "energy of a batch: six networks, three phones, five methods", run);

const ENERGY: Shown = Shown {
    artefact: "figure6",
    metric: "energy-reduction",
    quantity: QUANTITIES[1],
    gain: "reduction of energy",
    ratio: BatchCost::energy_reduction,
};

fn run(context: &Context<'_>) -> Result<Outcome> {
    show(context, &measure(context)?, ENERGY)
}
