//! Figure 6: energy of a batch, six networks on three phones under five methods.

use super::figure5::{Shown, measure, show};
use super::setting::{BatchCost, QUANTITIES};
use crate::artefacts::prelude::*;

const ENERGY: Shown = Shown {
    artefact: "figure6",
    metric: "energy-reduction",
    quantity: QUANTITIES[1],
    gain: "reduction of energy",
    ratio: BatchCost::energy_reduction,
};

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    show(context, &measure(context)?, ENERGY)
}
