//! How rows are scored that cannot stand alone: `readings/scoring.toml`, embedded and read strictly.

mod contradiction;
mod product;

use haversack_devices::text::read_toml;
use serde::Deserialize;

use self::contradiction::Contradiction;
use self::product::Product;
use super::{ComparedCell, Reference, SCORING, SCORING_TEXT};

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
    /// What stands beside the medians of these cells: see [`Self::sentences`]; a file that is not right is said.
    pub(crate) fn beside(cells: &[ComparedCell], reference: &Reference) -> Vec<String> {
        Self::load(reference)
            .map_or_else(|fault| vec![format!("{SCORING}: {fault}")], |it| it.sentences(cells, reference))
    }

    /// The embedded file, checked against the rows of `reference`.
    ///
    /// # Errors
    /// In words: a file that does not follow its schema, rows that there are not, arithmetic that does not contradict.
    fn load(reference: &Reference) -> Result<Self, String> {
        let read: Self =
            read_toml(SCORING, SCORING_TEXT).map_err(|error| format!("`{}`: {}", error.at.field, error.problem))?;
        let faults = read.contradictions.iter().find_map(|one| one.fault(reference));
        let fault = faults.or_else(|| read.products.iter().find_map(|one| one.fault(reference)));
        fault.map_or(Ok(read), Err)
    }

    /// What stands beside the medians of these cells: bases and ratios apart, and each contradiction with its arithmetic.
    fn sentences(&self, cells: &[ComparedCell], reference: &Reference) -> Vec<String> {
        let products = self.products.iter().flat_map(|product| product.sentences(cells));
        let shown = |one: &&Contradiction| cells.iter().any(|cell| cell.contradicted && one.is_about(&cell.id));
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
            assert!(reference.rows().iter().any(|row| row.contradicted && one.is_about(&row.id)), "{one:?}");
        }
        // "BERT-small has two footprints: … (7197 …"
        let words: Vec<String> = scoring.contradictions.iter().map(|one| one.sentence(&reference)).collect();
        assert!(words.iter().any(|words| words.contains("(3303 / 20, 165 MB)")), "{words:#?}");
    }
}
