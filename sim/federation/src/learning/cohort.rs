//! The clients of a round train side by side.

use std::borrow::Cow;

use haversack_training::GivesBack;
use rayon::prelude::*;

use super::error::LearningError;
use super::local::{LocalSgd, Turn, Update};
use super::source::{Holding, Source};
use super::stand_in::StandIn;

/// A client that trains.
#[derive(Clone, Debug)]
pub struct Trainee<'a> {
    /// Its number in the population.
    pub client: u32,
    /// What it holds.
    pub holding: Holding,
    /// What it trains: the stand-in, or a narrower one.
    pub network: &'a StandIn,
    /// The weights that it begins with.
    pub weights: Cow<'a, [f32]>,
    /// What comes back of the tensors that it stores between forward and backward; `None` where all come back as they were.
    pub store: Option<&'a GivesBack>,
    /// The round, which the order of its samples follows from.
    pub round: u32,
}

/// Trains each of `cohort`; updates are in the order of the cohort, the same for any number of threads. `None` for a client
/// whose loss is no finite number any more: a server takes nothing from it, as long as there are others.
///
/// # Errors
/// The first failure in the order of the cohort; of losses, only where all of them are no finite numbers.
pub fn train_all(
    source: &Source,
    cohort: &[Trainee<'_>],
    how: &LocalSgd,
    seed: u64,
) -> Result<Vec<Option<Update>>, LearningError> {
    let train = |trainee: &Trainee<'_>| {
        let Trainee { client, round, .. } = *trainee;
        let samples = source.samples(seed, client, &trainee.holding);
        trainee.network.train(&trainee.weights, &samples, how, Turn { seed, round, client }, trainee.store)
    };
    let updates: Vec<_> = cohort.par_iter().map(train).collect();
    let has_others = updates.iter().any(Result::is_ok);
    let taken = |update: Result<Update, LearningError>| match update {
        Err(LearningError::Diverged { .. }) if has_others => Ok(None),
        update => update.map(Some),
    };
    updates.into_iter().map(taken).collect()
}
