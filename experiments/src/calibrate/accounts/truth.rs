//! Rows that are no paper's, beside what is simulated at the constants of the files.

use serde::Serialize;

use crate::calibrate::declared::Calibration;
use crate::calibrate::fit::Problem;
use crate::calibrate::observation::{self, Observation};
use crate::error::CommandError;
use crate::reproduce::left_out::{Errors, Known};
use crate::reproduce::mean;
use crate::reproduce::reference::Role;

/// A row of a file of observations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct TruthRow {
    pub(super) file: &'static str,
    pub(super) role: Role,
    pub(super) id: String,
    /// The network that ran; the id, where nothing says.
    network: String,
    /// What of the id is not the network.
    setting: String,
    /// What was observed, of one sample where the row says how many there were.
    pub(super) observed: f64,
    /// What is simulated, likewise; `None` where it cannot run.
    pub(super) simulated: Option<f64>,
    /// The error if the row is left out of the fit, where that is stored.
    pub(super) left_out: Option<f64>,
}

impl TruthRow {
    /// (simulated − observed) / observed.
    pub(super) fn error(&self) -> Option<f64> {
        Some(self.simulated? / self.observed - 1.0)
    }

    /// The larger over the smaller; infinite where there is no answer.
    pub(super) fn factor(&self) -> f64 {
        self.simulated.map_or(f64::INFINITY, |simulated| (simulated / self.observed).max(self.observed / simulated))
    }
}

/// Rows of one file, role and setting, or of all settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Group {
    pub(super) file: &'static str,
    pub(super) role: Role,
    /// The setting; `None` of all.
    pub(super) setting: Option<String>,
    pub(super) rows: usize,
    pub(super) answered: usize,
    /// The mean absolute error of those with an answer; `None` of none.
    pub(super) mean_error: Option<f64>,
    /// The same of rows that were left out of the fit; `None` if that is not stored of each.
    pub(super) mean_error_left_out: Option<f64>,
    /// The largest factor of those with an answer; `None` of none.
    pub(super) worst_factor: Option<f64>,
    /// Spearman's rank correlation of simulated and observed; `None` of fewer than three.
    pub(super) rank_correlation: Option<f64>,
}

/// The rows of `calibration`: those that are fitted, and those of role `check` beside them.
pub(super) fn rows(calibration: &Calibration, errors: &Errors) -> Result<Vec<TruthRow>, CommandError> {
    let problem = Problem::new(calibration)?;
    let values: Vec<f64> = problem.present()?.into_iter().map(|(value, _)| value).collect();
    let checks = observation::checks(calibration)?;
    let mut rows = Vec::new();
    for (role, observations) in [(Role::Fit, &problem.observations), (Role::Check, &checks)] {
        let simulated = problem.simulated_of(observations, &values)?;
        let row = |(observation, simulated): (&Observation, f64)| {
            let samples = observation.samples() as f64;
            let network = observation.network().unwrap_or(&observation.id);
            let left_out = match errors.of(&observation.id) {
                Some(Known::LeftOut(error)) if role == Role::Fit => Some(error),
                _ => None,
            };
            TruthRow {
                file: calibration.observations.file(),
                role,
                id: observation.id.clone(),
                setting: setting(&observation.id, network),
                network: network.to_owned(),
                observed: observation.observed / samples,
                simulated: simulated.is_finite().then_some(simulated / samples),
                left_out,
            }
        };
        rows.extend(observations.iter().zip(simulated).map(row));
    }
    Ok(rows)
}

/// The parts of `id` that do not name `network`, of which it may leave the version open.
fn setting(id: &str, network: &str) -> String {
    let names = |part: &str| network.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    id.split('/').filter(|part| !names(part)).collect::<Vec<_>>().join("/")
}

/// The rows by file, role and setting, in their order; where there are several settings, all of them first.
pub(super) fn groups(rows: &[TruthRow]) -> Vec<Group> {
    let mut keys: Vec<(&'static str, Role)> = Vec::new();
    for row in rows {
        if !keys.contains(&(row.file, row.role)) {
            keys.push((row.file, row.role));
        }
    }
    let mut groups = Vec::new();
    for (file, role) in keys {
        let of_role: Vec<&TruthRow> = rows.iter().filter(|row| (row.file, row.role) == (file, role)).collect();
        groups.push(group(None, &of_role));
        let mut settings: Vec<&str> = Vec::new();
        for row in &of_role {
            if !settings.contains(&row.setting.as_str()) {
                settings.push(row.setting.as_str());
            }
        }
        for setting in settings.iter().filter(|_| settings.len() > 1) {
            let of_setting: Vec<&TruthRow> =
                of_role.iter().copied().filter(|row| row.setting.as_str() == *setting).collect();
            groups.push(group(Some((*setting).to_owned()), &of_setting));
        }
    }
    groups.retain(|group| group.rows > 0);
    groups
}

fn group(setting: Option<String>, rows: &[&TruthRow]) -> Group {
    let answered: Vec<&TruthRow> = rows.iter().copied().filter(|row| row.simulated.is_some()).collect();
    let errors: Vec<f64> = answered.iter().filter_map(|row| Some(row.error()?.abs())).collect();
    let left_out: Option<Vec<f64>> = rows.iter().map(|row| row.left_out.map(f64::abs)).collect();
    let pairs: Vec<(f64, f64)> = answered.iter().filter_map(|row| Some((row.simulated?, row.observed))).collect();
    Group {
        file: rows.first().map_or("", |row| row.file),
        role: rows.first().map_or(Role::Fit, |row| row.role),
        setting,
        rows: rows.len(),
        answered: answered.len(),
        mean_error: mean(&errors),
        mean_error_left_out: left_out.and_then(|errors| mean(&errors)),
        worst_factor: answered.iter().map(|row| row.factor()).max_by(f64::total_cmp),
        rank_correlation: rank_correlation(&pairs),
    }
}

/// The worst row of each network and file, the worst `number` of them, worst first.
pub(super) fn worst(rows: &[TruthRow], number: usize) -> Vec<TruthRow> {
    let mut worst: Vec<&TruthRow> = rows.iter().collect();
    worst.sort_by(|a, b| b.factor().total_cmp(&a.factor()).then_with(|| a.id.cmp(&b.id)));
    let mut found: Vec<TruthRow> = Vec::new();
    for row in worst {
        if found.len() < number && !found.iter().any(|other| other.network == row.network) {
            found.push(row.clone());
        }
    }
    found
}

/// Spearman's: the correlation of the ranks, equal values sharing their mean rank; `None` of fewer than three pairs, or
/// where all ranks of a side are equal.
fn rank_correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let ranks = |side: fn(&(f64, f64)) -> f64| -> Vec<f64> {
        let rank = |of: &(f64, f64)| {
            let below = pairs.iter().filter(|other| side(other) < side(of)).count();
            let equal = pairs.iter().filter(|other| side(other) == side(of)).count();
            below as f64 + (equal as f64 - 1.0) / 2.0
        };
        pairs.iter().map(rank).collect()
    };
    let (a, b) = (ranks(|pair| pair.0), ranks(|pair| pair.1));
    // The mean of ranks from zero, equal ones or not.
    let middle = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum::<f64>();
    let correlation = product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt();
    correlation.is_finite().then_some(correlation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, role: Role, observed: f64, simulated: Option<f64>, left_out: Option<f64>) -> TruthRow {
        let (network, rest) = id.split_once('/').unwrap();
        let (network, setting) = (network.to_owned(), rest.to_owned());
        TruthRow { file: "f.csv", role, id: id.into(), network, setting, observed, simulated, left_out }
    }

    #[test]
    fn a_setting_is_what_of_an_id_is_not_the_network() {
        assert_eq!(setting("lenet5/forward", "lenet5"), "forward");
        assert_eq!(setting("a-board/big:4/resnet50", "resnet50-v1"), "a-board/big:4");
        assert_eq!(setting("a-board/big:4/resnet50", "resnet501"), "a-board/big:4/resnet50");
    }

    #[test]
    fn ranks_correlate_by_spearman() {
        assert_eq!(rank_correlation(&[(1.0, 2.0), (2.0, 3.0)]), None);
        assert_eq!(rank_correlation(&[(1.0, 10.0), (2.0, 20.0), (3.0, 90.0)]), Some(1.0));
        assert_eq!(rank_correlation(&[(3.0, 10.0), (2.0, 20.0), (1.0, 90.0)]), Some(-1.0));
        // Ranks 0, 1, 2, 3 and 1, 0, 2, 3: 1 − 6 · (1 + 1) / (4 · 15) = 0.8.
        let found = rank_correlation(&[(1.0, 5.0), (2.0, 4.0), (3.0, 6.0), (4.0, 7.0)]).unwrap();
        assert!((found - 0.8).abs() < 1e-12, "{found}");
        // Ranks 0.5, 0.5, 2 and 0, 1, 2 about 1: 1.5 / √(1.5 · 2) = 0.866.
        let found = rank_correlation(&[(1.0, 5.0), (1.0, 6.0), (3.0, 7.0)]).unwrap();
        assert!((found - 0.866_025).abs() < 1e-5, "{found}");
        assert_eq!(rank_correlation(&[(1.0, 5.0), (1.0, 6.0), (1.0, 7.0)]), None);
    }

    #[test]
    fn rows_are_grouped_by_role_and_setting() {
        let rows = [
            row("a/training", Role::Fit, 10.0, Some(11.0), Some(0.3)),
            row("b/training", Role::Fit, 10.0, Some(5.0), Some(-0.7)),
            row("b/inference", Role::Fit, 10.0, None, None),
            row("c/training", Role::Check, 10.0, Some(12.0), None),
        ];
        let groups = groups(&rows);
        let of = |group: &Group| (group.role, group.setting.clone(), group.rows, group.answered);
        let expected = [
            (Role::Fit, None, 3, 2),
            (Role::Fit, Some("training".to_owned()), 2, 2),
            (Role::Fit, Some("inference".to_owned()), 1, 0),
            (Role::Check, None, 1, 1),
        ];
        assert_eq!(groups.iter().map(of).collect::<Vec<_>>(), expected);
        // (0.1 + 0.5) / 2 = 0.3; 10 / 5 = 2; of one row nothing is stored, so that the mean of all is not known.
        assert!((groups[0].mean_error.unwrap() - 0.3).abs() < 1e-12);
        assert_eq!((groups[0].worst_factor, groups[0].mean_error_left_out), (Some(2.0), None));
        assert_eq!((groups[1].mean_error_left_out, groups[2].mean_error), (Some(0.5), None));
    }

    #[test]
    fn a_network_stands_once_among_the_worst_and_one_without_an_answer_first() {
        let rows = [
            row("a/x", Role::Fit, 10.0, Some(30.0), None),
            row("a/y", Role::Fit, 10.0, Some(2.0), None),
            row("b/x", Role::Fit, 10.0, Some(11.0), None),
            row("c/x", Role::Fit, 10.0, None, None),
        ];
        let ids = |number| worst(&rows, number).into_iter().map(|row| row.id).collect::<Vec<_>>();
        // a/y is five times too fast, a/x three times too slow.
        assert_eq!(
            (ids(9), ids(2)),
            (vec!["c/x".into(), "a/y".into(), "b/x".into()], vec!["c/x".to_owned(), "a/y".into()])
        );
    }
}
