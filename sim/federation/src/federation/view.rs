//! The phones of a federation as its selector sees them.

use crate::availability::Availability;
use crate::population::Population;
use crate::rows::ExclusionRow;
use crate::selection::Pool;
use crate::work::{LeftOut, Why, Work};

/// Whether a phone can take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// Unknown yet.
    Unknown,
    /// A plan fits it.
    Plan,
    /// No plan fits it, or it has no samples.
    Nothing,
}

/// The phones of a federation at a time.
pub(super) struct Phones<'a> {
    pub(super) population: &'a Population,
    pub(super) work: &'a dyn Work,
    pub(super) availability: Availability,
    pub(super) holds: Vec<Holds>,
    pub(super) oracle: bool,
    pub(super) now: f64,
}

/// The phones as a selector sees them at the begin of a round.
pub(super) struct View<'v, 'a> {
    pub(super) phones: &'v mut Phones<'a>,
    pub(super) round: u32,
    pub(super) exclusions: &'v mut Vec<ExclusionRow>,
}

impl Pool for View<'_, '_> {
    fn number(&self) -> u32 {
        self.phones.population.phones().len() as u32
    }

    fn is_free(&mut self, phone: u32) -> bool {
        let holds = self.phones.holds[phone as usize];
        if holds == Holds::Nothing || self.phones.availability.ready_until(phone, self.phones.now).is_none() {
            return false;
        }
        if holds == Holds::Unknown {
            let found = self.plan(phone);
            self.phones.holds[phone as usize] = if found.is_ok() { Holds::Plan } else { Holds::Nothing };
            if let Err(LeftOut { why, reason }) = found {
                self.exclusions.push(ExclusionRow { round: self.round, client: phone, why, reason });
                return false;
            }
        }
        true
    }

    fn is_eligible(&self, phone: u32) -> bool {
        let holds = self.phones.holds[phone as usize];
        holds == Holds::Plan || (holds == Holds::Unknown && self.plan(phone).is_ok())
    }

    fn expected_s(&self, phone: u32) -> f64 {
        self.phones.work.expected_s(phone)
    }

    fn batch_s(&self, phone: u32) -> f64 {
        self.phones.work.batch_s(phone)
    }

    fn memory(&self, phone: u32) -> f64 {
        self.phones.work.memory(phone)
    }

    fn samples(&self, phone: u32) -> u32 {
        self.phones.population.phones()[phone as usize].samples
    }
}

impl View<'_, '_> {
    /// Why a phone is left out.
    fn plan(&self, phone: u32) -> Result<(), LeftOut> {
        if self.samples(phone) == 0 {
            return Err(LeftOut { why: Why::NoSamples, reason: "it holds no samples".to_owned() });
        }
        self.phones.work.holds(phone).or_else(|left_out| if self.phones.oracle { Ok(()) } else { Err(left_out) })
    }
}
