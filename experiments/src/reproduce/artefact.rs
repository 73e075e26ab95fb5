//! One artefact of a paper: a figure, a table or a claim of a section, and the context in which it answers its rows.
//!
//! It returns an [`Outcome`], which [`super`] turns into files.

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

/// The reason why an artefact has no answers. Any error converts with `?`; [`anyhow::bail!`] makes one from words.
pub type ArtefactError = anyhow::Error;

/// An artefact that is modelled.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Artefact {
    /// Its description and the calibrations it loads.
    pub entry: Entry,
    /// Its simulation.
    pub run: Run,
}

/// The simulation of an artefact.
pub type Run = fn(&Context<'_>) -> Result<Outcome, ArtefactError>;

impl Deref for Artefact {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.entry
    }
}

/// The context of an artefact's run.
pub struct Context<'a> {
    /// The seed of every random stream.
    pub seed: u64,
    /// Whether to train networks again, with one seed, or with all of them if `full`. Otherwise
    /// committed results are used.
    pub learn: bool,
    /// Whether to run every seed, and to repeat measurements that need training.
    pub full: bool,
    /// The artefact itself.
    pub artefact: &'a Artefact,
    /// Its rows of the reference.
    pub rows: Vec<&'a ReferenceRow>,
    /// All rows; calibration may use only the `fit` rows.
    pub reference: &'a Reference,
    /// All readings and predicates.
    pub readings: &'a Readings,
    /// Graphs and other values that artefacts compute once and share.
    pub cache: &'a Cache,
    /// The table of traces whose users are shown; `None` for synthetic ones.
    pub trace: Option<&'a Path>,
    /// Findings that take long to compute, kept in case the run is killed.
    pub kept: &'a Kept<'a>,
    /// The trainings of this artefact so far.
    pub learned: &'a Mutex<Vec<Training>>,
}

/// A training whose committed result is missing or outdated.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Lacking(String);

impl Context<'_> {
    /// The artefact's row with this id.
    ///
    /// # Errors
    /// The reference has no such row of this artefact.
    pub fn row(&self, id: &str) -> Result<&ReferenceRow, ArtefactError> {
        let found = self.rows.iter().find(|row| row.id == id);
        found.copied().ok_or_else(|| anyhow::anyhow!("no row of this artefact is called `{id}`"))
    }

    /// The paper's number of the row, if it gives exactly one.
    ///
    /// # Errors
    /// The reference has no such row of this artefact.
    pub fn paper(&self, id: &str) -> Result<Option<f64>, ArtefactError> {
        Ok(self.row(id)?.number())
    }

    /// The reading `id` that is declared for this artefact.
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
    /// No such reading, or one that is not a number.
    pub fn reading_number(&self, id: &str) -> Result<f64, ArtefactError> {
        self.value(id, "a number", |value| if let Value::Number(number) = value { Some(*number) } else { None })
    }

    /// The numbers of a reading that is a list.
    ///
    /// # Errors
    /// No such reading, or one that is not a list of numbers.
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

    /// The value of a reading, converted by `take`; `what` names the expected type in errors.
    fn value<'v, T>(&'v self, id: &str, what: &str, take: fn(&'v Value) -> Option<T>) -> Result<T, ArtefactError> {
        let value = &self.reading(id)?.value;
        take(value).ok_or_else(|| anyhow::anyhow!("the reading `{id}` is not {what} but {value}"))
    }

    /// Answers an `order` row: whether its predicate is true of the quantities that the artefact offers.
    ///
    /// # Errors
    /// No such row, no predicate declared for it, or one about a quantity that is not offered.
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

    /// Runs `scenario`; `None` if no plan fits its budget, or the trainer is killed repeatedly.
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

    /// The least memory in which `scenario` runs.
    ///
    /// # Errors
    /// A scenario that is wrong, or that runs in no memory.
    pub fn least(&self, scenario: &Scenario) -> Result<Bytes, ArtefactError> {
        Ok(self.plan(scenario)?.least_memory()?)
    }

    /// The committed measurements of `place`, a `paper/artefact`; with `--full`, the artefact's own measurements are
    /// repeated by `measure`, and written next to its table.
    ///
    /// # Errors
    /// A place that the artefact does not name, without committed measurements, or that cannot be measured.
    pub fn measured(
        &self,
        place: &str,
        measure: impl FnOnce() -> Result<Measured, ArtefactError> + Send,
    ) -> Result<Arc<Measured>, ArtefactError> {
        named("measured values of", self.artefact.measured, place)?;
        let anew = self.full && place == self.artefact.place();
        if anew { self.once(measured_key(place), measure) } else { Ok(Arc::new(measured::committed(place)?)) }
    }

    /// The training `wanted`, as committed with this artefact or with another that it names.
    ///
    /// # Errors
    /// [`Lacking`], with the command that trains it, if it was not committed, or if a dependency has changed since.
    pub(crate) fn committed(&self, wanted: &Training) -> Result<Training, ArtefactError> {
        let places = self.artefact.measured;
        let read = |place: &str| self.cache.get(format!("committed {place}"), || measured::committed(place));
        if let Some(found) = places.iter().find_map(|place| read(place).ok()?.training(wanted).cloned()) {
            return Ok(found);
        }
        let place = places.last().copied().unwrap_or_default();
        let why = read(place).map(|found| {
            let Measured { command, version, .. } = &*found;
            format!("the file that `{command}` of version {version} wrote has no such training, or an older one")
        });
        let why = why.unwrap_or_else(|error| format!("{error:#}"));
        let Training { network, data, how, .. } = wanted;
        let command = format!("`haversack reproduce {place} --learn --full` trains it");
        Err(Lacking(format!("{network} has not been trained on {data} ({how}): {why}; {command}")).into())
    }

    /// Records the results of the training `wanted`, rounded as a file would have them.
    ///
    /// # Errors
    /// The error of the training.
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

    /// The result of `make`, computed once for all artefacts that use `key`, on its own thread: a thread of the pool
    /// that waits takes on other work meanwhile, which could wait for this same result.
    ///
    /// # Errors
    /// The error of `make`.
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

    /// The seeds of a measurement: several, beginning with the seed of this run.
    pub fn seeds(&self) -> Vec<u64> {
        (0..measured::SEEDS).map(|more| self.seed.wrapping_add(more)).collect()
    }

    /// The seeds of trainings: those `declared` if committed results are used; otherwise as many, shifted by the seed
    /// of this run, or only the first.
    pub(crate) fn seeds_of(&self, declared: &[u64]) -> Vec<u64> {
        let shift = if self.learn { self.seed } else { 0 };
        let number = if self.learn && !self.full { 1 } else { declared.len() };
        declared.iter().take(number).map(|seed| seed.wrapping_add(shift)).collect()
    }

    /// An empty measurement for this artefact, with all [`seeds`](Self::seeds).
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
    /// An empty measurement by `artefact`, with seeds from `seed` on.
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

/// The cache key of the values that this run measured for `place`.
pub(super) fn measured_key(place: &str) -> String {
    format!("measured {place}")
}

fn named(what: &str, names: &[&str], id: &str) -> Result<(), ArtefactError> {
    anyhow::ensure!(names.contains(&id), "the artefact uses the {what} `{id}` but does not name it among its own");
    Ok(())
}
