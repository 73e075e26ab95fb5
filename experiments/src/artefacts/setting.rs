//! What the artefacts of several papers share: variations of a scenario, and small statistics.

use crate::scenario::Scenario;

/// Parameters of a policy by name.
pub(super) type Set<'a> = &'a [(&'a str, &'a str)];

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

/// The lowest and the highest of `values`; `None` of none.
pub(super) fn range(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().fold(None, |range, value| {
        let (lo, hi) = range.unwrap_or((value, value));
        Some((value.min(lo), value.max(hi)))
    })
}

/// The mean of `values`; `None` of none.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_and_a_range_are_of_something() {
        // (1 + 2 + 6) / 3 = 3.
        assert_eq!((mean(&[1.0, 2.0, 6.0]), mean(&[])), (Some(3.0), None));
        assert_eq!((range([2.0, 1.0, 6.0]), range([])), (Some((1.0, 6.0)), None));
    }

    #[test]
    fn another_policy_starts_with_its_own_parameters() {
        let scenario = with(&Scenario::new("galaxy-s10", "lenet5"), &[("bits", "2")]);
        let daf = under(&scenario, "daf", &[("packing", "cpu")]);
        assert_eq!((daf.policy.as_str(), daf.set.len()), ("daf", 1));
        assert_eq!(with(&daf, &[("bits", "4")]).set.len(), 2);
    }
}
