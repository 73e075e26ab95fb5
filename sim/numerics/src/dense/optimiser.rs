//! Updates of weights, as PyTorch's optimisers compute them.

use rayon::prelude::*;

use super::parallel::{BLOCK, blocks};
use crate::error::{Result, expect_length};

/// `w -= rate · (g + decay · w)`.
///
/// # Errors
/// A gradient of another length.
pub fn sgd(weight: &mut [f32], gradient: &[f32], rate: f32, decay: f32) -> Result {
    expect_length("the gradient of a weight", gradient.len(), weight.len())?;
    blocks(gradient, weight, |gradient, weight| {
        weight.iter_mut().zip(gradient).for_each(|(w, g)| *w -= rate * (g + decay * *w));
    });
    Ok(())
}

/// `v = momentum · v + g + decay · w; w -= rate · v`, with velocities that begin at zero.
///
/// # Errors
/// A gradient or velocity of another length.
pub fn momentum(
    weight: &mut [f32],
    gradient: &[f32],
    velocity: &mut [f32],
    rate: f32,
    momentum: f32,
    decay: f32,
) -> Result {
    expect_length("the gradient of a weight", gradient.len(), weight.len())?;
    expect_length("the velocity of a weight", velocity.len(), weight.len())?;
    weight.par_chunks_mut(BLOCK).zip(velocity.par_chunks_mut(BLOCK).zip(gradient.par_chunks(BLOCK))).for_each(
        |(weight, (velocity, gradient))| {
            for ((w, v), g) in weight.iter_mut().zip(velocity).zip(gradient) {
                *v = momentum * *v + (g + decay * *w);
                *w -= rate * *v;
            }
        },
    );
    Ok(())
}

/// Adam (Kingma and Ba 2015), with bias correction; weight decay is added to the gradient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// Learning rate.
    pub rate: f32,
    /// Decay of the mean of gradients.
    pub beta1: f32,
    /// Decay of the mean of their squares.
    pub beta2: f32,
    /// Added to the root of the mean square.
    pub epsilon: f32,
    /// Share of the weight that is added to its gradient.
    pub decay: f32,
}

impl Default for Adam {
    /// PyTorch's defaults: rate 1e-3, betas 0.9 and 0.999, epsilon 1e-8, no weight decay.
    fn default() -> Self {
        Self { rate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, decay: 0.0 }
    }
}

impl Adam {
    /// Update number `step`, from 1, of a weight and its two moving averages, which begin at zero.
    ///
    /// # Errors
    /// An operand of another length than the weight.
    pub fn step(
        &self,
        step: u64,
        weight: &mut [f32],
        gradient: &[f32],
        mean: &mut [f32],
        square: &mut [f32],
    ) -> Result {
        expect_length("the gradient of a weight", gradient.len(), weight.len())?;
        expect_length("the mean gradient of a weight", mean.len(), weight.len())?;
        expect_length("the mean squared gradient of a weight", square.len(), weight.len())?;
        let Self { beta1, beta2, epsilon, decay, .. } = *self;
        let unbias = |beta: f32| 1.0 - f64::from(beta).powi(i32::try_from(step.max(1)).unwrap_or(i32::MAX));
        let size = (f64::from(self.rate) / unbias(beta1)) as f32;
        let root = unbias(beta2).sqrt() as f32;
        let moments = mean.par_chunks_mut(BLOCK).zip(square.par_chunks_mut(BLOCK));
        weight.par_chunks_mut(BLOCK).zip(gradient.par_chunks(BLOCK)).zip(moments).for_each(
            |((weight, gradient), (mean, square))| {
                for (((w, g), m), v) in weight.iter_mut().zip(gradient).zip(mean).zip(square) {
                    let g = g + decay * *w;
                    *m += (g - *m) * (1.0 - beta1);
                    *v = beta2 * *v + (1.0 - beta2) * g * g;
                    *w -= size * *m / (v.sqrt() / root + epsilon);
                }
            },
        );
        Ok(())
    }
}
