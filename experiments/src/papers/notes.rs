//! Notes on artefacts: what is calibrated, what is predicted, what the model leaves out, and where it is wrong.
//!
//! A note is data of `readings/*.toml`. It never contains a result as a literal: a number that a run produces is a
//! placeholder, filled from the cells and the quantities of that run.
//!
//! ```toml
//! [[note]]
//! artefacts = ["table1"]          # of this paper
//! kind = "misses"                 # calibrated | predicted | left_out | misses
//! when = "slow networks"          # optional: only where the artefact offers this quantity
//! text = "Unfused networks come out {errors:sage/table1/*/original/latency} off."
//! ```
//!
//! | placeholder | replaced by |
//! |---|---|
//! | `{simulated:ROWS}` | the simulated value of a row with its unit; the range if `ROWS` matches several |
//! | `{paper:ROWS}` | the paper's value, likewise |
//! | `{errors:ROWS}` | the relative errors, likewise |
//! | `{ratio:ROWS}` | the simulated value divided by the paper's, likewise |
//! | `{quantity:NAME}` | the artefact's quantity `NAME` |
//! | `{reading:ID}` | the value of a reading that is declared for the artefact |
//!
//! `ROWS` is an id of the reference, in which `*` matches any text.

use haversack_reports::page::Notes;
use haversack_reports::table::three_digits;
use serde::Deserialize;

use super::{Answer, Claim, ComparedCell, ReferenceRow};
use crate::quantities::range;

/// A note of a file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// The artefacts that it applies to.
    pub artefacts: Vec<String>,
    /// Its kind.
    pub kind: NoteKind,
    /// The quantity without which the note is omitted.
    pub when: Option<String>,
    /// The text, with placeholders.
    pub text: String,
}

/// The kind of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// It describes a calibrated part.
    Calibrated,
    /// It describes a prediction.
    Predicted,
    /// It describes something that the model leaves out.
    LeftOut,
    /// It describes where the model is wrong, and why.
    Misses,
}

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'t> {
    Words(&'t str),
    /// The text between the braces: `function:argument`.
    Placeholder(&'t str, &'t str),
}

/// Splits the text into pieces.
fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((words, after)) = rest.split_once('{') {
        let (inside, after) = after.split_once('}').ok_or_else(|| "a `{` without its `}`".to_owned())?;
        let named = inside.split_once(':');
        let (function, argument) = named.ok_or_else(|| format!("`{{{inside}}}` is not `{{function:argument}}`"))?;
        pieces.extend([Piece::Words(words), Piece::Placeholder(function, argument)]);
        rest = after;
    }
    pieces.push(Piece::Words(rest));
    Ok(pieces)
}

/// Whether `name` matches `pattern`, in which `*` matches any characters and `?` a single one.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut letters) = (pattern.chars(), name.chars());
    match pattern.next() {
        None => name.is_empty(),
        Some('*') => {
            let mut ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.any(|from| matches(pattern.as_str(), &name[from..]))
        }
        Some(wanted) => {
            let fits = letters.next().is_some_and(|letter| wanted == '?' || wanted == letter);
            fits && matches(pattern.as_str(), letters.as_str())
        }
    }
}

impl Note {
    /// The mistake in the text, if any, given the rows of its artefacts.
    pub(crate) fn contradiction(&self, rows: &[&ReferenceRow]) -> Option<String> {
        if self.text.trim().is_empty() || self.artefacts.is_empty() {
            return Some("artefacts and text must say something".to_owned());
        }
        text_contradiction(&self.text, rows)
    }
}

/// The mistake in a text with placeholders, if any, given the rows of its artefacts.
pub(crate) fn text_contradiction(text: &str, rows: &[&ReferenceRow]) -> Option<String> {
    let pieces = match pieces(text) {
        Ok(pieces) => pieces,
        Err(message) => return Some(message),
    };
    let wrong = |piece: &Piece<'_>| match *piece {
        Piece::Words(words) => {
            typed_result(words).map(|found| format!("`{found}` is typed, where a placeholder takes it from the run"))
        }
        Piece::Placeholder("simulated" | "paper" | "errors" | "ratio", ids) => {
            let known = rows.iter().any(|row| matches(ids, &row.id));
            (!known).then(|| format!("no row of its artefacts is called `{ids}`"))
        }
        Piece::Placeholder("quantity" | "reading", _) => None,
        Piece::Placeholder(function, _) => {
            Some(format!("expected simulated, paper, errors, ratio, quantity or reading, found `{function}`"))
        }
    };
    pieces.iter().find_map(wrong)
}

/// A literal result in the text, which a run could contradict: a number before %, × or "times", or a
/// fraction spelt out.
fn typed_result(words: &str) -> Option<String> {
    const SPELT: [&str; 8] = ["half", "halves", "third", "thirds", "quarter", "quarters", "twice", "thrice"];
    let mut spelt = words.split(|c: char| !c.is_alphanumeric());
    if let Some(found) = spelt.find(|word| SPELT.contains(&word.to_lowercase().as_str())) {
        return Some(found.to_owned());
    }
    let before = |sign: &str| {
        words.match_indices(sign).find_map(|(at, _)| {
            let number = words[..at].trim_end();
            let digits = number.rsplit(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
            number.ends_with(|c: char| c.is_ascii_digit()).then(|| format!("{digits} {sign}"))
        })
    };
    ["%", "×", "times", "percent", "per cent"].into_iter().find_map(before)
}

/// The results of a run, from which notes are filled.
pub(crate) struct Facts<'a> {
    pub(crate) cells: &'a [ComparedCell],
    pub(crate) quantities: &'a Quantities,
    /// The value of a reading that is declared for the artefact, in words.
    pub(crate) declared: &'a dyn Fn(&str) -> Option<String>,
}

impl Facts<'_> {
    /// The notes with every placeholder filled, and the errors. A note whose `when` is not offered is omitted.
    pub(crate) fn fill<'n>(&self, notes: impl Iterator<Item = &'n Note>) -> (Notes, Vec<String>) {
        let (mut filled, mut faults) = (Notes::default(), Vec::new());
        for note in notes.filter(|note| note.when.as_ref().is_none_or(|when| self.quantities.has(when))) {
            let kind = match note.kind {
                NoteKind::Calibrated => &mut filled.calibrated,
                NoteKind::Predicted => &mut filled.predicted,
                NoteKind::LeftOut => &mut filled.left_out,
                NoteKind::Misses => &mut filled.misses,
            };
            match self.text(&note.text) {
                Ok(text) => kind.extend(text),
                Err(fault) => faults.push(fault),
            }
        }
        (filled, faults)
    }

    /// The text with every placeholder filled; `None` if a row that it quotes has no answer, which its cell reports.
    pub(crate) fn text(&self, text: &str) -> Result<Option<String>, String> {
        let mut filled = String::new();
        for piece in pieces(text)? {
            match piece {
                Piece::Words(words) => filled.push_str(words),
                Piece::Placeholder(function, argument) => match self.placeholder(function, argument) {
                    Some(found) => filled.push_str(&found),
                    None if function == "quantity" => {
                        return Err(format!("a note quotes `{argument}`, which the artefact does not offer"));
                    }
                    None if function == "reading" => return Err(format!("no reading `{argument}` is declared for it")),
                    None => return Ok(None),
                },
            }
        }
        Ok(Some(filled))
    }

    fn placeholder(&self, function: &str, argument: &str) -> Option<String> {
        let of = |value: fn(&ComparedCell) -> Option<[f64; 2]>| {
            let cells = self.cells.iter().filter(|cell| matches(argument, &cell.id));
            let unit = cells.clone().map(|cell| cell.unit.as_str()).next().unwrap_or_default();
            Some((span(cells.filter_map(value).flatten())?, unit))
        };
        match function {
            "simulated" => of(simulated).map(|(span, unit)| with_unit(&span, unit)),
            "paper" => of(paper).map(|(span, unit)| with_unit(&span, unit)),
            "errors" => of(|cell| cell.error.map(|error| [error * 100.0; 2])).map(|(span, _)| format!("{span} %")),
            "ratio" => of(|cell| cell.error.map(|error| [error + 1.0; 2])).map(|(span, _)| span),
            "quantity" => self.quantities.quoted(argument),
            "reading" => (self.declared)(argument),
            _ => None,
        }
    }
}

fn simulated(cell: &ComparedCell) -> Option<[f64; 2]> {
    match cell.answer {
        Some(Answer::Number(value) | Answer::Input(value)) => Some([value; 2]),
        Some(Answer::Range(lo, hi)) => Some([lo, hi]),
        _ => None,
    }
}

fn paper(cell: &ComparedCell) -> Option<[f64; 2]> {
    match cell.claim {
        Claim::Value(value) => value.map(|value| [value; 2]),
        Claim::Min(value) | Claim::Max(value) => Some([value; 2]),
        Claim::Range { lo, hi } => Some([lo, hi]),
        Claim::Never | Claim::Order(_) => None,
    }
}

/// Named quantities of one run of an artefact.
#[derive(Clone, Debug, Default)]
pub struct Quantities {
    all: Vec<(String, OfferedQuantity)>,
}

/// A quantity.
#[derive(Clone, Debug)]
enum OfferedQuantity {
    /// Values of one unit, in the artefact's order.
    Values(String, Vec<f64>),
    /// Words.
    Words(String),
}

impl Quantities {
    /// Offers `values` of `unit`; a later quantity of the same name replaces an earlier one.
    pub(crate) fn offer(&mut self, name: &str, unit: &str, values: Vec<f64>) {
        self.all.push((name.to_owned(), OfferedQuantity::Values(unit.to_owned(), values)));
    }

    /// Offers words.
    pub(crate) fn offer_words(&mut self, name: &str, words: String) {
        self.all.push((name.to_owned(), OfferedQuantity::Words(words)));
    }

    fn called(&self, name: &str) -> Option<&OfferedQuantity> {
        self.all.iter().rev().find(|(known, _)| known == name).map(|(_, quantity)| quantity)
    }

    /// The values of a quantity.
    pub(crate) fn values(&self, name: &str) -> Option<&[f64]> {
        match self.called(name)? {
            OfferedQuantity::Values(_, values) => Some(values),
            OfferedQuantity::Words(_) => None,
        }
    }

    /// A quantity as a sentence quotes it: its words, its value, or its least and its largest, with the unit.
    pub(crate) fn quoted(&self, name: &str) -> Option<String> {
        match self.called(name)? {
            OfferedQuantity::Words(words) => Some(words.clone()),
            OfferedQuantity::Values(unit, values) => span(values.iter().copied()).map(|span| with_unit(&span, unit)),
        }
    }

    /// Whether a quantity is offered.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.called(name).is_some()
    }
}

/// The least and the largest of `values`, or their single value if they are equal.
pub(crate) fn span(values: impl Iterator<Item = f64>) -> Option<String> {
    let (least, largest) = range(values)?;
    let (least, largest) = (three_digits(least), three_digits(largest));
    Some(if least == largest { least } else { format!("{least} to {largest}") })
}

/// A number with its unit, if it has one.
pub(crate) fn with_unit(number: &str, unit: &str) -> String {
    let unit = if unit == "percent" { "%" } else { unit };
    if unit.is_empty() { number.to_owned() } else { format!("{number} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::reference::{Role, example};

    fn note(text: &str) -> Note {
        Note { artefacts: vec!["table1".to_owned()], kind: NoteKind::Misses, when: None, text: text.to_owned() }
    }

    #[test]
    fn placeholders_are_filled_from_the_cells_and_quantities_of_the_run() {
        let cell = |metric: &str, paper, simulated| {
            ComparedCell::new(&example(metric, Claim::Value(Some(paper)), Role::Check), Answer::Number(simulated))
                .unwrap()
        };
        // Errors: (80 − 100) / 100 = −20 %, (95 − 100) / 100 = −5 %.
        let cells = [cell("time", 100.0, 80.0), cell("time", 100.0, 95.0), cell("memory", 10.0, 15.0)];
        let mut quantities = Quantities::default();
        quantities.offer("share", "%", vec![44.4, 94.0]);
        let facts =
            Facts { cells: &cells, quantities: &quantities, declared: &|id| (id == "batch").then(|| "32".to_owned()) };
        let filled = |text: &str| facts.text(text).unwrap().unwrap();
        let row = "sage/table1/net/method/time";
        assert_eq!(filled(&format!("Of {{simulated:{row}}}.")), "Of 80 to 95 ms.");
        assert_eq!(filled(&format!("{{paper:{row}}}, {{errors:{row}}}")), "100 ms, -20 to -5 %");
        // 15 / 10 = 1.5.
        assert_eq!(filled("{ratio:sage/table1/*/memory} times"), "1.5 times");
        assert_eq!(filled("{quantity:share}"), "44.4 to 94 %");
        assert!(facts.text("{quantity:other}").unwrap_err().contains("`other`, which the artefact does not offer"));
        assert_eq!(filled("batch {reading:batch}"), "batch 32");
        assert!(facts.text("{reading:other}").unwrap_err().contains("no reading `other`"));
        assert_eq!(facts.text("{simulated:sage/table1/net/method/energy}").unwrap(), None);

        let conditional = Note { when: Some("other".to_owned()), ..note("{quantity:other}") };
        assert_eq!(facts.fill([&conditional].into_iter()), (Notes::default(), Vec::new()));
        let (notes, faults) = facts.fill([&note("{quantity:share}"), &note("{quantity:other}")].into_iter());
        assert_eq!((notes.misses, faults.len()), (vec!["44.4 to 94 %".to_owned()], 1));
    }

    #[test]
    fn a_result_that_is_typed_is_refused() {
        let row = example("time", Claim::Value(Some(1.0)), Role::Check);
        let wrong = |text: &str| note(text).contradiction(&[&row]);
        for text in
            ["15 % too fast", "2.5× as long", "3 times as much", "a third more", "Twice.", "takes 8 \u{d7} as long"]
        {
            assert!(wrong(text).is_some_and(|message| message.contains("is typed")), "{text}");
        }
        for text in ["batch 64 of 8 by 8 maps", "at times 30 MB", "{errors:sage/*/time}", "others"] {
            assert_eq!(wrong(text), None, "{text}");
        }
    }

    #[test]
    fn a_placeholder_names_rows_of_its_own_artefact() {
        let row = example("time", Claim::Value(Some(1.0)), Role::Check);
        let wrong = |text: &str| note(text).contradiction(&[&row]).unwrap();
        assert!(wrong("{simulated:sage/table1/net/method/memory}").contains("no row of its artefacts"));
        assert!(wrong("{mean:time}").contains("found `mean`"));
        assert!(wrong("{time}").contains("`{function:argument}`") && wrong("{time").contains("without its"));
        assert!(matches("a/*/c", "a/b/c") && matches("a*", "a") && !matches("a/*/c", "a/b/d") && !matches("a", "ab"));
        assert!(matches("*c", "abc") && matches("a*b*c", "axbyc"));
    }

    #[test]
    fn a_quantity_is_quoted_with_its_unit() {
        let mut quantities = Quantities::default();
        quantities.offer("share", "%", vec![12.34]);
        quantities.offer("speed-ups", "x", vec![3.0, 1.5, 2.0]);
        quantities.offer("nothing", "x", Vec::new());
        quantities.offer_words("absent", "DAF, Sage".to_owned());
        let quoted = |name: &str| quantities.quoted(name);
        assert_eq!(quoted("share").as_deref(), Some("12.3 %"));
        assert_eq!(quoted("speed-ups").as_deref(), Some("1.5 to 3 x"));
        assert_eq!((quoted("absent").as_deref(), quoted("nothing"), quoted("none")), (Some("DAF, Sage"), None, None));
        assert_eq!(quantities.values("absent"), None);
        assert!(quantities.has("nothing") && !quantities.has("none"));
    }
}
