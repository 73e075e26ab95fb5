//! What training carries from one mini-batch to the next: weights, running averages and the optimiser's state.

use haversack_workloads::training_graph::Element;
use haversack_workloads::{Network, Role, TensorId, TrainingGraph};

use crate::memory::Contents;
use crate::meter::Meter;

/// What is resident before forward and after the update, by tensor of the graph.
#[derive(Clone, Debug)]
pub struct State {
    tensors: Vec<(TensorId, Contents)>,
}

impl State {
    /// Weights as `network` initialises them with `seed`, running averages of nothing, and an optimiser that has seen
    /// nothing.
    #[must_use]
    pub fn initial(network: &Network, graph: &TrainingGraph, seed: u64, meter: &Meter) -> Self {
        let parameters = network.parameters.iter().map(|parameter| (parameter.storage, vec![0.0; parameter.elements as usize]));
        let parameters: std::collections::HashMap<TensorId, Vec<f32>> = parameters.collect();
        let states = (0..).zip(&graph.tensors).filter(|(_, tensor)| tensor.role.is_state());
        let contents = |(id, tensor): (TensorId, &haversack_workloads::training_graph::Tensor)| {
            if let Some(values) = parameters.get(&id) {
                return (id, Contents::Floats(meter.copy(values)));
            }
            if tensor.element == Element::Whole {
                let mut positions = meter.integers(tensor.bytes.at(1) as usize / 8);
                positions.iter_mut().zip(0..).for_each(|(position, place)| *position = place);
                return (id, Contents::Integers(positions));
            }
            let mut values = meter.zeros(tensor.bytes.at(1) as usize / 4);
            if tensor.role == Role::Buffer && tensor.name.ends_with("running_var") {
                values.fill(1.0);
            }
            (id, Contents::Floats(values))
        };
        Self { tensors: states.map(contents).collect() }
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
            Contents::Integers(_) => None,
        })
    }
}
