//! Who takes part in a round.
//!
//! A [`Selector`] is asked for a number of phones of a [`Pool`] and is told what became of them. Whatever its rule, it takes no phone
//! that is not free, none twice, and as many as were asked for while there are free ones.

mod fedhybrid;
mod oort;
mod random;
mod turns;
mod weighted;

pub use fedhybrid::FedHybrid;
pub use oort::{Oort, OortRules};
pub use random::Random;

use serde::{Deserialize, Serialize};

/// What is known of the phones of a round.
pub trait Pool {
    /// The number of phones.
    fn number(&self) -> u32;
    /// Whether a phone is ready, not busy, and can hold a plan.
    fn is_free(&mut self, phone: u32) -> bool;
    /// Whether it can hold a plan, free or not.
    fn is_eligible(&self, phone: u32) -> bool;
    /// How long its round is expected to take, in seconds.
    fn expected_s(&self, phone: u32) -> f64;
    /// Seconds that it computes on one batch where memory is no matter.
    fn batch_s(&self, phone: u32) -> f64;
    /// Its memory budget over what training needs.
    fn memory(&self, phone: u32) -> f64;
    /// The samples that it holds.
    fn samples(&self, phone: u32) -> u32;
}

/// What became of a phone that was selected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// The phone.
    pub phone: u32,
    /// How long its part took, in seconds; if its work did not count, the whole round, which is the least that it can have needed.
    pub took_s: f64,
    /// The root of the mean square of its samples' losses; `None` if its work did not count.
    pub root_mean_square_loss: Option<f64>,
}

/// A rule for who takes part.
pub trait Selector {
    /// At most `number` free phones for round number `round`, from one.
    fn select(&mut self, round: u32, number: usize, pool: &mut dyn Pool) -> Vec<u32>;
    /// What became of the phones of a round, and how many samples each holds.
    fn learn(&mut self, round: u32, feedback: &[Feedback], pool: &dyn Pool);
}

/// The selectors by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SelectorKind {
    /// Any free phone.
    Random,
    /// Oort as its paper has it (Lai et al., OSDI 2021).
    OortPaper,
    /// Oort as FedScale ships it.
    OortFedscale,
    /// Any free phone, with as wide a network as it can hold (HeteroFL: Diao et al., ICLR 2021).
    Heterofl,
    /// By memory, data and computing utility (FedHybrid, section 4.2).
    Fedhybrid,
    /// The same, sampled from those near the best instead of the best alone.
    FedhybridSampled,
}

impl SelectorKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Random, Self::OortPaper, Self::OortFedscale, Self::Heterofl, Self::Fedhybrid, Self::FedhybridSampled];

    /// The name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// A selector that has seen nothing of `phones` phones, whose draws follow from the seed and the round.
    pub fn build(self, seed: u64, phones: u32) -> Box<dyn Selector + Send> {
        match self {
            Self::Random | Self::Heterofl => Box::new(Random::new(seed)),
            Self::OortPaper => Box::new(Oort::new(seed, phones, OortRules::PAPER)),
            Self::OortFedscale => Box::new(Oort::new(seed, phones, OortRules::FEDSCALE)),
            Self::Fedhybrid => Box::new(FedHybrid::new(seed, phones)),
            Self::FedhybridSampled => Box::new(FedHybrid::sampled(seed, phones)),
        }
    }
}
