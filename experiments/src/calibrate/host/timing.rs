//! Real training steps, as a whole and operator by operator, on one thread and by its own clock.

use std::time::{Duration, Instant};

use haversack_bench::thread_time;
use haversack_devices::work::Precision;
use haversack_numerics::batch::{MiniBatch, Samples};
use haversack_numerics::optimiser::Rule;
use haversack_numerics::plain;
use haversack_numerics::program::{Pass, Statistics};
use haversack_numerics::state::State;
use haversack_numerics::{Meter, Program};
use haversack_workloads::autograd::{EagerRules, Optimiser, differentiate};
use haversack_workloads::training_graph::{KernelCost, Role};
use haversack_workloads::{Network, TrainingGraph};

use super::rates::Timed;
use crate::error::CommandError;

/// How long a case is run in each round, at least once.
const SHORTEST: Duration = Duration::from_millis(5);

/// A network at a batch, ready to be trained.
pub(super) struct Case {
    batch: u64,
    graph: TrainingGraph,
    program: Program,
    meter: Meter,
    state: State,
    samples: MiniBatch,
    pass: Pass,
    /// Seconds of each step.
    steps: Vec<f64>,
    /// Seconds of each node in each watched step.
    nodes: Vec<Vec<f64>>,
}

impl Case {
    /// `network` with samples of the shape `input` that say nothing, and labels below `classes`.
    ///
    /// # Errors
    /// A network that carries no data.
    pub(super) fn new(network: &Network, input: &[u64], classes: u64, batch: u64) -> Result<Self, CommandError> {
        let graph = differentiate(network, EagerRules::default())?;
        let program = Program::new(network, &graph).map_err(CommandError::failed)?;
        let meter = Meter::new();
        let state = program.initial_state(&graph, 0, &meter).map_err(CommandError::failed)?;
        let values = batch * input.iter().product::<u64>();
        let samples = match input {
            [_] => Samples::Ids((0..values).map(|place| (place * 7919 % 251) as i64).collect()),
            _ => Samples::Values((0..values).map(|place| (place * 7919 % 1009) as f32 / 1009.0 - 0.5).collect()),
        };
        let targets = graph.tensors.iter().filter(|tensor| tensor.role == Role::Target);
        let labels = targets.map(|tensor| tensor.bytes.at(batch) / 8).sum::<u64>();
        let labels = (0..labels).map(|place| (place % classes.max(1)) as i64).collect();
        let len = batch as usize;
        let rule = Rule { optimiser: Optimiser::Sgd, rate: 1e-3, decay: 0.0 };
        let pass = Pass { samples: len, batch: len, first: 0, update: 0, seed: 0, statistics: Statistics::Own, rule };
        let nodes = vec![Vec::new(); graph.nodes.len()];
        let samples = MiniBatch { len, samples, labels };
        Ok(Self { batch, graph, program, meter, state, samples, pass, steps: Vec::new(), nodes })
    }

    /// Runs steps for a moment, each by the thread's clock.
    ///
    /// # Errors
    /// An operator that cannot be computed.
    pub(super) fn step(&mut self) -> Result<(), CommandError> {
        self.train()?;
        let begin = Instant::now();
        loop {
            let start = thread_time();
            self.train()?;
            self.steps.push((thread_time().saturating_sub(start)).as_secs_f64());
            if begin.elapsed() >= SHORTEST {
                return Ok(());
            }
        }
    }

    fn train(&mut self) -> Result<(), CommandError> {
        let Self { graph, program, meter, state, samples, pass, .. } = self;
        plain::train(program, graph, state, samples, pass, meter).map(|_| ()).map_err(CommandError::failed)
    }

    /// The same, each operator by itself.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub(super) fn watch(&mut self) -> Result<(), CommandError> {
        self.train()?;
        let begin = Instant::now();
        loop {
            let Self { graph, program, meter, state, samples, pass, nodes, .. } = self;
            let mut marks = Vec::with_capacity(nodes.len() + 1);
            plain::train_watched(program, graph, state, samples, pass, meter, |_, _| {
                marks.push(thread_time());
                Ok(())
            })
            .map_err(CommandError::failed)?;
            marks.push(thread_time());
            for (node, pair) in nodes.iter_mut().zip(marks.windows(2)) {
                node.push((pair[1].saturating_sub(pair[0])).as_secs_f64());
            }
            if begin.elapsed() >= SHORTEST {
                return Ok(());
            }
        }
    }

    /// Seconds of a step: the median.
    pub(super) fn seconds(&self) -> f64 {
        median(&self.steps)
    }

    /// What each operator computes and moves, and the median of its times.
    pub(super) fn operators(&self) -> Vec<Timed> {
        let operators = self.graph.nodes.iter().zip(&self.nodes).filter(|(node, _)| node.work.launches > 0);
        operators
            .map(|(node, times)| Timed {
                work: node.work.at(self.batch, Precision::Fp32, KernelCost::NONE),
                seconds: median(times),
            })
            .collect()
    }
}

/// The median; zero of nothing.
fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
