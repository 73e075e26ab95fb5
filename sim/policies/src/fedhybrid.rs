//! `fedhybrid`: recomputation and compression by what each saves for its time (Tam et al., SenSys 2024, section 4.3).
//!
//! While memory is short (algorithm 1), the tensor with the largest MPS by any technique goes; by recomputation where
//! that has the larger MPS of the two, else by compression. FLT runs from the node under way to the next that reads
//! the tensor, at the times that were profiled. RC of a recomputation (equation 6) is the time of the tensor's
//! operator and of all that has to be computed for it again because it is gone too or will be by then, and ψ times that of layout
//! transformations: those that lead back to the operator whose result they transformed, and those that lead on to the
//! operator that takes the tensor. Algorithm 1 plans on a server with the same times; deciding as memory runs short
//! comes to the same plan.
//!
//! A technique that the run cannot offer (no codec, no flash) is not used; where none is left, the policy refuses.

pub mod mps;
pub mod predictor;

use haversack_devices::units::{Bytes, Nanos};
use haversack_workloads::{NodeId, TensorId};

use crate::budget::{BudgetRule, Rule};
use crate::entry::{Choice, Entry, Number, Numbers, Switch};
use crate::error::PolicyError;
use crate::falling::Falling;
use crate::policy::{Policy, Relief, Schedule, Want};
use crate::regain::{Layouts, Moment, Regaining, Technique, absence, presence, saved_alone};
use crate::setting::Setting;
use crate::view::MemoryView;
use mps::Terms;

/// How scenarios name it, and what they can set.
pub static ENTRY: Entry = Entry {
    id: "fedhybrid",
    about: "the most memory saved per second gives way, by recomputation or by compression",
    citation: "Tam et al., SenSys 2024",
    stores_floats: false,
    engine: None,
    parameters: &[
        &COMPRESSION,
        &RECOMPUTATION,
        &SWAPPING,
        &LAYOUT,
        &CROSSING,
        &BUDGET,
        &EPOCH,
        &FAULT_PERCENT,
        &KILLS,
        &SHRINK_PERCENT,
    ],
    build: |settings| {
        let rule = settings.get(&BUDGET)?;
        let budget = BudgetParameters {
            rule: rule.unwrap_or_default(),
            epoch: settings.get(&EPOCH)?,
            fault_percent: settings.get(&FAULT_PERCENT)?,
            kills: settings.get(&KILLS)?,
            shrink_percent: settings.get(&SHRINK_PERCENT)?,
        };
        Ok(Box::new(FedHybrid::new(Parameters {
            compression: settings.get(&COMPRESSION)?,
            recomputation: settings.get(&RECOMPUTATION)?,
            swapping: settings.get(&SWAPPING)?,
            layout: settings.get(&LAYOUT)?,
            crossing: settings.get(&CROSSING)?,
            budget: rule.map(|_| budget),
        })))
    },
};

static COMPRESSION: Switch = Switch::new("compression", true, "{}: tensors may be compressed");

static RECOMPUTATION: Switch = Switch::new("recomputation", true, "{}: tensors may be computed again");

static SWAPPING: Switch = Switch::new("swapping", false, "{}: tensors may go to flash");

static LAYOUT: Switch = Switch::new("layout", true, "{}: recomputation costs its layout transformations");

static CROSSING: Switch =
    Switch::new("crossing", false, "{}: layout transformations cross from CPU to GPU and count twice");

static BUDGET: Choice<Rule, Option<Rule>> = Choice::new(
    "budget",
    None,
    &[("predicted", Rule::Predicted), ("initial", Rule::Initial), ("every-round", Rule::EveryRound)],
    "{}: who decides the memory budget on a phone in use (default: nobody)",
);

static EPOCH: Number = Number::new(
    "epoch",
    10,
    Numbers::Within(1..=1_000_000),
    "iterations over whose time the predictor looks back (default {default})",
);

static FAULT_PERCENT: Number = Number::new(
    "tp1",
    200,
    Numbers::Within(1..=1_000_000),
    "percent of the mean page faults beyond which it plans anew (default {default})",
);

static KILLS: Number =
    Number::new("tp2", 3, Numbers::Within(0..=1_000_000), "kills beyond which it plans anew (default {default})");

static SHRINK_PERCENT: Number = Number::new(
    "ws_adj",
    90,
    Numbers::Within(1..=100),
    "percent of its window that a new plan leaves (default {default})",
);

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// TP_1 in percent.
    pub fault_percent: u64,
    /// TP_2.
    pub kills: u64,
    /// WS_adj in percent.
    pub shrink_percent: u64,
}

impl BudgetParameters {
    /// The rule, of a run whose iterations take `iteration` each.
    fn start(self, iteration: Nanos) -> Box<dyn BudgetRule> {
        let Self { rule, epoch, fault_percent, kills, shrink_percent } = self;
        let own = predictor::Parameters::for_epoch(Nanos(iteration.0.saturating_mul(epoch)));
        rule.start(predictor::Parameters { fault_percent, kills, shrink_percent, ..own })
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
            budget: None,
        }
    }
}

impl Parameters {
    /// The techniques that may be used; of equals the earlier.
    fn allowed(self) -> impl Iterator<Item = Technique> {
        let all = [
            (self.compression, Technique::Compress),
            (self.recomputation, Technique::Recompute),
            (self.swapping, Technique::Swap),
        ];
        all.into_iter().filter(|(allowed, _)| *allowed).map(|(_, technique)| technique)
    }

    const fn layouts(self) -> Layouts {
        match (self.layout, self.crossing) {
            (false, _) => Layouts::Overlooked,
            (true, false) => Layouts::Counted { times: 1 },
            (true, true) => Layouts::Counted { times: 2 },
        }
    }
}

/// Hybrid tensor management.
#[derive(Clone, Debug)]
pub struct FedHybrid {
    parameters: Parameters,
    regaining: Option<Regaining>,
}

impl FedHybrid {
    /// With `parameters`.
    #[must_use]
    pub const fn new(parameters: Parameters) -> Self {
        Self { parameters, regaining: None }
    }

    /// The MPS of every saved tensor by each technique, where nothing else is given up and each stays away from its
    /// last use in forward to its first in backward (figure 7). What forward does not save is gone by then.
    #[must_use]
    pub fn survey(setting: &Setting<'_>, layouts: Layouts) -> Vec<Surveyed> {
        let mut regaining = Regaining::new(setting, layouts);
        let saved = setting.graph.saved();
        let presence = saved_alone(setting, &saved);
        saved
            .iter()
            .filter_map(|&tensor| {
                let (from, at) = absence(setting, tensor)?;
                let moment = Moment { graph: setting.graph, presence: &presence, at, samples: setting.batch };
                let bytes = Bytes(setting.graph.tensor(tensor).bytes.at(setting.batch));
                let mut terms = |technique| terms(&mut regaining, tensor, bytes, technique, &moment, (from, at));
                Some(Surveyed {
                    tensor,
                    recompute: terms(Technique::Recompute)?,
                    compress: terms(Technique::Compress),
                    swap: terms(Technique::Swap),
                })
            })
            .collect()
    }
}

/// What giving one saved tensor up is worth.
#[derive(Clone, Copy, Debug)]
pub struct Surveyed {
    /// The tensor.
    pub tensor: TensorId,
    /// By computing it again.
    pub recompute: Terms,
    /// By compression; nothing where no codec reaches it.
    pub compress: Option<Terms>,
    /// By swapping; nothing where there is no flash.
    pub swap: Option<Terms>,
}

/// What giving up a tensor of `bytes` by `technique` saves and costs while it is away from one node to another.
fn terms(
    regaining: &mut Regaining,
    tensor: TensorId,
    bytes: Bytes,
    technique: Technique,
    moment: &Moment<'_>,
    (from, to): (NodeId, NodeId),
) -> Option<Terms> {
    let samples = moment.samples;
    let lifetime = regaining.between(from, to, samples);
    Some(match technique {
        Technique::Recompute => {
            let regain = regaining.recomputation(tensor, to, moment) + regaining.way_from(to, samples);
            Terms { saved: bytes, lifetime, purge: Nanos::ZERO, regain }
        }
        Technique::Compress => {
            let found = regaining.compression(tensor, samples).filter(|found| found.bytes < bytes)?;
            Terms { saved: bytes - found.bytes, lifetime, purge: found.compress, regain: found.decompress }
        }
        Technique::Swap => {
            let found = regaining.swapping(tensor, samples)?;
            Terms { saved: bytes, lifetime, purge: found.out, regain: found.back }
        }
    })
}

impl Parameters {
    /// The technique with the largest MPS, and its terms. Compression where it is as good as recomputation
    /// (algorithm 1, lines 13 to 16), and either where it is as good as swapping.
    fn best(
        self,
        regaining: &mut Regaining,
        tensor: TensorId,
        memory: &MemoryView<'_>,
        moment: &Moment<'_>,
    ) -> Option<(Technique, Terms)> {
        let state = &memory.tensors[tensor as usize];
        let mut best: Option<(Technique, Terms)> = None;
        for technique in self.allowed() {
            let away = (moment.at, state.next_use);
            let Some(terms) = terms(regaining, tensor, state.bytes, technique, moment, away) else { continue };
            if best.is_none_or(|(_, before)| terms.mps().total_cmp(&before.mps()).is_gt()) {
                best = Some((technique, terms));
            }
        }
        best
    }
}

impl Policy for FedHybrid {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let regaining = Regaining::new(setting, self.parameters.layouts());
        if !self.parameters.allowed().any(|technique| regaining.offers(technique)) {
            let expected = "on, since nothing else is on that the run offers: no codec, no flash".to_owned();
            let (policy, found) = ("fedhybrid", "off".to_owned());
            return Err(PolicyError::BadValue { policy, parameter: "recomputation", found, expected });
        }
        self.regaining = Some(regaining);
        let iteration = || setting.times().iter().copied().sum();
        let budget_rule = self.parameters.budget.map(|parameters| parameters.start(iteration()));
        Ok(Schedule { budget_rule, ..Schedule::plain(setting.batch) })
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Vec<Relief> {
        let Some(regaining) = &mut self.regaining else { return Vec::new() };
        let (parameters, presence) = (self.parameters, presence(memory));
        let moment = Moment { graph: memory.graph, presence: &presence, at: memory.at, samples: memory.micro_batch };
        regaining.begin_choice();
        let best = |regaining: &mut Regaining, tensor| parameters.best(regaining, tensor, memory, &moment);
        let entry = |tensor: TensorId| best(regaining, tensor).map(|(_, terms)| (terms.mps(), tensor));
        let mut queue = Falling::new(memory.candidates.iter().filter_map(entry));
        let mut reliefs = Vec::new();
        let mut freed = Bytes::ZERO;
        while freed < want.bytes() {
            let score = |tensor| best(regaining, tensor).map_or(0.0, |(_, terms)| terms.mps());
            let Some(victim) = queue.pop(score) else { break };
            let Some((technique, terms)) = best(regaining, victim) else { break };
            regaining.give_up(victim, technique);
            freed += terms.saved;
            reliefs.push(technique.relief(victim));
        }
        reliefs
    }
}
