//! A network with weights and samples by formulas, to be trained in a plain loop or by the executor.

use haversack_numerics::batch::{MiniBatch, Samples};
use haversack_numerics::memory::{Contents, Memory};
use haversack_numerics::optimiser::Rule;
use haversack_numerics::plain::Plain;
use haversack_numerics::program::{Pass, Statistics};
use haversack_numerics::state::State;
use haversack_numerics::{Meter, Program};
use haversack_policies::Policy;
use haversack_policies::setting::Learned;
use haversack_training::{GivesBack, Job, Lesson, Machine, Record, RunError, train};
use haversack_workloads::autograd::{EagerRules, Optimiser, differentiate};
use haversack_workloads::training_graph::Node;
use haversack_workloads::{Phase, Role, TrainingGraph, mixed, models};

/// How weights are updated.
const RULE: Rule = Rule { optimiser: Optimiser::Momentum, rate: 0.02, decay: 0.0 };

/// A network, and the program of its nodes.
pub(crate) struct Classroom {
    pub(crate) graph: TrainingGraph,
    pub(crate) program: Program,
    batch: u64,
    rule: Rule,
}

impl Classroom {
    pub(crate) fn new(model: &str, batch: u64) -> Self {
        let network = models::build(model, None).unwrap();
        let rules = EagerRules { optimiser: RULE.optimiser, ..EagerRules::default() };
        let graph = differentiate(&network, rules).unwrap();
        let program = Program::new(&network, &graph).unwrap();
        Self { graph, program, batch, rule: RULE }
    }

    /// The same in integers by NITI, whose gradients have four bits at this learning rate.
    pub(crate) fn in_integers(model: &str, batch: u64) -> Self {
        Self::by_algorithm("niti", Rule { optimiser: Optimiser::Sgd, rate: 0.125, decay: 0.0 }, model, batch)
    }

    /// The same by any algorithm.
    pub(crate) fn by_algorithm(algorithm: &str, rule: Rule, model: &str, batch: u64) -> Self {
        let network = models::build(model, None).unwrap();
        let rewritten = mixed::rewritten(&network, mixed::algorithm(algorithm).unwrap(), rule.optimiser).unwrap();
        let graph = rewritten.graph.clone();
        let program = Program::of_integers(&network, rewritten).unwrap();
        Self { graph, program, batch, rule }
    }

    /// The same with another learning rate.
    pub(crate) const fn learning_at(mut self, rate: f32) -> Self {
        self.rule.rate = rate;
        self
    }

    /// Small weights that differ from each other.
    pub(crate) fn state(&self, meter: &Meter) -> State {
        let mut state = self.program.initial_state(&self.graph, 1, meter).unwrap();
        for (tensor, contents) in state.tensors_mut() {
            let Role::Parameter { .. } = self.graph.tensor(*tensor).role else { continue };
            let name = &self.graph.tensor(*tensor).name;
            let Contents::Floats(values) = contents else { continue };
            let (centre, scale) = if name.contains("bn") && name.ends_with("weight") { (1.0, 0.5) } else { (0.0, 0.1) };
            for (place, value) in (0..).zip(values.iter_mut()) {
                *value = centre + scale * (f64::from(place) * 0.7 + f64::from(*tensor)).sin() as f32;
            }
        }
        state
    }

    /// The mini-batch of update `update`.
    pub(crate) fn batch(&self, update: u64) -> MiniBatch {
        let elements = |role: Role, width: u64| {
            let tensor = self.graph.tensors.iter().find(|tensor| tensor.role == role).unwrap();
            tensor.bytes.at(self.batch) / width
        };
        let samples = (0..elements(Role::Input, 4)).map(|place| ((place + 31 * update) as f64 * 0.37).sin() as f32);
        let labels = (0..elements(Role::Target, 8)).map(|place| (place % 3) as i64);
        MiniBatch { len: self.batch as usize, samples: Samples::Values(samples.collect()), labels: labels.collect() }
    }

    /// The losses of `updates` updates in a plain loop.
    pub(crate) fn plain(&self, updates: u64) -> Vec<f64> {
        self.plain_to(updates).0
    }

    /// The same with the final state.
    pub(crate) fn plain_to(&self, updates: u64) -> (Vec<f64>, State) {
        let meter = Meter::default();
        let mut state = self.state(&meter);
        let (samples, batch) = (self.batch as usize, self.batch as usize);
        let loss = |update| {
            let pass = Pass { samples, batch, first: 0, update, seed: 1, statistics: Statistics::Own, rule: self.rule };
            let batch = self.batch(update);
            Plain { program: &self.program, graph: &self.graph, batch: &batch, pass: &pass, meter: &meter }
                .train(&mut state)
                .unwrap()
                .mean
        };
        let losses = (0..updates).map(loss).collect();
        (losses, state)
    }

    /// The losses of `updates` updates in a plain loop whose backward reads values restored from a store.
    pub(crate) fn plain_from(&self, store: &GivesBack, updates: u64) -> Vec<f64> {
        let meter = Meter::default();
        let mut state = self.state(&meter);
        let (samples, batch) = (self.batch as usize, self.batch as usize);
        let loss = |update| {
            let pass = Pass { samples, batch, first: 0, update, seed: 1, statistics: Statistics::Own, rule: self.rule };
            let mut is_stored = false;
            let before = |node: &Node, memory: &mut dyn Memory| {
                if node.phase == Phase::Backward && !std::mem::replace(&mut is_stored, true) {
                    store.give_back(&self.program, memory, update).unwrap();
                }
                Ok(())
            };
            let batch = self.batch(update);
            Plain { program: &self.program, graph: &self.graph, batch: &batch, pass: &pass, meter: &meter }
                .train_watched(&mut state, before)
                .unwrap()
                .mean
        };
        (0..updates).map(loss).collect()
    }

    /// The state after `updates` updates by the executor.
    pub(crate) fn train_to(&self, machine: &Machine, job: &Job<'_>, policy: &mut dyn Policy, updates: u64) -> State {
        self.run(machine, job, policy, updates, &Meter::default(), |_| {}).unwrap().1
    }

    /// The losses of `updates` updates by the executor, and its last record.
    pub(crate) fn train(
        &self,
        machine: &Machine,
        job: &Job<'_>,
        policy: &mut dyn Policy,
        updates: u64,
    ) -> Result<(Vec<f64>, Record), RunError> {
        self.train_counted(machine, job, policy, updates).map(|(losses, record, _)| (losses, record))
    }

    /// The same with the largest actual size of the buffers.
    pub(crate) fn train_counted(
        &self,
        machine: &Machine,
        job: &Job<'_>,
        policy: &mut dyn Policy,
        updates: u64,
    ) -> Result<(Vec<f64>, Record, u64), RunError> {
        let (mut losses, meter) = (Vec::new(), Meter::default());
        let seen = |record: &Record| losses.extend(record.loss.map(|loss| loss.mean));
        let (record, _) = self.run(machine, job, policy, updates, &meter, seen)?;
        Ok((losses, record, meter.peak()))
    }

    /// Runs `updates` updates by the executor, passing their records to `seen`.
    pub(crate) fn train_seen(
        &self,
        machine: &Machine,
        job: &Job<'_>,
        policy: &mut dyn Policy,
        updates: u64,
        seen: impl FnMut(&Record),
    ) -> Result<Record, RunError> {
        self.run(machine, job, policy, updates, &Meter::default(), seen).map(|(record, _)| record)
    }

    fn run(
        &self,
        machine: &Machine,
        job: &Job<'_>,
        policy: &mut dyn Policy,
        updates: u64,
        meter: &Meter,
        mut seen: impl FnMut(&Record),
    ) -> Result<(Record, State), RunError> {
        let mut lesson = Lesson {
            program: &self.program,
            state: self.state(meter),
            meter: meter.clone(),
            seed: 1,
            update: 0,
            importance: Vec::new(),
            factors: Vec::new(),
            learned: Learned::Null,
        };
        let batches = (0..updates).map(|update| (self.batch(update), self.rule));
        let record = train(machine, job, policy, &mut lesson, batches, |record| {
            seen(record);
            true
        })?;
        Ok((record, lesson.state))
    }
}
