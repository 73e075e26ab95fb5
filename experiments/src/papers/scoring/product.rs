//! Rows that are a base times a ratio, scored apart: `[[product]]` of `readings/scoring.toml`.
//!
//! Memory under a method is the setting's times what the method leaves of it, energy is time times power: a base that is off
//! hides a ratio that is right, and the other way round.
//!
//! ```toml
//! [[product]]
//! about = "memory of Sage's table 1"
//! rows = "sage/table1/*/*/memory"                  # `*` stands for any text
//! base = "sage/table1/{2}/original/memory"         # the row's own parts between slashes, the first of which is 0
//! ratio = "relative to Original"
//! ```

use indexmap::IndexMap;
use serde::Deserialize;

use crate::papers::notes::matches;
use crate::papers::{Answer, Claim, ComparedCell, Reference, Role};
use crate::quantities::{counted, median};

/// Rows that are a base times a ratio.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Product {
    about: String,
    rows: String,
    base: String,
    ratio: String,
}

impl Product {
    /// What is wrong with it: rows or a base that there are not.
    pub(super) fn fault(&self, reference: &Reference) -> Option<String> {
        let mut rows = reference.rows().iter().filter(|row| matches(&self.rows, &row.id)).peekable();
        if rows.peek().is_none() {
            return Some(format!("no row of the papers is called `{}`", self.rows));
        }
        let missing = rows.find(|row| reference.row(&self.base_of(&row.id)).is_none());
        missing.map(|row| format!("the base of `{}` is no row of the papers", row.id))
    }

    fn base_of(&self, id: &str) -> String {
        let parts = id.split('/').enumerate();
        parts.fold(self.base.clone(), |base, (place, part)| base.replace(&format!("{{{place}}}"), part))
    }

    /// The errors of the bases and of the ratios in a sentence for each role; nothing where there is no ratio.
    pub(crate) fn sentences(&self, cells: &[ComparedCell]) -> Vec<String> {
        let by_id: IndexMap<&str, &ComparedCell> = cells.iter().map(|cell| (cell.id.as_str(), cell)).collect();
        let of_role = |role: Role| {
            let (mut bases, mut ratios) = (IndexMap::new(), Vec::new());
            for cell in cells.iter().filter(|cell| cell.role() == role && matches(&self.rows, &cell.id)) {
                let base = self.base_of(&cell.id);
                let base = by_id.get(base.as_str()).copied().filter(|base| base.id != cell.id);
                let known = base.and_then(|base| Some((base, both(cell)?, both(base)?)));
                let Some((base, (ours, paper), (ours_base, paper_base))) = known else { continue };
                bases.insert(base.id.as_str(), (ours_base / paper_base - 1.0).abs());
                ratios.push(((ours / ours_base) / (paper / paper_base) - 1.0).abs());
            }
            let (rows, of_bases) = (counted(ratios.len(), "row", "rows"), bases.len());
            let percent = |errors: Vec<f64>| median(errors).map(|error| format!("{:.1}%", error * 100.0));
            let (base, ratio) = (percent(bases.into_values().collect())?, percent(ratios)?);
            Some(format!("{}, {role}: bases {base} off ({of_bases}), {} {ratio} ({rows}).", self.about, self.ratio))
        };
        Role::ALL.into_iter().filter_map(of_role).collect()
    }
}

/// What is simulated and the paper's number, where both are and are not zero.
fn both(cell: &ComparedCell) -> Option<(f64, f64)> {
    let (Some(Answer::Number(ours) | Answer::Input(ours)), Claim::Value(Some(paper))) = (&cell.answer, &cell.claim)
    else {
        return None;
    };
    (*ours != 0.0 && *paper != 0.0).then_some((*ours, *paper))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::reference::example;

    #[test]
    fn a_base_that_is_off_does_not_hide_a_ratio_that_is_right() {
        let product = Product {
            about: "memory".to_owned(),
            rows: "sage/t/*/memory".to_owned(),
            base: "sage/t/original/memory".to_owned(),
            ratio: "relative to Original".to_owned(),
        };
        let cell = |id: &str, paper, ours, role| ComparedCell {
            id: id.to_owned(),
            ..ComparedCell::new(&example("memory", Claim::Value(Some(paper)), role), Answer::Number(ours)).unwrap()
        };
        // The base is twice the paper's; of it 0.9 are left, as in the paper, and 0.6 instead of 0.5.
        let cells = [
            cell("sage/t/original/memory", 100.0, 200.0, Role::Fit),
            cell("sage/t/direct/memory", 90.0, 180.0, Role::Check),
            cell("sage/t/fused/memory", 50.0, 120.0, Role::Check),
        ];
        let words = "memory, check: bases 100.0% off (1), relative to Original 10.0% (2 rows).";
        assert_eq!(product.sentences(&cells), [words]);
        assert!(product.sentences(&cells[1..]).is_empty());
    }
}
