//! The work of one client in one round: some epochs of SGD on its own samples, from the server's weights.
//! Clients train in parallel.

use std::borrow::Cow;

use haversack_engine::Stream;
use haversack_numerics::Meter;
use haversack_numerics::batch::MiniBatch;
use haversack_numerics::optimiser::Rule;
use haversack_training::GivesBack;
use haversack_workloads::autograd::Optimiser;
use rand::RngExt;
use rand::seq::SliceRandom;
use rayon::prelude::*;

use super::source::{Holding, Source};
use super::stand_in::{StandIn, Step};
use super::{LearningError, Result};

/// How a client trains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalSgd {
    /// The number of passes over its samples.
    pub epochs: u32,
    /// A number of steps instead of epochs, however often they pass over the samples; `None` for whole epochs.
    pub steps: Option<u32>,
    /// Samples of a step; the last of an epoch may have fewer.
    pub batch: usize,
    /// The learning rate.
    pub rate: f32,
    /// FedProx's μ: how strongly the weights are pulled back to the server's (Li et al., MLSys 2020); zero for FedAvg.
    pub proximal: f32,
    /// The share of a step that is repeated in the next one, from 0 to below 1; each round begins without momentum
    /// (FedScale's clients: 0.9).
    pub momentum: f32,
    /// The share of a weight that is added to its gradient (FedScale's clients: 5e-4).
    pub decay: f32,
}

impl LocalSgd {
    /// # Errors
    /// An invalid setting.
    pub fn check(&self) -> Result {
        let wrong = |field, value: String, expected| Err(LearningError::Setting { field, value, expected });
        match *self {
            Self { epochs: 0, .. } => wrong("local_epochs", "0".to_owned(), "at least 1"),
            Self { steps: Some(0), .. } => wrong("local_steps", "0".to_owned(), "at least 1"),
            Self { batch: 0, .. } => wrong("batch", "0".to_owned(), "at least 1"),
            Self { rate, .. } if !(rate > 0.0 && rate.is_finite()) => {
                wrong("learning_rate", rate.to_string(), "a number above 0")
            }
            Self { proximal, .. } if !(proximal >= 0.0 && proximal.is_finite()) => {
                wrong("proximal", proximal.to_string(), "a number from 0")
            }
            Self { momentum, .. } if !(0.0..1.0).contains(&momentum) => {
                wrong("momentum", momentum.to_string(), "a number from 0 to below 1")
            }
            Self { decay, .. } if !(decay >= 0.0 && decay.is_finite()) => {
                wrong("weight_decay", decay.to_string(), "a number from 0")
            }
            _ => Ok(()),
        }
    }
}

/// A client's turn in a round, which determines its draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The seed of the federation.
    pub seed: u64,
    /// The round.
    pub round: u32,
    /// The client's number.
    pub client: u32,
}

/// The result of a client's training.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// The change of each weight.
    pub change: Vec<f32>,
    /// Its samples.
    pub samples: usize,
    /// Its steps.
    pub steps: usize,
    /// The mean loss over the samples, each as it was trained on.
    pub loss: f64,
    /// The root of the mean square of its samples' losses, each as it was trained on: Oort's statistical utility over
    /// the number of samples (Lai et al., OSDI 2021, section 4.2).
    pub root_mean_square_loss: f64,
}

impl StandIn {
    /// Trains a client from `weights` on `samples`, whose order in each epoch follows from its `turn`. Without samples
    /// nothing changes. With a `store`, backward reads saved tensors as the store gives them back.
    ///
    /// # Errors
    /// A setting or samples that cannot be trained with, another number of weights, or a loss that
    /// becomes NaN or infinite.
    pub fn train(
        &self,
        weights: &[f32],
        samples: &MiniBatch,
        how: &LocalSgd,
        turn: Turn,
        store: Option<&GivesBack>,
    ) -> Result<Update> {
        let Turn { seed, round, client } = turn;
        how.check()?;
        let changes = [("proximal", how.proximal), ("momentum", how.momentum), ("weight_decay", how.decay)];
        if let Some((field, value)) = changes.into_iter().find(|&(_, value)| value > 0.0 && self.is_in_integers()) {
            let expected = "0 of what is trained in integers, whose updates are whole codes";
            return Err(LearningError::Setting { field, value: value.to_string(), expected });
        }
        let meter = Meter::default();
        let mut state = self.state(weights, &meter)?;
        let mut order: Vec<usize> = (0..samples.len).collect();
        let mut stream = Stream::new(seed, &format!("client {client}"), &format!("order in round {round}"));
        // Random rounding in a store has its own draws.
        let draw =
            || Stream::new(seed, &format!("client {client}"), &format!("store in round {round}")).random::<u64>();
        let store = store.map(|store| (store, draw()));
        let rule = Rule { optimiser: Optimiser::Sgd, rate: how.rate, decay: how.decay };
        // The change of the last step, which momentum repeats in part.
        let mut way = vec![0.0; weights.len()];
        let (mut loss, mut squares, mut rows, mut steps) = (0.0, 0.0, 0, 0);
        let most = how.steps.map_or(usize::MAX, |steps| steps as usize);
        let epochs = if how.steps.is_some() { u32::MAX } else { how.epochs };
        for _ in 0..epochs {
            if steps == most || order.is_empty() {
                break;
            }
            order.shuffle(&mut stream);
            for indices in order.chunks(how.batch).take(most - steps) {
                // The first step begins at the server's weights, so there is nothing to pull back.
                let before = (how.momentum > 0.0 || how.proximal > 0.0 && steps > 0).then(|| self.flat(&state));
                let step =
                    Step { update: steps as u64, seed, store: store.map(|(store, draw)| (store, draw ^ steps as u64)) };
                let part = match self.step(&mut state, &samples.chosen(indices), rule, step, &meter) {
                    // A store rejects values that are not finite.
                    Err(LearningError::Store(_)) => return Err(LearningError::Diverged { client, steps }),
                    part => part?,
                };
                if let Some(before) = before {
                    // The gradient of FedProx's term is the distance from the server's weights.
                    let pull = how.rate * how.proximal;
                    let from = before.iter().zip(weights);
                    way.iter_mut()
                        .zip(from)
                        .for_each(|(way, (from, server))| *way = how.momentum * *way - pull * (from - server));
                    self.shift(&mut state, &way);
                    way = self.flat(&state);
                    way.iter_mut().zip(&before).for_each(|(way, before)| *way -= before);
                }
                steps += 1;
                if !part.mean.is_finite() {
                    return Err(LearningError::Diverged { client, steps });
                }
                loss += part.mean * part.rows as f64;
                squares += part.mean_square * part.rows as f64;
                rows += part.rows;
            }
        }
        let mut change = self.flat(&state);
        change.iter_mut().zip(weights).for_each(|(change, before)| *change -= before);
        if !change.iter().all(|change| change.is_finite()) {
            return Err(LearningError::Diverged { client, steps });
        }
        let rows = rows.max(1) as f64;
        let root_mean_square_loss = (squares / rows).sqrt();
        Ok(Update { change, samples: samples.len, steps, loss: loss / rows, root_mean_square_loss })
    }
}

/// A client that trains in a round.
#[derive(Clone, Debug)]
pub struct Trainee<'a> {
    /// Its number in the population.
    pub client: u32,
    /// How many samples of each class it has.
    pub holding: Holding,
    /// The network that it trains: the stand-in, or a narrower one.
    pub network: &'a StandIn,
    /// The weights that it begins with.
    pub weights: Cow<'a, [f32]>,
    /// How the store gives back the tensors that it keeps between forward and backward; `None`
    /// if all are kept unchanged.
    pub store: Option<&'a GivesBack>,
    /// The round, which determines the order of its samples.
    pub round: u32,
}

/// Trains each of `cohort`; updates are in the order of the cohort, the same for any number of threads. `None` for a
/// client whose loss becomes NaN or infinite: the server drops it from the round, as long as there are others.
///
/// # Errors
/// The first failure in the order of the cohort; a NaN or infinite loss is an error only if all clients have one.
pub fn train_all(source: &Source, cohort: &[Trainee<'_>], how: &LocalSgd, seed: u64) -> Result<Vec<Option<Update>>> {
    let train = |trainee: &Trainee<'_>| {
        let Trainee { client, round, .. } = *trainee;
        let samples = source.samples(seed, client, &trainee.holding);
        trainee.network.train(&trainee.weights, &samples, how, Turn { seed, round, client }, trainee.store)
    };
    let updates: Vec<_> = cohort.par_iter().map(train).collect();
    let has_others = updates.iter().any(Result::is_ok);
    let taken = |update: Result<Update>| match update {
        Err(LearningError::Diverged { .. }) if has_others => Ok(None),
        update => update.map(Some),
    };
    updates.into_iter().map(taken).collect()
}
