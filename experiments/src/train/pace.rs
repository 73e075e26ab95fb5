//! How long and how fast a network learns.

use super::schedule::Schedule;

/// Epochs and the learning rate of a training that names none: those by which LeNet-5 learns `glyphs`.
pub(super) const EPOCHS: u32 = 8;
pub(super) const LEARNING_RATE: f64 = 0.03;

/// How long and how fast a network learns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pace {
    /// How often all samples are learned from.
    pub(crate) epochs: u32,
    /// The learning rate at its highest.
    pub(crate) learning_rate: f64,
    /// How it changes.
    pub(super) schedule: Schedule,
    /// The schedule as it was written.
    pub(super) schedule_text: String,
}

/// A value that a pace cannot have: its key, what was expected, and what was found.
#[derive(Debug)]
pub(crate) struct WrongPace(pub(crate) &'static str, pub(crate) &'static str, pub(crate) String);

impl Pace {
    /// The pace of these keys; what is `None` has its default.
    ///
    /// # Errors
    /// No epoch, a rate that is no number above zero, a text that is no schedule.
    pub(crate) fn new(
        epochs: Option<u32>,
        learning_rate: Option<f64>,
        schedule: Option<String>,
    ) -> Result<Self, WrongPace> {
        let epochs = epochs.unwrap_or(EPOCHS);
        if epochs == 0 {
            return Err(WrongPace("epochs", "at least 1", "0".to_owned()));
        }
        let learning_rate = learning_rate.unwrap_or(LEARNING_RATE);
        if !(learning_rate.is_finite() && learning_rate > 0.0) {
            return Err(WrongPace("learning_rate", "a number above 0", learning_rate.to_string()));
        }
        let schedule_text = schedule.unwrap_or_else(|| "constant".to_owned());
        let wrong = |error| WrongPace("schedule", "a schedule", format!("another text: {error}"));
        Ok(Self { epochs, learning_rate, schedule: schedule_text.parse().map_err(wrong)?, schedule_text })
    }

    /// The learning rate at step `step`, of `steps` an epoch.
    pub(super) fn rate(&self, step: u64, steps: u64) -> f64 {
        self.learning_rate * self.schedule.factor(step, steps, self.epochs)
    }
}
