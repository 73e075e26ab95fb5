//! The keys of a scenario, in one table: its fields with their defaults, the flags, what a file and a sweep may say, the
//! help, and the names and columns of results all come from it.
//!
//! A resolved scenario as named cells is the `scenario` object of a result, and the first columns of a sweep.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use haversack_devices::calibration::Settings;
use haversack_devices::{Bytes, CoreSelection, Device, Frequency, MemoryFormat, Nanos, Precision, Stack, System};
use haversack_training::AllocatorKind;
use haversack_workloads::{Attention, Gradients, Optimiser, Variant};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::value::{
    ALLOCATORS, ATTENTION, Cell, GRADIENTS, Kind, Literal, OPTIMISERS, SWITCH, degrees, maybe, name_of, no_table,
    number, parsed, put, score, settings, show, shown, some, unless_default, whole, word,
};
use super::{
    Budget, BudgetReference, BudgetWalls, Fault, InputShape, Origin, PhoneApps, TraceFrom, parse_span, parse_time,
    time_text, trace_file,
};

/// Samples of a mini-batch by default: Sage's batch.
pub const DEFAULT_BATCH: u64 = 32;
/// Iterations by default: policies find their micro-batch in the first, and the second is what training then goes on with.
pub const DEFAULT_ITERATIONS: u32 = 2;
/// Those of a policy that goes on learning.
pub(crate) const ITERATIONS_OF_LEARNERS: u32 = 5;

/// The words with which a sweep names several devices or policies.
const GROUPS: [&str; 4] = ["all", "phones", "boards", "gpus"];

/// What a key takes in a file.
#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Takes {
    /// Text only.
    #[default]
    Text,
    /// A number, or text that holds one with its unit.
    Quantity,
    /// A table of names and values.
    Table {
        /// What is expected in a file, for errors.
        file: String,
        /// What is expected as a flag.
        flag: String,
    },
    /// True or false; as a flag, true without a value.
    Switch,
}

/// What `experiments/keys.toml` says of a key.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    takes: Takes,
    /// The word for the key's value.
    word: String,
    /// What the key means, for people.
    about: String,
    /// Whether results name the key only if it was given.
    #[serde(default)]
    if_given: bool,
    /// More is a slip of the hand on anything that is modelled here.
    most: Option<u64>,
    /// The name as a flag.
    #[serde(skip)]
    flag: String,
}

const FILE: &str = include_str!("../../keys.toml");

/// Declares every key once: its field with the default, and how a value is read => shown.
macro_rules! keys {
    ($(
        $(#[$doc:meta])*
        $key:ident $name:ident: $type:ty = $default:expr;
        $read:expr => $show:expr;
    )+) => {
        /// A key of a scenario; a sweep takes products in this order, the first varying slowest.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Key {
            $($(#[$doc])* $key,)+
        }

        impl Key {
            /// All keys, in the order of a sweep's product.
            pub const ALL: [Self; [$(stringify!($key)),+].len()] = [$(Self::$key),+];

            /// The name in a file; as a flag, with hyphens.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$key => stringify!($name),)+
                }
            }
        }

        /// Everything that decides one run; what is `None` has a default that [`Scenario::resolve_in`] fills in.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Scenario {
            $($(#[$doc])* pub $name: $type,)+
            /// The classes that a built-in model tells apart, where a program says so; by default the model's own.
            pub classes: Option<u64>,
            /// The calibrations that a program has put in the place of those that are named.
            pub placed: Option<Arc<Placed>>,
            /// Who gave each key, for messages.
            pub origins: BTreeMap<Key, Origin>,
        }

        impl Scenario {
            /// A scenario with defaults for everything but what trains what.
            pub fn new(device: impl Into<String>, model: impl Into<String>) -> Self {
                let plain = Self { $($name: $default,)+ classes: None, placed: None, origins: BTreeMap::new() };
                Self { device: device.into(), model: model.into(), ..plain }
            }

            /// The value of `key`.
            pub fn cell(&self, key: Key) -> Cell {
                match key {
                    $(Key::$key => show(&self.$name, $show),)+
                }
            }

            /// Sets the field of `key`.
            pub(super) fn assign(&mut self, key: Key, value: &Literal) -> Result<(), Fault> {
                key.check(value)?;
                key.check_one(value.text.trim())?;
                match key {
                    $(Key::$key => put(&mut self.$name, value, $read),)+
                }
            }
        }
    };
}

keys! {
    /// The device: an id, or a calibration's path.
    Device device: String = String::new(); parsed => shown;
    /// Values in the place of the device's own, by the names of its constants.
    DeviceSet device_set: Settings = Settings::new(); no_table => settings;
    /// The software stack; by default the device's own.
    Stack stack: Option<String> = None; some(parsed) => maybe;
    /// The model: an id, or the path of an ONNX file.
    Model model: String = String::new(); parsed => shown;
    /// The shape of a sample; by default the model's own.
    Input input: Option<InputShape> = None; some(parsed) => maybe;
    /// The weights of a file's network that alone are trained.
    Trainable trainable: Option<String> = None; some(parsed) => maybe;
    /// Those of it that are not trained.
    Frozen frozen: Option<String> = None; some(parsed) => maybe;
    /// The outputs that the loss is over.
    Outputs outputs: Option<String> = None; some(parsed) => maybe;
    /// Samples of a mini-batch.
    Batch batch: u64 = DEFAULT_BATCH; whole(1, Key::Batch.most()) => number;
    /// The memory policy.
    Policy policy: String = "original".to_owned(); parsed => shown;
    /// The policy's own parameters, by name.
    Set set: Settings = Settings::new(); no_table => settings;
    /// The number format.
    Precision precision: Precision = Precision::default();
        |given| word(given, &Precision::OF_RUNS.map(|format| (format.name(), format))) => shown;
    /// How weights are updated.
    Optimizer optimizer: Optimiser = Optimiser::default();
        |given| word(given, &OPTIMISERS) => |optimiser| shown(&name_of(*optimiser, &OPTIMISERS));
    /// How far Sage's graph is optimised; by default all the way.
    Graph graph: Option<Variant> = None;
        some(|given| word(given, &Variant::ALL.map(|variant| (variant.id(), variant))))
            => |variant| maybe(&variant.map(Variant::id));
    /// When weight gradients are applied.
    Gradients gradients: Gradients = Gradients::default();
        |given| word(given, &GRADIENTS) => |when| shown(&name_of(*when, &GRADIENTS));
    /// The allocator; by default exact under Sage's engine and caching under PyTorch.
    Allocator allocator: Option<AllocatorKind> = None;
        some(|given| word(given, &ALLOCATORS)) => |kind| maybe(&kind.map(|kind| name_of(kind, &ALLOCATORS)));
    /// How the maps of pictures lie in memory.
    MemoryFormat memory_format: MemoryFormat = MemoryFormat::default();
        |given| word(given, &MemoryFormat::ALL.map(|format| (format.name(), format)))
            => |format| unless_default(format, MemoryFormat::name);
    /// How attention is computed.
    Attention attention: Attention = Attention::default();
        |given| word(given, &ATTENTION) => |kernels| unless_default(kernels, |kernels| name_of(kernels, &ATTENTION));
    /// Whether it runs forward alone.
    Inference inference: bool = false; |given| word(given, &SWITCH) => |on| unless_default(on, |_| "true");
    /// The operating system whose memory the run shares; by default none.
    System system: Option<String> = None; some(parsed) => maybe;
    /// Values in the place of the system's own, likewise.
    SystemSet system_set: Settings = Settings::new(); no_table => settings;
    /// The `oom_score_adj` of the process that trains; by default the system's for what the user would notice.
    TrainerAdj trainer_adj: Option<i32> = None; some(score) => |score| Cell::Signed(score.map(i64::from));
    /// What apps do on the phone; by default there are none.
    Apps apps: Option<PhoneApps> = None; some(parsed) => maybe;
    /// CPU cores; by default the stack's processor.
    Cores cores: Option<CoreSelection> = None; some(parsed) => maybe;
    /// The CPU's frequency.
    Frequency frequency: Frequency = Frequency::default(); parsed => shown;
    /// The temperature around the device.
    AmbientC ambient_c: Option<f64> = None; some(degrees) => |degrees| Cell::Real(*degrees);
    /// All that the framework may hold.
    MemoryBudget memory_budget: Option<Budget> = None; some(parsed) => maybe;
    /// All that saved tensors may take.
    ActivationBudget activation_budget: Option<Budget> = None; some(parsed) => maybe;
    /// What budgets in percent are of.
    BudgetReference budget_reference: BudgetReference = BudgetReference::default();
        |given| word(given, &BudgetReference::WORDS)
            => |whose| unless_default(whose, |whose| name_of(whose, &BudgetReference::WORDS));
    /// Budgets that take the place of the first ones during every iteration.
    BudgetWalls budget_walls: BudgetWalls = BudgetWalls::default();
        parsed => |walls| maybe(&Some(walls).filter(|walls| !walls.is_empty()));
    /// Whether the device's own memory is no limit.
    IgnoreRam ignore_ram: bool = false; |given| word(given, &SWITCH) => |on| unless_default(on, |_| "true");
    /// What an iteration may take.
    TimeBudget time_budget: Option<Nanos> = None;
        some(|given| Ok(parse_time(given.text.trim())?)) => |time| maybe(&time.map(time_text));
    /// A file of memory budgets over time.
    Trace trace: Option<PathBuf> = None; some(parsed) => |path| maybe(&path.as_ref().map(|path| path.display()));
    /// Where in a user's trace the run begins; by default at its first row.
    TraceFrom trace_from: Option<TraceFrom> = None; some(parsed) => maybe;
    /// How much of it there is from then on; by default a day.
    TraceWindow trace_window: Option<Nanos> = None;
        some(|given| Ok(parse_span(given.text.trim())?)) => |time| maybe(&time.map(time_text));
    /// What apps take of memory: a table's name or path; by default Android's.
    Footprints footprints: Option<String> = None; some(parsed) => maybe;
    /// How people use their phones: a model's path; by default the built-in one.
    Usage usage: Option<String> = None; some(parsed) => maybe;
    /// Iterations to run; by default the policy's own number.
    Iterations iterations: Option<u32> = None;
        some(whole(1, Key::Iterations.most())) => |given| number(&given.unwrap_or(DEFAULT_ITERATIONS));
    /// The seed of all randomness.
    Seed seed: u64 = 0; whole(0, u64::MAX) => number;
}

impl Key {
    fn row(self) -> &'static Row {
        static ROWS: LazyLock<[Row; Key::ALL.len()]> = LazyLock::new(|| {
            let mut rows: BTreeMap<String, Row> = toml::from_str(FILE).unwrap_or_default();
            Key::ALL.map(|key| {
                let row = rows.remove(key.name()).unwrap_or_default();
                Row { flag: key.name().replace('_', "-"), ..row }
            })
        });
        &ROWS[self as usize]
    }

    /// The name as a flag.
    pub fn flag(self) -> &'static str {
        &self.row().flag
    }

    /// The most that a number of the key may be.
    pub(crate) fn most(self) -> u64 {
        self.row().most.unwrap_or(u64::MAX)
    }

    /// What the key takes in a file.
    pub fn takes(self) -> &'static Takes {
        &self.row().takes
    }

    /// Whether the key takes a table of names and values.
    pub fn is_table(self) -> bool {
        matches!(self.takes(), Takes::Table { .. })
    }

    /// The word for the key's value, and what the key means, for people.
    pub fn about(self) -> [&'static str; 2] {
        [&self.row().word, &self.row().about]
    }

    /// Whether results name the key only if it was given: it came later than the columns that scripts rely on.
    pub fn is_shown_if_given(self) -> bool {
        self.row().if_given
    }

    /// The key called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }

    /// Refuses a word that names several things where one is wanted.
    fn check_one(self, text: &str) -> Result<(), Fault> {
        let list = match self {
            Self::Device => "devices",
            Self::Model => "models",
            Self::Policy => "policies",
            Self::Stack => "stacks",
            Self::System => "systems",
            _ => return Ok(()),
        };
        if !GROUPS.contains(&text) {
            return Ok(());
        }
        let expected = format!("one {}, an id of `haversack list {list}`", self.name());
        let hint = "; several are for `haversack sweep`".to_owned();
        Err(Fault::hinted(expected, format!("'{text}'"), hint))
    }

    /// Refuses what is written in another way than the key takes.
    fn check(self, value: &Literal) -> Result<(), Fault> {
        use Kind::{Boolean, Integer, Real, Text};
        match (self.takes(), value.kind) {
            (Takes::Text, Text) if !value.text.trim().is_empty() => Ok(()),
            (Takes::Quantity, Text | Integer | Real) | (Takes::Switch, Text | Boolean) => Ok(()),
            (Takes::Text, _) => {
                let [word, about] = self.about();
                Err(Fault::value(format!("text ({word}: {about})"), value.found()))
            }
            (Takes::Quantity, Boolean) => Err(Fault::value("a number or a text", value.found())),
            (Takes::Switch, _) => Err(Fault::value("true or false", value.found())),
            (Takes::Table { file, .. }, _) => Err(Fault::value(file, value.found())),
        }
    }
}

/// The calibrations that a program has put in the place of those that a scenario names.
#[derive(Clone, Debug)]
pub struct Placed {
    pub(super) device: Arc<Device>,
    pub(super) stack: Arc<Stack>,
    pub(super) system: Option<Arc<System>>,
    /// A digest of all that they say.
    pub(super) name: String,
}

impl PartialEq for Placed {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The budgets of a run, `None` without one: all that the framework may hold, what percentages of it are of, if any is given;
/// all that saved tensors may take, and what percentages of it are of, likewise.
pub type BudgetBytes = [Option<Bytes>; 4];

impl Scenario {
    /// All keys with their values, and beside the budgets their bytes and those that percentages are of; a key that is
    /// shown only if it was given is left out if it was not.
    pub fn cells(&self, bytes: BudgetBytes) -> Vec<(&'static str, Cell)> {
        let mut cells = Vec::new();
        for key in Key::ALL {
            let cell = self.cell(key);
            if key.is_shown_if_given() && cell.is_nothing() {
                continue;
            }
            cells.push((key.name(), cell));
            let (names, bytes) = match key {
                Key::MemoryBudget => (["memory_budget_bytes", "reference_bytes"], &bytes[..2]),
                Key::ActivationBudget => (["activation_budget_bytes", "activation_reference_bytes"], &bytes[2..]),
                _ => continue,
            };
            let bytes = bytes.iter().map(|bytes| Cell::Whole(bytes.map(|bytes| bytes.0)));
            cells.extend(names.into_iter().zip(bytes));
        }
        cells
    }

    /// The same as a JSON object.
    pub fn to_json(&self, bytes: BudgetBytes) -> Map<String, Value> {
        self.cells(bytes).into_iter().map(|(name, cell)| (name.to_owned(), cell.to_json())).collect()
    }

    /// The `file` that it is read from, and all that its keys may name as files; most of it is none.
    pub(crate) fn names(&self, file: Option<&Path>) -> Vec<PathBuf> {
        let texts = Key::ALL.into_iter().flat_map(|key| match self.cell(key).to_json() {
            Value::Object(map) => map.into_iter().map(|(_, value)| value).collect(),
            value => vec![value],
        });
        let named = texts.filter_map(|text| Some(trace_file(Path::new(text.as_str()?)).0));
        named.chain(file.map(Path::to_path_buf)).collect()
    }

    /// The text of `keys`, by which results that depend on nothing else are shared.
    pub fn fingerprint(&self, keys: impl IntoIterator<Item = Key>) -> String {
        // What is said of networks from files alone is left out where nothing is said.
        let of_files = [Key::Trainable, Key::Frozen, Key::Outputs];
        let named = keys.into_iter().map(|key| (key, self.cell(key).to_json()));
        let named = named.filter(|(key, value)| !value.is_null() || !of_files.contains(key));
        let named = named.map(|(key, value)| (key.name().to_owned(), value));
        let placed = self.placed.iter().map(|placed| ("placed".to_owned(), Value::from(placed.name.as_str())));
        let classes = self.classes.map(|classes| ("classes".to_owned(), Value::from(classes)));
        Value::Object(named.chain(placed).chain(classes).collect::<Map<String, Value>>()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{FILE, Key, Row, Scenario};

    #[test]
    fn networks_of_other_classes_share_no_result() {
        let own = Scenario::new("jetson-agx-xavier", "lenet5");
        let of_data = Scenario { classes: Some(5), ..own.clone() };
        assert_ne!(own.fingerprint(Key::ALL), of_data.fingerprint(Key::ALL));
    }

    #[test]
    fn the_file_says_something_of_every_key_and_of_nothing_else() {
        let rows: BTreeMap<String, Row> = toml::from_str(FILE).unwrap();
        let mut names: Vec<&str> = Key::ALL.map(Key::name).into();
        names.sort_unstable();
        assert_eq!(rows.keys().collect::<Vec<_>>(), names);
        assert!(rows.values().all(|row| ![&row.word, &row.about].contains(&&String::new())));
    }

    #[test]
    fn a_flag_is_the_name_with_hyphens() {
        for (place, key) in Key::ALL.into_iter().enumerate() {
            assert_eq!(key.flag(), key.name().replace('_', "-"));
            assert_eq!((Key::named(key.name()), key as usize), (Some(key), place));
        }
    }
}
