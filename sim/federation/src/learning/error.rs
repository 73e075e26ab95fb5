use haversack_numerics::ProgramError;
use haversack_training::StoreError;
use haversack_workloads::WorkloadError;

/// Why a client could not train.
#[derive(Debug, thiserror::Error)]
pub enum LearningError {
    /// The network cannot be built.
    #[error(transparent)]
    Network(#[from] WorkloadError),
    /// The network or a batch of its samples cannot be computed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A store does not take what a client saves.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Weights of another network.
    #[error("{expected} weights were expected, there are {found}")]
    Weights {
        /// The weights of the network.
        expected: usize,
        /// Those that were given.
        found: usize,
    },
    /// A setting that nothing can be trained with.
    #[error("`{field}` is {value}, expected {expected}")]
    Setting {
        /// The setting.
        field: &'static str,
        /// What it is.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// A data set that the network cannot take.
    #[error("the network takes samples of {expected} values, those of the data have {found}")]
    Samples {
        /// The values that the network takes.
        expected: usize,
        /// Those of the data.
        found: usize,
    },
    /// The loss is no number any more.
    #[error("the loss of client {client} is no finite number after {steps} steps; a lower learning rate may help")]
    Diverged {
        /// The client.
        client: u32,
        /// Its steps so far.
        steps: usize,
    },
}
