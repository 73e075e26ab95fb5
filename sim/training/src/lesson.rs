//! The data that a run learns from, and the training state.

use haversack_devices::ensure;
use haversack_numerics::{Contents, Loss, Meter, MiniBatch, Pass, Program, Rule, State};
use haversack_policies::Learned;
use haversack_workloads::{Role, TensorId};

use crate::error::{Result, RunError};
use crate::importance::Importance;

/// The training state and its progress.
#[derive(Debug)]
pub struct Lesson<'a> {
    /// The computation of every node of the graph.
    pub program: &'a Program,
    /// Weights, running averages and the optimiser's state.
    pub state: State,
    /// Who counts the bytes of buffers.
    pub meter: Meter,
    /// The seed of random masks.
    pub seed: u64,
    /// The number of updates so far.
    pub update: u64,
    /// Moving averages of the importance of tensors, by tensor; empty if none was measured.
    pub importance: Vec<f64>,
    /// The scale factors that integer training has last taken, by tensor; empty if none was.
    pub factors: Vec<Option<u32>>,
    /// Parameters that the policy has learned from the data.
    pub learned: Learned,
}

/// A mini-batch that a run learns from.
pub(crate) struct Learning<'a> {
    pub(crate) program: &'a Program,
    batch: MiniBatch,
    pub(crate) pass: Pass,
    /// The loss of the current micro-batch.
    part: Loss,
    /// The totals of those that have ended: the sum over rows, the sum of squares, the number of right answers, rows.
    sum: f64,
    squares: f64,
    correct: usize,
    rows: usize,
    /// On a phone in use, the state at the start of the iteration.
    kept: Vec<(TensorId, Contents)>,
    /// Importance measurements; `None` if not requested.
    pub(crate) importance: Option<Importance>,
}

impl<'a> Learning<'a> {
    pub(crate) fn new(lesson: &Lesson<'a>, importance: Option<Importance>) -> Self {
        Self {
            program: lesson.program,
            batch: MiniBatch::default(),
            pass: Pass::whole(0, lesson.update, lesson.seed, Rule::default()),
            part: Loss::default(),
            sum: 0.0,
            squares: 0.0,
            correct: 0,
            rows: 0,
            kept: Vec::new(),
            importance,
        }
    }

    /// The next mini-batch.
    pub(crate) fn begin(&mut self, batch: MiniBatch, rule: Rule) {
        self.pass = Pass { batch: batch.len, first: 0, rule, ..self.pass };
        self.batch = batch;
        (self.part, self.sum, self.squares, self.correct, self.rows) = (Loss::default(), 0.0, 0.0, 0, 0);
    }

    /// Saves the state from which a new process continues after a kill.
    pub(crate) fn keep(&mut self, state: Vec<(TensorId, Contents)>) {
        self.kept = state;
    }

    /// Restarts the mini-batch; returns the saved state.
    pub(crate) fn begin_again(&mut self) -> Vec<(TensorId, Contents)> {
        (self.part, self.sum, self.squares, self.correct, self.rows) = (Loss::default(), 0.0, 0.0, 0, 0);
        self.importance.iter_mut().for_each(Importance::forget_iteration);
        self.kept.clone()
    }

    /// A micro-batch of `samples` samples begins at sample `first`, or continues with fewer.
    pub(crate) fn take(&mut self, first: u64, samples: u64) {
        (self.pass.first, self.pass.samples) = (first as usize, samples as usize);
    }

    /// The contents of an input of the graph for the micro-batch.
    pub(crate) fn given(&self, role: Role, meter: &Meter) -> Contents {
        let range = self.pass.first..self.pass.first + self.pass.samples;
        if role == Role::Target { self.batch.labels_of(range, meter) } else { self.batch.samples_of(range, meter) }
    }

    /// The random draw of the micro-batch that begins at sample `first`.
    pub(crate) const fn draw(&self, first: u64) -> u64 {
        self.pass.seed
            ^ self.pass.update.wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ first.wrapping_mul(0xD1B5_4A32_D192_ED03)
    }

    /// The loss of the micro-batch.
    pub(crate) const fn note(&mut self, loss: Loss) {
        self.part = loss;
    }

    /// A micro-batch has ended.
    pub(crate) fn end_part(&mut self) {
        let Loss { mean, mean_square, correct, rows } = std::mem::take(&mut self.part);
        self.sum += mean * rows as f64;
        self.squares += mean_square * rows as f64;
        self.correct += correct;
        self.rows += rows;
    }

    /// The weights are updated; returns the loss of the mini-batch.
    pub(crate) fn end(&mut self) -> Loss {
        self.pass.update += 1;
        self.importance.iter_mut().for_each(Importance::end_iteration);
        let mean = |sum: f64| sum / self.rows.max(1) as f64;
        Loss { mean: mean(self.sum), mean_square: mean(self.squares), correct: self.correct, rows: self.rows }
    }

    /// `layer` has a value that is not finite.
    pub(crate) const fn diverged(&self, layer: String) -> RunError {
        RunError::Diverged { update: self.pass.update, layer }
    }

    /// Returns an error for a NaN or infinite loss.
    pub(crate) fn check(&self, loss: Loss, layer: impl FnOnce() -> String) -> Result {
        ensure!(loss.mean.is_finite(), self.diverged(layer()));
        Ok(())
    }
}
