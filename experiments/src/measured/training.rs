//! Trainings whose accuracies figures are drawn from: what was trained, on what its numbers depend, and its curves.

use haversack_devices::registry::digest;
use serde::{Deserialize, Serialize};

/// The version of all that decides what networks learn and that no specification names: arithmetic, rounding, initial weights,
/// the order of samples. Whoever changes one of them raises it, and trains again; a test learns a little and compares.
const NUMERICS: u32 = 1;

/// What a network learns, or is to learn.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// The network.
    pub network: String,
    /// The data.
    pub data: String,
    /// How, in words.
    pub how: String,
    /// The digest of all that it depends on but the seed; once in a file.
    pub key: String,
    /// What was learned with each seed.
    pub learned: Vec<Learned>,
}

impl Training {
    /// What `network` is to learn of `data`, `how`; it depends on nothing but `depends` and the seed.
    pub(crate) fn wanted(network: &str, data: &str, how: String, depends: &str) -> Self {
        let key = digest(&format!("numerics {NUMERICS}; {depends}"));
        Self { network: network.to_owned(), data: data.to_owned(), how, key, learned: Vec::new() }
    }
}

/// What was learned with one seed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Learned {
    /// The seed.
    pub seed: u64,
    /// The accuracy on the test part in percent, after each epoch or each measured round.
    pub accuracy: Vec<f64>,
    /// Of a federation its rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<Rounds>,
    /// The accuracy on the validation part in the end, in percent, by which settings are chosen; of what was learned now alone.
    #[serde(skip)]
    pub validation: f64,
}

/// The rounds of a federation.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Rounds {
    /// The numbers of those that were measured, and when they ended, in seconds.
    pub number: Vec<u32>,
    /// See above.
    pub end_s: Vec<f64>,
    /// How long all took, in seconds, and what all phones took, in joules.
    pub all_s: f64,
    /// See above.
    pub energy_j: f64,
    /// How many there were.
    pub all: u32,
    /// Parts of phones in all of them, and what became of these.
    pub selected: u64,
    /// Those that were taken in.
    pub completed: u64,
    /// Those of which the phone was no longer ready.
    pub dropped: u64,
    /// Those whose process the system ended.
    pub killed: u64,
    /// Phones that were found to be ended at rest.
    pub left_out: u64,
    /// All phones.
    pub phones: u64,
    /// Phones that can take part.
    #[serde(default, skip_serializing_if = "is_none")]
    pub eligible: u64,
    /// Phones of which a part was taken in, and the share of all samples that they hold, in percent.
    #[serde(default, skip_serializing_if = "is_none")]
    pub contributed: u64,
    /// See above.
    #[serde(default, skip_serializing_if = "is_none")]
    pub reached: f64,
}

/// Whether files leave a number out: those from before it was counted have none.
fn is_none<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Learned {
    /// As files have it, so that what is drawn from a file is what was drawn when it was written: four digits, of times six.
    pub(crate) fn rounded(mut self) -> Self {
        self.accuracy.iter_mut().for_each(|value| *value = super::rounded(*value, 4));
        if let Some(rounds) = &mut self.rounds {
            let Rounds { end_s, all_s, energy_j, reached, .. } = rounds;
            end_s.iter_mut().chain([all_s, energy_j, reached]).for_each(|value| *value = super::rounded(*value, 6));
        }
        self
    }
}
