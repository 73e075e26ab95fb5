//! Numbers of a paper that cannot all hold, shown with their arithmetic: `[[contradiction]]` of `readings/scoring.toml`.
//!
//! Such rows are answered and shown like all others and are no misses, neither of the model nor of the paper: they count in
//! no median and no number of claims, whether they match or not. Each contradiction is arithmetic on the paper's own numbers
//! and on counts, and it is checked when the file is read.
//!
//! ```toml
//! [[contradiction]]
//! about = "BERT-small has two footprints"
//! rows = ["sage/introduction/bert-small/training/memory"]
//! left = { name = "in table 1", times = ["sage/table1/bert-small/original/memory"], factor = 0.001, unit = "GB" }
//! is = "<"                                                   # what is so, and cannot be
//! right = { name = "in the introduction", times = ["sage/introduction/bert-small/training/memory"], unit = "GB" }
//! ```
//!
//! A side is its `factor` (1 where there is none; `of` says where it is from) times the paper's numbers of `times`, over those
//! of `over`. Of a range, `ID#lo` and `ID#hi` are its ends.

use haversack_reports::table::three_digits;
use serde::Deserialize;

use crate::papers::reference::{Claim, Reference};

/// Rows of a paper that cannot all hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contradiction {
    about: String,
    pub(super) rows: Vec<String>,
    left: Side,
    is: Relation,
    right: Side,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum Relation {
    #[serde(rename = "<")]
    Less,
    #[serde(rename = ">")]
    More,
}

/// A number that comes from the paper's.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Side {
    name: String,
    times: Vec<String>,
    over: Vec<String>,
    factor: Option<f64>,
    of: String,
    unit: String,
}

impl Contradiction {
    /// Whether the row is one of those that cannot all hold.
    pub(super) fn is_about(&self, id: &str) -> bool {
        self.rows.iter().any(|row| row == id)
    }

    /// What is wrong with it: a row that there is not, or arithmetic that does not contradict.
    pub(super) fn fault(&self, reference: &Reference) -> Option<String> {
        if let Some(id) = self.rows.iter().find(|id| reference.row(id).is_none()) {
            return Some(format!("no row of the papers is called `{id}`"));
        }
        let values = self.left.value(reference).and_then(|left| Ok((left, self.right.value(reference)?)));
        let Ok((left, right)) = values else { return values.err() };
        let holds = match self.is {
            Relation::Less => left < right,
            Relation::More => left > right,
        };
        (!holds).then(|| format!("`{}`: {left} and {right} do not contradict each other so", self.about))
    }

    /// In a sentence, with its arithmetic.
    pub(crate) fn sentence(&self, reference: &Reference) -> String {
        let Self { about, left, right, .. } = self;
        let more = match self.is {
            Relation::Less => "is less than",
            Relation::More => "is more than",
        };
        format!("{about}: {} {more} {}.", left.words(reference), right.words(reference))
    }
}

impl Side {
    fn value(&self, reference: &Reference) -> Result<f64, String> {
        let product = |ids: &[String]| ids.iter().map(|id| number(reference, id)).product::<Result<f64, String>>();
        Ok(self.factor.unwrap_or(1.0) * product(&self.times)? / product(&self.over)?)
    }

    /// "the baseline over the reduction (3303 / 20 = 165 MB)".
    fn words(&self, reference: &Reference) -> String {
        let numbers = |ids: &[String], sign: &str| {
            let numbers = ids.iter().filter_map(|id| number(reference, id).ok());
            numbers.map(three_digits).collect::<Vec<_>>().join(sign)
        };
        let over = if self.over.is_empty() { String::new() } else { format!(" / {}", numbers(&self.over, " / ")) };
        let terms = format!("{}{over}", numbers(&self.times, " × "));
        let terms = if self.times.len() + self.over.len() > 1 { format!("{terms}, ") } else { String::new() };
        let value = self.value(reference).map(three_digits).unwrap_or_default();
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        let of = if self.of.is_empty() { String::new() } else { format!("; {}", self.of) };
        format!("{} ({terms}{value}{unit}{of})", self.name)
    }
}

/// The paper's number of a row, or an end of its range.
fn number(reference: &Reference, id: &str) -> Result<f64, String> {
    let (row, end) = id.split_once('#').map_or((id, None), |(row, end)| (row, Some(end)));
    let found = reference.row(row).ok_or_else(|| format!("no row of the papers is called `{row}`"))?;
    let number = match (&found.claim, end) {
        (Claim::Range { lo, .. }, Some("lo")) => Some(*lo),
        (Claim::Range { hi, .. }, Some("hi")) => Some(*hi),
        (_, None) => found.number(),
        _ => None,
    };
    number.ok_or_else(|| format!("the paper has no number for `{id}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::reference::{ReferenceRow, Role, example};

    fn read(is: &str) -> Contradiction {
        let text = format!(
            "about = 'Two'\nrows = ['sage/t/a', 'sage/t/b']\nis = '{is}'\nleft = {{ name = 'a third', times = ['sage/t/a'], factor = 0.5, over = ['sage/t/b#hi'], unit = 's' }}\nright = {{ name = 'all', factor = 2, of = 'counted' }}\n"
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn arithmetic_is_checked_and_shown() {
        let row = |id: &str, claim, role| ReferenceRow { id: id.to_owned(), ..example("time", claim, role) };
        let rows = vec![
            row("sage/t/a", Claim::Value(Some(9.0)), Role::Fit),
            row("sage/t/b", Claim::Range { lo: 1.0, hi: 3.0 }, Role::Check),
            row("sage/t/c", Claim::Value(None), Role::Withheld),
        ];
        let reference = Reference::of_rows(rows);
        // 9 × 0.5 / 3 = 1.5 < 2.
        let found = read("<");
        assert_eq!(found.fault(&reference), None);
        assert_eq!(found.sentence(&reference), "Two: a third (9 / 3, 1.5 s) is less than all (2; counted).");
        assert!(read(">").fault(&reference).unwrap().contains("do not contradict each other so"));
        assert_eq!(reference.rows().iter().map(|row| found.is_about(&row.id)).collect::<Vec<_>>(), [true, true, false]);
        let unknown = Contradiction { rows: vec!["sage/u".to_owned()], ..found };
        assert!(unknown.fault(&reference).unwrap().contains("`sage/u`"));
    }
}
