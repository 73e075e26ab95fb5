//! The optimisers, as far as memory and work go.

use serde::Deserialize;

/// How weights are updated, and the state that this keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Optimiser {
    /// Plain stochastic gradient descent: no state.
    #[default]
    Sgd,
    /// Momentum: one value a weight.
    Momentum,
    /// Adam: two values a weight.
    Adam,
}

impl Optimiser {
    /// Values of state that every trained weight keeps.
    #[must_use]
    pub const fn states(self) -> u64 {
        match self {
            Self::Sgd => 0,
            Self::Momentum => 1,
            Self::Adam => 2,
        }
    }
}
