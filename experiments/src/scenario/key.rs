//! The keys of a scenario, each of which is also a flag.

/// A key of a scenario; a sweep takes products in this order, the first varying slowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// What trains.
    Device,
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
    /// The operating system whose memory the run shares.
    System,
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
    /// What an iteration may take.
    TimeBudget,
    /// Memory budgets over time.
    Trace,
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
}

impl Key {
    /// All keys, in the order of a sweep's product.
    pub const ALL: [Self; 22] = [
        Self::Device,
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
        Self::System,
        Self::Cores,
        Self::Frequency,
        Self::AmbientC,
        Self::MemoryBudget,
        Self::ActivationBudget,
        Self::TimeBudget,
        Self::Trace,
        Self::Iterations,
        Self::Seed,
    ];

    /// Its name in a file; as a flag, with hyphens.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Stack => "stack",
            Self::Model => "model",
            Self::Input => "input",
            Self::Batch => "batch",
            Self::Policy => "policy",
            Self::Set => "set",
            Self::Precision => "precision",
            Self::Optimizer => "optimizer",
            Self::Graph => "graph",
            Self::Gradients => "gradients",
            Self::Allocator => "allocator",
            Self::System => "system",
            Self::Cores => "cores",
            Self::Frequency => "frequency",
            Self::AmbientC => "ambient_c",
            Self::MemoryBudget => "memory_budget",
            Self::ActivationBudget => "activation_budget",
            Self::TimeBudget => "time_budget",
            Self::Trace => "trace",
            Self::Iterations => "iterations",
            Self::Seed => "seed",
        }
    }

    /// Its name as a flag.
    #[must_use]
    pub const fn flag(self) -> &'static str {
        match self {
            Self::AmbientC => "ambient-c",
            Self::MemoryBudget => "memory-budget",
            Self::ActivationBudget => "activation-budget",
            Self::TimeBudget => "time-budget",
            other => other.name(),
        }
    }

    /// The key called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }

    /// What the key takes, and what it means, for people.
    #[must_use]
    pub const fn about(self) -> (&'static str, &'static str) {
        match self {
            Self::Device => ("ID", "the device that trains: an id of `list devices`, or a calibration's .toml file"),
            Self::Stack => ("ID", "the software stack: an id of `list stacks` [default: the device's own]"),
            Self::Model => ("NAME", "what is trained: an id of `list models`, or an .onnx file"),
            Self::Input => ("SHAPE", "the shape of a sample, such as 3x96x96 or 256 [default: the model's own]"),
            Self::Batch => ("N", "samples of a mini-batch [default: 32]"),
            Self::Policy => ("ID", "the memory policy: an id of `list policies` [default: original]"),
            Self::Set => ("KEY=VALUE", "a parameter of the policy, as `list policies` prints them; may be repeated"),
            Self::Precision => {
                ("FORMAT", "fp32, fp16: mixed precision, or int8: integers as NITI trains [default: fp32]")
            }
            Self::Optimizer => ("NAME", "sgd, momentum or adam [default: sgd]"),
            Self::Graph => (
                "VARIANT",
                "original, direct, of or sr: how far Sage's graph is optimised, on stacks that run it \
                 [default: sr; original for the policy original]",
            ),
            Self::Gradients => (
                "WHEN",
                "kept until the update, or streamed: applied as they come, on stacks that run Sage's graph \
                 [default: kept]",
            ),
            Self::Allocator => ("KIND", "exact or caching (PyTorch's) [default: the stack's own]"),
            Self::System => (
                "ID",
                "the operating system, whose apps, page reclaim and low-memory killer share the memory: an id of \
                 `list systems` [default: none; android where the trace is of apps]",
            ),
            Self::Cores => ("CORES", "CPU cores, such as big:4, little:1 or all; trains on the CPU"),
            Self::Frequency => (
                "POINT",
                "highest, lowest, governor or an operating point such as 1804.8MHz, of the CPU [default: highest]",
            ),
            Self::AmbientC => {
                ("DEGREES", "the temperature around the device and of it at the start; without it heat is left out")
            }
            Self::MemoryBudget => (
                "SIZE",
                "all that the framework holds, weights and states included: 800MB (decimal), 800MiB (binary), \
                 or 30% of what the policy original needs [default: none]",
            ),
            Self::ActivationBudget => ("SIZE", "saved tensors alone, as for --memory-budget [default: none]"),
            Self::TimeBudget => ("TIME", "what an iteration may take, such as 1.5s or 200ms [default: none]"),
            Self::Trace => (
                "FILE",
                "memory budgets over the iteration: a CSV file with the header time_s,budget_bytes; or what apps do on the \
                 phone: a Parquet file of `trace import` or `trace generate`, with #USER for another than the first user [default: none]",
            ),
            Self::Iterations => {
                ("N", "iterations to run; the last one is reported, as policies learn in the first [default: 2]")
            }
            Self::Seed => ("N", "the seed of all randomness [default: 0]"),
        }
    }

    /// What it takes in a file.
    #[must_use]
    pub const fn takes(self) -> Takes {
        match self {
            Self::Set => Takes::Table,
            Self::Input
            | Self::Batch
            | Self::AmbientC
            | Self::MemoryBudget
            | Self::ActivationBudget
            | Self::TimeBudget
            | Self::Iterations
            | Self::Seed => Takes::Quantity,
            _ => Takes::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn a_flag_is_the_name_with_hyphens() {
        for key in Key::ALL {
            assert_eq!(key.flag(), key.name().replace('_', "-"));
            assert_eq!(Key::named(key.name()), Some(key));
        }
    }
}
