//! Whether any number of the papers has ever checked a device under a software stack.

use crate::papers::catalogue::{Entry, entries};
use crate::papers::committed;
use crate::run::Plan;

/// Verdicts of rows that compare what was simulated with what was reported.
const COMPARED: [&str; 4] = ["ok", "off", "holds", "fails"];

/// Whether a row of the committed results compares a reported number with one that rests on both.
pub fn checked(device: &str, stack: &str) -> bool {
    let rests =
        |artefact: &&Entry| !artefact.of_many && artefact.devices.contains(&device) && artefact.stacks.contains(&stack);
    let resting = || entries().iter().filter(rests);
    // Most pairs are in no artefact at all, so that the table need not be read.
    resting().next().is_some()
        && committed::verdicts().any(|(id, verdict)| {
            let mut parts = id.splitn(3, '/');
            let (paper, artefact) = (parts.next(), parts.next());
            let is_of = |known: &&Entry| paper == Some(known.paper) && artefact == Some(known.id);
            COMPARED.contains(&verdict.as_str()) && resting().any(|known| is_of(&known))
        })
}

/// What to say under the results of `plan` if nothing has checked where it runs; `None` if something has.
pub fn doubt(plan: &Plan) -> Option<String> {
    let scenario = plan.scenario();
    let (device, stack) = (&scenario.device, scenario.stack.as_deref().unwrap_or_default());
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
