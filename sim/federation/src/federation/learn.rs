//! What is learned in a round: the other half of a federation, which needs data.

use crate::round::Part;

/// An update that is taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The phone.
    pub phone: u32,
    /// How wide a network it trained: a place in [`crate::work::WIDTHS`].
    pub width: u8,
}

impl Arrived {
    pub(super) const fn of(part: &Part) -> Self {
        Self { phone: part.phone, width: part.job.width }
    }
}

/// What a round brings.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Its number, from one.
    pub round: u32,
    /// Updates, in the order in which phones were selected.
    pub arrived: &'a [Arrived],
}

/// What is learned in a round.
pub trait Learn {
    /// Takes in what has arrived.
    ///
    /// # Errors
    /// What stops the federation, in words.
    fn learn(&mut self, step: &Step<'_>) -> Result<Learned, String>;
}

/// What a round has taught.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learned {
    /// Of each update the root of the mean square of its phone's losses.
    pub losses: Vec<f64>,
    /// The share of test samples that are answered rightly.
    pub accuracy: Option<f64>,
}

/// Time alone: all samples of all phones have a loss of one, so that data tell no phone from another but by their number.
#[derive(Clone, Copy, Debug)]
pub struct TimingOnly;

impl Learn for TimingOnly {
    fn learn(&mut self, step: &Step<'_>) -> Result<Learned, String> {
        Ok(Learned { losses: vec![1.0; step.arrived.len()], accuracy: None })
    }
}
