//! The keys of a scenario, in one table: its fields with their defaults, the flags, what a file and a sweep may say, the
//! help, and the names and columns of results all come from it.
//!
//! A resolved scenario as named cells is the `scenario` object of a result, and the first columns of a sweep.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use haversack_devices::calibration::Settings;
use haversack_devices::{CoreSelection, Device, Frequency, MemoryFormat, Nanos, Precision, Stack, System};
use haversack_training::AllocatorKind;
use haversack_workloads::{Attention, Gradients, Optimiser, Variant};
use serde_json::{Map, Value};

use super::value::{
    ALLOCATORS, ATTENTION, Cell, GRADIENTS, Kind, Literal, OPTIMISERS, SWITCH, degrees, maybe, name_of, no_table,
    number, parsed, put, score, settings, show, shown, some, unless_default, whole, word,
};
use super::{
    Budget, BudgetReference, BudgetWalls, Fault, InputShape, Origin, PhoneApps, TraceFrom, parse_span, parse_time,
    time_text,
};

/// Samples of a mini-batch by default: Sage's batch.
pub const DEFAULT_BATCH: u64 = 32;
/// Iterations by default: policies find their micro-batch in the first, and the second is what training then goes on with.
pub const DEFAULT_ITERATIONS: u32 = 2;
/// Those of a policy that goes on learning.
pub(crate) const ITERATIONS_OF_LEARNERS: u32 = 5;
/// Larger mini-batches are typing errors on anything that is modelled here.
pub(crate) const LARGEST_BATCH: u64 = 65_536;

/// The words with which a sweep names several devices or policies.
const GROUPS: [&str; 4] = ["all", "phones", "boards", "gpus"];

/// What a key takes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Text only.
    Text,
    /// A number, or text that holds one with its unit.
    Quantity,
    /// A table of names and values.
    Table {
        /// What is expected in a file, for errors.
        file: &'static str,
        /// What is expected as a flag.
        flag: &'static str,
    },
    /// True or false; as a flag, true without a value.
    Switch,
}

/// Whether results name a key in every run.
#[derive(PartialEq, Eq)]
enum Named {
    Always,
    /// Only if it was given: it came later than the columns that scripts rely on.
    IfGiven,
}

/// A row of the table.
struct Row {
    name: &'static str,
    takes: Takes,
    /// The word for the key's value, and what the key means, for people.
    about: (&'static str, &'static str),
    named: Named,
}

/// Declares every key once: its field with the default; what it takes, the word for a value, and whether results always
/// name it; what it means; and how a value is read => shown.
macro_rules! keys {
    ($(
        $(#[$doc:meta])*
        $key:ident $name:ident: $type:ty = $default:expr;
        $takes:expr, $word:literal, $named:ident;
        $about:literal;
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

            const fn row(self) -> Row {
                match self {
                    $(Self::$key => Row {
                        name: stringify!($name),
                        takes: $takes,
                        about: ($word, $about),
                        named: Named::$named,
                    },)+
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
    Device device: String = String::new();
        Takes::Text, "ID", Always;
        "the device that trains: an id of `list devices`, a calibration's .toml file, or trace: the phone with the \
         memory of the trace's (MemTotal)";
        parsed => shown;
    /// Values in the place of the device's own, by the names of its constants.
    DeviceSet device_set: Settings = Settings::new();
        Takes::Table {
            file: "a table of constants of the device, such as { ram = \"6 GiB\" }",
            flag: "a constant of the device and its value, such as ram=6GiB",
        }, "NAME=VALUE", IfGiven;
        "another value of a constant of the device, in its file's unit or with one, such as ram=6GiB; or \
         storage=ufs21, a class of flash; may be repeated";
        no_table => settings;
    /// The software stack; by default the device's own.
    Stack stack: Option<String> = None;
        Takes::Text, "ID", Always;
        "the software stack: an id of `list stacks` [default: the device's own]";
        some(parsed) => maybe;
    /// The model: an id, or the path of an ONNX file.
    Model model: String = String::new();
        Takes::Text, "NAME", Always;
        "what is trained: an id of `list models`, or an .onnx file";
        parsed => shown;
    /// The shape of a sample; by default the model's own.
    Input input: Option<InputShape> = None;
        Takes::Quantity, "SHAPE", Always;
        "the shape of a sample, such as 3x96x96 or 256 [default: the model's own]";
        some(parsed) => maybe;
    /// The weights of a file's network that alone are trained.
    Trainable trainable: Option<String> = None;
        Takes::Text, "NAMES", IfGiven;
        "the weights of an .onnx file that are trained, and no others: names, or patterns such as head.*, between commas \
         [default: what the file says]";
        some(parsed) => maybe;
    /// Those of it that are not trained.
    Frozen frozen: Option<String> = None;
        Takes::Text, "NAMES", IfGiven;
        "the weights of an .onnx file that are not trained, likewise [default: what the file says]";
        some(parsed) => maybe;
    /// The outputs that the loss is over.
    Outputs outputs: Option<String> = None;
        Takes::Text, "NAMES", IfGiven;
        "the outputs of an .onnx file that the loss is over, between commas [default: all that depend on a trained weight]";
        some(parsed) => maybe;
    /// Samples of a mini-batch.
    Batch batch: u64 = DEFAULT_BATCH;
        Takes::Quantity, "N", Always;
        "samples of a mini-batch [default: 32]";
        whole(1, LARGEST_BATCH) => number;
    /// The memory policy.
    Policy policy: String = "original".to_owned();
        Takes::Text, "ID", Always;
        "the memory policy: an id of `list policies` [default: original]";
        parsed => shown;
    /// The policy's own parameters, by name.
    Set set: Settings = Settings::new();
        Takes::Table {
            file: "a table of the policy's parameters, such as { order = \"half\" }",
            flag: "a parameter and its value, such as order=half",
        }, "KEY=VALUE", Always;
        "a parameter of the policy, of those that `list policies ID` has; may be repeated";
        no_table => settings;
    /// The number format.
    Precision precision: Precision = Precision::default();
        Takes::Text, "FORMAT", Always;
        "the number format: fp32, fp16 (mixed precision) or int8 (as NITI trains) [default: fp32]";
        |given| word(given, &Precision::OF_RUNS.map(|format| (format.name(), format))) => shown;
    /// How weights are updated.
    Optimizer optimizer: Optimiser = Optimiser::default();
        Takes::Text, "NAME", Always;
        "how weights are updated: sgd, momentum or adam [default: sgd]";
        |given| word(given, &OPTIMISERS) => |optimiser| shown(&name_of(*optimiser, &OPTIMISERS));
    /// How far Sage's graph is optimised; by default all the way.
    Graph graph: Option<Variant> = None;
        Takes::Text, "VARIANT", Always;
        "how far Sage's graph is optimised, on stacks that run it: original, direct, of or sr [default: sr]";
        some(|given| word(given, &Variant::ALL.map(|variant| (variant.id(), variant))))
            => |variant| maybe(&variant.map(Variant::id));
    /// When weight gradients are applied.
    Gradients gradients: Gradients = Gradients::default();
        Takes::Text, "WHEN", Always;
        "when weight gradients are applied, on stacks that run Sage's graph: kept (until the update) or streamed (as \
         they come) [default: kept]";
        |given| word(given, &GRADIENTS) => |when| shown(&name_of(*when, &GRADIENTS));
    /// The allocator; by default exact under Sage's engine and caching under PyTorch.
    Allocator allocator: Option<AllocatorKind> = None;
        Takes::Text, "KIND", Always;
        "the allocator: exact or caching (PyTorch's) [default: the stack's own]";
        some(|given| word(given, &ALLOCATORS)) => |kind| maybe(&kind.map(|kind| name_of(kind, &ALLOCATORS)));
    /// How the maps of pictures lie in memory.
    MemoryFormat memory_format: MemoryFormat = MemoryFormat::default();
        Takes::Text, "FORMAT", IfGiven;
        "how maps of pictures lie in memory, on GPUs whose stack calls a library: contiguous (NCHW) or channels-last \
         (NHWC) [default: contiguous]";
        |given| word(given, &MemoryFormat::ALL.map(|format| (format.name(), format)))
            => |format| unless_default(format, MemoryFormat::name);
    /// How attention is computed.
    Attention attention: Attention = Attention::default();
        Takes::Text, "KERNELS", IfGiven;
        "how attention is computed, on GPUs whose stack calls a library: math (its products and softmax one by one) or \
         fused (in one kernel, which holds no scores) [default: math]";
        |given| word(given, &ATTENTION) => |kernels| unless_default(kernels, |kernels| name_of(kernels, &ATTENTION));
    /// Whether it runs forward alone.
    Inference inference: bool = false;
        Takes::Switch, "BOOLEAN", IfGiven;
        "run forward alone: nothing is kept for backward, normalisations use known statistics, nothing is dropped, and \
         the session was prepared before; on stacks that run operators as they are [default: false]";
        |given| word(given, &SWITCH) => |on| unless_default(on, |_| "true");
    /// The operating system whose memory the run shares; by default none.
    System system: Option<String> = None;
        Takes::Text, "ID", Always;
        "the operating system, whose apps, page reclaim and low-memory killer share the memory: an id of `list \
         systems` [default: none; android if there are apps]";
        some(parsed) => maybe;
    /// Values in the place of the system's own, likewise.
    SystemSet system_set: Settings = Settings::new();
        Takes::Table {
            file: "a table of constants of the system, such as { \"reclaim.swappiness\" = 160 }",
            flag: "a constant of the system and its value, such as reclaim.swappiness=160",
        }, "NAME=VALUE", IfGiven;
        "another value of a constant or a word of the operating system, such as reclaim.swappiness=160 or \
         reclaim.balance=both; may be repeated";
        no_table => settings;
    /// The `oom_score_adj` of the process that trains; by default the system's for what the user would notice.
    TrainerAdj trainer_adj: Option<i32> = None;
        Takes::Quantity, "SCORE", IfGiven;
        "the oom_score_adj of the process that trains, from -1000 to 1000, by which the low-memory killer chooses \
         [default: the system's for what the user would notice]";
        some(score) => |score| Cell::Signed(score.map(i64::from));
    /// What apps do on the phone; by default there are none.
    Apps apps: Option<PhoneApps> = None;
        Takes::Text, "APPS", IfGiven;
        "what apps do on the phone: none, a .parquet file of `trace import` or `trace generate` (with #USER for \
         another than the first user), or USER@START+LENGTH: a stretch of a synthetic user's days, such as \
         synthetic-0001@68400s+10min [default: none]";
        some(parsed) => maybe;
    /// CPU cores; by default the stack's processor.
    Cores cores: Option<CoreSelection> = None;
        Takes::Text, "CORES", Always;
        "CPU cores, such as big:4, little:1 or all; trains on the CPU";
        some(parsed) => maybe;
    /// The CPU's frequency.
    Frequency frequency: Frequency = Frequency::default();
        Takes::Text, "POINT", Always;
        "the CPU's frequency: highest, lowest, governor or an operating point such as 1804.8MHz [default: highest]";
        parsed => shown;
    /// The temperature around the device.
    AmbientC ambient_c: Option<f64> = None;
        Takes::Quantity, "DEGREES", Always;
        "the temperature around the device and of it at the start; without it heat is left out";
        some(degrees) => |degrees| Cell::Real(*degrees);
    /// All that the framework may hold.
    MemoryBudget memory_budget: Option<Budget> = None;
        Takes::Quantity, "SIZE", Always;
        "all that the framework holds, weights and states included: 800MB (decimal), 800MiB (binary), or 30% of what \
         the policy original needs (see --budget-reference) [default: none]";
        some(parsed) => maybe;
    /// All that saved tensors may take.
    ActivationBudget activation_budget: Option<Budget> = None;
        Takes::Quantity, "SIZE", Always;
        "saved tensors alone, as for --memory-budget [default: none]";
        some(parsed) => maybe;
    /// What budgets in percent are of.
    BudgetReference budget_reference: BudgetReference = BudgetReference::default();
        Takes::Text, "WHOSE", IfGiven;
        "what percentages are of, which is what the policy original needs for the same model, input, batch and \
         optimizer: own, on the policy's own stack in its own precision, or stack-default, in fp32 on the device's default \
         stack [default: own]";
        |given| word(given, &BudgetReference::WORDS)
            => |whose| unless_default(whose, |whose| name_of(whose, &BudgetReference::WORDS));
    /// Budgets that take the place of the first ones during every iteration.
    BudgetWalls budget_walls: BudgetWalls = BudgetWalls::default();
        Takes::Text, "WALLS", IfGiven;
        "budgets that take the place of --memory-budget during every iteration, in order of time, such as \
         200ms=60%,1.5s=800MB; 1.5s=activations:20% is of --activation-budget [default: none]";
        parsed => |walls| maybe(&Some(walls).filter(|walls| !walls.is_empty()));
    /// Whether the device's own memory is no limit.
    IgnoreRam ignore_ram: bool = false;
        Takes::Switch, "BOOLEAN", IfGiven;
        "run as if the device had all the memory that is asked for; `exceeds_ram` then says whether it has less \
         [default: false]";
        |given| word(given, &SWITCH) => |on| unless_default(on, |_| "true");
    /// What an iteration may take.
    TimeBudget time_budget: Option<Nanos> = None;
        Takes::Quantity, "TIME", Always;
        "what an iteration may take, such as 1.5s or 200ms [default: none]";
        some(|given| Ok(parse_time(given.text.trim())?)) => |time| maybe(&time.map(time_text));
    /// A file of memory budgets over time.
    Trace trace: Option<PathBuf> = None;
        Takes::Text, "FILE", Always;
        "memory budgets over the run: a CSV file with the header time_s,budget_bytes; or what apps do on the phone, or \
         what it leaves of its memory: a Parquet file of `trace import` or `trace generate`, with #USER for another \
         than the first user [default: none]";
        some(parsed) => |path| maybe(&path.as_ref().map(|path| path.display()));
    /// Where in a user's trace the run begins; by default at its first row.
    TraceFrom trace_from: Option<TraceFrom> = None;
        Takes::Quantity, "WHEN", IfGiven;
        "where in the user's trace the run begins: seconds after the first row or a time such as 30min, a date and \
         time by the user's clock such as 2016-01-01T19:00, evening (the first 19:00), session:N, or random (by the \
         seed) [default: 0]";
        some(parsed) => maybe;
    /// How much of it there is from then on; by default a day.
    TraceWindow trace_window: Option<Nanos> = None;
        Takes::Quantity, "TIME", IfGiven;
        "how much of the trace there is from then on, such as 10min; after it nothing changes [default: 24h]";
        some(|given| Ok(parse_span(given.text.trim())?)) => |time| maybe(&time.map(time_text));
    /// What apps take of memory: a table's name or path; by default Android's.
    Footprints footprints: Option<String> = None;
        Takes::Text, "FILE", IfGiven;
        "what apps take of memory: android, or a .toml file like traces/footprints/android.toml [default: android]";
        some(parsed) => maybe;
    /// How people use their phones: a model's path; by default the built-in one.
    Usage usage: Option<String> = None;
        Takes::Text, "FILE", IfGiven;
        "how people use their phones: a .toml file like traces/usage.toml [default: the built-in one]";
        some(parsed) => maybe;
    /// Iterations to run; by default the policy's own number.
    Iterations iterations: Option<u32> = None;
        Takes::Quantity, "N", Always;
        "iterations to run; what is reported is the mean without the first, in which policies learn [default: 2; 5 where a policy goes on learning]";
        some(whole(1, u64::from(u32::MAX))) => |given| number(&given.unwrap_or(DEFAULT_ITERATIONS));
    /// The seed of all randomness.
    Seed seed: u64 = 0;
        Takes::Quantity, "N", Always;
        "the seed of all randomness [default: 0]";
        whole(0, u64::MAX) => number;
}

impl Key {
    /// The name in a file; as a flag, with hyphens.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The name as a flag.
    pub fn flag(self) -> &'static str {
        static FLAGS: LazyLock<[String; Key::ALL.len()]> =
            LazyLock::new(|| Key::ALL.map(|key| key.name().replace('_', "-")));
        &FLAGS[self as usize]
    }

    /// What the key takes in a file.
    pub const fn takes(self) -> Takes {
        self.row().takes
    }

    /// Whether the key takes a table of names and values.
    pub const fn is_table(self) -> bool {
        matches!(self.takes(), Takes::Table { .. })
    }

    /// The word for the key's value, and what the key means, for people.
    pub const fn about(self) -> (&'static str, &'static str) {
        self.row().about
    }

    /// Whether results name the key only if it was given: it came later than the columns that scripts rely on.
    pub fn is_shown_if_given(self) -> bool {
        self.row().named == Named::IfGiven
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
                let (word, about) = self.about();
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

/// The budgets of a run in bytes; `None` without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetBytes {
    /// All that the framework may hold.
    pub memory: Option<u64>,
    /// What percentages of it are of; `None` if none is given.
    pub reference: Option<u64>,
    /// All that saved tensors may take.
    pub activations: Option<u64>,
    /// What percentages of it are of; `None` if none is given.
    pub activation_reference: Option<u64>,
}

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
            let names = match key {
                Key::MemoryBudget => [("memory_budget_bytes", bytes.memory), ("reference_bytes", bytes.reference)],
                Key::ActivationBudget => [
                    ("activation_budget_bytes", bytes.activations),
                    ("activation_reference_bytes", bytes.activation_reference),
                ],
                _ => continue,
            };
            cells.extend(names.map(|(name, bytes)| (name, Cell::Whole(bytes))));
        }
        cells
    }

    /// The same as a JSON object.
    pub fn to_json(&self, bytes: BudgetBytes) -> Map<String, Value> {
        self.cells(bytes).into_iter().map(|(name, cell)| (name.to_owned(), cell.to_json())).collect()
    }

    /// The text of `keys`, by which results that depend on nothing else are shared.
    pub fn fingerprint(&self, keys: impl IntoIterator<Item = Key>) -> String {
        let named = keys.into_iter().map(|key| (key.name().to_owned(), self.cell(key).to_json()));
        let placed = self.placed.iter().map(|placed| ("placed".to_owned(), Value::from(placed.name.as_str())));
        let classes = self.classes.map(|classes| ("classes".to_owned(), Value::from(classes)));
        Value::Object(named.chain(placed).chain(classes).collect::<Map<String, Value>>()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Scenario};

    #[test]
    fn networks_of_other_classes_share_no_result() {
        let own = Scenario::new("jetson-agx-xavier", "lenet5");
        let of_data = Scenario { classes: Some(5), ..own.clone() };
        assert_ne!(own.fingerprint(Key::ALL), of_data.fingerprint(Key::ALL));
    }

    #[test]
    fn a_flag_is_the_name_with_hyphens() {
        for (place, key) in Key::ALL.into_iter().enumerate() {
            assert_eq!(key.flag(), key.name().replace('_', "-"));
            assert_eq!((Key::named(key.name()), key as usize), (Some(key), place));
        }
    }
}
