//! Cross-entropy with labels: log-softmax, then the mean negative log-likelihood.

use super::embedding::expect_indices;
use super::sums::largest;
use super::transcendental::{exp, ln};
use crate::error::{Result, expect_length};

/// The result of a node that computes a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loss {
    /// The mean over its rows.
    pub mean: f64,
    /// The mean over its rows of the loss's square.
    pub mean_square: f64,
    /// Rows whose largest score is that of their label.
    pub correct: usize,
    /// Rows.
    pub rows: usize,
}

/// Writes the log-softmax of each row of `classes` logits, which the backward pass needs, and returns the loss.
///
/// # Errors
/// A label that names no class, or an operand of the wrong length.
pub fn forward(logits: &[f32], classes: usize, labels: &[i64], log_softmax: &mut [f32]) -> Result<Loss> {
    expect_length("the logits of a loss", logits.len(), labels.len() * classes)?;
    expect_length("the log-softmax or gradient of a loss", log_softmax.len(), logits.len())?;
    expect_indices("label", labels, classes)?;
    let (mut sum, mut squares, mut correct) = (0.0_f64, 0.0_f64, 0);
    if classes > 0 {
        let rows = logits.chunks_exact(classes).zip(log_softmax.chunks_exact_mut(classes));
        for ((x, y), &label) in rows.zip(labels) {
            let most = largest(x);
            let total: f32 = x.iter().map(|x| exp(x - most)).sum();
            let log_total = ln(total);
            y.iter_mut().zip(x).for_each(|(y, x)| *y = x - most - log_total);
            let loss = -f64::from(y[label as usize]);
            sum += loss;
            squares += loss * loss;
            correct += usize::from(x.iter().position(|&x| x >= most) == Some(label as usize));
        }
    }
    let mean = |sum: f64| f64::from((sum / labels.len().max(1) as f64) as f32);
    Ok(Loss { mean: mean(sum), mean_square: mean(squares), correct, rows: labels.len() })
}
