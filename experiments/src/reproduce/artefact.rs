//! One artefact of a paper: a figure, a table or a claim of a section, and what it is given to answer its rows.
//!
//! What it gives back is an [`Outcome`]; how that becomes files is in [`super`].

use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use haversack_devices::{Bytes, Device, Stack, System};
use haversack_training::{Record, RunError};

use super::{Kept, Outcome};
use crate::measured::{self, Learned, Measured, Training};
use crate::papers::catalogue::Entry;
use crate::papers::readings::Value;
use crate::papers::{Answer, Reading, Readings, Reference, ReferenceRow};
use crate::{Budget, Cache, CommandError, Key, Plan, Scenario, interrupt};

/// Why an artefact has no answers. Any error becomes one with `?`; words with [`anyhow::bail!`].
pub type ArtefactError = anyhow::Error;

/// An artefact that is modelled.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Artefact {
    /// What it shows and loads.
    pub entry: Entry,
    /// Simulates it.
    pub run: Run,
}

/// What simulates an artefact.
pub type Run = fn(&Context<'_>) -> Result<Outcome, ArtefactError>;

impl Deref for Artefact {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.entry
    }
}

/// What an artefact is given.
pub struct Context<'a> {
    /// The seed of every random stream.
    pub seed: u64,
    /// Whether networks are to be trained again: with one seed, or with all of them. Else what was committed is drawn.
    pub learn: bool,
    /// Whether every seed is to be run, and what training measures to be measured again.
    pub full: bool,
    /// The artefact itself.
    pub artefact: &'a Artefact,
    /// Its rows of the reference.
    pub rows: Vec<&'a ReferenceRow>,
    /// All rows; calibration may look at `fit` rows only.
    pub reference: &'a Reference,
    /// All readings and predicates.
    pub readings: &'a Readings,
    /// Graphs and more that artefacts build once and share.
    pub cache: &'a Cache,
    /// The table of traces whose users are to be shown; `None` if synthetic ones are.
    pub trace: Option<&'a Path>,
    /// What takes long, and is found again after a run was killed.
    pub kept: &'a Kept<'a>,
    /// What the artefact has learned so far.
    pub learned: &'a Mutex<Vec<Training>>,
}

/// Trainings that are to be drawn and that nobody has committed as they now are.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Lacking(String);

impl Context<'_> {
    /// The artefact's row called `id`.
    ///
    /// # Errors
    /// The reference has no such row of this artefact.
    pub fn row(&self, id: &str) -> Result<&ReferenceRow, ArtefactError> {
        let found = self.rows.iter().find(|row| row.id == id);
        found.copied().ok_or_else(|| anyhow::anyhow!("no row of this artefact is called `{id}`"))
    }

    /// The paper's one number of the row called `id`, where it gives one.
    ///
    /// # Errors
    /// The reference has no such row of this artefact.
    pub fn paper(&self, id: &str) -> Result<Option<f64>, ArtefactError> {
        Ok(self.row(id)?.number())
    }

    /// The reading called `id` that is declared for this artefact.
    ///
    /// # Errors
    /// No such reading.
    pub fn reading(&self, id: &str) -> Result<&Reading, ArtefactError> {
        let Entry { paper, id: artefact, .. } = self.artefact.entry;
        let found = self.readings.reading(paper, artefact, id);
        found.ok_or_else(|| anyhow::anyhow!("no reading `{id}` is declared for {paper}/{artefact}"))
    }

    /// The number of a reading.
    ///
    /// # Errors
    /// No such reading, or one that is no number.
    pub fn reading_number(&self, id: &str) -> Result<f64, ArtefactError> {
        self.value(id, "a number", |value| if let Value::Number(number) = value { Some(*number) } else { None })
    }

    /// The numbers of a reading that is a list.
    ///
    /// # Errors
    /// No such reading, or one that is no list of numbers.
    pub fn reading_numbers(&self, id: &str) -> Result<&[f64], ArtefactError> {
        self.value(id, "a list of numbers", |value| match value {
            Value::Numbers(numbers) => Some(numbers.as_slice()),
            _ => None,
        })
    }

    /// The words of a reading.
    ///
    /// # Errors
    /// No such reading, or one that is not words.
    pub fn reading_text(&self, id: &str) -> Result<&str, ArtefactError> {
        self.value(id, "words", |value| if let Value::Text(text) = value { Some(text.as_str()) } else { None })
    }

    /// What `take` makes of the value of a reading, which is to be `what`.
    fn value<'v, T>(&'v self, id: &str, what: &str, take: fn(&'v Value) -> Option<T>) -> Result<T, ArtefactError> {
        let value = &self.reading(id)?.value;
        take(value).ok_or_else(|| anyhow::anyhow!("the reading `{id}` is not {what} but {value}"))
    }

    /// Answers an `order` row: whether its predicate holds of the quantities that the artefact offers.
    ///
    /// # Errors
    /// No such row, no predicate declared for it, or one that compares what is not offered.
    pub fn judge(&self, outcome: &mut Outcome, row: &str) -> Result<(), ArtefactError> {
        let id = &self.row(row)?.id;
        let predicate = self.readings.predicate(id);
        let predicate = predicate.ok_or_else(|| anyhow::anyhow!("no predicate is declared for `{id}`"))?;
        let holds = predicate.holds(&outcome.quantities).map_err(anyhow::Error::msg)?;
        outcome.answer(row, Answer::Order(holds));
        Ok(())
    }

    /// The run of `scenario`, ready to be simulated.
    ///
    /// # Errors
    /// A scenario that is wrong.
    pub fn plan(&self, scenario: &Scenario) -> Result<Plan, ArtefactError> {
        Ok(Plan::new(scenario, self.cache)?)
    }

    /// Runs `scenario`, once for all artefacts.
    ///
    /// # Errors
    /// A scenario that is wrong, or that has no plan.
    pub fn run(&self, scenario: &Scenario) -> Result<Record, ArtefactError> {
        let key = format!("record {}", scenario.fingerprint(Key::ALL));
        let record = self.cache.get(key, || Ok::<_, ArtefactError>(self.plan(scenario)?.run()?))?;
        Ok(record.as_ref().clone())
    }

    /// Runs `scenario`; `None` if no plan fits its budget, or the trainer is killed again and again.
    ///
    /// # Errors
    /// A scenario that is wrong, or whose run fails otherwise.
    pub fn run_if_it_ends(&self, scenario: &Scenario) -> Result<Option<Record>, ArtefactError> {
        let never_ends = |error: &RunError| error.is_infeasible() || matches!(error, RunError::Killed { .. });
        match self.run(scenario) {
            Err(error) if error.downcast_ref().is_some_and(never_ends) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Runs `scenario` within `memory`, as [`Context::run_if_it_ends`].
    ///
    /// # Errors
    /// As [`Context::run_if_it_ends`].
    pub fn within(&self, scenario: &Scenario, memory: Budget) -> Result<Option<Record>, ArtefactError> {
        self.run_if_it_ends(&Scenario { memory_budget: Some(memory), ..scenario.clone() })
    }

    /// The least memory that `scenario` runs in.
    ///
    /// # Errors
    /// A scenario that is wrong, or that runs in no memory.
    pub fn least(&self, scenario: &Scenario) -> Result<Bytes, ArtefactError> {
        Ok(self.plan(scenario)?.least_memory()?)
    }

    /// What was measured for `place`, a `paper/artefact`, as it was committed; under `--full` what the artefact itself
    /// measures is measured anew by `measure`, and written beside its table.
    ///
    /// # Errors
    /// A place that the artefact does not name, for which nothing is committed, or that cannot be measured.
    pub fn measured(
        &self,
        place: &str,
        measure: impl FnOnce() -> Result<Measured, ArtefactError> + Send,
    ) -> Result<Arc<Measured>, ArtefactError> {
        named("measured values of", self.artefact.measured, place)?;
        let anew = self.full && place == self.artefact.place();
        if anew { self.once(measured_key(place), measure) } else { Ok(Arc::new(measured::committed(place)?)) }
    }

    /// What was learned of what is `wanted`, as it was committed with the artefact or with another that it names.
    ///
    /// # Errors
    /// [`Lacking`], with the command that trains it, where it was not, or where anything that it depends on has changed since.
    pub(crate) fn committed(&self, wanted: &Training) -> Result<Training, ArtefactError> {
        let places = self.artefact.measured;
        let read = |place: &str| self.cache.get(format!("committed {place}"), || measured::committed(place));
        if let Some(found) = places.iter().find_map(|place| read(place).ok()?.training(wanted).cloned()) {
            return Ok(found);
        }
        let place = places.last().copied().unwrap_or_default();
        let why = read(place).map(|found| {
            let Measured { command, version, .. } = &*found;
            format!("what `{command}` made by version {version} holds no such training, or an older one")
        });
        let why = why.unwrap_or_else(|error| format!("{error:#}"));
        let Training { network, data, how, .. } = wanted;
        let command = format!("`haversack reproduce {place} --learn --full` trains it");
        Err(Lacking(format!("nobody has trained {network} on {data} ({how}): {why}; {command}")).into())
    }

    /// Takes down what was learned now of what is `wanted`, as a file would have it.
    ///
    /// # Errors
    /// What learning failed with.
    pub(crate) fn note_learned(
        &self,
        wanted: &Training,
        learned: Result<Vec<Learned>, ArtefactError>,
    ) -> Result<Training, ArtefactError> {
        anyhow::ensure!(!interrupt::came(), CommandError::Interrupted);
        let learned = learned?.into_iter().map(Learned::rounded).collect();
        let training = Training { learned, ..wanted.clone() };
        self.learned.lock().unwrap_or_else(PoisonError::into_inner).push(training.clone());
        Ok(training)
    }

    /// What `make` makes, once for all artefacts that ask for `key`, on a thread of its own: one of the pool that waits
    /// for others takes on work meanwhile, and could come to wait for what it is making itself.
    ///
    /// # Errors
    /// What `make` fails with.
    pub fn once<T: Send + Sync + 'static>(
        &self,
        key: String,
        make: impl FnOnce() -> Result<T, ArtefactError> + Send,
    ) -> Result<Arc<T>, ArtefactError> {
        let apart = || {
            let made = std::thread::scope(|scope| scope.spawn(make).join());
            made.unwrap_or_else(|_| Err(anyhow::anyhow!("the thread that makes it has panicked")))
        };
        self.cache.get(key, apart)
    }

    /// The seeds of a measurement: several from the seed of this run on.
    pub fn seeds(&self) -> Vec<u64> {
        (0..measured::SEEDS).map(|more| self.seed.wrapping_add(more)).collect()
    }

    /// The seeds that networks are trained with, of those that are `declared`: these if what was committed is drawn, else as
    /// many from the seed of this run on, or that one alone.
    pub(crate) fn seeds_of(&self, declared: &[u64]) -> Vec<u64> {
        let shift = if self.learn { self.seed } else { 0 };
        let number = if self.learn && !self.full { 1 } else { declared.len() };
        declared.iter().take(number).map(|seed| seed.wrapping_add(shift)).collect()
    }

    /// No value yet of what is measured for this artefact with all [`seeds`](Self::seeds).
    pub fn measuring(&self, about: &str, data: &[&str], networks: &[&str]) -> Measured {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Measured {
            about: about.to_owned(),
            data: words(data),
            networks: words(networks),
            seeds: self.seeds(),
            ..Measured::by(self.artefact, self.seed, true)
        }
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

impl Measured {
    /// What `artefact` measures with seeds from `seed` on; nothing yet.
    pub(super) fn by(artefact: &Artefact, seed: u64, full: bool) -> Self {
        let flag = if full { "--full" } else { "--learn" };
        let seed = if seed == 0 { String::new() } else { format!(" --seed {seed}") };
        Self {
            about: artefact.about.to_owned(),
            command: format!("haversack reproduce {} {flag}{seed}", artefact.place()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Self::default()
        }
    }
}

/// By what the cache knows the values that this run measured for `place`.
pub(super) fn measured_key(place: &str) -> String {
    format!("measured {place}")
}

fn named(what: &str, names: &[&str], id: &str) -> Result<(), ArtefactError> {
    anyhow::ensure!(names.contains(&id), "the artefact uses the {what} `{id}` but does not name it among its own");
    Ok(())
}
