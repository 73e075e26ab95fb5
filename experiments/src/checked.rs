//! Evidence for a device under a software stack: rows of measured sets, and numbers of the papers.

use haversack_devices::Form;
use serde::Deserialize;

use crate::Plan;
use crate::papers::catalogue::{Entry, entries};
use crate::papers::committed;
use crate::quantities::percent;

/// Verdicts of rows that compare a simulated with a reported value.
const COMPARED: [&str; 4] = ["ok", "off", "holds", "fails"];

/// The errors of the bundled measured sets, by set, quantity and role; a test keeps them equal to the
/// output of `validate`.
const ERRORS: &str = include_str!("../truth/errors.csv");

/// A line of [`ERRORS`].
#[derive(Deserialize)]
struct Tally {
    set: String,
    stack: String,
    /// The forms of its devices, separated by spaces.
    forms: String,
    what: String,
    role: String,
    rows: u64,
    mean_error: f64,
}

/// The name of each quantity in text.
const QUANTITIES: [(&str, bool, &str); 3] = [
    ("iteration_time_s", false, "training steps"),
    ("peak_memory_bytes", false, "peak memory"),
    ("iteration_time_s (inference)", true, "inference"),
];

/// A sentence on the errors of measured rows of `stack` on devices of this `form`, for training or for `inference`;
/// `None` without such rows.
fn measured(stack: &str, form: Form, inference: bool) -> Option<String> {
    let form: &str = form.into();
    let tallies = csv::Reader::from_reader(ERRORS.as_bytes()).into_deserialize::<Tally>().filter_map(Result::ok);
    let fits = |tally: &Tally| tally.stack == stack && tally.forms.split(' ').any(|of| of == form);
    let tallies: Vec<Tally> = tallies.filter(fits).collect();
    let of = |what: &str, role: &str| tallies.iter().find(|tally| tally.what == what && tally.role == role);
    let told = QUANTITIES.into_iter().filter(|(_, infers, _)| *infers == inference).filter_map(|(what, _, words)| {
        let (tally, kind) =
            of(what, "check").map(|tally| (tally, "")).or_else(|| Some((of(what, "fit")?, "fitted ")))?;
        Some(format!("{words} {} off in the mean of {} {kind}rows", percent(tally.mean_error), tally.rows))
    });
    let told: Vec<String> = told.collect();
    let set = &tallies.first().filter(|_| !told.is_empty())?.set;
    Some(format!("measured under {stack} on a {form}: {}; see `haversack validate {set}`", told.join(", ")))
}

/// Whether a row of the committed results compares a reported number with one that depends on both.
pub fn checked(device: &str, stack: &str) -> bool {
    let rests =
        |artefact: &&Entry| !artefact.of_many && artefact.devices.contains(&device) && artefact.stacks.contains(&stack);
    let resting = || entries().iter().filter(rests);
    // Most pairs appear in no artefact, so the table need not be read.
    resting().next().is_some()
        && committed::verdicts().any(|(id, verdict)| {
            let mut parts = id.splitn(3, '/');
            let (paper, artefact) = (parts.next(), parts.next());
            let is_of = |known: &&Entry| paper == Some(known.paper) && artefact == Some(known.id);
            COMPARED.contains(&verdict.as_str()) && resting().any(|known| is_of(&known))
        })
}

/// The note under the results of `plan`: the error on measured runs of its stack on such a device, or that no
/// measurement has checked this pair; `None` if numbers of papers have.
pub fn doubt(plan: &Plan) -> Option<String> {
    let scenario = plan.scenario();
    let (device, stack) = (&scenario.device, scenario.stack.as_deref().unwrap_or_default());
    let form = plan.resolved.device.constants.form;
    if let Some(told) = form.and_then(|form| measured(stack, form, scenario.inference)) {
        return Some(told);
    }
    let is_idealised = plan.resolved.device.constants.soc == "idealised";
    (!is_idealised && !checked(device, stack)).then(|| {
        format!(
            "no reported number has checked {device} under the stack {stack}: these figures rest on its constants alone \
             (see `haversack show device {device}`)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_papers_measured_is_checked_and_the_rest_is_not() {
        // Sage's table 1 is of the Galaxy S10; no paper trains on a Pixel 6 by MNN 2.3.
        assert!(checked("galaxy-s10", "sage-opencl"));
        assert!(!checked("pixel-6", "mnn-2"));
        assert!(!checked("galaxy-s10", "pytorch-cuda"));
        assert!(!checked("my-phone.toml", "sage-opencl"));
    }
}
