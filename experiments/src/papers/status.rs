//! The permitted uses of reference rows. The role of a row is in the reference; `readings/status.toml`, embedded, lists
//! the rows that are no longer a test, with the reason: they were in view when a choice was made, or a constant was
//! fitted to them only.

use haversack_devices::ensure;
use haversack_devices::text::read_toml;
use serde::Deserialize;

use super::{ReferenceRow, Role};

/// The file's name in errors.
pub(crate) const FILE: &str = "experiments/readings/status.toml";
const TEXT: &str = include_str!("../../readings/status.toml");

/// The file of contradictions, of which only the rows matter here (`super::scoring`).
pub(crate) const SCORING: &str = "experiments/readings/scoring.toml";
pub(crate) const SCORING_TEXT: &str = include_str!("../../readings/scoring.toml");

/// The permitted uses of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Calibration may use it.
    Fit,
    /// As *fit*, and its constants were fitted to it only, so that the result equals the input.
    PutIn,
    /// Compared, but never used for fitting.
    Check,
    /// As *check*, but it was in view when a choice was made that it could have influenced: it counts in no median.
    InView,
    /// The value is not given: haversack predicts it, and others compare.
    Withheld,
}

impl Status {
    /// The role of such a row in the reference.
    pub const fn role(self) -> Role {
        match self {
            Self::Fit | Self::PutIn => Role::Fit,
            Self::Check | Self::InView => Role::Check,
            Self::Withheld => Role::Withheld,
        }
    }

    /// The remark on such a row in its cell, if it is answered.
    pub(crate) const fn remark(self, answered: bool) -> Option<&'static str> {
        match self {
            Self::InView if answered => Some("in view when a choice was made"),
            Self::PutIn if answered => Some("put in: constants were fitted to it alone"),
            _ => None,
        }
    }
}

impl From<Role> for Status {
    fn from(role: Role) -> Self {
        match role {
            Role::Fit => Self::Fit,
            Role::Check => Self::Check,
            Role::Withheld => Self::Withheld,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusFile {
    #[serde(rename = "status")]
    all: Vec<Change>,
}

/// Rows whose status differs from their role.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    is: Status,
    /// The reason: the choice that was made; or the constants, each as `file: name`, at least as many as rows.
    because: Vec<String>,
    rows: Vec<String>,
}

/// The rows that contradict others of their paper.
#[derive(Deserialize)]
struct Contradicted {
    contradiction: Vec<Rows>,
}

#[derive(Deserialize)]
struct Rows {
    rows: Vec<String>,
}

/// Changes the status of the rows that the embedded file names, and marks those that contradict others.
///
/// # Errors
/// A message: a file that does not follow its schema, an unknown id, a row with another role, a missing reason, more
/// rows than constants that were fitted to them.
pub(crate) fn mark(rows: &mut [ReferenceRow]) -> Result<(), String> {
    let listed: Contradicted = toml::from_str(SCORING_TEXT).map_err(|error| format!("{SCORING}: {error}"))?;
    let listed: Vec<String> = listed.contradiction.into_iter().flat_map(|one| one.rows).collect();
    rows.iter_mut().for_each(|row| row.contradicted = row.role() != Role::Withheld && listed.contains(&row.id));
    mark_with(TEXT, rows)
}

fn mark_with(text: &str, rows: &mut [ReferenceRow]) -> Result<(), String> {
    let file: StatusFile = read_toml(FILE, text).map_err(|error| format!("`{}`: {}", error.at.field, error.problem))?;
    for Change { is, because, rows: ids } in file.all {
        if because.is_empty() || because.iter().any(|reason| reason.trim().is_empty()) {
            return Err("`status.because`: expected a reason, found nothing".to_owned());
        }
        if is == Status::PutIn && ids.len() > because.len() {
            let (rows, of) = (ids.len(), because.len());
            return Err(format!("`status.rows`: expected as many as constants at most, {of}, found {rows}"));
        }
        for id in ids {
            let row = rows.iter_mut().find(|row| row.id == id);
            let row = row.ok_or_else(|| format!("`status.rows`: no row of the papers is called `{id}`"))?;
            let (role, expected) = (row.role(), is.role());
            ensure!(role == expected, format!("`status.rows`: `{id}` is of role {role}, expected {expected}"));
            row.status = is;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::reference::{Claim, example};

    #[test]
    fn only_known_rows_of_the_right_role_are_marked_and_with_a_reason() {
        let check = example("time", Claim::Value(Some(1.0)), Role::Check);
        let fit = ReferenceRow { id: "sage/other".to_owned(), status: Status::Fit, ..check.clone() };
        let text = |is: &str, because: &str, rows: &str| {
            format!("[[status]]\nis = \"{is}\"\nbecause = [\"{because}\"]\nrows = [{rows}]\n")
        };
        let (own, other) = (format!("\"{}\"", check.id), "\"sage/other\"");
        let mut rows = [check, fit];
        mark_with(&text("in-view", "a rate", &own), &mut rows).unwrap();
        mark_with(&text("put-in", "gpu: rate", other), &mut rows).unwrap();
        assert_eq!(rows.clone().map(|row| row.status), [Status::InView, Status::PutIn]);
        let mut wrong = |is, because, ids: &str| mark_with(&text(is, because, ids), &mut rows).unwrap_err();
        assert!(wrong("in-view", "a rate", "\"sage/nothing\"").contains("`sage/nothing`"));
        assert!(wrong("in-view", "a rate", other).ends_with("is of role fit, expected check"));
        assert!(wrong("put-in", "gpu: rate", &own).ends_with("is of role check, expected fit"));
        assert!(wrong("in-view", " ", &own).contains("found nothing"));
        assert!(wrong("put-in", "gpu: rate", &format!("{own}, {other}")).ends_with("at most, 1, found 2"));
    }
}
