//! A rule for the budget with scripted decisions that records its inputs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use haversack_devices::units::{Bytes, Nanos};
use haversack_policies::budget::{BudgetRule, Round, Sample, SampleError, SwapKind};
use haversack_policies::{Holding, MemoryView, Policy, PolicyError, Relief, Schedule, Setting, Want};
use haversack_workloads::TensorId;

use super::Script;

/// The inputs of a rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) samples: Vec<(Nanos, Bytes, Bytes, SwapKind, Vec<i16>)>,
    /// The number of samples before each round began.
    pub(crate) begun: Vec<usize>,
    pub(crate) ended: Vec<Round>,
    /// The reported time of an iteration.
    pub(crate) iteration: Nanos,
}

#[derive(Debug)]
struct Told {
    budgets: VecDeque<Option<Bytes>>,
    seen: Arc<Mutex<Seen>>,
}

impl BudgetRule for Told {
    fn observe(&mut self, sample: &Sample<'_>) -> Result<(), SampleError> {
        let adjustments = sample.adjustments.to_vec();
        let seen = (sample.time, sample.available, sample.watermark_high, sample.swap, adjustments);
        self.seen.lock().unwrap().samples.push(seen);
        Ok(())
    }

    fn begin_round(&mut self) -> Option<Bytes> {
        let mut seen = self.seen.lock().unwrap();
        let samples = seen.samples.len();
        seen.begun.push(samples);
        self.budgets.pop_front().flatten()
    }

    fn end_round(&mut self, round: Round) {
        self.seen.lock().unwrap().ended.push(round);
    }
}

/// A script with a rule.
pub(crate) struct Ruled {
    pub(crate) script: Script,
    budgets: Vec<Option<Bytes>>,
    /// Iterations of a round, after which the process gives its memory back.
    pub(crate) round: Option<u64>,
    seen: Arc<Mutex<Seen>>,
}

impl Ruled {
    /// A rule with these budgets, one a round.
    pub(crate) fn new(script: Script, budgets: &[Option<u64>]) -> Self {
        let budgets = budgets.iter().map(|budget| budget.map(Bytes)).collect();
        Self { script, budgets, round: None, seen: Arc::default() }
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }
}

impl Policy for Ruled {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        self.seen.lock().unwrap().iteration = setting.times().iter().copied().sum();
        let told = Told { budgets: self.budgets.iter().copied().collect(), seen: Arc::clone(&self.seen) };
        Ok(Schedule { budget_rule: Some(Box::new(told)), round: self.round, ..self.script.prepare(setting)? })
    }

    fn hold(&mut self, tensor: TensorId, memory: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        self.script.hold(tensor, memory)
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        self.script.relieve(want, memory)
    }
}
