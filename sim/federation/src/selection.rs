//! Selection of the phones that take part in a round.
//!
//! A [`Selector`] selects a number of phones from a [`Pool`] and later learns their results. Whatever its rule, it
//! selects only free phones, none twice, and as many as requested as long as enough are free.

mod fedhybrid;
mod oort;
mod random;
mod turns;
mod weighted;

pub use fedhybrid::FedHybrid;
pub use oort::{Oort, OortRules};
pub use random::Random;

use serde::{Deserialize, Serialize};

/// The phones of a round, as a selector sees them.
pub trait Pool {
    /// The number of phones.
    fn number(&self) -> u32;
    /// Whether a phone is ready, not busy, and some plan fits it.
    fn is_free(&mut self, phone: u32) -> bool;
    /// Whether some plan fits it, free or not.
    fn is_eligible(&self, phone: u32) -> bool;
    /// How long its round is expected to take, in seconds.
    fn expected_s(&self, phone: u32) -> f64;
    /// Its computing time for one batch without memory limits, in seconds.
    fn batch_s(&self, phone: u32) -> f64;
    /// Its memory budget over the memory that training needs.
    fn memory(&self, phone: u32) -> f64;
    /// The number of its samples.
    fn samples(&self, phone: u32) -> u32;
}

/// The result of a phone that was selected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// The phone.
    pub phone: u32,
    /// How long its part took, in seconds; if its work did not count, the duration of the whole round, which is the
    /// least that it can have needed.
    pub took_s: f64,
    /// The root of the mean square of its samples' losses; `None` if its work did not count.
    pub root_mean_square_loss: Option<f64>,
}

/// A selection rule.
pub trait Selector {
    /// At most `number` free phones for round number `round`, from one.
    fn select(&mut self, round: u32, number: usize, pool: &mut dyn Pool) -> Vec<u32>;
    /// Learns the results of the phones of a round, and reads their numbers of samples from `pool`.
    fn learn(&mut self, round: u32, feedback: &[Feedback], pool: &dyn Pool);
}

/// The selectors by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SelectorKind {
    /// Any free phone.
    Random,
    /// Oort as in its paper (Lai et al., OSDI 2021).
    OortPaper,
    /// Oort as FedScale ships it.
    OortFedscale,
    /// Any free phone, with the widest network that fits it (HeteroFL: Diao et al., ICLR 2021).
    Heterofl,
    /// By memory, data and computing utility (FedHybrid, section 4.2).
    Fedhybrid,
    /// The same, sampled from those near the best instead of only the best.
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

    /// A selector for `phones` phones that has not learned anything; its draws follow from the seed and the round.
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
