//! Figure 6: energy of a batch, six networks on three phones under five methods.

use super::figure5::{Quantity, measure, on_all_phones, shown};
use super::setting::Batch;
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact =
    on_all_phones("figure6", "energy of a batch: six networks, three phones, five methods", run);

const ENERGY: Quantity = Quantity {
    artefact: "figure6",
    metric: "energy-reduction",
    title: "Mandheling, figure 6: energy of a batch of 64",
    axis: ("energy", "J"),
    gain: "reduction of energy",
    value: |batch| batch.energy.0,
    ratio: Batch::energy_reduction,
};

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    shown(context, &measure(context)?, ENERGY)
}
