//! What is not modelled: what only a federation of devices can answer.

use crate::artefacts::prelude::*;

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
