//! The keys of a scenario, each of which is also a flag.

/// A key of a scenario; a sweep takes products in this order, the first varying slowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// What trains.
    Device,
    /// Values in the place of the device's own.
    DeviceSet,
    /// The software that it runs.
    Stack,
    /// What is trained.
    Model,
    /// The shape of one sample.
    Input,
    /// Samples of a mini-batch.
    Batch,
    /// The memory policy.
    Policy,
    /// The policy's own parameters.
    Set,
    /// The number format.
    Precision,
    /// How weights are updated.
    Optimizer,
    /// How far Sage's graph is optimised.
    Graph,
    /// When weight gradients are applied.
    Gradients,
    /// What stands between tensors and memory.
    Allocator,
    /// How the maps of pictures lie in memory.
    MemoryFormat,
    /// How attention is computed.
    Attention,
    /// Forward alone.
    Inference,
    /// The operating system whose memory the run shares.
    System,
    /// Values in the place of the system's own.
    SystemSet,
    /// The `oom_score_adj` of the process that trains.
    TrainerAdj,
    /// What apps do on the phone.
    Apps,
    /// CPU cores.
    Cores,
    /// Their frequency.
    Frequency,
    /// The temperature around the device.
    AmbientC,
    /// All that the framework may hold.
    MemoryBudget,
    /// All that saved tensors may take.
    ActivationBudget,
    /// What budgets in percent are of.
    BudgetReference,
    /// Budgets that take the place of the first ones during an iteration.
    BudgetWalls,
    /// Whether the device's own memory is no limit.
    IgnoreRam,
    /// What an iteration may take.
    TimeBudget,
    /// Memory budgets over time.
    Trace,
    /// Where in a user's trace the run begins.
    TraceFrom,
    /// How much of it there is.
    TraceWindow,
    /// What apps take of memory.
    Footprints,
    /// How people use their phones.
    Usage,
    /// Iterations to run.
    Iterations,
    /// The seed of all randomness.
    Seed,
}

/// What a key takes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Text only.
    Text,
    /// A number, or text that holds one with its unit.
    Quantity,
    /// A table of names and values.
    Table,
    /// True or false; as a flag, true without a value.
    Switch,
}

impl Key {
    /// All keys, in the order of a sweep's product.
    pub const ALL: [Self; 36] = [
        Self::Device,
        Self::DeviceSet,
        Self::Stack,
        Self::Model,
        Self::Input,
        Self::Batch,
        Self::Policy,
        Self::Set,
        Self::Precision,
        Self::Optimizer,
        Self::Graph,
        Self::Gradients,
        Self::Allocator,
        Self::MemoryFormat,
        Self::Attention,
        Self::Inference,
        Self::System,
        Self::SystemSet,
        Self::TrainerAdj,
        Self::Apps,
        Self::Cores,
        Self::Frequency,
        Self::AmbientC,
        Self::MemoryBudget,
        Self::ActivationBudget,
        Self::BudgetReference,
        Self::BudgetWalls,
        Self::IgnoreRam,
        Self::TimeBudget,
        Self::Trace,
        Self::TraceFrom,
        Self::TraceWindow,
        Self::Footprints,
        Self::Usage,
        Self::Iterations,
        Self::Seed,
    ];

    /// The key's name in a file and as a flag, and what it takes.
    const fn row(self) -> (&'static str, &'static str, Takes) {
        match self {
            Self::Device => ("device", "device", Takes::Text),
            Self::DeviceSet => ("device_set", "device-set", Takes::Table),
            Self::Stack => ("stack", "stack", Takes::Text),
            Self::Model => ("model", "model", Takes::Text),
            Self::Input => ("input", "input", Takes::Quantity),
            Self::Batch => ("batch", "batch", Takes::Quantity),
            Self::Policy => ("policy", "policy", Takes::Text),
            Self::Set => ("set", "set", Takes::Table),
            Self::Precision => ("precision", "precision", Takes::Text),
            Self::Optimizer => ("optimizer", "optimizer", Takes::Text),
            Self::Graph => ("graph", "graph", Takes::Text),
            Self::Gradients => ("gradients", "gradients", Takes::Text),
            Self::Allocator => ("allocator", "allocator", Takes::Text),
            Self::MemoryFormat => ("memory_format", "memory-format", Takes::Text),
            Self::Attention => ("attention", "attention", Takes::Text),
            Self::Inference => ("inference", "inference", Takes::Switch),
            Self::System => ("system", "system", Takes::Text),
            Self::SystemSet => ("system_set", "system-set", Takes::Table),
            Self::TrainerAdj => ("trainer_adj", "trainer-adj", Takes::Quantity),
            Self::Apps => ("apps", "apps", Takes::Text),
            Self::Cores => ("cores", "cores", Takes::Text),
            Self::Frequency => ("frequency", "frequency", Takes::Text),
            Self::AmbientC => ("ambient_c", "ambient-c", Takes::Quantity),
            Self::MemoryBudget => ("memory_budget", "memory-budget", Takes::Quantity),
            Self::ActivationBudget => ("activation_budget", "activation-budget", Takes::Quantity),
            Self::BudgetReference => ("budget_reference", "budget-reference", Takes::Text),
            Self::BudgetWalls => ("budget_walls", "budget-walls", Takes::Text),
            Self::IgnoreRam => ("ignore_ram", "ignore-ram", Takes::Switch),
            Self::TimeBudget => ("time_budget", "time-budget", Takes::Quantity),
            Self::Trace => ("trace", "trace", Takes::Text),
            Self::TraceFrom => ("trace_from", "trace-from", Takes::Quantity),
            Self::TraceWindow => ("trace_window", "trace-window", Takes::Quantity),
            Self::Footprints => ("footprints", "footprints", Takes::Text),
            Self::Usage => ("usage", "usage", Takes::Text),
            Self::Iterations => ("iterations", "iterations", Takes::Quantity),
            Self::Seed => ("seed", "seed", Takes::Quantity),
        }
    }

    /// What a key that takes a table expects in a file, and as a flag, for errors; `None` if it takes none.
    pub(crate) const fn entries(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Set => Some((
                "a table of the policy's parameters, such as { order = \"half\" }",
                "a parameter and its value, such as order=half",
            )),
            Self::DeviceSet => Some((
                "a table of constants of the device, such as { ram = \"6 GiB\" }",
                "a constant of the device and its value, such as ram=6GiB",
            )),
            Self::SystemSet => Some((
                "a table of constants of the system, such as { \"reclaim.swappiness\" = 160 }",
                "a constant of the system and its value, such as reclaim.swappiness=160",
            )),
            _ => None,
        }
    }

    /// The name in a file; as a flag, with hyphens.
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// The name as a flag.
    pub const fn flag(self) -> &'static str {
        self.row().1
    }

    /// What the key takes in a file.
    pub const fn takes(self) -> Takes {
        self.row().2
    }

    /// The key called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }

    /// Whether results name the key only if it was given: it came later than the columns that scripts rely on.
    pub const fn is_shown_if_given(self) -> bool {
        matches!(
            self,
            Self::DeviceSet
                | Self::SystemSet
                | Self::MemoryFormat
                | Self::Attention
                | Self::Inference
                | Self::TrainerAdj
                | Self::Apps
                | Self::BudgetReference
                | Self::BudgetWalls
                | Self::IgnoreRam
                | Self::TraceFrom
                | Self::TraceWindow
                | Self::Footprints
                | Self::Usage
        )
    }

    /// The word for the key's value, and what the key means, for people.
    pub const fn about(self) -> (&'static str, &'static str) {
        match self {
            Self::Device => (
                "ID",
                "the device that trains: an id of `list devices`, a calibration's .toml file, or trace: the phone with the memory of \
                 the trace's (MemTotal)",
            ),
            Self::DeviceSet => (
                "NAME=VALUE",
                "another value of a constant of the device, in its file's unit or with one, such as ram=6GiB; or \
                 storage=ufs21, a class of flash; may be repeated",
            ),
            Self::Stack => ("ID", "the software stack: an id of `list stacks` [default: the device's own]"),
            Self::Model => ("NAME", "what is trained: an id of `list models`, or an .onnx file"),
            Self::Input => ("SHAPE", "the shape of a sample, such as 3x96x96 or 256 [default: the model's own]"),
            Self::Batch => ("N", "samples of a mini-batch [default: 32]"),
            Self::Policy => ("ID", "the memory policy: an id of `list policies` [default: original]"),
            Self::Set => {
                ("KEY=VALUE", "a parameter of the policy, of those that `list policies ID` has; may be repeated")
            }
            Self::Precision => {
                ("FORMAT", "the number format: fp32, fp16 (mixed precision) or int8 (as NITI trains) [default: fp32]")
            }
            Self::Optimizer => ("NAME", "how weights are updated: sgd, momentum or adam [default: sgd]"),
            Self::Graph => (
                "VARIANT",
                "how far Sage's graph is optimised, on stacks that run it: original, direct, of or sr [default: sr]",
            ),
            Self::Gradients => (
                "WHEN",
                "when weight gradients are applied, on stacks that run Sage's graph: kept (until the update) or streamed (as \
                 they come) [default: kept]",
            ),
            Self::Allocator => ("KIND", "the allocator: exact or caching (PyTorch's) [default: the stack's own]"),
            Self::MemoryFormat => (
                "FORMAT",
                "how maps of pictures lie in memory, on GPUs whose stack calls a library: contiguous (NCHW) or channels-last \
                 (NHWC) [default: contiguous]",
            ),
            Self::Attention => (
                "KERNELS",
                "how attention is computed, on GPUs whose stack calls a library: math (its products and softmax one by \
                 one) or fused (in one kernel, which holds no scores) [default: math]",
            ),
            Self::Inference => (
                "BOOLEAN",
                "run forward alone: nothing is kept for backward, normalisations use known statistics, nothing is \
                 dropped, and the session was prepared before; on stacks that run operators as they are [default: false]",
            ),
            Self::System => (
                "ID",
                "the operating system, whose apps, page reclaim and low-memory killer share the memory: an id of \
                 `list systems` [default: none; android if there are apps]",
            ),
            Self::SystemSet => (
                "NAME=VALUE",
                "another value of a constant or a word of the operating system, such as reclaim.swappiness=160 or \
                 reclaim.balance=both; may be repeated",
            ),
            Self::TrainerAdj => (
                "SCORE",
                "the oom_score_adj of the process that trains, from -1000 to 1000, by which the low-memory killer chooses \
                 [default: the system's for what the user would notice]",
            ),
            Self::Apps => (
                "APPS",
                "what apps do on the phone: none, a .parquet file of `trace import` or `trace generate` (with #USER for \
                 another than the first user), or USER@START+LENGTH: a stretch of a synthetic user's days, such as \
                 synthetic-0001@68400s+10min [default: none]",
            ),
            Self::Cores => ("CORES", "CPU cores, such as big:4, little:1 or all; trains on the CPU"),
            Self::Frequency => (
                "POINT",
                "the CPU's frequency: highest, lowest, governor or an operating point such as 1804.8MHz [default: highest]",
            ),
            Self::AmbientC => {
                ("DEGREES", "the temperature around the device and of it at the start; without it heat is left out")
            }
            Self::MemoryBudget => (
                "SIZE",
                "all that the framework holds, weights and states included: 800MB (decimal), 800MiB (binary), \
                 or 30% of what the policy original needs (see --budget-reference) [default: none]",
            ),
            Self::ActivationBudget => ("SIZE", "saved tensors alone, as for --memory-budget [default: none]"),
            Self::BudgetReference => (
                "WHOSE",
                "what percentages are of, which is what the policy original needs for the same model, input, batch and \
                 optimizer: device, in fp32 on the device's default stack, or own, on the policy's own stack in its own \
                 precision [default: device]",
            ),
            Self::BudgetWalls => (
                "WALLS",
                "budgets that take the place of --memory-budget during every iteration, in order of time, such as \
                 200ms=60%,1.5s=800MB; 1.5s=activations:20% is of --activation-budget [default: none]",
            ),
            Self::IgnoreRam => (
                "BOOLEAN",
                "run as if the device had all the memory that is asked for; `exceeds_ram` then says whether it has less \
                 [default: false]",
            ),
            Self::TimeBudget => ("TIME", "what an iteration may take, such as 1.5s or 200ms [default: none]"),
            Self::Trace => (
                "FILE",
                "memory budgets over the run: a CSV file with the header time_s,budget_bytes; or what apps do on the phone, or \
                 what it leaves of its memory: a Parquet file of `trace import` or `trace generate`, with #USER for another than \
                 the first user [default: none]",
            ),
            Self::TraceFrom => (
                "WHEN",
                "where in the user's trace the run begins: seconds after the first row or a time such as 30min, a date and \
                 time by the user's clock such as 2016-01-01T19:00, evening (the first 19:00), session:N, or random (by the \
                 seed) [default: 0]",
            ),
            Self::TraceWindow => (
                "TIME",
                "how much of the trace there is from then on, such as 10min; after it nothing changes [default: 24h]",
            ),
            Self::Footprints => (
                "FILE",
                "what apps take of memory: android, or a .toml file like traces/footprints/android.toml [default: android]",
            ),
            Self::Usage => {
                ("FILE", "how people use their phones: a .toml file like traces/usage.toml [default: the built-in one]")
            }
            Self::Iterations => {
                ("N", "iterations to run; the last one is reported, as policies learn in the first [default: 2]")
            }
            Self::Seed => ("N", "the seed of all randomness [default: 0]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn a_flag_is_the_name_with_hyphens() {
        for (place, key) in Key::ALL.into_iter().enumerate() {
            assert_eq!(key.flag(), key.name().replace('_', "-"));
            assert_eq!((Key::named(key.name()), key as usize), (Some(key), place));
        }
    }
}
