//! A federation: synchronous rounds, one after the other, over a population whose phones come and go.

mod learn;
mod rules;
mod view;

use crate::availability::Availability;
use crate::population::Population;
use crate::round::{Ended, Outcome, Part, Starter, synchronous};
use crate::rows::{ClientRow, ExclusionRow, RoundRow};
use crate::selection::{Feedback, Selector};
use crate::work::Work;
pub use learn::{Arrived, Learn, Learned, Step, TimingOnly};
pub use rules::{Rules, RulesError};
use view::{Holds, View};

/// What one round yields.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// The round.
    pub row: RoundRow,
    /// Its phones, in the order in which they were selected.
    pub clients: Vec<ClientRow>,
    /// Phones that were found in it to hold no plan.
    pub exclusions: Vec<ExclusionRow>,
}

/// How long the server waits before it looks again where nobody is free, in seconds.
const PAUSE: f64 = 60.0;
/// How often it looks before it gives a round up.
const LOOKS: u32 = 24 * 60;

/// A federation under way.
pub struct Federation<'a> {
    rules: Rules,
    population: &'a Population,
    work: &'a dyn Work,
    availability: Availability,
    selector: Box<dyn Selector + Send>,
    holds: Vec<Holds>,
    now: f64,
    rounds: u32,
}

impl<'a> Federation<'a> {
    /// A federation that begins.
    ///
    /// # Errors
    /// As [`Rules::check`].
    pub fn new(
        seed: u64,
        rules: Rules,
        population: &'a Population,
        availability: Availability,
        work: &'a dyn Work,
    ) -> Result<Self, RulesError> {
        let phones = population.len() as u32;
        rules.check(phones)?;
        Ok(Self {
            rules,
            population,
            work,
            availability,
            selector: rules.selector.build(seed, phones),
            holds: vec![Holds::Unknown; population.len()],
            now: 0.0,
            rounds: 0,
        })
    }

    /// The next round. Where nobody is free the server looks again every minute for a day, and then the round has nobody.
    ///
    /// # Errors
    /// What stops learning, in words.
    pub fn round(&mut self, learn: &mut dyn Learn) -> Result<Round, String> {
        let (round, start_s) = (self.rounds + 1, self.now);
        let mut exclusions = Vec::new();
        let Ended { duration_s, parts } = self.hold(round, &mut exclusions);
        let is_completed = |part: &&Part| part.outcome == Outcome::Completed;
        let arrived: Vec<Arrived> = parts.iter().filter(is_completed).map(Arrived::of).collect();
        let Learned { losses, accuracy } = learn.learn(&Step { round, arrived: &arrived })?;
        let mut losses = losses.into_iter();
        let feedback: Vec<Feedback> = parts
            .iter()
            .map(|part| Feedback {
                phone: part.phone,
                took_s: part.ended_s,
                root_mean_square_loss: is_completed(&part).then(|| losses.next()).flatten(),
            })
            .collect();
        let clients = parts.iter().map(|part| self.client(round, part)).collect();
        let row = RoundRow { accuracy, ..RoundRow::of(round, start_s, duration_s, &parts) };
        self.rounds = round;
        let view = View {
            population: self.population,
            work: self.work,
            availability: &mut self.availability,
            holds: &mut self.holds,
            oracle: self.rules.oracle,
            now: self.now,
            round,
            exclusions: &mut exclusions,
        };
        self.selector.learn(round, &feedback, &view);
        Ok(Round { row, clients, exclusions })
    }

    /// What the phones of a round do, before anybody has learned from it.
    fn hold(&mut self, round: u32, exclusions: &mut Vec<ExclusionRow>) -> Ended {
        let start_s = self.now;
        let number = (f64::from(self.rules.cohort) * self.rules.over_commit).round() as usize;
        let mut selected = Vec::new();
        for _ in 0..LOOKS {
            selected = self.select(round, number, exclusions);
            if !selected.is_empty() {
                break;
            }
            self.now += PAUSE;
        }
        let starters: Vec<Starter> = selected.iter().filter_map(|&phone| self.starter(phone, round)).collect();
        let mut ended = synchronous(&starters, self.rules.cohort as usize, self.rules.deadline_s);
        let waited = self.now - start_s;
        self.now += ended.duration_s;
        ended.duration_s += waited;
        ended
    }

    fn client(&self, round: u32, part: &Part) -> ClientRow {
        let phone = self.population.phones()[part.phone as usize];
        ClientRow {
            round,
            client: part.phone,
            device: phone.device,
            memory_class: phone.memory,
            budget_bytes: part.job.budget_bytes,
            plan: part.job.plan,
            compute_s: part.compute_s,
            up_s: part.up_s,
            down_s: part.down_s,
            energy_j: part.energy_j,
            outcome: part.outcome,
        }
    }

    fn select(&mut self, round: u32, number: usize, exclusions: &mut Vec<ExclusionRow>) -> Vec<u32> {
        let mut view = View {
            population: self.population,
            work: self.work,
            availability: &mut self.availability,
            holds: &mut self.holds,
            oracle: self.rules.oracle,
            now: self.now,
            round,
            exclusions,
        };
        self.selector.select(round, number, &mut view)
    }

    /// A phone that begins its part of a round.
    fn starter(&mut self, number: u32, round: u32) -> Option<Starter> {
        let until = self.availability.ready_until(number, self.now)?;
        let phone = self.population.phones()[number as usize];
        let job = self.work.job(number, round, self.now);
        Some(Starter { number, phone, job, ready_s: until - self.now })
    }
}
