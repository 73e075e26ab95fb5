//! A scenario: everything that decides one run, from a TOML file, from flags, or from a program.
//!
//! [`Scenario`] holds what was asked for; [`Scenario::resolve`] fills in what was left open and loads
//! device and stack. It knows no command, and no run.

mod apps;
mod budget_trace;
mod changed;
mod describe;
mod document;
mod error;
mod flags;
mod idle;
mod key;
mod names;
mod phone;
mod quantity;
mod resolve;
mod surroundings;
mod trace_from;
mod user_trace;
mod walls;
pub mod workload;
mod world;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haversack_devices::calibration::Settings;
use haversack_devices::processor::{CoreSelection, Frequency};
use haversack_devices::units::Nanos;
use haversack_devices::work::{MemoryFormat, Precision};
use haversack_training::AllocatorKind;
use haversack_workloads::autograd::{Attention, Optimiser};
use haversack_workloads::lowering::{Gradients, Variant};

pub use apps::{PhoneApps, app_changes, generated_apps};
pub(crate) use budget_trace::split as trace_file;
pub use describe::{BudgetBytes, Cell};
pub use document::{Document, Field, Item, Kind, Literal};
pub(crate) use error::Mistakes;
pub use error::{Fault, Origin, ScenarioError};
pub use flags::ScenarioFlags;
pub use key::{Key, Takes};
pub(crate) use phone::phone_in_use;
pub use quantity::{
    Budget, BudgetReference, InputShape, QuantityError, parse_size, parse_span, parse_time, size_text, time_text,
};
pub use resolve::{GraphKind, Resolved};
pub use surroundings::Covered;
pub use trace_from::TraceFrom;
pub(crate) use trace_from::beginning;
pub use walls::{BudgetWalls, Step};
pub use world::{Holder, World, moved};

use crate::cache::Cache;
use haversack_devices::text::{alternatives, hint, question};

/// Samples of a mini-batch by default: Sage's batch.
pub const DEFAULT_BATCH: u64 = 32;
/// Iterations by default: policies find their micro-batch in the first, and the second is what
/// training then goes on with.
pub const DEFAULT_ITERATIONS: u32 = 2;
/// Larger mini-batches are typing errors on anything that is modelled here.
pub const LARGEST_BATCH: u64 = 65_536;

/// Everything that decides one run; what is `None` has a default that [`Scenario::resolve`] fills in.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The device: an id, or a calibration's path.
    pub device: String,
    /// The software stack; by default the device's own.
    pub stack: Option<String>,
    /// The model: an id, or the path of an ONNX file.
    pub model: String,
    /// The shape of a sample; by default the model's own.
    pub input: Option<InputShape>,
    /// Values in the place of the device's own, by the names of its constants.
    pub device_set: Settings,
    /// Values in the place of the system's own, likewise.
    pub system_set: Settings,
    /// The classes that a built-in model tells apart, where a program says so; by default the model's own.
    pub classes: Option<u64>,
    /// Samples of a mini-batch.
    pub batch: u64,
    /// The memory policy.
    pub policy: String,
    /// The policy's own parameters, by name.
    pub set: BTreeMap<String, String>,
    /// The number format.
    pub precision: Precision,
    /// How weights are updated.
    pub optimizer: Optimiser,
    /// How far Sage's graph is optimised; by default all the way.
    pub graph: Option<Variant>,
    /// When weight gradients are applied.
    pub gradients: Gradients,
    /// The allocator; by default exact under Sage's engine and caching under PyTorch.
    pub allocator: Option<AllocatorKind>,
    /// How the maps of pictures lie in memory.
    pub memory_format: MemoryFormat,
    /// How attention is computed.
    pub attention: Attention,
    /// Whether it runs forward alone.
    pub inference: bool,
    /// The operating system whose memory the run shares; by default none.
    pub system: Option<String>,
    /// The `oom_score_adj` of the process that trains; by default the system's for what the user would notice.
    pub trainer_adj: Option<i32>,
    /// What apps do on the phone; by default there are none.
    pub apps: Option<PhoneApps>,
    /// CPU cores; by default the stack's processor.
    pub cores: Option<CoreSelection>,
    /// The CPU's frequency.
    pub frequency: Frequency,
    /// The temperature around the device.
    pub ambient_c: Option<f64>,
    /// All that the framework may hold.
    pub memory_budget: Option<Budget>,
    /// All that saved tensors may take.
    pub activation_budget: Option<Budget>,
    /// What budgets in percent are of.
    pub budget_reference: BudgetReference,
    /// Budgets that take the place of the first ones during every iteration.
    pub budget_walls: BudgetWalls,
    /// Whether the device's own memory is no limit.
    pub ignore_ram: bool,
    /// What an iteration may take.
    pub time_budget: Option<Nanos>,
    /// A file of memory budgets over time.
    pub trace: Option<PathBuf>,
    /// Where in a user's trace the run begins; by default at its first row.
    pub trace_from: Option<TraceFrom>,
    /// How much of it there is from then on; by default a day.
    pub trace_window: Option<Nanos>,
    /// What apps take of memory: a table's name or path; by default Android's.
    pub footprints: Option<String>,
    /// How people use their phones: a model's path; by default the built-in one.
    pub usage: Option<String>,
    /// Iterations to run.
    pub iterations: u32,
    /// The seed of all randomness.
    pub seed: u64,
    /// Who gave each key, for messages.
    pub origins: BTreeMap<Key, Origin>,
}

impl Scenario {
    /// A scenario with defaults for everything but what trains what.
    pub fn new(device: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            device: device.into(),
            stack: None,
            model: model.into(),
            input: None,
            classes: None,
            batch: DEFAULT_BATCH,
            policy: "original".to_owned(),
            set: BTreeMap::new(),
            device_set: Settings::new(),
            system_set: Settings::new(),
            precision: Precision::default(),
            optimizer: Optimiser::default(),
            graph: None,
            gradients: Gradients::default(),
            allocator: None,
            memory_format: MemoryFormat::default(),
            attention: Attention::default(),
            inference: false,
            ignore_ram: false,
            system: None,
            trainer_adj: None,
            apps: None,
            cores: None,
            frequency: Frequency::default(),
            ambient_c: None,
            memory_budget: None,
            activation_budget: None,
            budget_reference: BudgetReference::default(),
            budget_walls: BudgetWalls::default(),
            time_budget: None,
            trace: None,
            trace_from: None,
            trace_window: None,
            footprints: None,
            usage: None,
            iterations: DEFAULT_ITERATIONS,
            seed: 0,
            origins: BTreeMap::new(),
        }
    }

    /// Reads a scenario from a TOML file.
    ///
    /// # Errors
    /// A file that cannot be read, or as [`Scenario::parse`].
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        Self::of(Document::read_on(path)?)
    }

    /// Reads a scenario from TOML; `file` is how errors name it.
    ///
    /// # Errors
    /// Text that is not TOML; every unknown key, with the nearest valid one; every value that its key cannot have; no
    /// device or no model. Each names file, line and key.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        Self::of(Document::parse_on(file, text)?)
    }

    /// Reads the scenario of `file`, if there is one, with what a program gives over it in TOML, which errors call by a name.
    ///
    /// # Errors
    /// As [`Scenario::read`] and [`Scenario::parse`].
    pub fn with(file: Option<&Path>, (name, given): (&str, &str)) -> Result<Self, ScenarioError> {
        let (mut scenario, mut mistakes) = Self::begin(file)?;
        let (document, wrong) = Document::parse_on(name, given)?;
        mistakes.append(wrong);
        scenario.apply_on(&document, &mut mistakes);
        mistakes.note(scenario.complete(document.origin(0)));
        scenario.finish(mistakes)
    }

    /// As much of the scenario of `file`, if there is one, as is right, and what is wrong.
    pub(crate) fn begin(file: Option<&Path>) -> Result<(Self, Mistakes), ScenarioError> {
        let mut scenario = Self::new("", "");
        let Some(file) = file else { return Ok((scenario, Mistakes::default())) };
        let (document, mut mistakes) = Document::read_on(file)?;
        scenario.apply_on(&document, &mut mistakes);
        Ok((scenario, mistakes))
    }

    fn of((document, mut mistakes): (Document, Mistakes)) -> Result<Self, ScenarioError> {
        let mut scenario = Self::new("", "");
        scenario.apply_on(&document, &mut mistakes);
        mistakes.note(scenario.complete(document.origin(0)));
        scenario.finish(mistakes)
    }

    /// The scenario, unless there is a mistake; then the names that nothing has are mistakes, too.
    pub(crate) fn finish(self, mut mistakes: Mistakes) -> Result<Self, ScenarioError> {
        if !mistakes.is_empty() {
            self.unknown_names(&Cache::new(), &mut mistakes);
        }
        mistakes.finish().map(|()| self)
    }

    /// Sets every field of `document`.
    ///
    /// # Errors
    /// Every value that a key cannot have.
    pub fn apply(&mut self, document: &Document) -> Result<(), ScenarioError> {
        let mut mistakes = Mistakes::default();
        self.apply_on(document, &mut mistakes);
        mistakes.finish()
    }

    /// Sets every field of `document` whose value is right.
    pub(crate) fn apply_on(&mut self, document: &Document, mistakes: &mut Mistakes) {
        for (key, field) in &document.fields {
            if let Item::Table(parameters) = &field.item {
                for parameter in parameters {
                    let name = format!("{}.{}", key.name(), parameter.name);
                    if let Some(value) = mistakes.note(document.one(parameter, &name)) {
                        self.set_entry(*key, &parameter.name, value, document.origin(parameter.line));
                    }
                }
            } else if let Some(value) = mistakes.note(document.one(field, key.name())) {
                mistakes.note(self.set(*key, value, document.origin(field.line)));
            }
        }
    }

    /// Sets an entry of a key that takes a table: a parameter of the policy, whose name such as `sage.order` also says of
    /// which, or a constant of the device or of the system.
    pub fn set_entry(&mut self, key: Key, name: &str, value: &Literal, origin: Origin) {
        let table = match key {
            Key::DeviceSet => &mut self.device_set,
            Key::SystemSet => &mut self.system_set,
            _ => &mut self.set,
        };
        table.insert(name.to_owned(), value.text.clone());
        self.origins.insert(key, origin);
    }

    /// Checks that there is a device and a model; `by` is who should have given them.
    ///
    /// # Errors
    /// Each key that is missing.
    pub fn complete(&self, by: Origin) -> Result<(), ScenarioError> {
        let mut mistakes = Mistakes::default();
        for (key, value, expected) in [
            (Key::Device, &self.device, "an id of `haversack list devices`, such as galaxy-s10"),
            (Key::Model, &self.model, "an id of `haversack list models`, such as resnet50"),
        ] {
            if value.is_empty() {
                mistakes.add(ScenarioError::new(by.clone(), key.name(), Fault::Missing(expected)));
            }
        }
        mistakes.finish()
    }

    /// An error about `key`, with whoever gave it.
    pub(crate) fn error(&self, key: Key, fault: impl Into<Fault>) -> ScenarioError {
        ScenarioError::new(self.origins.get(&key).cloned().unwrap_or_default(), key.name(), fault)
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// A value that the key cannot have.
    pub fn set(&mut self, key: Key, value: &Literal, origin: Origin) -> Result<(), ScenarioError> {
        self.origins.insert(key, origin);
        self.assign(key, value).map_err(|fault| self.error(key, fault))
    }

    fn assign(&mut self, key: Key, value: &Literal) -> Result<(), Fault> {
        let text = value.text.trim();
        match (key.takes(), value.kind) {
            (Takes::Table, _) => return Err(Fault::value(key.entries().unwrap_or_default().0, value.found())),
            (Takes::Text, Kind::Text) if !text.is_empty() => {}
            (Takes::Quantity, Kind::Text | Kind::Integer | Kind::Real) => {}
            (Takes::Text, _) => {
                let (word, about) = key.about();
                return Err(Fault::value(format!("text ({word}: {about})"), value.found()));
            }
            (Takes::Switch, Kind::Text | Kind::Boolean) => {}
            (Takes::Switch, _) => return Err(Fault::value("true or false", value.found())),
            (Takes::Quantity, Kind::Boolean) => return Err(Fault::value("a number or a text", value.found())),
        }
        names::check_one(key, text)?;
        match key {
            Key::Device => self.device = text.to_owned(),
            Key::Stack => self.stack = Some(text.to_owned()),
            Key::Model => self.model = text.to_owned(),
            Key::Input => self.input = Some(text.parse()?),
            Key::Batch => self.batch = whole(value, 1, LARGEST_BATCH)?,
            Key::Policy => self.policy = text.to_owned(),
            Key::Set | Key::DeviceSet | Key::SystemSet => {}
            Key::Precision => self.precision = word(text, &Precision::OF_RUNS.map(|p| (p.name(), p)))?,
            Key::Optimizer => self.optimizer = word(text, &OPTIMISERS)?,
            Key::Graph => self.graph = Some(word(text, &Variant::ALL.map(|v| (v.id(), v)))?),
            Key::Gradients => self.gradients = word(text, &GRADIENTS)?,
            Key::Allocator => self.allocator = Some(word(text, &ALLOCATORS)?),
            Key::MemoryFormat => self.memory_format = word(text, &MemoryFormat::ALL.map(|f| (f.name(), f)))?,
            Key::Attention => self.attention = word(text, &ATTENTION)?,
            Key::Inference => self.inference = word(text, &SWITCH)?,
            Key::System => self.system = Some(text.to_owned()),
            Key::TrainerAdj => self.trainer_adj = Some(score(value)?),
            Key::Apps => self.apps = Some(text.parse()?),
            Key::Cores => self.cores = Some(text.parse()?),
            Key::Frequency => self.frequency = text.parse()?,
            Key::AmbientC => self.ambient_c = Some(degrees(value)?),
            Key::MemoryBudget => self.memory_budget = Some(text.parse()?),
            Key::ActivationBudget => self.activation_budget = Some(text.parse()?),
            Key::BudgetReference => self.budget_reference = word(text, &BudgetReference::WORDS)?,
            Key::BudgetWalls => self.budget_walls = text.parse()?,
            Key::IgnoreRam => self.ignore_ram = word(text, &SWITCH)?,
            Key::TimeBudget => self.time_budget = Some(parse_time(text)?),
            Key::Trace => self.trace = Some(PathBuf::from(text)),
            Key::TraceFrom => self.trace_from = Some(text.parse()?),
            Key::TraceWindow => self.trace_window = Some(parse_span(text)?),
            Key::Footprints => self.footprints = Some(text.to_owned()),
            Key::Usage => self.usage = Some(text.to_owned()),
            Key::Iterations => self.iterations = whole(value, 1, u64::from(u32::MAX))? as u32,
            Key::Seed => self.seed = whole(value, 0, u64::MAX)?,
        }
        Ok(())
    }
}

const OPTIMISERS: [(&str, Optimiser); 3] =
    [("sgd", Optimiser::Sgd), ("momentum", Optimiser::Momentum), ("adam", Optimiser::Adam)];
const GRADIENTS: [(&str, Gradients); 2] = [("kept", Gradients::Kept), ("streamed", Gradients::Streamed)];
const ALLOCATORS: [(&str, AllocatorKind); 2] = [("exact", AllocatorKind::Exact), ("caching", AllocatorKind::Caching)];

const SWITCH: [(&str, bool); 2] = [("true", true), ("false", false)];

const ATTENTION: [(&str, Attention); 2] = [("math", Attention::Math), ("fused", Attention::Fused)];

/// The value of the word `text`.
fn word<T: Copy>(text: &str, words: &[(&'static str, T)]) -> Result<T, Fault> {
    let names = || words.iter().map(|(name, _)| *name);
    words.iter().find(|(name, _)| *name == text).map(|&(_, value)| value).ok_or_else(|| Fault::Value {
        expected: alternatives(names()),
        found: format!("'{text}'"),
        hint: hint(text, names()),
    })
}

/// The word of `value`.
fn name_of<T: Copy + PartialEq>(value: T, words: &[(&'static str, T)]) -> &'static str {
    words.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}

fn whole(value: &Literal, least: u64, most: u64) -> Result<u64, Fault> {
    let parsed = value.text.trim().replace('_', "").parse().ok();
    parsed.filter(|number| (least..=most).contains(number)).ok_or_else(|| {
        let range = if most == u64::MAX { String::new() } else { format!(" and at most {most}") };
        let (expected, found) = (format!("a whole number of at least {least}{range}"), value.found());
        Fault::Value { expected, found, hint: names::several(&value.text) }
    })
}

/// An `oom_score_adj`, whose range is the kernel's.
fn score(value: &Literal) -> Result<i32, Fault> {
    let parsed = value.text.trim().parse().ok().filter(|score| (-1000..=1000).contains(score));
    parsed.ok_or_else(|| Fault::value("a whole number from -1000 to 1000", value.found()))
}

fn degrees(value: &Literal) -> Result<f64, Fault> {
    let parsed = value.text.trim().parse::<f64>().ok().filter(|degrees| (-50.0..=100.0).contains(degrees));
    parsed.ok_or_else(|| {
        let number = value.text.trim().trim_end_matches(['C', 'c', '°']);
        let meant = number.parse::<f64>().ok().filter(|_| number != value.text.trim()).map(|_| number);
        let (expected, found) = ("degrees Celsius from -50 to 100".to_owned(), value.found());
        Fault::Value { expected, found, hint: question(meant) }
    })
}
