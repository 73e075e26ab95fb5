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
mod rule;

use haversack_devices::units::{Bytes, Nanos};
use haversack_workloads::{NodeId, TensorId};

use crate::budget::BudgetRule;
use crate::entry::{Choice, Entry, Number, Numbers, Parameter, Switch};
use crate::error::PolicyError;
use crate::policy::{Policy, Relief, Schedule, Want};
use crate::ranking::{Ranking, Scored, promised};
use crate::restore::{Layouts, RestoreCosts, Snapshot, Technique, absences, availability, saved_alone, worth};
use crate::setting::Setting;
use crate::view::MemoryView;
use mps::Terms;
pub use rule::Rule;

/// How scenarios name it, and what they can set.
pub static ENTRY: Entry = Entry {
    id: "fedhybrid",
    about: "the most memory saved per second gives way, by recomputation or by compression",
    description: "While memory is short, the tensor that saves the most memory for a second goes: by recomputation, by compression within an error bound, or to flash where that is allowed. On a phone in use it predicts the budget of the next round from page faults and kills.",
    citation: "Tam et al., SenSys 2024, section 4.3, algorithm 1",
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
        let of_predictor: [&dyn Parameter; 4] = [&EPOCH, &FAULT_PERCENT, &KILLS, &SHRINK_PERCENT];
        settings.only_with("budget=predicted", rule == Some(Rule::Predicted), &of_predictor)?;
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

static COMPRESSION: Switch = Switch::new("compression", true, "tensors may be compressed");

static RECOMPUTATION: Switch = Switch::new("recomputation", true, "tensors may be computed again");

static SWAPPING: Switch = Switch::new("swapping", false, "tensors may go to flash");

static LAYOUT: Switch = Switch::new("layout", true, "recomputation costs its layout transformations");

static CROSSING: Switch =
    Switch::new("crossing", false, "layout transformations cross from CPU to GPU and count twice");

static BUDGET: Choice<Rule, Option<Rule>> = Choice::new(
    "budget",
    None,
    &[("predicted", Rule::Predicted), ("initial", Rule::Initial), ("every-round", Rule::EveryRound)],
    "who decides the memory budget on a phone in use; not set, nobody does",
)
.on_a_phone();

static EPOCH: Number =
    Number::new("epoch", 10, Numbers::Within(1..=1_000_000), "iterations over whose time the predictor looks back");

static FAULT_PERCENT: Number = Number::new(
    "tp1",
    200,
    Numbers::Within(1..=1_000_000),
    "percent of the mean page faults beyond which it plans anew",
);

static KILLS: Number = Number::new("tp2", 3, Numbers::Within(0..=1_000_000), "kills beyond which it plans anew");

static SHRINK_PERCENT: Number =
    Number::new("ws_adj", 90, Numbers::Within(1..=100), "percent of its window that a new plan leaves");

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
#[must_use]
pub struct FedHybrid {
    parameters: Parameters,
    costs: Option<RestoreCosts>,
    /// Tensors by memory saved for its time, and by their next use.
    ranking: Ranking<2>,
}

impl FedHybrid {
    /// With `parameters`.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, costs: None, ranking: Ranking::default() }
    }

    /// The number of scores that were worked out so far.
    pub const fn scored(&self) -> u64 {
        self.ranking.scored()
    }

    /// The MPS of every saved tensor by each technique, where nothing else is given up and each stays away from its
    /// last use in forward to its first in backward (figure 7). What forward does not save is gone by then.
    pub fn survey(setting: &Setting<'_>, layouts: Layouts) -> Vec<Surveyed> {
        let mut costs = RestoreCosts::new(setting, layouts);
        let saved = setting.graph.saved();
        let held = saved_alone(setting, &saved);
        let absences = absences(setting.graph);
        saved
            .iter()
            .filter_map(|&tensor| {
                let (from, at) = absences[tensor as usize]?;
                let snapshot = Snapshot { graph: setting.graph, held: &held, at, samples: setting.batch };
                let bytes = Bytes(setting.graph.tensor(tensor).bytes.at(setting.batch));
                let mut terms = |technique| terms(&mut costs, tensor, bytes, technique, &snapshot, (from, at));
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
    costs: &mut RestoreCosts,
    tensor: TensorId,
    bytes: Bytes,
    technique: Technique,
    snapshot: &Snapshot<'_>,
    (from, to): (NodeId, NodeId),
) -> Option<Terms> {
    let samples = snapshot.samples;
    let lifetime = costs.between(from, to, samples);
    Some(match technique {
        Technique::Recompute => {
            let regain = costs.recomputation(tensor, to, snapshot) + costs.layout_path(to, samples);
            Terms { saved: bytes, lifetime, purge: Nanos::ZERO, regain }
        }
        Technique::Compress => {
            let found = costs.compression(tensor, samples).filter(|found| found.bytes < bytes)?;
            Terms { saved: bytes - found.bytes, lifetime, purge: found.compress, regain: found.decompress }
        }
        Technique::Swap => {
            let found = costs.swapping(tensor, samples)?;
            Terms { saved: bytes, lifetime, purge: found.out, regain: found.back }
        }
    })
}

/// The best way to give a tensor up.
struct Best {
    technique: Technique,
    terms: Terms,
    /// The most memory that any technique saves for its time.
    rate: f64,
}

impl Parameters {
    /// The technique with the largest MPS. Compression where it is as good as recomputation (algorithm 1, lines 13 to
    /// 16), and either where it is as good as swapping.
    fn best(
        self,
        costs: &mut RestoreCosts,
        tensor: TensorId,
        memory: &MemoryView<'_>,
        snapshot: &Snapshot<'_>,
    ) -> Option<Best> {
        let state = &memory.tensors[tensor as usize];
        let mut best: Option<Best> = None;
        for technique in self.allowed() {
            let absence = (snapshot.at, state.next_use);
            let Some(terms) = terms(costs, tensor, state.bytes, technique, snapshot, absence) else { continue };
            let before = best.as_ref().map_or(0.0, |best| best.rate);
            let rate = before.max(worth(terms.saved.as_f64(), terms.purge + terms.regain));
            match &mut best {
                Some(best) if terms.mps().total_cmp(&best.terms.mps()).is_le() => best.rate = rate,
                best => *best = Some(Best { technique, terms, rate }),
            }
        }
        best
    }
}

impl Policy for FedHybrid {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let costs = RestoreCosts::new(setting, self.parameters.layouts());
        if !self.parameters.allowed().any(|technique| costs.offers(technique)) {
            let expected = "on, since nothing else is on that the run offers: no codec, no flash".to_owned();
            let (policy, found) = ("fedhybrid", "off".to_owned());
            return Err(PolicyError::BadValue { policy, parameter: "recomputation", found, expected });
        }
        self.costs = Some(costs);
        let iteration = || setting.times().iter().copied().sum();
        let budget_rule = self.parameters.budget.map(|parameters| parameters.start(iteration()));
        Ok(Schedule { budget_rule, ..Schedule::plain(setting.batch) })
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Vec<Relief> {
        let Some(costs) = &mut self.costs else { return Vec::new() };
        let (parameters, held, samples) = (self.parameters, availability(memory), memory.micro_batch);
        let snapshot = Snapshot { graph: memory.graph, held: &held, at: memory.at, samples };
        let stale = costs.take_in(memory);
        self.ranking.refresh(memory, &stale, |_, tensor| Some([f64::INFINITY, costs.start(tensor.next_use)]));
        costs.begin_choice();
        let (now, ratio) = (costs.start(memory.at), costs.ratio(samples));
        let bound = |&[rate, next_use]: &[f64; 2]| promised(rate, (next_use - now) * ratio);
        let mut reliefs = Vec::new();
        let mut freed = Bytes::ZERO;
        while freed < want.bytes() {
            let victim = self.ranking.take_best(bound, |tensor| {
                let Some(best) = parameters.best(costs, tensor, memory, &snapshot) else { return Scored::Never };
                let next_use = memory.tensors[tensor as usize].next_use;
                Scored::At(best.terms.mps(), [best.rate, costs.start(next_use)])
            });
            let Some(victim) = victim else { break };
            let Some(best) = parameters.best(costs, victim, memory, &snapshot) else { break };
            costs.give_up(victim, best.technique);
            freed += best.terms.saved;
            reliefs.push(best.technique.relief(victim));
        }
        reliefs
    }
}
