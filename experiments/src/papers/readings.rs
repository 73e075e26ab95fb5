//! Declared readings, predicates and notes: `readings/*.toml`, embedded and parsed strictly.
//!
//! A *reading* is a choice that a paper leaves open (a batch, what counts as memory), declared once with its reason
//! and counted together with the fitted constants. A *predicate* formulates the claim of an `order` row, written
//! before its first run ([`super::predicate`]). A *note* explains the value and the limits of an artefact (`notes`), a
//! *figure* is the frame around its panels (`frame`), and an *artefact* defines how its records become data, answers
//! and panels (`shown`).
//!
//! ```toml
//! [[reading]]
//! id = "table1-batch"             # what code and reports call it; once in a file
//! artefacts = ["table1"]          # of this paper
//! key = "batch"                   # what it sets
//! value = 32                      # a number, words, or a list of numbers
//! unit = "samples"                # optional
//! reason = "the mini-batch of the rest of the paper"
//! source = "Sage, section 5.1"
//! chosen_on = ["sage/table1/..."] # optional: the rows, or patterns of rows with `*`, by whose values it was chosen
//! stated = true                   # optional: the paper says it in so many words
//!
//! [[predicate]]
//! id = "sage/figure9b/infinite-cores/dgc>dga/throughput"   # the `order` row
//! cases = "ResNet-50 at each budget that both reach"
//! relations = [{ left = "throughput of DGC", is = ">=", right = "throughput of DGA", tolerance = 0.0 }]
//! reason = "the paper's sentence, read over its axis"
//! ```
//!
//! The number of choices: per paper, the constants that were fitted to its rows, and the readings.
//!
//! A constant counts once even if several files contain it: a device's constant that was carried over to other devices
//! is identified by its name, a stack's by its name and value.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use anyhow::{Result, anyhow, bail};
use haversack_devices::ConstantEntry;
use haversack_devices::text::{on_lines, read_toml};
use serde::{Deserialize, Serialize, Serializer};

use super::catalogue::entry;
use super::notes::{matches as matches_pattern, text_contradiction};
use super::{Claim, FigureFrame, Note, Predicate, Reference, ReferenceRow, Shown, SweptCase};
use crate::quantities::counted;

const FILES: [(&str, &str, &str); 5] = [
    ("daf", "experiments/readings/daf.toml", include_str!("../../readings/daf.toml")),
    ("sage", "experiments/readings/sage.toml", include_str!("../../readings/sage.toml")),
    ("mandheling", "experiments/readings/mandheling.toml", include_str!("../../readings/mandheling.toml")),
    ("fedhybrid", "experiments/readings/fedhybrid.toml", include_str!("../../readings/fedhybrid.toml")),
    ("comparison", "experiments/readings/comparison.toml", include_str!("../../readings/comparison.toml")),
];

/// The value of a reading or a setting.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged, expecting = "expected a number, words, or a list of numbers")]
pub enum Value {
    /// A number.
    Number(f64),
    /// Words, or the lines of a specification; joined to one line in output.
    Text(#[serde(serialize_with = "in_one_line")] String),
    /// A list of numbers.
    Numbers(Vec<f64>),
}

/// Joins the lines of `text`.
fn one_line(text: &str) -> String {
    text.replace('\n', "; ")
}

fn in_one_line<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&one_line(text))
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(&one_line(text)),
            Self::Numbers(numbers) => f.write_str(&numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(", ")),
        }
    }
}

/// A choice that a paper leaves open.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Its name in code and reports, unique in its paper.
    pub id: String,
    /// The artefacts that it is declared for.
    pub artefacts: Vec<String>,
    /// The setting, e.g. `batch`.
    pub key: String,
    /// The value of the setting.
    pub value: Value,
    /// The unit of the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The metric whose rows it affects, if not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The reason for the choice.
    pub reason: String,
    /// Its source.
    pub source: String,
    /// The rows whose values the choice was based on, if any; it then counts as a fit, even if other
    /// reasons support it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chosen_on: Vec<String>,
    /// Whether the paper states it explicitly, which leaves no choice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stated: bool,
}

impl Reading {
    /// Whether it is a training setting of a stand-in network, which the paper cannot define.
    pub fn is_stand_in(&self) -> bool {
        self.key.starts_with("stand-in")
    }

    /// The value with its unit.
    pub fn shown(&self) -> String {
        let unit = self.unit.as_ref().map_or_else(String::new, |unit| format!(" {unit}"));
        format!("{}{unit}", self.value)
    }
}

/// The contents of one file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadingsFile {
    #[serde(default, rename = "reading")]
    readings: Vec<Reading>,
    #[serde(default, rename = "predicate")]
    predicates: Vec<Predicate>,
    #[serde(default, rename = "note")]
    notes: Vec<Note>,
    #[serde(default, rename = "figure")]
    frames: Vec<FigureFrame>,
    #[serde(default, rename = "artefact")]
    shown: Vec<Shown>,
    /// Cases that several sweeps share.
    #[serde(default)]
    cases: BTreeMap<String, Vec<SweptCase>>,
}

/// The readings, predicates and notes of the four papers and of their comparison.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    papers: Vec<(&'static str, ReadingsFile)>,
}

impl Readings {
    /// The embedded files.
    ///
    /// # Errors
    /// A file that does not follow the schema, or refers to rows or artefacts that are not in the reference.
    pub fn load(reference: &Reference) -> Result<Self> {
        let parsed = FILES.iter().map(|(paper, file, text)| Ok((*paper, parse(paper, file, text, reference)?)));
        Ok(Self { papers: parsed.collect::<Result<_>>()? })
    }

    /// The readings of a paper, in the order of its file.
    pub fn of_paper(&self, paper: &str) -> impl Iterator<Item = &Reading> {
        self.files(paper).flat_map(|file| &file.readings)
    }

    /// The readings declared for an artefact.
    pub fn of(&self, paper: &str, artefact: &str) -> impl Iterator<Item = &Reading> {
        self.of_paper(paper).filter(move |reading| reading.artefacts.iter().any(|name| name == artefact))
    }

    /// The reading `id` that is declared for an artefact.
    pub fn reading(&self, paper: &str, artefact: &str, id: &str) -> Option<&Reading> {
        self.of(paper, artefact).find(|reading| reading.id == id)
    }

    /// The predicate of an `order` row.
    pub fn predicate(&self, row: &str) -> Option<&Predicate> {
        self.papers.iter().flat_map(|(_, file)| &file.predicates).find(|predicate| predicate.id == row)
    }

    /// The notes on an artefact, in the order of the file.
    pub(crate) fn notes(&self, paper: &str, artefact: &str) -> impl Iterator<Item = &Note> {
        let of_paper = self.files(paper).flat_map(|file| &file.notes);
        of_paper.filter(move |note| note.artefacts.iter().any(|name| name == artefact))
    }

    /// The frame around the panels of an artefact's figure.
    pub(crate) fn frame(&self, paper: &str, artefact: &str) -> Option<&FigureFrame> {
        self.files(paper).flat_map(|file| &file.frames).find(|frame| frame.artefact == artefact)
    }

    /// How the records of an artefact are shown.
    pub(crate) fn shown(&self, paper: &str, artefact: &str) -> Option<&Shown> {
        let is_named = |shown: &&Shown| shown.ids.iter().any(|id| id == artefact);
        self.files(paper).flat_map(|file| &file.shown).find(is_named)
    }

    /// Cases that several sweeps of a paper share; empty if the name is unknown.
    pub(crate) fn shared(&self, paper: &str, name: &str) -> &[SweptCase] {
        self.files(paper).find_map(|file| file.cases.get(name)).map_or(&[], Vec::as_slice)
    }

    fn files(&self, paper: &str) -> impl Iterator<Item = &ReadingsFile> {
        self.papers.iter().filter(move |(name, _)| *name == paper).map(|(_, file)| file)
    }
}

fn parse(paper: &str, file: &str, text: &str, reference: &Reference) -> Result<ReadingsFile> {
    let parsed: ReadingsFile = read_toml(file, text).map_err(|error| {
        let others = on_lines(&error.others);
        anyhow!("{file}:{}: `{}`: {}{others}", error.at.line, error.at.field, error.problem)
    })?;
    match contradiction(paper, &parsed, reference) {
        // The parsed file has no spans left; the id at the beginning of a message is used to find the line.
        Some((id, message)) => {
            let line = text.lines().position(|line| line.contains(&format!("\"{id}\"")));
            let line = line.map_or_else(String::new, |line| format!(":{}", line + 1));
            bail!("{file}{line}: `{id}`: {message}")
        }
        None => Ok(parsed),
    }
}

/// A mistake that the schema cannot exclude, if any: the id or the text that is wrong, and why.
fn contradiction(paper: &str, file: &ReadingsFile, reference: &Reference) -> Option<(String, String)> {
    let unknown = |artefacts: &[String]| {
        let known = |name: &String| reference.of(paper, name).next().is_some() || entry(paper, name).is_some();
        let unknown = artefacts.iter().find(|name| !known(name));
        unknown.map(|name| format!("{paper} has no artefact `{name}`"))
    };
    let mut seen = HashSet::new();
    for Reading { id, artefacts, key, metric, reason, source, chosen_on, stated, .. } in &file.readings {
        let wrong = |message: String| Some((id.clone(), message));
        if !seen.insert(id) {
            return wrong("declared twice".to_owned());
        }
        if let Some(message) = unknown(artefacts) {
            return wrong(message);
        }
        if artefacts.is_empty() || [id, key, reason, source].iter().any(|text| text.trim().is_empty()) {
            return wrong("artefacts, key, reason and source must say something".to_owned());
        }
        let is_metric = |name: &String| reference.rows().iter().any(|row| row.paper == paper && row.metric == *name);
        if metric.as_ref().is_some_and(|name| !is_metric(name)) {
            return wrong("no row of the paper has this metric".to_owned());
        }
        let matches_none = |pattern: &&String| {
            !reference.rows().iter().any(|row| row.paper == paper && matches_pattern(pattern, &row.id))
        };
        if let Some(pattern) = chosen_on.iter().find(matches_none) {
            return wrong(format!("it was chosen on `{pattern}`, which is not a row of the paper"));
        }
        if *stated && !chosen_on.is_empty() {
            return wrong("what the paper states was not chosen on its rows".to_owned());
        }
    }
    for predicate in &file.predicates {
        let wrong = |message: &str| Some((predicate.id.clone(), message.to_owned()));
        if !seen.insert(&predicate.id) {
            return wrong("declared twice");
        }
        let is_order = |row: &&ReferenceRow| row.paper == paper && matches!(row.claim, Claim::Order(_));
        if reference.row(&predicate.id).filter(is_order).is_none() {
            return wrong("not the id of an order row of this paper");
        }
        if let Some(message) = predicate.contradiction() {
            return wrong(message);
        }
    }
    let of_note = |note: &Note| {
        let rows: Vec<&ReferenceRow> = note.artefacts.iter().flat_map(|name| reference.of(paper, name)).collect();
        let message = unknown(&note.artefacts).or_else(|| note.contradiction(&rows));
        message.map(|message| (note.text.clone(), message))
    };
    let of_frame = |frame: &FigureFrame| {
        let rows: Vec<&ReferenceRow> = reference.of(paper, &frame.artefact).collect();
        let mut texts = std::iter::once(&frame.title).chain(&frame.finding).chain(&frame.note);
        let message = unknown(std::slice::from_ref(&frame.artefact));
        let message = message.or_else(|| texts.find_map(|text| text_contradiction(text, &rows)));
        message.map(|message| (frame.title.clone(), message))
    };
    file.notes.iter().find_map(of_note).or_else(|| file.frames.iter().find_map(of_frame))
}

/// The number of choices for one paper, or for all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Account {
    /// The paper, or `all`.
    pub(crate) paper: &'static str,
    /// Constants that were fitted to its rows; for `all`, also those fitted to measured sets.
    pub(crate) constants: usize,
    /// Readings: choices that the paper leaves open.
    pub(crate) readings: usize,
    /// Readings that were chosen by the values of rows: fits by hand.
    pub(crate) readings_chosen_on_rows: usize,
    /// Settings that the paper states, which are declared among the readings.
    pub(crate) stated: usize,
    /// Training settings of networks that stand in for the paper's.
    pub(crate) stand_ins: usize,
}

/// The identity of a paper's constant, by which copies in several files are recognised.
type Place<'e> = (&'e str, Option<(u64, &'e str)>);

/// The name for all papers, and for the measured sets.
const ALL: &str = "all";

/// One for each paper with fitted constants or declared readings, and one for all together with the measured sets.
pub(crate) fn accounts(fitted: &[ConstantEntry], declared: &[(&'static str, &Reading)]) -> Vec<Account> {
    let papers = Reference::papers().chain([ALL]).map(|paper| account(paper, fitted, declared));
    papers.filter(|account| !account.is_empty()).collect()
}

fn account(paper: &'static str, fitted: &[ConstantEntry], declared: &[(&'static str, &Reading)]) -> Account {
    let is_of = |name: &str| paper == ALL || name == paper;
    let of_rows = fitted.iter().filter(|entry| is_of(entry.source.split('-').next().unwrap_or_default()));
    let constants: BTreeSet<Place<'_>> = of_rows.map(place).collect();
    let readings = || declared.iter().filter(|(of, _)| is_of(of)).map(|(_, reading)| *reading);
    let open = || readings().filter(|reading| !reading.stated && !reading.is_stand_in());
    Account {
        paper,
        constants: constants.len(),
        readings: open().count(),
        readings_chosen_on_rows: open().filter(|reading| !reading.chosen_on.is_empty()).count(),
        stated: readings().filter(|reading| reading.stated).count(),
        stand_ins: readings().filter(|reading| reading.is_stand_in()).count(),
    }
}

fn place(entry: &ConstantEntry) -> Place<'_> {
    let of_stack = entry.file.contains("/stacks/");
    (&entry.name, of_stack.then(|| (entry.value.to_bits(), entry.unit)))
}

impl Account {
    const fn is_empty(&self) -> bool {
        self.constants + self.readings + self.stated + self.stand_ins == 0
    }

    /// The account in a sentence.
    pub(crate) fn sentence(&self) -> String {
        let Self { paper, constants, readings, readings_chosen_on_rows, stated, stand_ins } = *self;
        let constants = counted(constants, "constant was fitted", "constants were fitted");
        let readings = counted(readings, "reading", "readings");
        format!(
            "{paper}: {constants} to rows; {readings}, of which {readings_chosen_on_rows} by the values of rows; in \
             addition {stated} that are stated, {stand_ins} of stand-ins."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::readings::Value;
    use haversack_devices::Kind;

    impl Readings {
        /// Every artefact that readings, notes or figures name, as `(paper, artefact)`.
        pub(crate) fn artefacts(&self) -> impl Iterator<Item = (&'static str, &str)> {
            self.papers.iter().flat_map(|(paper, file)| {
                let of_notes = file.notes.iter().flat_map(|note| &note.artefacts);
                let of_frames = file.frames.iter().map(|frame| &frame.artefact);
                let of_shown = file.shown.iter().flat_map(|shown| &shown.ids);
                let named =
                    file.readings.iter().flat_map(|reading| &reading.artefacts).chain(of_notes).chain(of_frames);
                named.chain(of_shown).map(|name| (*paper, name.as_str()))
            })
        }
    }

    const READING: &str = "[[reading]]\nid = \"batch\"\nartefacts = [\"table1\"]\nkey = \"batch\"\nvalue = 32\n\
        reason = \"the rest of the paper\"\nsource = \"section 5\"\n";
    const PREDICATE: &str = "[[predicate]]\nid = \"sage/figure9b/infinite-cores/dgc>dga/throughput\"\n\
        cases = \"every budget\"\nrelations = [{ left = \"DGC\", is = \">\", right = \"DGA\", tolerance = 0.0 }]\n\
        reason = \"as stated\"\n";
    const NOTE: &str = "[[note]]\nartefacts = [\"table1\"]\nkind = \"left_out\"\ntext = \"All but the GPU.\"\n";

    fn read(text: &str) -> Result<ReadingsFile> {
        parse("sage", "sage.toml", text, &Reference::load().unwrap())
    }

    fn refused(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn the_embedded_files_follow_the_schema() {
        Readings::load(&Reference::load().unwrap()).unwrap();
    }

    #[test]
    fn readings_and_predicates_are_found_by_name() {
        let readings = Readings { papers: vec![("sage", read(&format!("{READING}{PREDICATE}{NOTE}")).unwrap())] };
        let batch = readings.reading("sage", "table1", "batch").unwrap();
        assert_eq!((batch.value.clone(), batch.shown().as_str()), (Value::Number(32.0), "32"));
        assert!(readings.reading("sage", "figure8", "batch").is_none());
        let predicate = readings.predicate("sage/figure9b/infinite-cores/dgc>dga/throughput").unwrap();
        assert!(predicate.to_string().ends_with("holds where DGC > DGA, for every budget: as stated"));
        assert_eq!((readings.notes("sage", "table1").count(), readings.notes("sage", "figure8").count()), (1, 0));
    }

    #[test]
    fn anything_else_is_an_error_with_its_line() {
        let unknown = refused(&format!("{READING}colour = \"red\"\n"));
        assert!(unknown.starts_with("sage.toml:8: `reading.0.colour`: unknown key"), "{unknown}");
        assert!(refused(&READING.replace("reason = ", "why = ")).contains("`reading.0.why`: unknown key"));
        let missing = refused(&READING.replace("source = \"section 5\"\n", ""));
        assert!(missing.contains("`reading.0.source`: missing key"), "{missing}");
        assert!(refused("[readings]\n").contains("`readings`: unknown key (did you mean `reading`?)"));
        let mixed = refused(&READING.replace("value = 32", "value = [1, \"a\"]"));
        assert!(mixed.starts_with("sage.toml:5: `reading.0.value`: expected a number, words"), "{mixed}");
        let elsewhere = refused(&READING.replace("table1", "table7"));
        assert_eq!(elsewhere, "sage.toml:2: `batch`: sage has no artefact `table7`");
        assert!(refused(&format!("{READING}{READING}")).contains("`batch`: declared twice"));
        assert!(refused(&READING.replace("section 5", " ")).contains("must say something"));
        assert!(refused(&READING.replace("key =", "metric = \"colour\"\nkey =")).contains("has this metric"));
        let chosen = |pattern: &str| format!("{READING}chosen_on = [\"{pattern}\"]\n");
        assert_eq!(read(&chosen("sage/table1/resnet50/*/memory")).unwrap().readings[0].chosen_on.len(), 1);
        assert!(refused(&chosen("sage/table9/*")).contains("chosen on `sage/table9/*`, which is not a row"));
        let both = format!("{}stated = true\n", chosen("sage/table1/*"));
        assert!(refused(&both).contains("was not chosen on its rows"));
    }

    #[test]
    fn a_figure_is_of_an_artefact_and_types_no_result() {
        let figure = "[[figure]]\nartefact = \"table1\"\ntitle = \"Memory\"\n";
        assert_eq!(read(figure).unwrap().frames[0].title, "Memory");
        assert!(refused(&figure.replace("table1", "table7")).contains("sage has no artefact `table7`"));
        assert!(refused(&figure.replace("Memory", "15 % off")).contains("is typed"));
        assert!(refused(&figure.replace("title", "name")).contains("`figure.0.name`: unknown key"));
    }

    #[test]
    fn a_predicate_belongs_to_an_order_row() {
        let id = "sage/figure9b/infinite-cores/dgc>dga/throughput";
        let value_row = "sage/table1/resnet50/original/memory";
        assert!(refused(&PREDICATE.replace(id, value_row)).contains("not the id of an order row"));
        assert!(refused(&PREDICATE.replace("tolerance = 0.0", "tolerance = 15")).contains("a fraction from 0 to 1"));
        assert!(refused(&PREDICATE.replace("cases", "quantities")).contains("`predicate.0.quantities`: unknown key"));
        assert!(refused(&PREDICATE.replace("\">\"", "\">>\"")).contains("unknown value `>>`"));
    }

    #[test]
    fn a_note_is_about_artefacts_and_types_no_result() {
        assert!(refused(&NOTE.replace("left_out", "unknown")).contains("unknown value `unknown`"));
        assert!(refused(&NOTE.replace("table1", "table7")).contains("sage has no artefact `table7`"));
        let typed = refused(&NOTE.replace("All but", "12 % but"));
        assert!(typed.starts_with("sage.toml:4: ") && typed.contains("`12 %` is typed"), "{typed}");
        let elsewhere = refused(&NOTE.replace("the GPU", "{error:sage/figure8/all/sage/minimum-memory-reduction}"));
        assert!(elsewhere.contains("expected simulated, paper"), "{elsewhere}");
    }

    #[test]
    fn a_constant_that_was_carried_over_counts_once() {
        let entry = |file: &str, name: &str, value, source: &str| ConstantEntry {
            name: name.to_owned(),
            value,
            unit: "MHz",
            kind: Kind::Fitted,
            source: source.to_owned(),
            file: format!("devices/calibrations/{file}.toml"),
        };
        let fitted = [
            // One device's constant, carried over to another by the nearest match.
            entry("a", "cpu.0.floor", 900.0, "sage-table7"),
            entry("b", "cpu.0.floor", 883.0, "sage-table7-cpu"),
            entry("a", "cpu.1.floor", 900.0, "sage-table7"),
            // The constants of two stacks, and one that a third took over.
            entry("stacks/a", "cpu.work", 1.0, "sage-table8"),
            entry("stacks/b", "cpu.work", 2.0, "sage-table8"),
            entry("stacks/c", "cpu.work", 2.0, "sage-table8"),
            entry("a", "gpu.rate", 1.0, "daf-table2"),
        ];
        let reading = |key: &str, chosen_on: &[&str], stated| Reading {
            id: key.to_owned(),
            artefacts: vec!["table1".to_owned()],
            key: key.to_owned(),
            value: Value::Number(1.0),
            unit: None,
            metric: None,
            reason: "why".to_owned(),
            source: "where".to_owned(),
            chosen_on: chosen_on.iter().map(|row| (*row).to_owned()).collect(),
            stated,
        };
        let readings = [
            reading("batch", &[], true),
            reading("tokens", &["sage/table1/*"], false),
            reading("budgets", &[], false),
            reading("stand-in, quick", &[], false),
        ];
        let declared: Vec<_> = readings.iter().map(|reading| ("sage", reading)).collect();
        let sage =
            Account { paper: "sage", constants: 4, readings: 2, readings_chosen_on_rows: 1, stated: 1, stand_ins: 1 };
        let found = accounts(&fitted, &declared);
        assert_eq!(found.iter().map(|account| account.paper).collect::<Vec<_>>(), ["daf", "sage", "all"]);
        assert_eq!((found[2].constants, found[2].readings), (5, 2));
        assert_eq!((&found[1], found[0].constants), (&sage, 1));
        let words = "sage: 4 constants were fitted to rows; 2 readings, of which 1 by the values of rows; in addition \
                     1 that are stated, 1 of stand-ins.";
        assert_eq!(sage.sentence(), words);
    }
}
