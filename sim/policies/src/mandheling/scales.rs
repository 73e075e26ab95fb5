//! How a layer's scale factor changes where no data say: drawn, batch by batch (figure 4).
//!
//! A scale factor is the number of bits by which the largest magnitude of a tensor exceeds seven (listing 1): log₂ of
//! that magnitude, rounded up. Late in training the logarithm keeps its level, and mini-batches scatter around it, each
//! for itself. The factor jumps between the whole numbers next to the level: seldom where that lies halfway between
//! two, in half of the batches where it is one. How far mini-batches scatter was measured on a network that trains in
//! integers, by what the tensor is; where levels lie between whole numbers is drawn.

use haversack_devices::stack::FactorConstants;
use haversack_engine::Stream;
use haversack_workloads::Role;
use haversack_workloads::training_graph::Tensor;
use rand::RngExt;
use rand_distr::StandardNormal;

/// The whole number below each level. Nobody reads more of a factor than whether it is another one, but none is negative.
const BELOW: f64 = 8.0;

/// The scale factor of one layer's tensor, batch by batch.
#[derive(Debug)]
#[must_use]
pub struct ScaleProcess {
    stream: Stream,
    level: f64,
    /// The standard deviation around the level.
    scatter: f64,
}

impl ScaleProcess {
    /// The factor of `tensor` under `seed`; equal names have equal draws.
    pub fn of(tensor: &Tensor, seed: u64, constants: &FactorConstants) -> Self {
        let own = match tensor.role {
            Role::Gradient => constants.input_gradient.as_ref(),
            Role::ParameterGradient => constants.weight_gradient.as_ref(),
            _ => None,
        };
        let scatter = own.unwrap_or(&constants.output);
        let mut stream = Stream::new(seed, &tensor.name, "scale factor");
        let level = BELOW + stream.random::<f64>();
        Self { stream, level, scatter: scatter.value.0 }
    }

    /// The factor of the next batch, at first the first.
    pub fn next_batch(&mut self) -> u32 {
        let drawn: f64 = self.stream.sample(StandardNormal);
        // A cast of what lies below zero is zero.
        (self.level + self.scatter * drawn).ceil() as u32
    }
}
