//! The rounds of a federation, from its specification.

use haversack_federation::availability::Availability;
use haversack_federation::federation::{Federation, Learn, TimingOnly};
use haversack_federation::rows::{ClientRow, ExclusionRow, RoundRow};
use haversack_federation::work::Work;

use super::budgets::Budgets;
use super::classes::{self, ClassRow};
use super::costs::{Costs, Planning};
use super::learner::Learner;
use super::specification::{Phones, Ready, Specification};
use super::widths::{Widths, of_each_width};
use crate::cache::Cache;
use crate::error::CommandError;
use crate::interrupt;

/// What a federation has yielded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// The number of phones of the population.
    pub(crate) phones: u32,
    /// A row a round.
    pub(crate) rounds: Vec<RoundRow>,
    /// A row a phone of a round.
    pub(crate) clients: Vec<ClientRow>,
    /// A row a phone that is left out.
    pub(crate) exclusions: Vec<ExclusionRow>,
    /// A row a memory class.
    pub(crate) classes: Vec<ClassRow>,
}

/// All rounds of `asked`; `cache` keeps what other federations need, too.
///
/// # Errors
/// As [`hold`], and a network, policy, data or traces that cannot be had.
pub(crate) fn held(asked: &Specification, cache: &Cache) -> Result<Held, CommandError> {
    let phones = Phones::draw(asked)?.dealt(asked, cache)?;
    let budgets = Budgets::watch(asked, cache)?;
    let widths = of_each_width(asked);
    let work = Widths::new(&widths, &phones, &budgets, cache)?;
    let mut learner = Learner::of(asked, &phones, &work, None, cache)?;
    hold(asked, &phones, &work, learner.as_mut(), &mut || ())
}

/// What making the plans of a federation's phones takes its server.
///
/// # Errors
/// A network, policy or traces that cannot be had.
pub(crate) fn planning(asked: &Specification, cache: &Cache) -> Result<Planning, CommandError> {
    let phones = Phones::draw(asked)?;
    let budgets = Budgets::watch(asked, cache)?;
    Ok(Costs::new(asked, &phones, &budgets, cache)?.planning())
}

/// Holds the rounds, until the accuracy that is wanted is there; `after` is called after each.
///
/// # Errors
/// A loss that is no number any more; Ctrl-C. What had been learned by then is kept.
pub(super) fn hold(
    asked: &Specification,
    phones: &Phones,
    work: &dyn Work,
    mut learner: Option<&mut Learner<'_>>,
    after: &mut dyn FnMut(),
) -> Result<Held, CommandError> {
    let Phones { population, .. } = phones;
    let sessions = asked.setting.sessions.clone();
    let by_sessions = Availability::new(asked.seed, population.len(), sessions.ready, sessions.between);
    let availability = match asked.ready {
        Ready::Sessions => by_sessions,
        Ready::Always => by_sessions.always(),
    };
    let mut federation =
        Federation::new(asked.seed, asked.rules, population, availability, work).map_err(CommandError::input)?;
    let mut held = Held { phones: asked.phones, ..Held::default() };
    let mut timing = TimingOnly;
    for _ in 0..asked.rounds {
        if interrupt::came() {
            learner.map_or(Ok(()), Learner::keep)?;
            return Err(CommandError::Interrupted);
        }
        let learn: &mut dyn Learn = match &mut learner {
            Some(learner) => *learner,
            None => &mut timing,
        };
        let round = federation.round(learn).map_err(CommandError::failed)?;
        let reached = reached(asked, round.row.accuracy);
        held.rounds.push(round.row);
        held.clients.extend(round.clients);
        held.exclusions.extend(round.exclusions);
        after();
        if reached {
            break;
        }
    }
    if let Some(learner) = learner {
        learner.say_diverged();
        learner.keep()?;
    }
    held.classes = classes::of(population.phones(), &asked.setting.memory, &held.clients, &held.exclusions);
    Ok(held)
}

/// Whether the accuracy that is wanted is there.
fn reached(asked: &Specification, accuracy: Option<f64>) -> bool {
    let target = asked.learning.as_ref().and_then(|learning| learning.target);
    target.zip(accuracy).is_some_and(|(target, accuracy)| accuracy >= target)
}
