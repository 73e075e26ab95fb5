//! How weights are updated, and by how much.

use haversack_workloads::Optimiser;

use crate::NumericsError;
use crate::dense::optimiser::{Adam, momentum, sgd};

/// The momentum of [`Optimiser::Momentum`], as PyTorch's examples have it.
pub(crate) const MOMENTUM: f32 = 0.9;

/// How weights are updated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rule {
    /// The optimiser.
    pub optimiser: Optimiser,
    /// The learning rate.
    pub rate: f32,
    /// The share of a weight that is added to its gradient.
    pub decay: f32,
}

impl Rule {
    /// Updates `weight`; `states` are the optimiser's state of it, and `update` the number of earlier updates.
    ///
    /// # Errors
    /// Operands of different lengths.
    pub(crate) fn apply(
        &self,
        update: u64,
        weight: &mut [f32],
        gradient: &[f32],
        states: [Option<&mut [f32]>; 2],
    ) -> Result<(), NumericsError> {
        let Self { rate, decay, .. } = *self;
        match (self.optimiser, states) {
            (Optimiser::Momentum, [Some(velocity), _]) => momentum(weight, gradient, velocity, rate, MOMENTUM, decay),
            (Optimiser::Adam, [Some(mean), Some(square)]) => {
                Adam { rate, decay, ..Adam::default() }.step(update + 1, weight, gradient, mean, square)
            }
            _ => sgd(weight, gradient, rate, decay),
        }
    }
}
