//! A network and data that stand in for a paper's own, and how they are trained, for artefacts.

use std::sync::Arc;

use haversack_devices::ensure;
use haversack_devices::registry::digest;
use haversack_training::Record;
use haversack_workloads::data::{LoadOptions, Part, VALIDATION_SHARE, load};
use haversack_workloads::{Attention, DataSet, mixed};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::course::on_data;
use super::{Augment, Course, Factors, Held, Pace, Row, Saved, Specification, Subject};
use crate::measured::{self, Training};
use crate::quantities::counted;
use crate::reproduce::Kept;
use crate::scenario::{GraphKind, workload};
use crate::{Cache, CommandError, Key, Plan, Result, Scenario, interrupt};

/// A network and data that stand in for a paper's own, and how they are trained.
#[derive(Clone, Debug)]
pub struct StandIn {
    /// The scenario, whose policy an artefact varies.
    pub scenario: Scenario,
    /// The name of the data.
    pub data: String,
    /// The seeds of the initial weights and of the order of samples.
    pub seeds: Vec<u64>,
    validation_share: Option<f64>,
    pace: Pace,
    augment: Option<Augment>,
    /// The stand-in that is trained first, for a network that the paper's authors took pre-trained.
    pub(crate) base: Option<Arc<StandIn>>,
}

/// A network at the end of its training; without its tensors if it was read from kept findings.
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
    /// The stand-in defined by `text`: a specification of `haversack train` with one scenario. `place` is
    /// its name in errors.
    ///
    /// # Errors
    /// A text that is not a specification, or one of several scenarios.
    pub(crate) fn parse(place: &str, text: &str) -> Result<Self> {
        let specification = Specification::parse(place, text, None)?;
        let mut scenarios = specification.scenarios()?;
        let number = scenarios.len();
        let Specification { data, pace, augment, seeds, validation_share, .. } = specification;
        match scenarios.pop() {
            Some((_, scenario)) if number == 1 => {
                Ok(Self { scenario, data, seeds, validation_share, pace, augment, base: None })
            }
            _ => Err(CommandError::input(format!("{place}: expected one scenario, found {number}"))),
        }
    }

    /// The same, trained from the final weights of `base` with its first seed.
    pub(crate) fn after(self, base: Self) -> Self {
        Self { base: Some(Arc::new(base)), ..self }
    }

    /// The same for another number of epochs.
    pub(crate) fn for_epochs(mut self, epochs: u32) -> Self {
        self.pace.epochs = epochs;
        self
    }

    /// The same with another mini-batch size, and a proportional learning rate.
    pub(crate) fn for_batch(mut self, batch: u64) -> Self {
        self.pace.learning_rate *= batch as f64 / self.scenario.batch as f64;
        self.scenario.batch = batch;
        self
    }

    /// The same with these seeds.
    pub(crate) fn with_seeds(self, seeds: Vec<u64>) -> Self {
        Self { seeds, ..self }
    }

    /// The same with its scenario [`on_data`](Self::on_data), so that all simulations of it use the data's
    /// number of classes.
    ///
    /// # Errors
    /// Data that cannot be loaded.
    pub(crate) fn with_classes(self, cache: &Cache) -> Result<Self> {
        let (scenario, ..) = self.on_data(&self.scenario, cache)?;
        Ok(Self { scenario, ..self })
    }

    /// The number of epochs.
    pub fn epochs(&self) -> u32 {
        self.pace.epochs
    }

    /// `scenario` on the data (with their number of classes, and with samples of their shape if its own is open), the
    /// mini-batches of an epoch, and the accuracy by [`chance`].
    ///
    /// # Errors
    /// Data that cannot be loaded.
    pub(crate) fn on_data(&self, scenario: &Scenario, cache: &Cache) -> Result<(Scenario, u64, [f64; 2])> {
        let set = &self.loaded(cache)?.set;
        let batches = set.train.len() as u64 / scenario.batch.max(1);
        Ok((on_data(scenario.clone(), set)?, batches, chance(set)))
    }

    /// The training of `scenario`, which is on the data, with all its dependencies. The speed of the device matters
    /// only if it affects the computed values: with budgets, or where gradients are given up, the time, memory and
    /// gradients of the `simulated` iteration are dependencies, too.
    ///
    /// # Errors
    /// Data that cannot be loaded, a scenario that is wrong.
    pub(crate) fn wanted(&self, scenario: &Scenario, simulated: &Record, cache: &Cache) -> Result<Training> {
        let plan = Plan::new(scenario, cache)?;
        let mut depends = format!("{} {:?}", self.depends(scenario, cache)?, plan.resolved.network);
        if let GraphKind::Integer(id) = plan.resolved.graph {
            depends += &format!(" {:?}", mixed::algorithm(id).map_err(CommandError::failed)?);
        }
        let Scenario { time_budget, activation_budget, memory_budget, policy, set, batch, .. } = scenario;
        let is_short = time_budget.is_some() || activation_budget.is_some() || memory_budget.is_some();
        if is_short || simulated.given_up > 0 {
            let Record { iteration, peak_memory, given_up, .. } = simulated;
            depends += &format!(" {iteration:?} {peak_memory:?} {given_up}");
        }
        let epochs = counted(self.pace.epochs as usize, "epoch", "epochs");
        let set: String = set.iter().map(|(name, value)| format!(", {name} {value}")).collect();
        let memory =
            activation_budget.as_ref().map_or_else(String::new, |memory| format!(", {memory} for activations"));
        let time = time_budget.map_or_else(String::new, |time| format!(", {:.1} ms each", time.seconds() * 1e3));
        let how = format!("{policy}, batch {batch}, {epochs}{set}{memory}{time}");
        Ok(Training::wanted(&scenario.model, &self.data, how, &depends))
    }

    /// All dependencies of the training of `scenario` except the network, as text.
    fn depends(&self, scenario: &Scenario, cache: &Cache) -> Result<String> {
        let base = match &self.base {
            Some(base) => format!(" after {} seed {}", base.depends(&base.scenario, cache)?, base.first()),
            None => String::new(),
        };
        let alone = Self { base: None, ..self.clone() };
        // Trainings of earlier versions, which had no other default, do not name it.
        let attention = scenario.attention.filter(|kernels| *kernels != Attention::Math);
        let scenario = Scenario { attention, ..scenario.clone() };
        Ok(format!("{:016x} {}{base}", self.loaded(cache)?.digest, alone.key(&scenario, 0)))
    }

    /// The epochs of `scenario` on the data with `seed`: learned once per cache, and not again if `kept` has them.
    ///
    /// # Errors
    /// A scenario whose graph cannot compute real values, a NaN loss, Ctrl-C.
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

    /// The scale factors of `scenario`, in integers, in every batch with `seed`: computed as by [`StandIn::learn`].
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

    fn key(&self, scenario: &Scenario, seed: u64) -> String {
        let Self { data, validation_share, pace, augment, base, .. } = self;
        let base =
            base.as_ref().map_or_else(String::new, |base| format!(" after {}", base.key(&base.scenario, base.first())));
        let augment = augment.as_ref().map_or_else(String::new, |augment| format!(" {}", augment.text));
        let validation_share = validation_share.unwrap_or(VALIDATION_SHARE);
        // The number of classes follows from the data.
        let scenario = Scenario { classes: None, ..scenario.clone() }.fingerprint(Key::ALL);
        format!("{scenario} {data} {validation_share} {pace:?}{augment} {seed}{base}")
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

    /// The name under which a course's results are kept.
    fn kept_key(&self, loaded: &Loaded, subject: &Subject, scenario: &Scenario, seed: u64) -> String {
        let calibrations = Value::from_iter(subject.calibrations());
        let version = env!("CARGO_PKG_VERSION");
        digest(&format!("{version} {calibrations} {:016x} {}", loaded.digest, self.key(scenario, seed)))
    }

    /// The tensors of the network at the end of its training with its first seed.
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
        let loaded = self.loaded(cache)?;
        let label = format!("{} under {}", workload::called(&scenario.model), scenario.policy);
        let subject = Subject::new(label, scenario.clone(), &loaded.set, cache)?;
        Ok((loaded, subject))
    }

    fn loaded(&self, cache: &Cache) -> Result<Arc<Loaded>> {
        cache.get(format!("data {} {:?}", self.data, self.validation_share), || self.load())
    }

    fn load(&self) -> Result<Loaded> {
        let options = LoadOptions { validation_share: self.validation_share, ..LoadOptions::default() };
        let set = load(&self.data, &options).map_err(|error| CommandError::input(format!("`data`: {error}")))?;
        Ok(Loaded { digest: set.digest(), set })
    }
}

/// The accuracy of guessing the most frequent class of the test part, in percent, and 1.96 standard deviations of it.
pub(crate) fn chance(set: &DataSet) -> [f64; 2] {
    let labels = &set.part(Part::Test).labels;
    let mut counts = vec![0_u32; set.number_of_classes];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    let number = labels.len().max(1) as f64;
    let share = f64::from(counts.into_iter().max().unwrap_or_default()) / number;
    [share, 1.96 * (share * (1.0 - share) / number).sqrt()].map(|share| share * 100.0)
}

/// The accuracies with one seed, as they are committed.
pub(crate) fn learned(seed: u64, rows: &[Row]) -> measured::Learned {
    let of = |part: Part| rows.iter().filter(move |row| row.split == part).map(|row| row.accuracy * 100.0);
    let validation = of(Part::Validation).next_back().unwrap_or_default();
    measured::Learned { seed, accuracy: of(Part::Test).collect(), validation, ..measured::Learned::default() }
}

fn to_the_end(mut course: Course<'_>) -> Result<Learned> {
    while !course.is_finished() {
        ensure!(!interrupt::came(), CommandError::Interrupted);
        course.epoch(0)?;
    }
    let factors = course.factors();
    let Saved { rows, tensors, .. } = course.saved();
    Ok(Learned { rows, tensors, factors })
}

/// Runs `work` on its own `threads` threads. While the caller's thread waits, it takes no other work of its pool, which
/// could wait for the value that this one computes.
///
/// # Errors
/// Threads that cannot be started; a panic of the work.
pub(crate) fn apart<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> Result<T> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| CommandError::failed(format!("cannot start a thread: {error}")))?;
    let done = std::thread::scope(|scope| scope.spawn(|| pool.install(work)).join());
    done.map_err(|_| CommandError::failed("a training has panicked"))
}
