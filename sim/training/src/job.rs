//! The definition of a simulation: its graph, budgets and recordings.

use haversack_devices::{AllocatorKind, Bytes, Celsius, Nanos, Precision};
use haversack_workloads::TrainingGraph;

use crate::phone::Phone;

/// A budget that applies from a given time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wall {
    /// When it begins, from the start of the iteration; of a trace, from the start of the run.
    pub at: Nanos,
    /// The memory limit from then on.
    pub memory: Bytes,
}

/// The limits of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budgets {
    /// Bytes of all memory of the framework, weights and states included.
    pub memory: Option<Bytes>,
    /// Bytes of saved tensors only.
    pub activations: Option<Bytes>,
    /// Time of an iteration.
    pub time: Option<Nanos>,
    /// Memory budgets that replace `memory` at given times. They take effect when the operator that is running then has
    /// ended: a kernel cannot give back its operands.
    pub walls: Vec<Wall>,
    /// Budgets that replace `activations` in the same way.
    pub activation_walls: Vec<Wall>,
    /// Memory budgets that replace `memory` at times of the run, in order of time: each applies until the next, even
    /// across iterations, and the last one to the end. They take effect as `walls` do.
    pub traced: Vec<Wall>,
}

impl Budgets {
    /// The memory budget that an iteration begins with at `now`.
    pub(crate) fn memory_at(&self, now: Nanos) -> Option<Bytes> {
        let begun = self.traced.partition_point(|wall| wall.at <= now);
        begun.checked_sub(1).map(|last| self.traced[last].memory).or(self.memory)
    }

    /// Bounds every memory budget by `memory`.
    pub fn bound(&mut self, memory: Bytes) {
        for wall in self.walls.iter_mut().chain(&mut self.traced) {
            wall.memory = wall.memory.min(memory);
        }
        self.memory = Some(self.memory.map_or(memory, |own| own.min(memory)));
    }
}

/// Optional recordings in addition to the results.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observe {
    /// Every operator's span and the memory after it.
    pub timeline: bool,
    /// The phone in use, second by second, over the whole run.
    pub phone: bool,
    /// The tensors resident at the peak.
    pub peak: bool,
    /// How long each operator took.
    pub operators: bool,
    /// How saved tensors are stored between forward and backward.
    pub stored: bool,
}

/// One simulation.
#[derive(Clone, Debug)]
#[must_use]
pub struct Job<'a> {
    /// The iteration's graph.
    pub graph: &'a TrainingGraph,
    /// Samples of a mini-batch; at least one.
    pub batch: u64,
    /// The number format of the arithmetic.
    pub precision: Precision,
    /// Its limits.
    pub budgets: Budgets,
    /// The allocator of tensors.
    pub allocator: AllocatorKind,
    /// Iterations to run; the record is the last one's.
    pub iterations: u32,
    /// The initial temperature of the device and its surroundings; `None` disables thermal modelling.
    pub ambient: Option<Celsius>,
    /// The phone that it runs on, where its memory is shared with a system and with apps.
    pub phone: Option<&'a Phone>,
    /// Optional recordings.
    pub observe: Observe,
    /// Importance measured by a run with data, by iteration: a run without data then passes it to the policy, and
    /// repeats that run's events. Empty if there was none.
    pub measured: &'a [Vec<f64>],
    /// The scale factors that a run with data had before each iteration, in the same way.
    pub factors: &'a [Vec<Option<u32>>],
}

impl<'a> Job<'a> {
    /// One iteration of `batch` samples of `graph` in fp32, without budgets, every tensor in its own exact piece.
    pub fn plain(graph: &'a TrainingGraph, batch: u64) -> Self {
        Self {
            graph,
            batch,
            precision: Precision::Fp32,
            budgets: Budgets::default(),
            allocator: AllocatorKind::default(),
            iterations: 1,
            ambient: None,
            phone: None,
            observe: Observe::default(),
            measured: &[],
            factors: &[],
        }
    }
}
