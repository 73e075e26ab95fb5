//! A federation: synchronous rounds, one after the other, over a population whose phones come and go.

mod view;

use serde::{Deserialize, Serialize};

use crate::availability::Availability;
use crate::population::Population;
use crate::round::{Ended, Outcome, Part, Starter, synchronous};
use crate::rows::{ClientRow, ExclusionRow, RoundRow};
use crate::selection::{Feedback, Selector, SelectorKind};
use crate::work::Work;
use view::{Holds, Phones, View};

/// The result of one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// The round.
    pub row: RoundRow,
    /// Its phones, in the order in which they were selected.
    pub clients: Vec<ClientRow>,
    /// Phones that were found in it to be unable to take part.
    pub exclusions: Vec<ExclusionRow>,
}

/// The time until the server looks again if no phone is free, in seconds.
const PAUSE: f64 = 60.0;
/// The number of times that it looks before it gives up on a round.
const LOOKS: u32 = 24 * 60;

/// A running federation.
pub struct Federation<'a> {
    rules: Rules,
    phones: Phones<'a>,
    selector: Box<dyn Selector + Send>,
    rounds: u32,
}

impl<'a> Federation<'a> {
    /// A federation before its first round.
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
        let number = population.phones().len() as u32;
        rules.check(number)?;
        let holds = vec![Holds::Unknown; population.phones().len()];
        let phones = Phones { population, work, availability, holds, oracle: rules.oracle, now: 0.0 };
        Ok(Self { rules, phones, selector: rules.selector.build(seed, number), rounds: 0 })
    }

    /// Runs the next round. If no phone is free, the server looks again every minute for a day, and
    /// then the round is empty.
    ///
    /// # Errors
    /// The reason why learning stops.
    pub fn round(&mut self, learn: &mut dyn Learn) -> Result<Round, String> {
        let (round, start_s) = (self.rounds + 1, self.phones.now);
        let mut exclusions = Vec::new();
        let (waited, Ended { duration_s, parts }) = self.hold(round, &mut exclusions);
        let is_completed = |part: &&Part| part.outcome == Outcome::Completed;
        let arrived = parts.iter().filter(is_completed);
        let arrived: Vec<Arrived> = arrived.map(|part| Arrived { phone: part.phone, width: part.job.width }).collect();
        let Learned { losses, accuracy } = learn.learn(&Step { round, arrived: &arrived })?;
        let mut losses = losses.into_iter();
        let feedback: Vec<Feedback> = parts
            .iter()
            .map(|part| Feedback {
                phone: part.phone,
                took_s: if is_completed(&part) { part.ended_s } else { duration_s },
                root_mean_square_loss: is_completed(&part).then(|| losses.next()).flatten(),
            })
            .collect();
        let clients = parts.iter().map(|part| self.client(round, part)).collect();
        let row = RoundRow { accuracy, ..RoundRow::of(round, start_s, waited + duration_s, &parts) };
        self.rounds = round;
        let view = View { phones: &mut self.phones, round, exclusions: &mut exclusions };
        self.selector.learn(round, &feedback, &view);
        Ok(Round { row, clients, exclusions })
    }

    /// Runs the phones of a round, before anything is learned from it. Returns how long the server waited for
    /// free phones, and the result.
    fn hold(&mut self, round: u32, exclusions: &mut Vec<ExclusionRow>) -> (f64, Ended) {
        let start_s = self.phones.now;
        let number = (f64::from(self.rules.cohort) * self.rules.over_commit).round() as usize;
        let mut selected = Vec::new();
        for _ in 0..LOOKS {
            selected = self.select(round, number, exclusions);
            if !selected.is_empty() {
                break;
            }
            self.phones.now += PAUSE;
        }
        let starters: Vec<Starter> = selected.iter().filter_map(|&phone| self.starter(phone, round)).collect();
        let ended = synchronous(&starters, self.rules.cohort as usize, self.rules.deadline_s);
        let waited = self.phones.now - start_s;
        self.phones.now += ended.duration_s;
        (waited, ended)
    }

    fn client(&self, round: u32, part: &Part) -> ClientRow {
        let phone = self.phones.population.phones()[part.phone as usize];
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
        let mut view = View { phones: &mut self.phones, round, exclusions };
        self.selector.select(round, number, &mut view)
    }

    /// A phone that begins its part of a round; `None` if it is not ready.
    fn starter(&mut self, number: u32, round: u32) -> Option<Starter> {
        let until = self.phones.availability.ready_until(number, self.phones.now)?;
        let phone = self.phones.population.phones()[number as usize];
        let job = self.phones.work.job(number, round, self.phones.now);
        Some(Starter { number, phone, job, ready_s: until - self.phones.now })
    }
}

// Learning in a round: the other half of a federation, which needs data.

/// An update that the server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The phone.
    pub phone: u32,
    /// The width of the network that it trained: an index into [`crate::work::WIDTHS`].
    pub width: u8,
}

/// The updates of a round.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Its number, from one.
    pub round: u32,
    /// Updates, in the order in which phones were selected.
    pub arrived: &'a [Arrived],
}

/// Learning from the updates of a round.
pub trait Learn {
    /// Learns from the updates that have arrived.
    ///
    /// # Errors
    /// The reason why the federation stops.
    fn learn(&mut self, step: &Step<'_>) -> Result<Learned, String>;
}

/// The result of learning in a round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learned {
    /// For each update, the root of the mean square of its phone's losses.
    pub losses: Vec<f64>,
    /// The share of test samples that are classified correctly.
    pub accuracy: Option<f64>,
}

/// Only time: all samples of all phones have a loss of one, so that phones' data differ only in their number.
#[derive(Clone, Copy, Debug)]
pub struct TimingOnly;

impl Learn for TimingOnly {
    fn learn(&mut self, step: &Step<'_>) -> Result<Learned, String> {
        Ok(Learned { losses: vec![1.0; step.arrived.len()], accuracy: None })
    }
}

// The rules of rounds.

/// The rules of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// Who takes part.
    pub selector: SelectorKind,
    /// Updates that a round waits for.
    pub cohort: u32,
    /// Phones that begin a round, as a multiple of the cohort.
    pub over_commit: f64,
    /// How long a round lasts at most, in seconds; `None` without a limit.
    pub deadline_s: Option<f64>,
    /// Whether memory limits are ignored: phones that no plan fits take part, too (the paper's *oracle*, section 2.1).
    pub oracle: bool,
}

/// Rules that contradict themselves or the population.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("`{field}` is {value}, expected {expected}")]
pub struct RulesError {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// The valid values.
    pub expected: String,
}

impl Rules {
    /// Synchronous rounds of 1.3 times the cohort, as FedScale over-commits, without a deadline.
    pub const fn new(selector: SelectorKind, cohort: u32) -> Self {
        Self { selector, cohort, over_commit: 1.3, deadline_s: None, oracle: false }
    }

    /// # Errors
    /// No cohort, one larger than the population, over-commitment below one, or an invalid deadline.
    pub fn check(&self, phones: u32) -> Result<(), RulesError> {
        let wrong = |field, value: String, expected: String| Err(RulesError { field, value, expected });
        if self.cohort == 0 || self.cohort > phones {
            return wrong(
                "cohort",
                self.cohort.to_string(),
                format!("from 1 to the {phones} phones of the population"),
            );
        }
        if !(self.over_commit >= 1.0 && self.over_commit.is_finite()) {
            return wrong("over_commit", self.over_commit.to_string(), "a number from 1".to_owned());
        }
        match self.deadline_s {
            Some(deadline) if !(deadline > 0.0 && deadline.is_finite()) => {
                wrong("deadline_s", deadline.to_string(), "a time above 0 s".to_owned())
            }
            _ => Ok(()),
        }
    }
}
