//! A network and data that stand in for a paper's own, and how they are learned: what artefacts train.

use std::sync::Arc;

use haversack_devices::registry::digest;
use haversack_workloads::data::{DataSet, LoadOptions, load};
use serde_json::{Value, json};

use super::course::{Course, Subject};
use super::pace::Pace;
use super::row::{Row, RowHead};
use super::specification::Specification;
use crate::cache::Cache;
use crate::error::CommandError;
use crate::interrupt;
use crate::reproduce::Kept;
use crate::scenario::{Key, Scenario};

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
}

/// Data, with their digest.
struct Loaded {
    set: DataSet,
    digest: u64,
}

impl StandIn {
    /// The stand-in of `text`: a specification of `haversack train` of one scenario, with `;` for the ends of lines. `place` is
    /// how errors name it, and `shift` is added to its seeds.
    ///
    /// # Errors
    /// A text that is no specification, or one of several scenarios.
    pub(crate) fn parse(place: &str, text: &str, shift: u64) -> Result<Self, CommandError> {
        let specification = Specification::parse(place, &text.replace(';', "\n"), None)?;
        let mut scenarios = specification.scenarios()?;
        let number = scenarios.len();
        let Specification { data, pace, seeds, validation_share, .. } = specification;
        match scenarios.pop() {
            Some((_, scenario)) if number == 1 => {
                let seeds = seeds.into_iter().map(|seed| seed.wrapping_add(shift)).collect();
                Ok(Self { scenario, data, seeds, validation_share, pace })
            }
            _ => Err(CommandError::input(format!("{place}: expected one scenario, found {number}"))),
        }
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
        (cache, kept): (&Cache, &Kept),
    ) -> Result<Arc<Vec<Row>>, CommandError> {
        cache.get(self.key(scenario, seed), || alone(|| self.course(scenario, seed, (cache, kept)))?)
    }

    /// Whether another thread is learning it.
    pub(crate) fn is_being_learned(&self, scenario: &Scenario, seed: u64, cache: &Cache) -> bool {
        cache.is_being_made::<String, Vec<Row>>(self.key(scenario, seed))
    }

    fn key(&self, scenario: &Scenario, seed: u64) -> String {
        let Self { data, validation_share, pace, .. } = self;
        format!("{} {data} {validation_share} {pace:?} {seed}", scenario.fingerprint(Key::ALL))
    }

    fn course(
        &self,
        scenario: &Scenario,
        seed: u64,
        (cache, kept): (&Cache, &Kept),
    ) -> Result<Vec<Row>, CommandError> {
        let loaded = cache.get(format!("data {} {}", self.data, self.validation_share), || self.load())?;
        let label = format!("{} under {}", scenario.model, scenario.policy);
        let subject = Subject::new(label, scenario.clone(), &loaded.set, cache)?;
        let calibrations = Value::from_iter(subject.calibrations());
        let version = env!("CARGO_PKG_VERSION");
        let of = format!("{version} {calibrations} {:016x} {}", loaded.digest, self.key(scenario, seed));
        let key = digest(&of);
        if let Some(rows) = kept.get(&key).and_then(|rows| read(rows, seed)) {
            return Ok(rows);
        }
        let mut course = Course::new(&subject, &self.pace, &loaded.set, seed)?;
        while !course.is_finished() {
            if interrupt::came() {
                return Err(CommandError::Interrupted);
            }
            course.epoch(0)?;
        }
        let rows = course.into_rows();
        kept.keep(key, json!(rows.iter().map(Row::head).collect::<Vec<_>>()))?;
        Ok(rows)
    }

    fn load(&self) -> Result<Loaded, CommandError> {
        let options = LoadOptions { validation_share: self.validation_share, ..LoadOptions::default() };
        let set = load(&self.data, &options).map_err(|error| CommandError::input(format!("`data`: {error}")))?;
        Ok(Loaded { digest: set.digest(), set })
    }
}

/// The rows of a course with `seed`, as they were kept.
fn read(kept: Value, seed: u64) -> Option<Vec<Row>> {
    let heads: Vec<RowHead> = serde_json::from_value(kept).ok()?;
    heads.into_iter().map(|head| Row::of((0, seed), head)).collect()
}

/// Runs `work` on a thread that belongs to no other work, and on that thread alone. While it waits, the caller's thread
/// takes no other work of its pool, which could ask for the value that this one makes.
fn alone<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, CommandError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.map_err(|error| CommandError::failed(format!("cannot start a thread: {error}")))?;
    let done = std::thread::scope(|scope| scope.spawn(|| pool.install(work)).join());
    done.map_err(|_| CommandError::failed("a training has panicked"))
}
