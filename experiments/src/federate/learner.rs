//! Learning in a federation: the phones train a stand-in for real.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haversack_federation::federation::{Arrived, Learn, Learned, Step};
use haversack_federation::learning::{
    Contribution, Groups, Holding, Labels, LearningError, LocalSgd, Narrowing, Server, ServerRule, Source, StandIn,
    Synthetic, Trainee, Turn, Update, mean_change, train_all,
};
use haversack_federation::population::Phone;
use haversack_federation::selection::SelectorKind;
use haversack_federation::work::{WIDTHS, Work};
use haversack_numerics::batch::MiniBatch;
use haversack_workloads::data::SampleForm;
use haversack_workloads::mixed::{self, Algorithm};
use serde::{Deserialize, Serialize};

use super::iteration::scenario;
use super::specification::{Learning, Phones, Specification};
use super::stores::{Stores, Subject};
use super::widths::Widths;
use crate::output::note;
use crate::progress::{Amount, Progress};
use crate::run::Plan;
use crate::scenario::GraphKind;
use crate::work::{Steps, bits};
use crate::{Cache, CommandError, Result, interrupt};

/// The α and β of the synthetic data: the largest difference between clients in its paper.
const HETEROGENEITY: f64 = 1.0;
/// Passes over all samples in one place; a target that is not reached by then is out of reach.
const PASSES: u32 = 10;
/// Samples between two checks for Ctrl-C.
const PART: usize = 500;
/// The least time between two checkpoints.
const PAUSE: Duration = Duration::from_secs(2);

/// Trains the stand-in, round after round.
pub(super) struct Learner<'a> {
    learning: &'a Learning,
    phones: &'a [Phone],
    seed: u64,
    /// The last round, after which accuracy is always measured.
    last: u32,
    stand_in: StandIn,
    /// Narrower stand-ins, widest first, if a phone's memory decides the width it trains.
    narrower: Vec<Narrower>,
    source: Source,
    /// The weights of classes by the phones' memory.
    groups: Groups,
    /// The phones' jobs, and the tensors that backward gets back from their stores.
    work: &'a Widths<'a>,
    stores: Stores,
    test: MiniBatch,
    server: Server,
    /// The number of updates that were discarded because their loss was NaN or infinite.
    diverged: u64,
    known: Known,
    /// The checkpoint, and the time of its last write; `None` without one.
    steps: Option<&'a Steps<'a>>,
    kept: Option<Instant>,
}

/// A narrower stand-in, and the position of its weights in the full one.
struct Narrower {
    network: StandIn,
    narrowing: Narrowing,
}

impl<'a> Learner<'a> {
    /// The learner of `asked`, which resumes from the checkpoint of `steps`; `None` if only time is simulated.
    ///
    /// # Errors
    /// Data that cannot be loaded, or a network that is not a stand-in or does not take them.
    pub(super) fn of(
        asked: &'a Specification,
        phones: &'a Phones,
        work: &'a Widths<'a>,
        steps: Option<&'a Steps<'a>>,
        cache: &Cache,
    ) -> Result<Option<Self>> {
        let Some(learning) = &asked.learning else { return Ok(None) };
        let algorithm = algorithm(asked, phones, cache)?;
        let Phones { kinds, population } = phones;
        let (seed, last, phones) = (asked.seed, asked.rounds, population.phones());
        let groups = groups(asked, learning, phones, cache)?;
        let source = source(learning, phones, seed, &groups, cache)?;
        let (input, classes) = (input(&source), source.classes() as u64);
        let wrong = |error: &dyn std::fmt::Display| CommandError::input(format!("`stand_in`: {error}"));
        let (id, shape) = (learning.stand_in.as_str(), input.as_deref());
        let stand_in = match algorithm {
            Some(algorithm) => StandIn::in_integers(id, shape, Some(classes), algorithm),
            None => StandIn::new(id, shape, Some(classes)),
        };
        let stand_in = stand_in.map_err(|error| wrong(&error))?;
        source.check(&stand_in).map_err(|error| wrong(&error))?;
        let narrower = |share: f64| {
            let width = share.to_string().parse().map_err(|error: String| wrong(&error))?;
            let network = StandIn::of_width(&learning.stand_in, input.as_deref(), Some(classes), width);
            let network = network.map_err(|error| wrong(&error))?;
            let narrowing = Narrowing::new(&stand_in, &network).map_err(|error| wrong(&error))?;
            Ok(Narrower { network, narrowing })
        };
        let heterofl = asked.rules.selector == SelectorKind::Heterofl;
        let widths = if heterofl { &WIDTHS[1..] } else { &[] };
        let narrower = widths.iter().map(|&share| narrower(share)).collect::<Result<_>>()?;
        let subject = Subject { stand_in: id, input: shape, classes };
        let stores = Stores::new(asked, kinds, work, &subject, cache)?;
        let known: Known = steps.map_or(Ok(None), Steps::last)?.unwrap_or_default();
        let server = match known.server(learning.rule) {
            Some(server) => server,
            None => Server::new(stand_in.initial(seed).map_err(CommandError::failed)?, learning.rule),
        };
        let test = source.test(seed, phones.len() as u32);
        if let (Some(target), Some(_), 0) = (learning.target, steps, known.rounds()) {
            say_out_of_reach(target, &source, &stand_in, &test, learning, seed)?;
        }
        Ok(Some(Self {
            learning,
            phones,
            seed,
            last,
            stand_in,
            narrower,
            source,
            groups,
            work,
            stores,
            test,
            server,
            diverged: 0,
            known,
            steps,
            kept: None,
        }))
    }

    /// Reports the number of discarded updates, if any.
    pub(super) fn say_diverged(&self) {
        if self.diverged > 0 {
            let words =
                "updates were not taken in: their losses were no finite numbers; a lower learning rate may help";
            note(&format!("{} {words}", self.diverged));
        }
    }

    /// Writes the checkpoint.
    pub(super) fn keep(&mut self) -> Result<()> {
        self.kept = Some(Instant::now());
        self.steps.map_or(Ok(()), |steps| steps.keep(&self.known))
    }

    /// The network that a phone trains, and the position of its weights in the server's network.
    fn network(&self, width: u8) -> (&StandIn, Option<&Narrowing>) {
        match self.narrower.get(usize::from(width).wrapping_sub(1)) {
            Some(Narrower { network, narrowing }) => (network, Some(narrowing)),
            None => (&self.stand_in, None),
        }
    }

    /// A phone that trains in a round, starting from the server's weights.
    fn trainee(&self, round: u32, arrived: &Arrived) -> Result<Trainee<'_>, LearningError> {
        let Arrived { phone: client, width } = *arrived;
        let Phone { samples, memory, .. } = self.phones[client as usize];
        // Dealt samples are already assigned.
        let drawn = if matches!(self.source, Source::Dealt { .. }) { 0 } else { samples };
        let holding = Holding::draw(
            self.seed,
            client,
            drawn,
            self.source.classes(),
            self.learning.labels,
            self.groups.of(memory),
        );
        let weights = &self.server.weights;
        let (network, narrowing) = self.network(width);
        let weights = match narrowing {
            Some(narrowing) => Cow::Owned(narrowing.narrowed(weights)?),
            None => Cow::Borrowed(weights.as_slice()),
        };
        let store = if self.stores.are_whole() { None } else { self.stores.of(&self.work.job(client, round, 0.0)) };
        Ok(Trainee { client, holding, network, weights, store, round })
    }

    /// Trains the phones whose updates have arrived, and aggregates the updates; returns the root mean
    /// square loss of each.
    fn take(&mut self, step: &Step<'_>) -> Result<Vec<f64>, LearningError> {
        let cohort =
            step.arrived.iter().map(|arrived| self.trainee(step.round, arrived)).collect::<Result<Vec<_>, _>>()?;
        let updates = train_all(&self.source, &cohort, &self.learning.how, self.seed)?;
        self.diverged += updates.iter().filter(|update| update.is_none()).count() as u64;
        let mut shares = Vec::with_capacity(updates.len());
        for (update, arrived) in updates.iter().zip(step.arrived) {
            let Some(update) = update else { continue };
            let places = self.network(arrived.width).1.map(Narrowing::places);
            shares.push(Contribution { share: update.samples as f64, change: &update.change, places });
        }
        let change = mean_change(self.server.weights.len(), &shares)?;
        let has_come = !shares.is_empty();
        if has_come {
            self.server.take(&change);
        }
        // A diverged update (`None`) gets the loss zero.
        let loss = |update: &Option<Update>| update.as_ref().map_or(0.0, |update| update.root_mean_square_loss);
        Ok(updates.iter().map(loss).collect())
    }
}

impl Learn for Learner<'_> {
    /// Rounds in the checkpoint are not learned again.
    fn learn(&mut self, step: &Step<'_>) -> Result<Learned, String> {
        let round = step.round;
        if let Some(known) = self.known.learned(round) {
            return Ok(known);
        }
        let words = |error: LearningError| format!("round {round}: {error}");
        let losses = self.take(step).map_err(words)?;
        let is_measured = round.is_multiple_of(self.learning.every) || round == self.last;
        let accuracy = if is_measured {
            Some(self.stand_in.score(&self.server.weights, &self.test).map_err(words)?.accuracy)
        } else {
            None
        };
        let learned = Learned { losses, accuracy };
        self.known.add(learned.clone(), &self.server);
        if self.kept.is_none_or(|kept| kept.elapsed() >= PAUSE) {
            self.keep().map_err(|error| error.to_string())?;
        }
        Ok(learned)
    }
}

/// The algorithm by which phones train in integers; `None` if they train in fp32.
pub(super) fn algorithm(asked: &Specification, phones: &Phones, cache: &Cache) -> Result<Option<&'static Algorithm>> {
    // Some devices may lack the processor that the policy needs; all others run the same graph.
    let plan = |kind| Plan::new(&scenario(asked, kind, None), cache).ok();
    match phones.kinds.iter().find_map(plan).map(|plan| plan.resolved.graph) {
        Some(GraphKind::Integer(id)) => Ok(Some(mixed::algorithm(id).map_err(CommandError::failed)?)),
        _ => Ok(None),
    }
}

/// The weights of classes by the phones' memory.
///
/// # Errors
/// Data that cannot be loaded; classes for a size of memory that no phone of the population has.
fn groups(asked: &Specification, learning: &Learning, phones: &[Phone], cache: &Cache) -> Result<Groups> {
    let Some(set) = learning.data_set(cache)?.filter(|_| learning.by_memory > 0.0) else {
        return Ok(Groups::default());
    };
    let memory = &asked.setting.memory;
    let has_none = |class: &usize| phones.iter().all(|phone| usize::from(phone.memory) != *class);
    if let Some(class) = (0..memory.len()).find(has_none) {
        let why =
            format!("no phone of the population has {} GB, whose classes no phone would have", memory[class].size_gb);
        return Err(CommandError::input(format!(
            "`data_by_memory`: {why}; expected a larger `population` or another `memory_mix`"
        )));
    }
    let sizes: Vec<f64> = memory.iter().map(|class| class.share).collect();
    Ok(Groups::new(asked.seed, set.number_of_classes, &sizes, learning.by_memory))
}

/// The assignment of samples to phones.
fn source(learning: &Learning, phones: &[Phone], seed: u64, groups: &Groups, cache: &Cache) -> Result<Source> {
    let Some(set) = learning.data_set(cache)? else {
        return Ok(Source::Synthetic(Synthetic::new(HETEROGENEITY, HETEROGENEITY).map_err(CommandError::input)?));
    };
    if learning.dealt {
        let clients: Vec<_> = phones.iter().map(|phone| (phone.samples, groups.of(phone.memory))).collect();
        return Ok(Source::dealt(set, seed, &clients, learning.labels));
    }
    Ok(Source::of_set(set))
}

/// Warns that a target is out of reach if the stand-in misses it even with all samples in one place, the best case,
/// after [`PASSES`] passes over them. Does nothing for samples that are made for each client.
///
/// # Errors
/// Weights that cannot be initialised or evaluated; Ctrl-C. A NaN loss is not an error here, since the
/// federation may not diverge.
fn say_out_of_reach(
    target: f64,
    source: &Source,
    stand_in: &StandIn,
    test: &MiniBatch,
    learning: &Learning,
    seed: u64,
) -> Result<()> {
    let (Source::Set { set, .. } | Source::Dealt { set, .. }) = source else { return Ok(()) };
    let parts = vec![(1, &[][..]); set.train.len().div_ceil(PART)];
    let all = Source::dealt(Arc::clone(set), seed, &parts, Labels::Even);
    let how = LocalSgd { epochs: 1, steps: None, proximal: 0.0, ..learning.how };
    let mut weights = stand_in.initial(seed).map_err(CommandError::failed)?;
    let mut best = 0.0_f64;
    let bar = Progress::new(Amount::Number("passes over all samples"), u64::from(PASSES), 0);
    for round in 0..PASSES {
        for client in 0..parts.len() as u32 {
            if interrupt::came() {
                return Err(CommandError::Interrupted);
            }
            let samples = all.samples(seed, client, &Holding(Vec::new()));
            let turn = Turn { seed, round, client };
            let Ok(update) = stand_in.train(&weights, &samples, &how, turn, None) else { return Ok(()) };
            weights.iter_mut().zip(update.change).for_each(|(weight, change)| *weight += change);
        }
        best = best.max(stand_in.score(&weights, test).map_err(CommandError::failed)?.accuracy);
        bar.inc(1);
        if best >= target {
            bar.finish();
            return Ok(());
        }
    }
    bar.finish();
    let reached = format!("even with all samples in one place {} reaches {best:.3}", learning.stand_in);
    note(&format!(
        "`target_accuracy` is {target}, but {reached} in {PASSES} passes: hardly any federation will get there"
    ));
    Ok(())
}

/// The shape of a sample.
fn input(source: &Source) -> Option<Vec<u64>> {
    match source {
        Source::Synthetic(_) => Some(vec![1, 1, Synthetic::FEATURES as u64]),
        Source::Set { set, .. } | Source::Dealt { set, .. } => Some(match &set.form {
            SampleForm::Image(form) => vec![form.channels as u64, form.height as u64, form.width as u64],
            SampleForm::Tokens { length, .. } => vec![*length as u64],
        }),
    }
}

/// Everything learned in the rounds so far, and the server after the last of them: the row of a federation in
/// the log. Rounds are simulated again, which takes little time compared with learning; the results of learning
/// are read from here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Known {
    rounds: Vec<Round>,
    #[serde(with = "bits")]
    weights: Vec<f32>,
    /// The mean and the mean square of changes, for the server's rule.
    #[serde(with = "bits")]
    mean: Vec<f32>,
    #[serde(with = "bits")]
    square: Vec<f32>,
}

/// The results of learning in a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Round {
    #[serde(with = "bits")]
    losses: Vec<f64>,
    accuracy: Option<f64>,
}

impl Known {
    /// The number of rounds.
    pub(super) fn rounds(&self) -> u64 {
        self.rounds.len() as u64
    }

    /// The results of learning in a round; rounds count from one.
    pub(super) fn learned(&self, round: u32) -> Option<Learned> {
        let Round { losses, accuracy } = self.rounds.get(round.checked_sub(1)? as usize)?.clone();
        Some(Learned { losses, accuracy })
    }

    /// The server as it was after the last round; `None` before the first.
    pub(super) fn server(&self, rule: ServerRule) -> Option<Server> {
        let Self { rounds, weights, mean, square } = self.clone();
        if rounds.is_empty() { None } else { Server::restored(weights, rule, mean, square) }
    }

    /// Adds the results of learning in a round.
    pub(super) fn add(&mut self, Learned { losses, accuracy }: Learned, server: &Server) {
        self.rounds.push(Round { losses, accuracy });
        let [mean, square] = server.kept();
        (self.weights, self.mean, self.square) = (server.weights.clone(), mean.to_vec(), square.to_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learned_comes_back_to_the_bit() {
        let learned = [
            Learned { losses: vec![0.1 + 0.2, 1e-300], accuracy: Some(0.3) },
            Learned { losses: vec![], accuracy: None },
        ];
        let server = Server::new(vec![0.1, -0.0], ServerRule::Add);
        let mut known = Known::default();
        assert_eq!(known.server(ServerRule::Add), None);
        learned.iter().for_each(|learned| known.add(learned.clone(), &server));
        let text = serde_json::to_string(&known).unwrap();
        let read: Known = serde_json::from_str(&text).unwrap();
        assert_eq!((read.rounds(), read.server(ServerRule::Add)), (2, Some(server)));
        assert_eq!(
            [1, 2, 3].map(|round| read.learned(round)),
            [Some(learned[0].clone()), Some(learned[1].clone()), None]
        );
        crate::fuzz::against("federation-checkpoint", &[text.into_bytes()], |bytes| {
            let _ = serde_json::from_slice::<Known>(bytes).map(|known| known.server(ServerRule::Add));
        });
    }
}
