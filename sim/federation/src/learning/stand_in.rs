//! A network small enough to train here, with its arithmetic and its weights as one slice.

use std::ops::Range;

use haversack_numerics::batch::MiniBatch;
use haversack_numerics::memory::{Contents, Memory};
use haversack_numerics::optimiser::Rule;
use haversack_numerics::plain::Plain;
use haversack_numerics::program::{Loss, Pass};
use haversack_numerics::state::State;
use haversack_numerics::{Meter, Program, ProgramError};
use haversack_training::GivesBack;
use haversack_workloads::autograd::{EagerRules, Optimiser, differentiate};
use haversack_workloads::mixed::{self, Algorithm};
use haversack_workloads::models::{Width, build_narrow};
use haversack_workloads::training_graph::Node;
use haversack_workloads::{Network, Phase, Role, StorageId, TrainingGraph};

use super::{LearningError, Result};

/// Samples that are evaluated in one batch.
const EVALUATED_AT_ONCE: usize = 250;

/// A network, and its arithmetic for training.
#[derive(Debug)]
pub struct StandIn {
    network: Network,
    graph: TrainingGraph,
    program: Program,
    pub(super) weights: Vec<Weight>,
}

/// The position of a weight in the flat slice, and its dimensions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Weight {
    pub(super) storage: StorageId,
    pub(super) name: String,
    pub(super) dims: Vec<u64>,
    pub(super) first: usize,
}

impl Weight {
    pub(super) fn len(&self) -> usize {
        self.dims.iter().product::<u64>() as usize
    }

    fn range(&self) -> Range<usize> {
        self.first..self.first + self.len()
    }
}

/// The parameters of a step besides its samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    pub(super) update: u64,
    pub(super) seed: u64,
    /// How the store gives back tensors, and the seed of its random rounding.
    pub(super) store: Option<(&'a GivesBack, u64)>,
}

/// The quality of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// The mean loss of a sample.
    pub loss: f64,
    /// The share of samples that are classified correctly.
    pub accuracy: f64,
}

impl StandIn {
    /// The model `id` for samples of shape `input` and for `classes` classes; `None` for the model's own.
    ///
    /// # Errors
    /// A model that has no narrower form or does not take the input, or that has no arithmetic here.
    pub fn new(id: &str, input: Option<&[u64]>, classes: Option<u64>) -> Result<Self> {
        Self::of_width(id, input, classes, Width::FULL)
    }

    /// The same with hidden layers of a share of their features.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_width(id: &str, input: Option<&[u64]>, classes: Option<u64>, width: Width) -> Result<Self> {
        let network = build_narrow(id, input, classes, width)?;
        let graph = differentiate(&network, EagerRules::default())?;
        let program = Program::new(&network, &graph)?;
        Ok(Self::of(network, graph, program))
    }

    /// The model `id`, which clients train in integers by `algorithm`: the server's weights have 32 bits, and a client begins with
    /// the nearest codes.
    ///
    /// # Errors
    /// As [`Self::new`], and a model or an update that the algorithm has no integers for.
    pub fn in_integers(id: &str, input: Option<&[u64]>, classes: Option<u64>, algorithm: &Algorithm) -> Result<Self> {
        let network = build_narrow(id, input, classes, Width::FULL)?;
        let rewritten = mixed::rewritten(&network, algorithm, Optimiser::Sgd)?;
        let graph = rewritten.graph.clone();
        let program = Program::of_integers(&network, rewritten)?;
        Ok(Self::of(program.network().clone(), graph, program))
    }

    fn of(network: Network, graph: TrainingGraph, program: Program) -> Self {
        let mut first = 0;
        let weights = network.parameters.iter().map(|parameter| {
            let (storage, name, dims) = (parameter.storage, parameter.name.clone(), parameter.dims.clone());
            let weight = Weight { storage, name, dims, first };
            first += weight.len();
            weight
        });
        Self { weights: weights.collect(), network, graph, program }
    }

    /// The number of weights.
    pub fn len(&self) -> usize {
        self.weights.last().map_or(0, |last| last.first + last.len())
    }

    /// Whether clients train it in integers.
    pub(super) const fn is_in_integers(&self) -> bool {
        self.program.is_in_integers()
    }

    /// Whether the network has no weights to train.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// The number of values of a sample.
    pub(super) fn sample_values(&self) -> usize {
        let input = (0..).zip(&self.graph.tensors).find(|(_, tensor)| tensor.role == Role::Input);
        input.map_or(0, |(id, _)| self.program.elements(id, 1))
    }

    /// The weights before training, drawn by `seed`.
    ///
    /// # Errors
    /// A weight whose initial values are unknown.
    pub fn initial(&self, seed: u64) -> Result<Vec<f32>> {
        let mut flat = vec![0.0; self.len()];
        for weight in &self.weights {
            flat[weight.range()].copy_from_slice(&self.network.initial_floats(weight.storage, seed)?);
        }
        Ok(flat)
    }

    /// A state with these weights, or with the integers nearest to them.
    ///
    /// # Errors
    /// Another number of weights.
    pub(super) fn state(&self, weights: &[f32], meter: &Meter) -> Result<State> {
        let (expected, found) = (self.len(), weights.len());
        if expected != found {
            return Err(LearningError::Weights { expected, found });
        }
        let given = |storage: StorageId| {
            let weight = self.weights.iter().find(|weight| weight.storage == storage)?;
            Some(weights[weight.range()].to_vec())
        };
        Ok(self.program.state_with(&self.graph, 0, &given, meter)?)
    }

    /// The weights of a state.
    pub(super) fn flat(&self, state: &State) -> Vec<f32> {
        let (mut flat, meter) = (vec![0.0; self.len()], Meter::default());
        for weight in &self.weights {
            if let Some(values) = self.program.weight(&self.graph, state, weight.storage, &meter) {
                flat[weight.range()].copy_from_slice(&values);
            }
        }
        flat
    }

    /// Adds `shift` to the weights of `state`.
    pub(super) fn shift(&self, state: &mut State, shift: &[f32]) {
        for (tensor, contents) in state.tensors_mut() {
            let weight = self.weights.iter().find(|weight| weight.storage == *tensor);
            let (Some(weight), Contents::Floats(values)) = (weight, contents) else { continue };
            values.iter_mut().zip(&shift[weight.range()]).for_each(|(value, shift)| *value += shift);
        }
    }

    /// One step of SGD.
    pub(super) fn step(
        &self,
        state: &mut State,
        batch: &MiniBatch,
        rule: Rule,
        Step { update, seed, store }: Step<'_>,
        meter: &Meter,
    ) -> Result<Loss> {
        let pass = Pass::whole(batch.len, update, seed, rule);
        let plain = Plain { program: &self.program, graph: &self.graph, batch, pass: &pass, meter };
        let Some((store, draw)) = store else { return Ok(plain.train(state)?) };
        let (mut is_stored, mut refused) = (false, None);
        let before = |node: &Node, memory: &mut dyn Memory| {
            if node.phase != Phase::Backward || std::mem::replace(&mut is_stored, true) {
                return Ok(());
            }
            store.give_back(&self.program, memory, draw).map_err(|error| {
                let word = ProgramError::Missing("what is stored".to_owned());
                refused = Some(error);
                word
            })
        };
        let trained = plain.train_watched(state, before);
        refused.map_or(Ok(trained?), |error| Err(error.into()))
    }

    /// Evaluates these weights on samples.
    ///
    /// # Errors
    /// Another number of weights, or samples that do not suit the network.
    pub fn score(&self, weights: &[f32], batch: &MiniBatch) -> Result<Score> {
        let meter = Meter::default();
        let mut state = self.state(weights, &meter)?;
        let whole = Pass::whole(batch.len, 0, 0, Rule::default());
        let (mut loss, mut correct, mut rows) = (0.0, 0, 0);
        for first in (0..batch.len).step_by(EVALUATED_AT_ONCE) {
            let samples = EVALUATED_AT_ONCE.min(batch.len - first);
            let pass = Pass { samples, first, ..whole };
            let plain = Plain { program: &self.program, graph: &self.graph, batch, pass: &pass, meter: &meter };
            let part = plain.evaluate(&mut state)?;
            loss += part.mean * part.rows as f64;
            correct += part.correct;
            rows += part.rows;
        }
        let rows = rows.max(1) as f64;
        Ok(Score { loss: loss / rows, accuracy: correct as f64 / rows })
    }
}
