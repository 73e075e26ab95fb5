//! Rows that a constant answers which was fitted to them alone: `readings/put-in.toml`, embedded. What comes out of them was
//! put in, so that they are no test of anything.

use haversack_devices::text::read_toml;
use serde::Deserialize;

use super::reference::{ReferenceRow, Role, named};

const FILE: &str = "experiments/readings/put-in.toml";
const TEXT: &str = include_str!("../../readings/put-in.toml");

/// What is said of such a row.
pub(super) const REMARK: &str = "put in: constants were fitted to it alone";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PutInFile {
    #[serde(rename = "fit")]
    fits: Vec<Fit>,
}

/// Constants, each as `file: name`, and the rows that decide them: no more than there are constants.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fit {
    constants: Vec<String>,
    rows: Vec<String>,
}

/// Marks the rows of the embedded file.
///
/// # Errors
/// In words: a file that does not follow its schema, an id that no row has, a row that nothing may be fitted to, more rows
/// than constants.
pub(super) fn mark(rows: &mut [ReferenceRow]) -> Result<(), String> {
    mark_with(TEXT, rows)
}

fn mark_with(text: &str, rows: &mut [ReferenceRow]) -> Result<(), String> {
    let file: PutInFile = read_toml(FILE, text).map_err(|error| format!("`{}`: {}", error.at.field, error.problem))?;
    for Fit { constants, rows: ids } in file.fits {
        if ids.len() > constants.len() {
            let (rows, of) = (ids.len(), constants.len());
            return Err(format!("`fit.rows`: expected as many as `constants` at most, {of}, found {rows}"));
        }
        for id in ids {
            named(rows, "fit.rows", &id, Role::Fit)?.put_in = true;
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
    fn rows_that_decide_as_many_constants_are_marked() {
        let fit = example("time", Claim::Value(Some(1.0)), Role::Fit);
        let check = ReferenceRow { id: "sage/other".to_owned(), role: Role::Check, ..fit.clone() };
        let text = |rows: &str| format!("[[fit]]\nconstants = [\"gpu: rate\"]\nrows = [{rows}]\n");
        let own = format!("\"{}\"", fit.id);
        let mut rows = [fit, check];
        mark_with(&text(&own), &mut rows).unwrap();
        assert_eq!(rows.clone().map(|row| row.put_in), [true, false]);
        assert!(mark_with(&text("\"sage/nothing\""), &mut rows).unwrap_err().contains("`sage/nothing`"));
        assert!(mark_with(&text("\"sage/other\""), &mut rows).unwrap_err().ends_with("is of role check, expected fit"));
        let both = format!("{own}, \"sage/other\"");
        assert!(mark_with(&text(&both), &mut rows).unwrap_err().ends_with("at most, 1, found 2"));
    }
}
