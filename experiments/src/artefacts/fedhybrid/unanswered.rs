//! What is not modelled: what only a federation of devices can answer.

use crate::artefacts::prelude::*;

pub(super) static FIGURE1: Artefact =
    of_a_federation("figure1", "accuracy lost where phones without enough memory are left out");
pub(super) static SECTION2_1: Artefact = of_a_federation("section2.1", "clients left out, and the length of a round");
pub(super) static FIGURE3: Artefact =
    of_a_federation("figure3", "accuracy and time with memory saving in a federation");
pub(super) static TABLE3: Artefact = of_a_federation("table3", "time to accuracy against other federations");
pub(super) static TABLE4: Artefact = of_a_federation("table4", "time to accuracy against other memory saving");
pub(super) static FIGURE17: Artefact = of_a_federation("figure17", "a federation without one of the designs");
pub(super) static FIGURE20B: Artefact = of_a_federation("figure20b", "plans for many clients at once");

const fn of_a_federation(id: &'static str, about: &'static str) -> Artefact {
    Artefact::new("fedhybrid", id, about, |context| unanswered(context, "federation"))
}

fn unanswered(context: &Context<'_>, reason: &str) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for row in &context.rows {
        outcome.not_modelled(row.id.clone(), reason);
    }
    Ok(outcome)
}
