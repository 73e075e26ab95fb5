//! What training carries from one mini-batch to the next: weights, running averages and the optimiser's state.

use haversack_workloads::network::FP32;
use haversack_workloads::training_graph::Element;
use haversack_workloads::{Network, Role, TensorId, TrainingGraph, WorkloadError};

use crate::memory::Contents;
use crate::meter::Meter;

/// What is resident before forward and after the update, by tensor of the graph.
#[derive(Clone, Debug)]
pub struct State {
    tensors: Vec<(TensorId, Contents)>,
}

impl State {
    /// What `network` holds before training, drawn by `seed`, and an optimiser that has seen nothing.
    ///
    /// # Errors
    /// A weight whose values are not known beforehand.
    pub fn initial(network: &Network, graph: &TrainingGraph, seed: u64, meter: &Meter) -> Result<Self, WorkloadError> {
        let mut tensors = Vec::new();
        for (id, tensor) in (0..).zip(&graph.tensors).filter(|(_, tensor)| tensor.role.is_state()) {
            let contents = match tensor.role {
                Role::Parameter { .. } => Contents::Floats(meter.copy(&network.initial_floats(id, seed)?)),
                Role::Buffer if tensor.element == Element::Whole => match network.initial_integers(id) {
                    Ok(integers) => Contents::Integers(meter.copy(&integers)),
                    // Masks that an operator's own description stands for.
                    Err(_) => continue,
                },
                Role::Buffer => match network.initial_floats(id, seed) {
                    Ok(values) => Contents::Floats(meter.copy(&values)),
                    Err(_) => continue,
                },
                _ => Contents::Floats(meter.zeros((tensor.bytes.at(1) / FP32) as usize)),
            };
            tensors.push((id, contents));
        }
        Ok(Self { tensors })
    }

    /// Tensors with what they hold.
    #[must_use]
    pub const fn of(tensors: Vec<(TensorId, Contents)>) -> Self {
        Self { tensors }
    }

    /// The tensors, by id, in the order of the graph.
    #[must_use]
    pub fn tensors(&self) -> &[(TensorId, Contents)] {
        &self.tensors
    }

    /// The same to be changed.
    pub fn tensors_mut(&mut self) -> &mut Vec<(TensorId, Contents)> {
        &mut self.tensors
    }

    /// The values of a tensor; `None` if it is no state, or holds integers.
    #[must_use]
    pub fn values(&self, tensor: TensorId) -> Option<&[f32]> {
        self.tensors.iter().find(|(id, _)| *id == tensor).and_then(|(_, contents)| match contents {
            Contents::Floats(values) => Some(&**values),
            Contents::Integers(_) | Contents::Eight(_) => None,
        })
    }
}
