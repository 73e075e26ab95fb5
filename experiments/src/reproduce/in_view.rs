//! Rows of role *check* that somebody had in view when a choice was made: `readings/in-view.toml`, embedded. They are shown
//! as all others are, and are no test of that choice any more.

use haversack_devices::text::read_toml;
use serde::Deserialize;

use super::reference::{ReferenceRow, Role, named};

const FILE: &str = "experiments/readings/in-view.toml";
const TEXT: &str = include_str!("../../readings/in-view.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InViewFile {
    #[serde(rename = "choice")]
    choices: Vec<Choice>,
}

/// What was chosen, and the rows that were in view.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    made: String,
    rows: Vec<String>,
}

/// Marks the rows of the embedded file.
///
/// # Errors
/// In words: a file that does not follow its schema, an id that no row has, a row that is not of role *check*.
pub(super) fn mark(rows: &mut [ReferenceRow]) -> Result<(), String> {
    mark_with(TEXT, rows)
}

fn mark_with(text: &str, rows: &mut [ReferenceRow]) -> Result<(), String> {
    let file: InViewFile = read_toml(FILE, text).map_err(|error| format!("`{}`: {}", error.at.field, error.problem))?;
    for Choice { made, rows: ids } in file.choices {
        if made.trim().is_empty() {
            return Err("`choice.made`: expected what was chosen, found nothing".to_owned());
        }
        for id in ids {
            named(rows, "choice.rows", &id, Role::Check)?.in_view = true;
        }
    }
    Ok(())
}

/// The file, as errors name it.
pub(super) fn file() -> &'static str {
    FILE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::reference::{Claim, example};

    #[test]
    fn only_known_rows_of_role_check_are_marked() {
        let check = example("time", Claim::Value(Some(1.0)), Role::Check);
        let fit = ReferenceRow { id: "sage/other".to_owned(), role: Role::Fit, ..check.clone() };
        let text = |id: &str| format!("[[choice]]\nmade = \"a rate\"\nrows = [\"{id}\"]\n");
        let mut rows = [check.clone(), fit];
        mark_with(&text(&check.id), &mut rows).unwrap();
        assert_eq!(rows.clone().map(|row| row.in_view), [true, false]);
        assert!(mark_with(&text("sage/nothing"), &mut rows).unwrap_err().contains("`sage/nothing`"));
        assert!(mark_with(&text("sage/other"), &mut rows).unwrap_err().ends_with("is of role fit, expected check"));
        assert!(mark_with(&text(&check.id).replace("a rate", " "), &mut rows).unwrap_err().contains("found nothing"));
    }
}
