//! The keys of a scenario, in one table, which defines the fields with their defaults, the flags, the keys of files and
//! sweeps, the help, and the names and columns of results.
//!
//! Also the cells of a resolved scenario: the `scenario` object of a result, and the first columns of a sweep.

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

/// The default mini-batch size: Sage's.
pub const DEFAULT_BATCH: u64 = 32;
/// The default number of iterations: policies find their micro-batch in the first, and training then
/// continues like the second.
pub const DEFAULT_ITERATIONS: u32 = 2;
/// The default of policies that learn over several iterations.
pub(crate) const ITERATIONS_OF_LEARNERS: u32 = 5;

/// The words by which a sweep names several devices or policies.
const GROUPS: [&str; 4] = ["all", "phones", "boards", "gpus"];

/// The type of a key's value in a file.
#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Takes {
    /// Text only.
    #[default]
    Text,
    /// A number, or text with a number and its unit.
    Quantity,
    /// A table of names and values.
    Table {
        /// The expected value in a file, for errors.
        file: String,
        /// The expected value of a flag.
        flag: String,
    },
    /// True or false; a flag without a value is true.
    Switch,
}

/// A key's entry in `experiments/keys.toml`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    takes: Takes,
    /// The placeholder for the key's value in help.
    word: String,
    /// The key's meaning, for help.
    about: String,
    /// Whether results include the key only if it was given.
    #[serde(default)]
    if_given: bool,
    /// Larger numbers are certainly a mistake.
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

        /// Everything that determines one run; [`Scenario::resolve_in`] replaces `None` by the default.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Scenario {
            $($(#[$doc])* pub $name: $type,)+
            /// The number of classes of a built-in model, if a program sets it; by default the model's own.
            pub classes: Option<u64>,
            /// Calibrations that a program substitutes for the named ones.
            pub placed: Option<Arc<Placed>>,
            /// The origin of each key, for messages.
            pub origins: BTreeMap<Key, Origin>,
        }

        impl Scenario {
            /// A scenario with defaults for everything except device and model.
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
    /// Values that override the device's own, by the names of its constants.
    DeviceSet device_set: Settings = Settings::new(); no_table => settings;
    /// The software stack; by default the device's own.
    Stack stack: Option<String> = None; some(parsed) => maybe;
    /// The model: an id, or the path of an ONNX file.
    Model model: String = String::new(); parsed => shown;
    /// The shape of a sample; by default the model's own.
    Input input: Option<InputShape> = None; some(parsed) => maybe;
    /// The only weights of a file's network that are trained.
    Trainable trainable: Option<String> = None; some(parsed) => maybe;
    /// The weights of a file's network that are not trained.
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
    /// The rule by which weights are updated.
    Optimizer optimizer: Optimiser = Optimiser::default();
        |given| word(given, &OPTIMISERS) => |optimiser| shown(&name_of(*optimiser, &OPTIMISERS));
    /// The optimisations of Sage's graph; by default all.
    Graph graph: Option<Variant> = None;
        some(|given| word(given, &Variant::ALL.map(|variant| (variant.id(), variant))))
            => |variant| maybe(&variant.map(Variant::id));
    /// When weight gradients are applied.
    Gradients gradients: Gradients = Gradients::default();
        |given| word(given, &GRADIENTS) => |when| shown(&name_of(*when, &GRADIENTS));
    /// The allocator; by default exact under Sage's engine and caching under PyTorch.
    Allocator allocator: Option<AllocatorKind> = None;
        some(|given| word(given, &ALLOCATORS)) => |kind| maybe(&kind.map(|kind| name_of(kind, &ALLOCATORS)));
    /// The memory layout of feature maps.
    MemoryFormat memory_format: MemoryFormat = MemoryFormat::default();
        |given| word(given, &MemoryFormat::ALL.map(|format| (format.name(), format)))
            => |format| unless_default(format, MemoryFormat::name);
    /// The implementation of attention; by default the stack's own.
    Attention attention: Option<Attention> = None;
        some(|given| word(given, &ATTENTION)) => |kernels| maybe(&kernels.map(|kernels| name_of(kernels, &ATTENTION)));
    /// Whether only forward runs.
    Inference inference: bool = false; |given| word(given, &SWITCH) => |on| unless_default(on, |_| "true");
    /// The operating system whose memory the run shares; by default none.
    System system: Option<String> = None; some(parsed) => maybe;
    /// Values that override the system's own, by the names of its constants.
    SystemSet system_set: Settings = Settings::new(); no_table => settings;
    /// The `oom_score_adj` of the training process; by default the system's for a perceptible process.
    TrainerAdj trainer_adj: Option<i32> = None; some(score) => |score| Cell::Signed(score.map(i64::from));
    /// The apps of the phone; by default none.
    Apps apps: Option<PhoneApps> = None; some(parsed) => maybe;
    /// CPU cores; by default the stack's processor.
    Cores cores: Option<CoreSelection> = None; some(parsed) => maybe;
    /// The CPU's frequency.
    Frequency frequency: Frequency = Frequency::default(); parsed => shown;
    /// The ambient temperature.
    AmbientC ambient_c: Option<f64> = None; some(degrees) => |degrees| Cell::Real(*degrees);
    /// The limit on all memory of the framework.
    MemoryBudget memory_budget: Option<Budget> = None; some(parsed) => maybe;
    /// The limit on the memory of saved tensors.
    ActivationBudget activation_budget: Option<Budget> = None; some(parsed) => maybe;
    /// The reference of budgets in percent.
    BudgetReference budget_reference: BudgetReference = BudgetReference::default();
        |given| word(given, &BudgetReference::WORDS)
            => |whose| unless_default(whose, |whose| name_of(whose, &BudgetReference::WORDS));
    /// Budget changes during every iteration.
    BudgetWalls budget_walls: BudgetWalls = BudgetWalls::default();
        parsed => |walls| maybe(&Some(walls).filter(|walls| !walls.is_empty()));
    /// Whether to ignore the limit of the device's own memory.
    IgnoreRam ignore_ram: bool = false; |given| word(given, &SWITCH) => |on| unless_default(on, |_| "true");
    /// The limit on the time of an iteration.
    TimeBudget time_budget: Option<Nanos> = None;
        some(|given| Ok(parse_time(given.text.trim())?)) => |time| maybe(&time.map(time_text));
    /// A file of memory budgets over time.
    Trace trace: Option<PathBuf> = None; some(parsed) => |path| maybe(&path.as_ref().map(|path| path.display()));
    /// The start of the run in a user's trace; by default its first row.
    TraceFrom trace_from: Option<TraceFrom> = None; some(parsed) => maybe;
    /// The length of the trace used from then on; by default a day.
    TraceWindow trace_window: Option<Nanos> = None;
        some(|given| Ok(parse_span(given.text.trim())?)) => |time| maybe(&time.map(time_text));
    /// The memory footprints of apps: a table's name or path; by default Android's.
    Footprints footprints: Option<String> = None; some(parsed) => maybe;
    /// The model of phone usage: a path; by default the built-in one.
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

    /// The largest number that the key may have.
    pub(crate) fn most(self) -> u64 {
        self.row().most.unwrap_or(u64::MAX)
    }

    /// The type of the key's value in a file.
    pub fn takes(self) -> &'static Takes {
        &self.row().takes
    }

    /// Whether the key takes a table of names and values.
    pub fn is_table(self) -> bool {
        matches!(self.takes(), Takes::Table { .. })
    }

    /// The placeholder for the key's value, and the key's meaning, for help.
    pub fn about(self) -> [&'static str; 2] {
        [&self.row().word, &self.row().about]
    }

    /// Whether results include the key only if it was given, because it is newer than the columns that scripts rely on.
    pub fn is_shown_if_given(self) -> bool {
        self.row().if_given
    }

    /// The key named `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }

    /// Refuses a word that names several things where a single one is needed.
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

    /// Refuses a value of another type than the key's.
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

/// Calibrations that a program substitutes for those that a scenario names.
#[derive(Clone, Debug)]
pub struct Placed {
    pub(super) device: Arc<Device>,
    pub(super) stack: Arc<Stack>,
    pub(super) system: Option<Arc<System>>,
    /// A digest of all their contents.
    pub(super) name: String,
}

impl PartialEq for Placed {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The budgets of a run in bytes, each `None` if not given: the memory budget, the reference of its percentages, the
/// activation budget, and the reference of its percentages.
pub type BudgetBytes = [Option<Bytes>; 4];

impl Scenario {
    /// All keys with their values; after each budget, its bytes and the bytes its percentages refer to. Keys that are
    /// shown only if given are left out otherwise.
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

    /// The `file` that it is read from, and all keys that may name files; most of these do not exist as files.
    pub(crate) fn names(&self, file: Option<&Path>) -> Vec<PathBuf> {
        let texts = Key::ALL.into_iter().flat_map(|key| match self.cell(key).to_json() {
            Value::Object(map) => map.into_iter().map(|(_, value)| value).collect(),
            value => vec![value],
        });
        let named = texts.filter_map(|text| Some(trace_file(Path::new(text.as_str()?)).0));
        named.chain(file.map(Path::to_path_buf)).collect()
    }

    /// The text of `keys`, as a cache key for results that depend on nothing else.
    pub fn fingerprint(&self, keys: impl IntoIterator<Item = Key>) -> String {
        // Keys that only networks from files have are left out if not given.
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
