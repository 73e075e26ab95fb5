//! The rounds of a federation, from its specification.

use std::collections::{BTreeMap, BTreeSet};

use haversack_federation::availability::Availability;
use haversack_federation::federation::{Federation, Learn, TimingOnly};
use haversack_federation::population::{DeviceKind, MemoryClass, Phone};
use haversack_federation::round::Outcome;
use haversack_federation::rows::{ClientRow, ExclusionRow, RoundRow};
use haversack_federation::work::{Why, Work};

use super::budgets::Budgets;
use super::costs::{Costs, Planning, of_each_kind};
use super::learner::Learner;
use super::specification::{Phones, Ready, Specification};
use super::widths::{Widths, of_each_width};
use crate::output::note;
use crate::work::Steps;
use crate::{Cache, CommandError, Result, interrupt};

/// The results of a federation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// The number of phones of the population, and of those that can take part.
    pub(crate) phones: u32,
    /// See above.
    pub(crate) eligible: u32,
    /// Phones with an aggregated update, and the fraction of all samples on them.
    pub(crate) contributed: u32,
    /// See above.
    pub(crate) reached: f64,
    /// One row per round.
    pub(crate) rounds: Vec<RoundRow>,
    /// One row per phone left out.
    pub(crate) exclusions: Vec<ExclusionRow>,
    /// One row per memory class.
    pub(crate) classes: Vec<ClassRow>,
}

/// Phones of rounds that are written together: a row group of their table.
pub(super) const GROUP: usize = 1 << 16;

/// Takes rows of phones and rounds, in their order, and the kinds of devices that they name by number.
pub(super) type Write<'w> = &'w mut dyn FnMut(&[ClientRow], &[DeviceKind]) -> Result<()>;

/// Simulates all rounds of `asked`, and gives their phones to `write`, at most about a [`GROUP`] at once; `cache` keeps
/// values that other federations share.
///
/// # Errors
/// As [`hold`], and a network, policy, data or traces that cannot be loaded.
pub(crate) fn held(asked: &Specification, steps: Option<&Steps<'_>>, cache: &Cache, write: Write<'_>) -> Result<Held> {
    let phones = Phones::draw(asked)?.dealt(asked, cache)?;
    let widths = of_each_width(asked);
    // A network that no phone can train is found before phones are watched for half a minute.
    widths.iter().try_for_each(|asked| of_each_kind(asked, &phones.kinds, cache).map(|_| ()))?;
    let budgets = Budgets::watch(asked, cache)?;
    let work = Widths::new(&widths, &phones, &budgets, cache)?;
    let can = |phone: &u32| asked.rules.oracle || work.holds(*phone).is_ok();
    let eligible = (0..asked.phones).filter(can).count() as u32;
    if steps.is_some() {
        say_no_choice(asked, eligible);
    }
    let mut learner = Learner::of(asked, &phones, &work, steps, cache)?;
    steps.map_or(Ok(()), Steps::begin)?;
    let held = hold(asked, &phones, &work, learner.as_mut(), steps, write)?;
    Ok(Held { eligible, ..held })
}

/// Warns that a selector has no choice if fewer than twice the cohort can take part.
fn say_no_choice(asked: &Specification, eligible: u32) {
    let (cohort, phones) = (asked.rules.cohort, asked.phones);
    if eligible < (2 * cohort).min(phones) {
        let words = "a selector has no choice, and a comparison of selectors shows nothing";
        note(&format!("{eligible} of {phones} phones can take part, fewer than twice the cohort of {cohort}: {words}"));
    }
}

/// The server's cost of making plans for a federation's phones.
///
/// # Errors
/// A network, policy or traces that cannot be loaded.
pub(crate) fn planning(asked: &Specification, cache: &Cache) -> Result<Planning> {
    let phones = Phones::draw(asked)?;
    let budgets = Budgets::watch(asked, cache)?;
    Ok(Costs::new(asked, &phones, &budgets, cache)?.planning())
}

/// Simulates the rounds, until the target accuracy is reached.
///
/// # Errors
/// A NaN loss; Ctrl-C. Rounds learned until then are kept.
fn hold(
    asked: &Specification,
    phones: &Phones,
    work: &dyn Work,
    mut learner: Option<&mut Learner<'_>>,
    steps: Option<&Steps<'_>>,
    write: Write<'_>,
) -> Result<Held> {
    let Phones { population, kinds } = phones;
    let sessions = asked.setting.sessions.clone();
    let by_sessions = Availability::new(asked.seed, population.phones().len(), sessions.ready, sessions.between);
    let availability = match asked.ready {
        Ready::Sessions => by_sessions,
        Ready::Always => by_sessions.always(),
    };
    let mut federation =
        Federation::new(asked.seed, asked.rules, population, availability, work).map_err(CommandError::input)?;
    let mut held = Held { phones: asked.phones, ..Held::default() };
    let (mut classes, mut clients) = (Classes::of(population.phones(), &asked.setting.memory), Vec::new());
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
        let end = round.row.start_s + round.row.duration_s;
        let reached = reached(asked, round.row.accuracy) || asked.horizon_s.is_some_and(|horizon| end >= horizon);
        held.rounds.push(round.row);
        round.clients.iter().for_each(|client| classes.count(client));
        clients.extend(round.clients);
        if clients.len() >= GROUP {
            write(&std::mem::take(&mut clients), kinds)?;
        }
        held.exclusions.extend(round.exclusions);
        steps.into_iter().for_each(Steps::step);
        if reached {
            break;
        }
    }
    if let Some(learner) = learner {
        learner.say_diverged();
        learner.keep()?;
    }
    write(&clients, kinds)?;
    Ok(classes.into_held(held))
}

/// Whether the target accuracy is reached.
fn reached(asked: &Specification, accuracy: Option<f64>) -> bool {
    let target = asked.learning.as_ref().and_then(|learning| learning.target);
    target.zip(accuracy).is_some_and(|(target, accuracy)| accuracy >= target)
}

/// A memory class of a federation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ClassRow {
    /// The memory of its phones, in GB.
    pub(crate) size_gb: f64,
    /// Its phones.
    pub(crate) phones: u32,
    /// Phones left out because the system kills training even at rest.
    pub(crate) without_plan: u32,
    /// Phones left out because they have no samples.
    pub(crate) without_samples: u32,
    /// Phones left out because the traces of their memory are too short.
    pub(crate) without_trace: u32,
    /// Updates of its phones that were aggregated.
    pub(crate) completed: u32,
    /// Updates lost because the phone was no longer ready.
    pub(crate) dropped: u32,
    /// Updates lost because the system killed the process.
    pub(crate) killed: u32,
    /// Updates that came too late.
    pub(crate) timed_out: u32,
    /// The energy of all its phones' work, in joules.
    pub(crate) energy_j: f64,
    /// The median memory budget, in bytes; `None` if no phone of it took part.
    pub(crate) budget_bytes: Option<u64>,
}

/// Counts the phones of rounds by memory class.
struct Classes<'p> {
    phones: &'p [Phone],
    rows: Vec<ClassRow>,
    /// How often each budget came, by class.
    budgets: Vec<BTreeMap<u64, u64>>,
    /// Phones with an aggregated update.
    contributors: BTreeSet<u32>,
}

impl<'p> Classes<'p> {
    /// Before the first round: the `phones` of each of `classes`.
    fn of(phones: &'p [Phone], classes: &[MemoryClass]) -> Self {
        let row = |class: &MemoryClass| ClassRow { size_gb: class.size_gb, ..ClassRow::default() };
        let mut rows: Vec<ClassRow> = classes.iter().map(row).collect();
        phones.iter().for_each(|phone| rows[usize::from(phone.memory)].phones += 1);
        Self { phones, budgets: vec![BTreeMap::new(); rows.len()], rows, contributors: BTreeSet::new() }
    }

    fn count(&mut self, client: &ClientRow) {
        let class = usize::from(client.memory_class);
        let row = &mut self.rows[class];
        *match client.outcome {
            Outcome::Completed => &mut row.completed,
            Outcome::Dropped => &mut row.dropped,
            Outcome::Killed => &mut row.killed,
            Outcome::TimedOut => &mut row.timed_out,
        } += 1;
        row.energy_j += client.energy_j;
        *self.budgets[class].entry(client.budget_bytes).or_default() += 1;
        if client.outcome == Outcome::Completed {
            self.contributors.insert(client.client);
        }
    }

    /// `held`, with the rows of all classes and what was reached.
    fn into_held(mut self, held: Held) -> Held {
        for ExclusionRow { client, why, .. } in &held.exclusions {
            let row = &mut self.rows[usize::from(self.phones[*client as usize].memory)];
            *match why {
                Why::NoPlan => &mut row.without_plan,
                Why::NoSamples => &mut row.without_samples,
                Why::NoTrace => &mut row.without_trace,
            } += 1;
        }
        for (row, budgets) in self.rows.iter_mut().zip(&self.budgets) {
            let (half, mut seen) = (budgets.values().sum::<u64>() / 2, 0);
            row.budget_bytes = budgets.iter().find_map(|(bytes, times)| {
                seen += times;
                (seen > half).then_some(*bytes)
            });
        }
        let samples = |of: &mut dyn Iterator<Item = &Phone>| of.map(|phone| f64::from(phone.samples)).sum::<f64>();
        let reached = samples(&mut self.contributors.iter().map(|&phone| &self.phones[phone as usize]))
            / samples(&mut self.phones.iter());
        Held { contributed: self.contributors.len() as u32, reached, classes: self.rows, ..held }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_phones_are_counted_by_class() {
        let phone = |memory, samples| Phone { memory, device: 0, speed: 1.0, down: 1.0, up: 1.0, samples };
        let phones = [phone(0, 5), phone(1, 5), phone(1, 0), phone(0, 5)];
        let class = |size_gb| MemoryClass { size_gb, share: 0.5, devices: Vec::new(), speed_spread: 0.0 };
        let client = |client, memory_class, budget_bytes, outcome| ClientRow {
            round: 1,
            client,
            device: 0,
            memory_class,
            budget_bytes,
            plan: 0,
            compute_s: 1.0,
            up_s: 0.0,
            down_s: 0.0,
            energy_j: 2.5,
            outcome,
        };
        let clients = [
            client(1, 1, 30, Outcome::Completed),
            client(2, 1, 10, Outcome::Killed),
            client(1, 1, 20, Outcome::TimedOut),
        ];
        let left_out = |client, why| ExclusionRow { round: 1, client, why, reason: String::new() };
        let left_out = [left_out(0, Why::NoPlan), left_out(2, Why::NoSamples), left_out(3, Why::NoTrace)];
        let mut classes = Classes::of(&phones, &[class(4.0), class(8.0)]);
        clients.iter().for_each(|client| classes.count(client));
        let found = classes.into_held(Held { exclusions: left_out.to_vec(), ..Held::default() });
        let small = ClassRow { size_gb: 4.0, phones: 2, without_plan: 1, without_trace: 1, ..ClassRow::default() };
        let large = ClassRow {
            size_gb: 8.0,
            phones: 2,
            without_samples: 1,
            completed: 1,
            killed: 1,
            timed_out: 1,
            energy_j: 7.5,
            budget_bytes: Some(20),
            ..ClassRow::default()
        };
        assert_eq!(found.classes, [small, large]);
        assert_eq!((found.contributed, found.reached), (1, 1.0 / 3.0));
    }
}
