//! How rows are scored that cannot stand alone: `readings/scoring.toml`, embedded and read strictly.

mod contradiction;
mod product;

use haversack_devices::text::read_toml;
use serde::Deserialize;

use self::contradiction::Contradiction;
use self::product::Product;
use super::cells::ComparedCell;
use super::reference::{Reference, ReferenceRow};

/// The file, as errors name it.
pub(super) const FILE: &str = "experiments/readings/scoring.toml";
const TEXT: &str = include_str!("../../readings/scoring.toml");

/// Numbers of a paper that contradict each other, and rows that are a base times a ratio.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Scoring {
    #[serde(rename = "contradiction")]
    contradictions: Vec<Contradiction>,
    #[serde(rename = "product")]
    products: Vec<Product>,
}

impl Scoring {
    /// The embedded file, checked against the rows of `reference`.
    ///
    /// # Errors
    /// In words: a file that does not follow its schema, rows that there are not, arithmetic that does not contradict.
    pub(super) fn load(reference: &Reference) -> Result<Self, String> {
        let read: Self = read_toml(FILE, TEXT).map_err(|error| format!("`{}`: {}", error.at.field, error.problem))?;
        let faults = read.contradictions.iter().find_map(|one| one.fault(reference));
        let fault = faults.or_else(|| read.products.iter().find_map(|one| one.fault(reference)));
        fault.map_or(Ok(read), Err)
    }

    /// Whether the row contradicts others of its paper.
    pub(super) fn contradicts(&self, row: &ReferenceRow) -> bool {
        self.contradictions.iter().any(|one| one.is_about(row))
    }

    /// What stands beside the medians of these cells: bases and ratios apart, and each contradiction with its arithmetic.
    pub(crate) fn sentences(&self, cells: &[ComparedCell], reference: &Reference) -> Vec<String> {
        let products = self.products.iter().flat_map(|product| product.sentences(cells));
        let shown = |one: &&Contradiction| {
            let rows = cells.iter().filter(|cell| cell.contradicted).filter_map(|cell| reference.row(&cell.id));
            rows.into_iter().any(|row| one.is_about(row))
        };
        let contradictions = self.contradictions.iter().filter(shown).map(|one| one.sentence(reference));
        products.chain(contradictions).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_file_is_arithmetic_on_rows_of_the_papers() {
        let reference = Reference::load().unwrap();
        let scoring = Scoring::load(&reference).unwrap();
        assert!(!scoring.products.is_empty());
        for one in &scoring.contradictions {
            assert!(reference.rows().iter().any(|row| row.contradicted && one.is_about(row)), "{one:?}");
        }
        // "BERT-small has two footprints: … (7197 …"
        let words: Vec<String> = scoring.contradictions.iter().map(|one| one.sentence(&reference)).collect();
        assert!(words.iter().any(|words| words.contains("(3303 / 20, 165 MB)")), "{words:#?}");
    }
}
