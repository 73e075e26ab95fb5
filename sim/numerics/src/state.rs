//! The state that training carries from one mini-batch to the next: weights, running averages
//! and the optimiser's state.

use haversack_workloads::{Element, FP32, Network, Role, StorageId, Tensor, TensorId, WorkloadError};

use crate::{Contents, Meter};

/// The contents of the tensors of the graph that are resident before forward and after the update.
#[derive(Clone, Debug)]
#[must_use]
pub struct State {
    tensors: Vec<(TensorId, Contents)>,
}

impl State {
    /// A state of tensors and their contents.
    pub const fn of(tensors: Vec<(TensorId, Contents)>) -> Self {
        Self { tensors }
    }

    /// The tensors, by id, in the order of the graph.
    pub fn tensors(&self) -> &[(TensorId, Contents)] {
        &self.tensors
    }

    /// The same, mutable.
    pub fn tensors_mut(&mut self) -> &mut Vec<(TensorId, Contents)> {
        &mut self.tensors
    }

    /// The values of a tensor; `None` if it is not part of the state, or has integers.
    pub fn values(&self, tensor: TensorId) -> Option<&[f32]> {
        self.tensors.iter().find(|(id, _)| *id == tensor).and_then(|(_, contents)| match contents {
            Contents::Floats(values) => Some(&**values),
            _ => None,
        })
    }
}

/// The contents of `tensor` before training, as in the network's `storage`; `None` if an operator's
/// description gives its size only.
pub(crate) fn before_training(
    network: &Network,
    storage: StorageId,
    tensor: &Tensor,
    seed: u64,
    meter: &Meter,
) -> Result<Option<Contents>, WorkloadError> {
    Ok(match tensor.role {
        Role::Parameter { .. } => Some(Contents::Floats(meter.copy(&network.initial_floats(storage, seed)?))),
        // Masks that an operator's description replaces have no values.
        Role::Buffer if tensor.element == Element::Whole => {
            network.initial_integers(storage).ok().map(|integers| Contents::Integers(meter.copy(&integers)))
        }
        Role::Buffer => network.initial_floats(storage, seed).ok().map(|values| Contents::Floats(meter.copy(&values))),
        _ => Some(Contents::Floats(meter.zeros((tensor.bytes.at(1) / FP32) as usize))),
    })
}
