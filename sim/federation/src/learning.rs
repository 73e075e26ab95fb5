//! Real local training: clients train stand-ins that are small enough to train here, and their learning is measured.
//!
//! A [`StandIn`] is a network with its arithmetic. A client trains it from the server's weights on its own samples
//! ([`LocalSgd`]), which a [`Source`] draws for it, and sends its change back ([`Update`]). Weights travel as one flat
//! slice of f32 in the order of the network's parameters, on which aggregation works; narrower copies of a network are
//! leading slices of it ([`Narrowing`]).

mod deal;
mod local;
mod server;
mod source;
mod stand_in;
mod synthetic;

use haversack_numerics::ProgramError;
use haversack_training::StoreError;
use haversack_workloads::WorkloadError;

pub use deal::Deal;
pub use local::{LocalSgd, Trainee, Turn, Update, train_all};
pub use server::{Contribution, Server, ServerRule, Yogi, mean_change};
pub use source::{Groups, Holding, Labels, Source};
pub use stand_in::{Score, StandIn};
pub use synthetic::Synthetic;

// A narrower copy of a network, whose weights are leading slices of the full one's (HeteroFL: Diao et al., ICLR 2021).

/// Which of the full network's weights a narrower one has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrowing {
    /// For each weight of the narrower network, its index in the full one.
    places: Vec<u32>,
    full: usize,
}

impl Narrowing {
    /// # Errors
    /// Networks that do not have the same weights by name, or a narrower one that is wider somewhere.
    pub fn new(full: &StandIn, narrow: &StandIn) -> Result<Self> {
        let wrong = || LearningError::Weights { expected: full.len(), found: narrow.len() };
        let mut places = Vec::with_capacity(narrow.len());
        for (wide, slim) in full.weights.iter().zip(&narrow.weights) {
            let fits = wide.name == slim.name && wide.dims.len() == slim.dims.len();
            if !fits || wide.dims.iter().zip(&slim.dims).any(|(wide, slim)| slim > wide) {
                return Err(wrong());
            }
            for index in 0..slim.len() as u64 {
                // From the last dimension to the first: the digit in the narrow weight is the digit in the full one.
                let (mut rest, mut place, mut step) = (index, 0, 1);
                for (slim, wide) in slim.dims.iter().zip(&wide.dims).rev() {
                    place += rest % slim * step;
                    rest /= slim;
                    step *= wide;
                }
                places.push((wide.first as u64 + place) as u32);
            }
        }
        if full.weights.len() == narrow.weights.len() { Ok(Self { places, full: full.len() }) } else { Err(wrong()) }
    }

    /// The index in the full network of each weight of the narrower one.
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// The full network's weights that the narrower network has.
    ///
    /// # Errors
    /// Another number of weights.
    pub fn narrowed(&self, weights: &[f32]) -> Result<Vec<f32>, LearningError> {
        if weights.len() != self.full {
            return Err(LearningError::Weights { expected: self.full, found: weights.len() });
        }
        Ok(self.places.iter().map(|&place| weights[place as usize]).collect())
    }
}

/// Why a client could not train.
#[derive(Debug, thiserror::Error)]
pub enum LearningError {
    /// The network cannot be built.
    #[error(transparent)]
    Network(#[from] WorkloadError),
    /// The network or a batch of its samples cannot be computed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A store rejects a tensor that a client saves.
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
    /// An invalid setting of training.
    #[error("`{field}` is {value}, expected {expected}")]
    Setting {
        /// The setting.
        field: &'static str,
        /// Its value.
        value: String,
        /// The valid values.
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
    /// The loss has become NaN or infinite.
    #[error("the loss of client {client} is not a finite number after {steps} steps; a lower learning rate may help")]
    Diverged {
        /// The client.
        client: u32,
        /// Its steps so far.
        steps: usize,
    },
}

/// The result of learning.
type Result<T = (), E = LearningError> = std::result::Result<T, E>;
