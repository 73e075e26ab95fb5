//! Measured importance of tensors.
//!
//! For the gradient of a weight: the sum of its squares: this is how fast the loss falls at a small step along it
//! (Huang et al., MobiSys 2023, section 3). For a saved tensor: the variance that storing it with one step over its
//! range adds to the results computed from it in backward: the variance of a step, times the squares of the gradient
//! that it is multiplied with, times the products that each result is a sum of (Chen et al., ICML 2021, section 3; Liu
//! et al., ICML 2022, section 4). Policies see moving averages, a tenth of which is the newest iteration's (DAF,
//! section 3.4).

use haversack_numerics::{Program, ProgramError};
use haversack_workloads::{Need, Node, Phase, Role, TensorId, TrainingGraph};

use crate::tensors::Carried;

/// The weight of a new importance in the moving average.
const NEWEST: f64 = 0.1;

/// Importance measurements of a run.
pub(crate) struct Importance {
    tensors: Vec<Measured>,
}

/// Measurements of one tensor.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    role: Option<Role>,
    /// The last forward node that writes it.
    writer: Option<u32>,
    /// The variance of one step over its range, in the current iteration.
    step: Option<f64>,
    /// Its importance in the current iteration.
    now: Option<f64>,
    /// The moving average; `None` if it was never measured.
    average: Option<f64>,
}

impl Importance {
    /// Continues from the moving averages of earlier iterations, if any.
    pub(crate) fn new(graph: &TrainingGraph, program: &Program, averages: &[f64]) -> Self {
        let mut tensors: Vec<Measured> = graph
            .tensors
            .iter()
            .enumerate()
            .map(|(id, tensor)| Measured {
                role: Some(tensor.role),
                average: averages.get(id).copied().filter(|average| *average > 0.0),
                ..Measured::default()
            })
            .collect();
        for node in graph.nodes.iter().filter(|node| node.phase == Phase::Forward) {
            for &output in node.outputs.iter().filter(|&&output| !program.is_integer(output)) {
                tensors[output as usize].writer = node.step;
            }
        }
        Self { tensors }
    }

    /// Moving averages by tensor, zero where none was measured; empty without any measurement.
    pub(crate) fn averages(&self) -> impl Iterator<Item = f64> + '_ {
        let any = self.tensors.iter().any(|tensor| tensor.average.is_some());
        self.tensors.iter().filter(move |_| any).map(|tensor| tensor.average.unwrap_or(0.0))
    }

    /// A node was computed.
    pub(crate) fn measure(&mut self, node: &Node, carried: &Carried<'_, '_>) -> Result<(), ProgramError> {
        match node.phase {
            Phase::Forward => {
                for &output in &node.outputs {
                    let tensor = &mut self.tensors[output as usize];
                    if tensor.writer == node.step && tensor.writer.is_some() {
                        tensor.step = carried.spread(output);
                    }
                }
            }
            Phase::Backward => self.measure_reading(node, carried)?,
            Phase::Update => {
                if let Some(&gradient) = node.inputs.get(1) {
                    self.tensors[gradient as usize].now = Some(carried.squares(gradient)?);
                }
            }
        }
        Ok(())
    }

    /// Measures the saved values that a backward node multiplies, from the gradient it multiplies them with.
    fn measure_reading(&mut self, node: &Node, carried: &Carried<'_, '_>) -> Result<(), ProgramError> {
        let is_saved = |tensor: TensorId| self.tensors[tensor as usize].role == Some(Role::Activation);
        let read = |&tensor: &TensorId| is_saved(tensor) && node.need_of(tensor) == Need::Values;
        let saved: Vec<TensorId> = node.inputs.iter().copied().filter(read).collect();
        let gradient = node.inputs.first().filter(|&&first| self.tensors[first as usize].role == Some(Role::Gradient));
        let (Some(&gradient), false) = (gradient, saved.is_empty()) else { return Ok(()) };
        let squares = carried.squares(gradient)?;
        let is_weights = |&output: &TensorId| self.tensors[output as usize].role == Some(Role::ParameterGradient);
        // Each value of a gradient of a weight is a sum over all that the gradient is multiplied with.
        let products = match node.work.product {
            Some(product) if product.is_dense() && node.outputs.iter().any(is_weights) => {
                product.inputs * product.taps[0] * product.taps[1]
            }
            _ => 1,
        };
        for tensor in saved {
            let measured = &mut self.tensors[tensor as usize];
            if let Some(step) = measured.step {
                *measured.now.get_or_insert(0.0) += step * squares * products as f64;
            }
        }
        Ok(())
    }

    /// Discards the measurements of the current iteration.
    pub(crate) fn forget_iteration(&mut self) {
        self.tensors.iter_mut().for_each(|tensor| (tensor.step, tensor.now) = (None, None));
    }

    /// Moves the averages towards the new measurements.
    pub(crate) fn end_iteration(&mut self) {
        for tensor in &mut self.tensors {
            tensor.step = None;
            if let Some(now) = tensor.now.take() {
                let average = tensor.average.get_or_insert(now);
                *average += NEWEST * (now - *average);
            }
        }
    }
}
