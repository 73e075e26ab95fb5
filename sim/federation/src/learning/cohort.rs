//! The clients of a round train side by side.

use rayon::prelude::*;

use super::error::LearningError;
use super::local::{LocalSgd, Update};
use super::source::{Holding, Source};
use super::stand_in::StandIn;

/// A client that trains in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trainee {
    /// Its number in the population.
    pub client: u32,
    /// What it holds.
    pub holding: Holding,
}

/// Trains each of `cohort` from the server's weights, in round number `round`; updates are in the order of the cohort, the same
/// for any number of threads.
///
/// # Errors
/// The first failure in the order of the cohort.
pub fn train_all(
    stand_in: &StandIn,
    weights: &[f32],
    source: &Source,
    cohort: &[Trainee],
    how: &LocalSgd,
    (seed, round): (u64, u32),
) -> Result<Vec<Update>, LearningError> {
    let train = |trainee: &Trainee| {
        let samples = source.samples(seed, trainee.client, &trainee.holding);
        stand_in.train(weights, &samples, how, (seed, round, trainee.client))
    };
    let updates: Vec<_> = cohort.par_iter().map(train).collect();
    updates.into_iter().collect()
}
