//! A network and data that stand in for a paper's own, and how they are learned: what artefacts train.

use std::sync::Arc;

use haversack_devices::registry::digest;
use haversack_workloads::data::{DataSet, LoadOptions, load};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::course::{Course, Subject};
use super::factors::Factors;
use super::pace::{Augment, Pace};
use super::saved::{Held, Row, Saved};
use super::specification::Specification;
use crate::cache::Cache;
use crate::error::{CommandError, Result};
use crate::interrupt;
use crate::reproduce::Kept;
use crate::scenario::{Key, Scenario, workload};

/// A network and data that stand in for a paper's own, and how they are learned.
#[derive(Clone, Debug)]
pub struct StandIn {
    /// The scenario, whose policy an artefact varies.
    pub scenario: Scenario,
    /// The name of the data.
    pub data: String,
    /// The seeds of initial weights and of the order of samples.
    pub seeds: Vec<u64>,
    validation_share: f64,
    pace: Pace,
    augment: Option<Augment>,
    /// What it is learned before, as it is: a network that the paper's authors took ready-made.
    base: Option<Arc<StandIn>>,
}

/// A network at the end of its course; without its tensors if it was kept.
#[derive(Serialize, Deserialize)]
struct Learned {
    rows: Vec<Row>,
    #[serde(skip)]
    tensors: Vec<Held>,
    factors: Vec<Factors>,
}

/// Data, with their digest.
struct Loaded {
    set: DataSet,
    digest: u64,
}

impl StandIn {
    /// The stand-in of `text`: a specification of `haversack train` of one scenario. `place` is how errors name it, and
    /// `shift` is added to its seeds.
    ///
    /// # Errors
    /// A text that is no specification, or one of several scenarios.
    pub(crate) fn parse(place: &str, text: &str, shift: u64) -> Result<Self> {
        let specification = Specification::parse(place, text, None)?;
        let mut scenarios = specification.scenarios()?;
        let number = scenarios.len();
        let Specification { data, pace, augment, seeds, validation_share, .. } = specification;
        match scenarios.pop() {
            Some((_, scenario)) if number == 1 => {
                let seeds = seeds.into_iter().map(|seed| seed.wrapping_add(shift)).collect();
                Ok(Self { scenario, data, seeds, validation_share, pace, augment, base: None })
            }
            _ => Err(CommandError::input(format!("{place}: expected one scenario, found {number}"))),
        }
    }

    /// The same, learned from where `base` ends with its first seed.
    pub(crate) fn after(self, base: Self) -> Self {
        Self { base: Some(Arc::new(base)), ..self }
    }

    /// The data that it is learned before on, if it is.
    pub fn base_data(&self) -> Option<&str> {
        self.base.as_ref().map(|base| base.data.as_str())
    }

    /// The same for another number of epochs.
    pub(crate) fn for_epochs(mut self, epochs: u32) -> Self {
        self.pace.epochs = epochs;
        self
    }

    /// The same with mini-batches of another size, and a learning rate in proportion.
    pub(crate) fn for_batch(mut self, batch: u64) -> Self {
        self.pace.learning_rate *= batch as f64 / self.scenario.batch as f64;
        self.scenario.batch = batch;
        self
    }

    /// The number of epochs.
    pub fn epochs(&self) -> u32 {
        self.pace.epochs
    }

    /// The epochs of `scenario` on the data with `seed`: learned once for all who ask, and not again if `kept` has them.
    ///
    /// # Errors
    /// A scenario that carries no data, a loss that is no number any more, Ctrl-C.
    pub(crate) fn learn(
        &self,
        scenario: &Scenario,
        seed: u64,
        cache: &Cache,
        kept: &Kept<'_>,
    ) -> Result<Arc<Vec<Row>>> {
        let learn = || Ok(self.course(scenario, seed, cache, kept)?.rows);
        cache.get(self.key(scenario, seed), || apart(1, learn)?)
    }

    /// The scale factors that `scenario`, in integers, takes in every batch with `seed`: found as by [`StandIn::learn`].
    ///
    /// # Errors
    /// As [`StandIn::learn`].
    pub(crate) fn factors(
        &self,
        scenario: &Scenario,
        seed: u64,
        cache: &Cache,
        kept: &Kept<'_>,
    ) -> Result<Arc<Vec<Factors>>> {
        let find = || Ok(self.course(scenario, seed, cache, kept)?.factors);
        cache.get(format!("factors {}", self.key(scenario, seed)), || apart(1, find)?)
    }

    /// Whether another thread is learning it.
    pub(crate) fn is_being_learned(&self, scenario: &Scenario, seed: u64, cache: &Cache) -> bool {
        cache.is_being_made::<String, Vec<Row>>(self.key(scenario, seed))
    }

    fn key(&self, scenario: &Scenario, seed: u64) -> String {
        let Self { data, validation_share, pace, augment, base, .. } = self;
        let base =
            base.as_ref().map_or_else(String::new, |base| format!(" after {}", base.key(&base.scenario, base.first())));
        let augment = augment.as_ref().map_or_else(String::new, |augment| format!(" {}", augment.text));
        format!("{} {data} {validation_share} {pace:?}{augment} {seed}{base}", scenario.fingerprint(Key::ALL))
    }

    fn first(&self) -> u64 {
        self.seeds.first().copied().unwrap_or_default()
    }

    fn course(&self, scenario: &Scenario, seed: u64, cache: &Cache, kept: &Kept<'_>) -> Result<Learned> {
        let (loaded, subject) = self.subject(scenario, cache)?;
        let key = self.kept_key(&loaded, &subject, scenario, seed);
        if let Some(found) = kept.get(&key) {
            return Ok(found);
        }
        let mut course = self.begin(&subject, &loaded, seed)?;
        if let Some(base) = &self.base {
            course.restore(Saved { tensors: base.tensors(cache)?.to_vec(), ..Saved::default() })?;
        }
        let learned = to_the_end(course)?;
        kept.keep(&key, &learned)?;
        Ok(learned)
    }

    /// What is kept of a course is found again by this.
    fn kept_key(&self, loaded: &Loaded, subject: &Subject, scenario: &Scenario, seed: u64) -> String {
        let calibrations = Value::from_iter(subject.calibrations());
        let version = env!("CARGO_PKG_VERSION");
        digest(&format!("{version} {calibrations} {:016x} {}", loaded.digest, self.key(scenario, seed)))
    }

    /// What the network holds at the end of its course with its first seed.
    fn tensors(&self, cache: &Cache) -> Result<Arc<Vec<Held>>> {
        let learn = || {
            let (loaded, subject) = self.subject(&self.scenario, cache)?;
            Ok(to_the_end(self.begin(&subject, &loaded, self.first())?)?.tensors)
        };
        cache.get(self.key(&self.scenario, self.first()), learn)
    }

    fn begin<'a>(&'a self, subject: &'a Subject, data: &'a Loaded, seed: u64) -> Result<Course<'a>> {
        let augment = self.augment.as_ref();
        augment.map_or(Ok(()), |augment| augment.check(&data.set.form)).map_err(CommandError::input)?;
        Course::new(subject, &self.pace, augment, &data.set, seed)
    }

    fn subject(&self, scenario: &Scenario, cache: &Cache) -> Result<(Arc<Loaded>, Subject)> {
        let loaded = cache.get(format!("data {} {}", self.data, self.validation_share), || self.load())?;
        let label = format!("{} under {}", workload::called(&scenario.model), scenario.policy);
        let subject = Subject::new(label, scenario.clone(), &loaded.set, cache)?;
        Ok((loaded, subject))
    }

    fn load(&self) -> Result<Loaded> {
        let options = LoadOptions { validation_share: self.validation_share, ..LoadOptions::default() };
        let set = load(&self.data, &options).map_err(|error| CommandError::input(format!("`data`: {error}")))?;
        Ok(Loaded { digest: set.digest(), set })
    }
}

fn to_the_end(mut course: Course<'_>) -> Result<Learned> {
    while !course.is_finished() {
        if interrupt::came() {
            return Err(CommandError::Interrupted);
        }
        course.epoch(0)?;
    }
    let factors = course.factors();
    let Saved { rows, tensors, .. } = course.saved();
    Ok(Learned { rows, tensors, factors })
}

/// Runs `work` on `threads` threads of its own. While it waits, the caller's thread takes no other work of its pool, which
/// could ask for the value that this one makes.
///
/// # Errors
/// Threads that cannot be started; a panic of the work.
pub(crate) fn apart<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> Result<T> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| CommandError::failed(format!("cannot start a thread: {error}")))?;
    let done = std::thread::scope(|scope| scope.spawn(|| pool.install(work)).join());
    done.map_err(|_| CommandError::failed("a training has panicked"))
}
