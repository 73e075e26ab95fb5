//! What can be set of `fedhybrid`.

use haversack_devices::units::Nanos;

use super::plan::Planner;
use super::predictor::Rule;
use super::{FedHybrid, predictor};
use crate::budget::BudgetRule;
use crate::entry::{Choice, Entry, Number, Numbers, OnOff, Parameter, Switch};
use crate::restore::{Layouts, Technique};

/// How scenarios name it, and what they can set.
pub static ENTRY: Entry = Entry {
    id: "fedhybrid",
    about: "the most memory saved per second gives way, by recomputation or by compression",
    description: "While memory is short, the tensor that saves the most memory for a second goes: by recomputation, by compression within an error bound, or to flash where that is allowed. On a phone in use it predicts the budget of the next round from page faults and kills.",
    citation: "Tam et al., SenSys 2024, section 4.3, algorithm 1",
    gives_way: true,
    parameters: &[
        &COMPRESSION,
        &RECOMPUTATION,
        &SWAPPING,
        &LAYOUT,
        &CROSSING,
        &PLANNER,
        &BUDGET,
        &EPOCH,
        &EPOCHS,
        &FAULT_PERCENT,
        &KILLS,
        &SHRINK_PERCENT,
    ],
    ..Entry::built_by(|settings| {
        let rule = settings.get(&BUDGET)?;
        let budget = BudgetParameters {
            rule: rule.unwrap_or_default(),
            epoch: settings.get(&EPOCH)?,
            epochs: settings.get(&EPOCHS)?,
            fault_percent: settings.get(&FAULT_PERCENT)?,
            kills: settings.get(&KILLS)?,
            shrink_percent: settings.get(&SHRINK_PERCENT)?,
        };
        let of_predictor: [&dyn Parameter; 3] = [&FAULT_PERCENT, &KILLS, &SHRINK_PERCENT];
        settings.only_with("budget=predicted", rule == Some(Rule::Predicted), &of_predictor)?;
        settings.only_with("budget", rule.is_some(), &[&EPOCH, &EPOCHS])?;
        Ok(Box::new(FedHybrid::new(Parameters {
            compression: settings.get(&COMPRESSION)?,
            recomputation: settings.get(&RECOMPUTATION)?,
            swapping: settings.get(&SWAPPING)?,
            layout: settings.get(&LAYOUT)?,
            crossing: settings.get(&CROSSING)?,
            planner: settings.get(&PLANNER)?,
            budget: rule.map(|_| budget),
        })))
    })
};

static COMPRESSION: Switch = Switch::new("compression", true, OnOff, "tensors may be compressed");

static RECOMPUTATION: Switch = Switch::new("recomputation", true, OnOff, "tensors may be computed again");

static SWAPPING: Switch = Switch::new("swapping", false, OnOff, "tensors may go to flash");

static LAYOUT: Switch = Switch::new("layout", true, OnOff, "recomputation costs its layout transformations");

static CROSSING: Switch =
    Switch::new("crossing", false, OnOff, "layout transformations cross from CPU to GPU and count twice");

pub(crate) static PLANNER: Choice<Planner> = Choice::new(
    "planner",
    Planner::Server,
    &[("server", Planner::Server), ("phone", Planner::Phone)],
    "where plans are made: by one core of the server, which sends them, or by a background core of the device",
)
.given();

static BUDGET: Choice<Rule, Option<Rule>> = Choice::new(
    "budget",
    None,
    &[("predicted", Rule::Predicted), ("initial", Rule::Initial), ("every-round", Rule::EveryRound)],
    "who decides the memory budget on a phone in use; not set, nobody does",
)
.on_a_phone();

static EPOCH: Number = Number::new(
    "epoch",
    10,
    Numbers::Within(1, 1_000_000),
    "iterations of an epoch, over whose time the predictor looks back",
);

static EPOCHS: Number = Number::new(
    "epochs",
    1,
    Numbers::Within(1, 1_000_000),
    "epochs of a round, before which a budget may be decided and after which the process gives its memory back",
);

static FAULT_PERCENT: Number = Number::new(
    "tp1",
    200,
    Numbers::Within(1, 1_000_000),
    "percent of the mean page faults beyond which it plans anew",
);

static KILLS: Number = Number::new("tp2", 3, Numbers::Within(0, 1_000_000), "kills beyond which it plans anew");

static SHRINK_PERCENT: Number =
    Number::new("ws_adj", 90, Numbers::Within(1, 100), "percent of its window that a new plan leaves");

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Who decides the memory budget on a phone in use; nobody where nothing is set.
    pub budget: Option<BudgetParameters>,
}

/// How the memory budget is decided on a phone in use (section 4.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetParameters {
    /// The rule.
    pub rule: Rule,
    /// Iterations of an epoch, for so long as which the predictor looks back at first.
    pub epoch: u64,
    /// Epochs of a round.
    pub epochs: u64,
    /// TP_1 in percent.
    pub fault_percent: u64,
    /// TP_2.
    pub kills: u64,
    /// WS_adj in percent.
    pub shrink_percent: u64,
}

impl BudgetParameters {
    /// The rule, of a run whose iterations take `iteration` each.
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
            compression: COMPRESSION.default,
            recomputation: RECOMPUTATION.default,
            swapping: SWAPPING.default,
            layout: LAYOUT.default,
            crossing: CROSSING.default,
            planner: PLANNER.default,
            budget: None,
        }
    }
}

impl Parameters {
    /// The techniques that may be used; of equals the earlier.
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
