//! One artefact of a paper: a figure, a table or a claim of a section, and what it needs to answer its rows.
//!
//! What each artefact simulates is in [`crate::artefacts`]; how its answers become files is in [`super`].

use haversack_devices::{CalibrationError, Device, Stack, System};
use haversack_reports::Figure;
use haversack_reports::table::Table;

use super::answer::Answer;
use super::readings::{Predicate, Reading, Readings, Value};
use super::reference::{Reference, Row};
use crate::cache::Cache;

/// Why an artefact has no answers. Any error becomes one with `?`; words with [`anyhow::bail!`].
pub type ArtefactError = anyhow::Error;

/// An artefact that is modelled.
#[derive(Clone, Copy, Debug)]
pub struct Artefact {
    /// The paper, as the reference spells it, or `comparison`.
    pub paper: &'static str,
    /// The `artefact` of the reference, e.g. `figure9a`.
    pub id: &'static str,
    /// What it shows, in one line.
    pub about: &'static str,
    /// The devices that it loads; their digests and fitted constants are recorded.
    pub devices: &'static [&'static str],
    /// The software stacks that it loads; likewise.
    pub stacks: &'static [&'static str],
    /// The operating systems that it loads; likewise.
    pub systems: &'static [&'static str],
    /// Whether it draws synthetic users and what their apps take, of which numbers are fitted, too.
    pub users: bool,
    /// Simulates it.
    pub run: fn(&Context<'_>) -> Result<Outcome, ArtefactError>,
}

/// What an artefact is given.
pub struct Context<'a> {
    /// The seed of every random stream.
    pub seed: u64,
    /// Whether every seed and network of the accuracy artefacts is to be run.
    pub full: bool,
    /// The artefact itself.
    pub artefact: &'a Artefact,
    /// Its rows of the reference.
    pub rows: Vec<&'a Row>,
    /// All rows; calibration may look at `fit` rows only.
    pub reference: &'a Reference,
    /// All readings and predicates.
    pub readings: &'a Readings,
    /// Graphs and more that artefacts build once and share.
    pub cache: &'a Cache,
}

impl Context<'_> {
    /// The artefact's row called `id`.
    ///
    /// # Errors
    /// The reference has no such row of this artefact.
    pub fn row(&self, id: &str) -> Result<&Row, ArtefactError> {
        let found = self.rows.iter().find(|row| row.id == id);
        found.copied().ok_or_else(|| anyhow::anyhow!("no row of this artefact is called `{id}`"))
    }

    /// The reading called `id` that is declared for this artefact.
    ///
    /// # Errors
    /// No such reading.
    pub fn reading(&self, id: &str) -> Result<&Reading, ArtefactError> {
        let Artefact { paper, id: artefact, .. } = self.artefact;
        let found = self.readings.reading(paper, artefact, id);
        found.ok_or_else(|| anyhow::anyhow!("no reading `{id}` is declared for {paper}/{artefact}"))
    }

    /// The number of a reading.
    ///
    /// # Errors
    /// No such reading, or one that is no number.
    pub fn reading_number(&self, id: &str) -> Result<f64, ArtefactError> {
        match self.reading(id)?.value {
            Value::Number(number) => Ok(number),
            ref other => anyhow::bail!("the reading `{id}` is not a number but {other}"),
        }
    }

    /// The numbers of a reading that is a list.
    ///
    /// # Errors
    /// No such reading, or one that is no list of numbers.
    pub fn reading_numbers(&self, id: &str) -> Result<&[f64], ArtefactError> {
        match &self.reading(id)?.value {
            Value::Numbers(numbers) => Ok(numbers),
            other => anyhow::bail!("the reading `{id}` is not a list of numbers but {other}"),
        }
    }

    /// The words of a reading.
    ///
    /// # Errors
    /// No such reading, or one that is not words.
    pub fn reading_text(&self, id: &str) -> Result<&str, ArtefactError> {
        match &self.reading(id)?.value {
            Value::Text(text) => Ok(text),
            other => anyhow::bail!("the reading `{id}` is not words but {other}"),
        }
    }

    /// The predicate of an `order` row of this artefact.
    ///
    /// # Errors
    /// No such row, or no predicate declared for it.
    pub fn predicate(&self, row: &str) -> Result<&Predicate, ArtefactError> {
        let id = &self.row(row)?.id;
        self.readings.predicate(id).ok_or_else(|| anyhow::anyhow!("no predicate is declared for `{id}`"))
    }

    /// A device that the artefact names among its own.
    ///
    /// # Errors
    /// A device that it does not name, or whose calibration does not load.
    pub fn device(&self, id: &str) -> Result<Device, ArtefactError> {
        named("device", self.artefact.devices, id)?;
        Ok(haversack_devices::load(id)?)
    }

    /// A software stack that the artefact names among its own.
    ///
    /// # Errors
    /// A stack that it does not name, or whose calibration does not load.
    pub fn stack(&self, id: &str) -> Result<Stack, ArtefactError> {
        named("software stack", self.artefact.stacks, id)?;
        Ok(haversack_devices::load_stack(id)?)
    }

    /// An operating system that the artefact names among its own.
    ///
    /// # Errors
    /// A system that it does not name, or whose calibration does not load.
    pub fn system(&self, id: &str) -> Result<System, ArtefactError> {
        named("operating system", self.artefact.systems, id)?;
        Ok(haversack_devices::load_system(id)?)
    }
}

fn named(what: &str, names: &[&str], id: &str) -> Result<(), ArtefactError> {
    anyhow::ensure!(names.contains(&id), "the artefact uses the {what} `{id}` but does not name it among its own");
    Ok(())
}

impl Predicate {
    /// A setting that is a list of numbers.
    ///
    /// # Errors
    /// No such setting, or one that is no list of numbers.
    pub fn numbers(&self, setting: &str) -> Result<&[f64], ArtefactError> {
        match self.settings.get(setting) {
            Some(Value::Numbers(numbers)) => Ok(numbers),
            _ => anyhow::bail!("the predicate of `{}` has no list of numbers `{setting}`", self.id),
        }
    }

    /// A setting that is a number.
    ///
    /// # Errors
    /// No such setting, or one that is no number.
    pub fn number(&self, setting: &str) -> Result<f64, ArtefactError> {
        match self.settings.get(setting) {
            Some(Value::Number(number)) => Ok(*number),
            _ => anyhow::bail!("the predicate of `{}` has no number `{setting}`", self.id),
        }
    }
}

/// What an artefact found.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Answers by reference id; a row without one is `not-modelled`.
    pub answers: Vec<(String, Answer)>,
    /// What the null baseline gives, by reference id.
    pub nulls: Vec<(String, f64)>,
    /// What there is to say about an answer, by reference id.
    pub remarks: Vec<(String, String)>,
    /// The figure, where the artefact has a picture.
    pub figure: Option<Figure>,
    /// The plotted data; the artefact's cells where there is none.
    pub table: Option<Table>,
    /// What a reader must know to believe it.
    pub notes: Notes,
    /// Further lines for the report, e.g. a median of its own.
    pub summary: Vec<String>,
}

/// Honesty about an artefact, beyond its readings and predicates, which the page adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// What is calibrated.
    pub calibrated: Vec<String>,
    /// What is predicted.
    pub predicted: Vec<String>,
    /// What the model leaves out.
    pub left_out: Vec<String>,
    /// Where it misses, and why.
    pub misses: Vec<String>,
}

impl Outcome {
    /// Answers a row.
    pub fn answer(&mut self, id: impl Into<String>, answer: Answer) {
        self.answers.push((id.into(), answer));
    }

    /// Answers a row with a number.
    pub fn number(&mut self, id: impl Into<String>, value: f64) {
        self.answer(id, Answer::Number(value));
    }

    /// Says why a row has no answer.
    pub fn not_modelled(&mut self, id: impl Into<String>, reason: impl Into<String>) {
        self.answer(id, Answer::NotModelled(reason.into()));
    }

    /// What the null baseline gives for a row.
    pub fn null(&mut self, id: impl Into<String>, value: f64) {
        self.nulls.push((id.into(), value));
    }

    /// Says something about a row's answer.
    pub fn remark(&mut self, id: impl Into<String>, words: impl Into<String>) {
        self.remarks.push((id.into(), words.into()));
    }
}

/// What artefacts load, each once and in order.
pub(super) struct Loaded {
    pub(super) devices: Vec<Device>,
    pub(super) stacks: Vec<Stack>,
    pub(super) systems: Vec<System>,
}

impl Loaded {
    /// Of these artefacts.
    ///
    /// # Errors
    /// A name that no calibration has, or one that does not load.
    pub(super) fn of(artefacts: &[Artefact]) -> Result<Self, CalibrationError> {
        let named = |names: fn(&Artefact) -> &'static [&'static str]| {
            let mut names: Vec<&str> = artefacts.iter().flat_map(|artefact| names(artefact).to_vec()).collect();
            names.sort_unstable();
            names.dedup();
            names.into_iter()
        };
        Ok(Self {
            devices: named(|artefact| artefact.devices).map(haversack_devices::load).collect::<Result<_, _>>()?,
            stacks: named(|artefact| artefact.stacks).map(haversack_devices::load_stack).collect::<Result<_, _>>()?,
            systems: named(|artefact| artefact.systems)
                .map(haversack_devices::load_system)
                .collect::<Result<_, _>>()?,
        })
    }
}
