//! What the phones of a federation learn, for real, on a stand-in.

use haversack_federation::federation::{Learn, Learned};
use haversack_federation::learning::{
    Contribution, Holding, Server, Source, StandIn, Synthetic, Trainee, mean_change, train_all,
};
use haversack_federation::population::Phone;
use haversack_numerics::batch::MiniBatch;
use haversack_workloads::data::{LoadOptions, SampleForm, load};
use haversack_workloads::mixed::{self, Algorithm};

use super::checkpoint::Checkpoint;
use super::costs::scenario;
use super::rounds::Phones;
use super::specification::{Learning, Specification};
use crate::cache::Cache;
use crate::error::CommandError;
use crate::run::Plan;
use crate::scenario::GraphKind;

/// The name of the data that are made for each client (Li et al., MLSys 2020).
pub(super) const SYNTHETIC: &str = "synthetic";
/// Its α and β: the most that clients differ in its paper.
const HETEROGENEITY: f64 = 1.0;
/// Stand-ins that take tokens.
const OF_TOKENS: [&str; 2] = ["bag-of-tokens", "transformer1"];

/// Learns, round after round.
pub(super) struct Learner<'a> {
    learning: &'a Learning,
    phones: &'a [Phone],
    seed: u64,
    /// The last round, in which accuracy is measured whatever its number.
    last: u32,
    stand_in: StandIn,
    source: Source,
    test: MiniBatch,
    server: Server,
    checkpoint: Checkpoint,
}

impl<'a> Learner<'a> {
    /// The learner of `asked`, which goes on from `checkpoint`; `None` for time alone.
    ///
    /// # Errors
    /// As [`Learner::new`].
    pub(super) fn of(
        asked: &'a Specification,
        phones: &'a Phones,
        checkpoint: Checkpoint,
        cache: &Cache,
    ) -> Result<Option<Self>, CommandError> {
        let Some(learning) = &asked.learning else { return Ok(None) };
        let algorithm = algorithm(asked, phones, cache)?;
        let learner =
            Self::new(learning, algorithm, phones.population.phones(), (asked.seed, asked.rounds), checkpoint)?;
        Ok(Some(learner))
    }

    /// # Errors
    /// Data that cannot be had, or a network that is no stand-in or does not take them.
    fn new(
        learning: &'a Learning,
        algorithm: Option<&Algorithm>,
        phones: &'a [Phone],
        (seed, last): (u64, u32),
        checkpoint: Checkpoint,
    ) -> Result<Self, CommandError> {
        let source = source(learning)?;
        let (input, classes) = (input(&source), source.classes() as u64);
        let wrong = |error: &dyn std::fmt::Display| CommandError::input(format!("`stand_in`: {error}"));
        let (id, input, classes) = (learning.stand_in.as_str(), input.as_deref(), Some(classes));
        let stand_in = match algorithm {
            Some(algorithm) => StandIn::in_integers(id, input, classes, algorithm),
            None => StandIn::new(id, input, classes),
        };
        let stand_in = stand_in.map_err(|error| wrong(&error))?;
        source.check(&stand_in).map_err(|error| wrong(&error))?;
        let server = match checkpoint.server(learning.rule) {
            Some(server) => server,
            None => Server::new(stand_in.initial(seed).map_err(CommandError::failed)?, learning.rule),
        };
        let test = source.test(seed);
        Ok(Self { learning, phones, seed, last, stand_in, source, test, server, checkpoint })
    }

    /// Writes the checkpoint now.
    pub(super) fn keep(&mut self) -> Result<(), CommandError> {
        self.checkpoint.write()
    }
}

impl Learn for Learner<'_> {
    /// Rounds that the checkpoint holds are not learned again.
    fn learn(&mut self, round: u32, completed: &[u32]) -> Result<Learned, String> {
        if let Some(known) = self.checkpoint.learned(round) {
            return Ok(known);
        }
        let words = |error: &dyn std::fmt::Display| format!("round {round}: {error}");
        let holding = |client: u32| {
            let samples = self.phones[client as usize].samples;
            Holding::draw(self.seed, client, samples, self.source.classes(), self.learning.labels)
        };
        let cohort: Vec<Trainee> =
            completed.iter().map(|&client| Trainee { client, holding: holding(client) }).collect();
        let (weights, how) = (&self.server.weights, &self.learning.how);
        let updates = train_all(&self.stand_in, weights, &self.source, &cohort, how, (self.seed, round))
            .map_err(|error| words(&error))?;
        let shares: Vec<Contribution<'_>> = updates
            .iter()
            .map(|update| Contribution { share: update.samples as f64, change: &update.change, places: None })
            .collect();
        if !shares.is_empty() {
            let change = mean_change(weights.len(), &shares).map_err(|error| words(&error))?;
            self.server.take(&change);
        }
        let is_measured = round.is_multiple_of(self.learning.every) || round == self.last;
        let accuracy = if is_measured {
            let score = self.stand_in.score(&self.server.weights, &self.test).map_err(|error| words(&error))?;
            Some(score.accuracy)
        } else {
            None
        };
        let learned = Learned { losses: updates.iter().map(|update| update.root_mean_square_loss).collect(), accuracy };
        self.checkpoint.save(learned.clone(), &self.server).map_err(|error| error.to_string())?;
        Ok(learned)
    }
}

/// The algorithm by which phones train in integers; `None` if they do in fp32.
fn algorithm(
    asked: &Specification,
    phones: &Phones,
    cache: &Cache,
) -> Result<Option<&'static Algorithm>, CommandError> {
    let Some(kind) = phones.kinds.first() else { return Ok(None) };
    match Plan::new(&scenario(asked, kind, None), cache)?.resolved.graph {
        GraphKind::Integer(id) => Ok(Some(mixed::algorithm(id).map_err(CommandError::failed)?)),
        _ => Ok(None),
    }
}

/// The data that are asked for, or those that suit the stand-in.
fn source(learning: &Learning) -> Result<Source, CommandError> {
    let suits = if OF_TOKENS.contains(&learning.stand_in.as_str()) { "phrases" } else { "glyphs" };
    let name = learning.data.as_deref().unwrap_or(suits);
    if name == SYNTHETIC {
        return Ok(Source::Synthetic(Synthetic::new(HETEROGENEITY, HETEROGENEITY).map_err(CommandError::input)?));
    }
    let set = load(name, &LoadOptions::default()).map_err(|error| CommandError::input(format!("`data`: {error}")))?;
    Ok(Source::of_set(set))
}

/// The shape of a sample.
fn input(source: &Source) -> Option<Vec<u64>> {
    match source {
        Source::Synthetic(_) => Some(vec![1, 1, Synthetic::FEATURES as u64]),
        Source::Set { set, .. } => Some(match &set.form {
            SampleForm::Image(form) => vec![form.channels as u64, form.height as u64, form.width as u64],
            SampleForm::Tokens { length, .. } => vec![*length as u64],
        }),
    }
}
