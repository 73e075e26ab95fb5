//! What a run that carries data learns from, and what it has learned.

use haversack_devices::ensure;
use haversack_numerics::{Contents, Loss, Meter, MiniBatch, Pass, Program, Rule, State};
use haversack_policies::Learned;
use haversack_workloads::{Role, TensorId};

use crate::error::{Result, RunError};
use crate::importance::Importance;

/// What is trained, and how far it has come.
#[derive(Debug)]
pub struct Lesson<'a> {
    /// What every node of the graph computes.
    pub program: &'a Program,
    /// Weights, running averages and the optimiser's state.
    pub state: State,
    /// Who counts the bytes of buffers.
    pub meter: Meter,
    /// What random masks are drawn by.
    pub seed: u64,
    /// The number of updates so far.
    pub update: u64,
    /// Moving averages of the importance of tensors, by tensor; empty if none was measured.
    pub importance: Vec<f64>,
    /// The scale factors that integer training has last taken, by tensor; empty if none was.
    pub factors: Vec<Option<u32>>,
    /// What the policy has learned of the data.
    pub learned: Learned,
}

/// A mini-batch that a run learns from.
pub(crate) struct Learning<'a> {
    pub(crate) program: &'a Program,
    batch: MiniBatch,
    pub(crate) pass: Pass,
    /// The loss of the micro-batch under way.
    part: Loss,
    /// That of those that have ended: the sum over rows, that of squares, the number of right answers, rows.
    sum: f64,
    squares: f64,
    correct: usize,
    rows: usize,
    /// The state as the iteration began, on a phone in use.
    kept: Vec<(TensorId, Contents)>,
    /// What is measured of importance; `None` if nobody asks.
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

    /// The state that a process goes on from which takes the place of one that was ended.
    pub(crate) fn keep(&mut self, state: Vec<(TensorId, Contents)>) {
        self.kept = state;
    }

    /// The mini-batch begins anew; returns the state that was kept.
    pub(crate) fn begin_again(&mut self) -> Vec<(TensorId, Contents)> {
        (self.part, self.sum, self.squares, self.correct, self.rows) = (Loss::default(), 0.0, 0.0, 0, 0);
        self.importance.iter_mut().for_each(Importance::forget_iteration);
        self.kept.clone()
    }

    /// A micro-batch of `samples` samples begins at sample `first`, or goes on with fewer.
    pub(crate) fn take(&mut self, first: u64, samples: u64) {
        (self.pass.first, self.pass.samples) = (first as usize, samples as usize);
    }

    /// What an input of the graph holds for the micro-batch.
    pub(crate) fn given(&self, role: Role, meter: &Meter) -> Contents {
        let range = self.pass.first..self.pass.first + self.pass.samples;
        if role == Role::Target { self.batch.labels_of(range, meter) } else { self.batch.samples_of(range, meter) }
    }

    /// What is drawn by in the micro-batch that begins at sample `first`.
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

    /// A loss that is no number any more is an error.
    pub(crate) fn check(&self, loss: Loss, layer: impl FnOnce() -> String) -> Result {
        ensure!(loss.mean.is_finite(), self.diverged(layer()));
        Ok(())
    }
}
