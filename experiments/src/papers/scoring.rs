//! The scoring of rows that cannot be judged separately: `readings/scoring.toml`, embedded and parsed strictly.

use haversack_devices::text::read_toml;
use haversack_reports::table::three_digits;
use indexmap::IndexMap;
use serde::Deserialize;

use super::{SCORING, SCORING_TEXT};
use crate::papers::notes::matches;
use crate::papers::{Answer, Claim, ComparedCell, Reference, Role};
use crate::quantities::{counted, median};

/// Numbers of a paper that contradict each other, and rows that are a base multiplied by a ratio.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Scoring {
    #[serde(rename = "contradiction")]
    contradictions: Vec<Contradiction>,
    #[serde(rename = "product")]
    products: Vec<Product>,
}

impl Scoring {
    /// The sentences that go with the medians of these cells, see [`Self::sentences`]; an invalid file is
    /// reported in a sentence.
    pub(crate) fn beside(cells: &[ComparedCell], reference: &Reference) -> Vec<String> {
        Self::load(reference)
            .map_or_else(|fault| vec![format!("{SCORING}: {fault}")], |it| it.sentences(cells, reference))
    }

    /// The embedded file, checked against the rows of `reference`.
    ///
    /// # Errors
    /// A message: the file does not follow its schema, a row is unknown, or the arithmetic does not contradict.
    fn load(reference: &Reference) -> Result<Self, String> {
        let read: Self =
            read_toml(SCORING, SCORING_TEXT).map_err(|error| format!("`{}`: {}", error.at.field, error.problem))?;
        let faults = read.contradictions.iter().find_map(|one| one.fault(reference));
        let fault = faults.or_else(|| read.products.iter().find_map(|one| one.fault(reference)));
        fault.map_or(Ok(read), Err)
    }

    /// The sentences that go with the medians of these cells: bases and ratios separately, and each contradiction
    /// with its arithmetic.
    fn sentences(&self, cells: &[ComparedCell], reference: &Reference) -> Vec<String> {
        let products = self.products.iter().flat_map(|product| product.sentences(cells));
        let shown = |one: &&Contradiction| cells.iter().any(|cell| cell.contradicted && one.is_about(&cell.id));
        let contradictions = self.contradictions.iter().filter(shown).map(|one| one.sentence(reference));
        products.chain(contradictions).collect()
    }
}

/// Rows that are a base multiplied by a ratio.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Product {
    about: String,
    rows: String,
    base: String,
    ratio: String,
}

impl Product {
    /// The mistake in it, if any: unknown rows, or an unknown base.
    pub(super) fn fault(&self, reference: &Reference) -> Option<String> {
        let mut rows = reference.rows().iter().filter(|row| matches(&self.rows, &row.id)).peekable();
        if rows.peek().is_none() {
            return Some(format!("no row of the papers is called `{}`", self.rows));
        }
        let missing = rows.find(|row| reference.row(&self.base_of(&row.id)).is_none());
        missing.map(|row| format!("the base of `{}` is not a row of the papers", row.id))
    }

    fn base_of(&self, id: &str) -> String {
        let parts = id.split('/').enumerate();
        parts.fold(self.base.clone(), |base, (place, part)| base.replace(&format!("{{{place}}}"), part))
    }

    /// The errors of the bases and of the ratios, in one sentence per role; none without ratios.
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

/// The simulated value and the paper's number, if both exist and are not zero.
fn both(cell: &ComparedCell) -> Option<(f64, f64)> {
    let (Some(Answer::Number(ours) | Answer::Input(ours)), Claim::Value(Some(paper))) = (&cell.answer, &cell.claim)
    else {
        return None;
    };
    (*ours != 0.0 && *paper != 0.0).then_some((*ours, *paper))
}

/// Rows of a paper that cannot all be true.
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

/// A number computed from the paper's numbers.
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
    /// Whether the row is one of those that cannot all be true.
    pub(super) fn is_about(&self, id: &str) -> bool {
        self.rows.iter().any(|row| row == id)
    }

    /// The mistake in it, if any: an unknown row, or arithmetic that does not contradict.
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

    /// The contradiction in a sentence, with its arithmetic.
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
        // The base is twice the paper's; the ratios are 0.9, as in the paper, and 0.6 instead of 0.5.
        let cells = [
            cell("sage/t/original/memory", 100.0, 200.0, Role::Fit),
            cell("sage/t/direct/memory", 90.0, 180.0, Role::Check),
            cell("sage/t/fused/memory", 50.0, 120.0, Role::Check),
        ];
        let words = "memory, check: bases 100.0% off (1), relative to Original 10.0% (2 rows).";
        assert_eq!(product.sentences(&cells), [words]);
        assert!(product.sentences(&cells[1..]).is_empty());
    }

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
