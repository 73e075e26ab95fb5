//! The introduction: training BERT-small takes more than 8 GB.

use haversack_workloads::lowering::Variant;

use super::setting::{BERT, run as simulate, scenario};
use crate::reproduce::{ArtefactError, Context, Outcome};

pub(super) fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut scenario = scenario(context, "galaxy-s10", BERT)?;
    scenario.graph = Some(Variant::Original);
    let peak = simulate(context, &scenario)?.peak_memory;
    let mut outcome = Outcome::default();
    outcome.number("sage/introduction/bert-small/training/memory", peak.megabytes() / 1e3);
    outcome.notes.predicted.push("The peak of the unoptimised graph with the language-model head.".into());
    outcome.notes.left_out.push(
        "MobileBERT's 8 samples a second on an Exynos 990: neither that phone nor the GTX 1080 it is compared with is modelled.".into(),
    );
    Ok(outcome)
}
