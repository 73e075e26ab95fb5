//! Parameters of `fedhybrid`.

use haversack_devices::units::Nanos;
use serde::Deserialize;

use super::plan::Planner;
use super::predictor;
use super::predictor::Rule;
use crate::PolicyError;
use crate::budget::BudgetRule;
use crate::entry::Settings;
use crate::restore::{Layouts, Technique};

/// Parameters of `fedhybrid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[must_use]
pub struct Parameters {
    /// Whether tensors may be compressed.
    pub compression: bool,
    /// Whether tensors may be computed again.
    pub recomputation: bool,
    /// Whether tensors may be swapped: off in the paper, whose figure 7 shows why.
    pub swapping: bool,
    /// Whether layout transformations count (the sum of equation 6).
    pub layout: bool,
    /// Whether layout transformations cross from one processor to another (ψ = 2).
    pub crossing: bool,
    /// Where plans are made.
    pub planner: Planner,
    /// The rule for the memory budget on a phone in use; `None` if unset.
    #[serde(skip)]
    pub budget: Option<BudgetParameters>,
}

/// How the memory budget is decided on a phone in use (section 4.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct BudgetParameters {
    /// The rule.
    #[serde(rename = "budget")]
    pub rule: Rule,
    /// Iterations of an epoch, whose duration is the predictor's initial window.
    pub epoch: u64,
    /// Epochs of a round.
    pub epochs: u64,
    /// TP_1 in percent.
    #[serde(rename = "tp1")]
    pub fault_percent: u64,
    /// TP_2.
    #[serde(rename = "tp2")]
    pub kills: u64,
    /// WS_adj in percent.
    #[serde(rename = "ws_adj")]
    pub shrink_percent: u64,
}

impl BudgetParameters {
    /// Starts the rule for a run whose iterations take `iteration` each.
    pub(super) fn start(self, iteration: Nanos) -> Box<dyn BudgetRule> {
        let Self { rule, epoch, fault_percent, kills, shrink_percent, .. } = self;
        let own = predictor::Parameters::for_epoch(Nanos(iteration.0.saturating_mul(epoch)));
        rule.start(predictor::Parameters { fault_percent, kills, shrink_percent, ..own })
    }

    /// Iterations of a round.
    pub(super) const fn round(self) -> u64 {
        self.epoch.saturating_mul(self.epochs)
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            compression: true,
            recomputation: true,
            swapping: false,
            layout: true,
            crossing: false,
            planner: Planner::Server,
            budget: None,
        }
    }
}

impl Parameters {
    /// Reads the parameters from the settings.
    pub(crate) fn read(settings: &Settings<'_>) -> Result<Self, PolicyError> {
        let rule: Option<Rule> = settings.get("budget")?;
        settings.only_with("budget=predicted", rule == Some(Rule::Predicted), &["tp1", "tp2", "ws_adj"])?;
        settings.only_with("budget", rule.is_some(), &["epoch", "epochs"])?;
        Ok(Self { budget: rule.map(|_| settings.all()).transpose()?, ..settings.all()? })
    }

    /// The techniques that may be used; earlier ones win ties.
    pub(super) fn allowed(self) -> impl Iterator<Item = Technique> {
        let all = [
            (self.compression, Technique::Compress),
            (self.recomputation, Technique::Recompute),
            (self.swapping, Technique::Swap),
        ];
        all.into_iter().filter(|(allowed, _)| *allowed).map(|(_, technique)| technique)
    }

    pub(super) const fn layouts(self) -> Layouts {
        match (self.layout, self.crossing) {
            (false, _) => Layouts::Overlooked,
            (true, false) => Layouts::Counted { times: 1 },
            (true, true) => Layouts::Counted { times: 2 },
        }
    }
}
