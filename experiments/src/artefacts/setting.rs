//! Shared by the artefacts of several papers: variations of a scenario.

use haversack_devices::Nanos;

use crate::Scenario;

/// Parameters of a policy by name.
pub(super) type Set<'a> = &'a [(&'a str, &'a str)];

/// A scenario of `model` on `device` under `policy`, with a mini-batch of `batch` samples. A budget in percent refers
/// to the need of training on the policy's own stack, because papers compare policies on one engine.
pub(super) fn trained(device: &str, model: &str, policy: &str, batch: u64) -> Scenario {
    Scenario { policy: policy.to_owned(), batch, ..Scenario::new(device, model) }
}

/// `scenario` under another policy, with its parameters.
pub(super) fn under(scenario: &Scenario, policy: &str, set: Set<'_>) -> Scenario {
    with(&Scenario { policy: policy.to_owned(), set: Default::default(), ..scenario.clone() }, set)
}

/// `scenario` with parameters of its policy.
pub(super) fn with(scenario: &Scenario, set: Set<'_>) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.set.extend(set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    scenario
}

/// Milliseconds.
pub(super) fn milliseconds(time: Nanos) -> f64 {
    time.seconds() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_policy_starts_with_its_own_parameters() {
        let scenario = with(&Scenario::new("galaxy-s10", "lenet5"), &[("bits", "2")]);
        let daf = under(&scenario, "daf", &[("packing", "cpu")]);
        assert_eq!((daf.policy.as_str(), daf.set.len()), ("daf", 1));
        assert_eq!(with(&daf, &[("bits", "4")]).set.len(), 2);
    }
}
