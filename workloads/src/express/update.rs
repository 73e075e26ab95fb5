//! The update of the weights, composed of sweeps over a weight as MNN's optimisers write it.

use haversack_devices::work::OperatorKind;

use super::expression::DataFormat;
use super::writer::ExpressionWriter;
use crate::autograd::Optimiser;
use crate::network::FP32;
use crate::shape::{Extent, Shape};
use crate::training_graph::{Phase, Role, Tensor};

/// What an update sweeps.
struct Sweeps {
    /// Sweeps with one operand as large as the weight: one is read and one written.
    unary: u64,
    /// Sweeps with two: two are read and one written.
    binary: u64,
    /// Values of state a weight.
    states: u64,
}

impl Sweeps {
    /// The sweeps of `optimiser`.
    const fn of(optimiser: Optimiser) -> Self {
        match optimiser {
            // g ← d·w + g; h ← r·g + m·h; w ← w − h. The momentum h is kept and swept even where m is zero.
            Optimiser::Sgd | Optimiser::Momentum => Self { unary: 3, binary: 3, states: 1 },
            // g ← d·w + g; h ← b·h + (1 − b)·g; k ← c·k + (1 − c)·g²; w ← w − r·(h / (√k + ε)).
            Optimiser::Adam => Self { unary: 9, binary: 5, states: 2 },
        }
    }
}

impl ExpressionWriter<'_> {
    /// Writes one node a trained weight, over all of its sweeps.
    pub(super) fn update(&mut self, optimiser: Optimiser) {
        (self.writer.phase, self.writer.origin) = (Phase::Update, None);
        let sweeps = Sweeps::of(optimiser);
        for (place, parameter) in self.network.parameters.iter().enumerate() {
            let weight = self.weights[place];
            let Some(gradient) = self.gradients[weight as usize] else { continue };
            let (mut inputs, mut outputs) = (vec![weight, gradient], vec![weight]);
            let (elements, shape) = (Extent::fixed(parameter.elements), Shape::fixed(&[parameter.elements]));
            for _ in 0..sweeps.states {
                let name = format!("{}.state", parameter.name);
                let state = self.writer.tensor(Tensor::new(name, elements * FP32, Role::OptimiserState));
                let state = self.look(state, shape.clone(), DataFormat::Rows);
                inputs.push(state);
                outputs.push(state);
            }
            let name = format!("{}.update", parameter.name);
            let work = self.push(&name, OperatorKind::Optimiser, &inputs, &outputs);
            work.flops = elements * (sweeps.unary + sweeps.binary);
            work.dram = elements * FP32 * (2 * sweeps.unary + 3 * sweeps.binary);
        }
    }
}
