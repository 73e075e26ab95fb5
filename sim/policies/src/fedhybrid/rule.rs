//! The rules by which the memory budget is decided: the [`Predictor`], and the two baselines of figure 19b, a budget from
//! the first measurement and one from the latest before every round.

use haversack_devices::units::{Bytes, Nanos};

use super::predictor::{Parameters, Predictor};
use crate::budget::{BudgetRule, Round, Sample, SampleError};

/// The rules that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rule {
    /// FedHybrid's predictor.
    #[default]
    Predicted,
    /// What was available at first, for good.
    Initial,
    /// What is available before each round.
    EveryRound,
}

impl Rule {
    /// The rule, before any measurement; the baselines have no parameters.
    pub fn start(self, parameters: Parameters) -> Box<dyn BudgetRule> {
        match self {
            Self::Predicted => Box::new(Predictor::new(parameters)),
            Self::Initial => Box::new(Measured { again: false, ..Measured::default() }),
            Self::EveryRound => Box::new(Measured { again: true, ..Measured::default() }),
        }
    }
}

/// A budget as measured: once, or before every round.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    again: bool,
    planned: bool,
    latest: Option<(Nanos, Bytes)>,
}

impl BudgetRule for Measured {
    fn observe(&mut self, sample: &Sample<'_>) -> Result<(), SampleError> {
        SampleError::check(sample, self.latest.map(|(time, _)| time))?;
        // The initial budget is the first that was measured, however late the first round begins.
        let kept = self.latest.filter(|_| !self.again).map_or(sample.available, |(_, first)| first);
        self.latest = Some((sample.time, kept));
        Ok(())
    }

    fn begin_round(&mut self) -> Option<Bytes> {
        let (_, available) = self.latest?;
        let wanted = self.again || !self.planned;
        self.planned = true;
        wanted.then_some(available)
    }

    fn end_round(&mut self, _round: Round) {}
}
