//! What a batch normalisation of a mini-batch in parts normalises by (Gim and Ko, MobiSys 2022, section 5).

use crate::entry::Choice;

/// Whose statistics a batch normalisation takes where a mini-batch is trained in parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BatchStatistics {
    /// Each part's own, as frameworks do it.
    #[default]
    Part,
    /// The whole mini-batch's: before each iteration all of it goes forward once, and nothing of that is kept but the
    /// statistics.
    Whole,
}

/// How scenarios choose it, for policies that split mini-batches.
pub(crate) static BATCH_NORM: Choice<BatchStatistics> = Choice::new(
    "batch_norm",
    BatchStatistics::Part,
    &[("part", BatchStatistics::Part), ("whole", BatchStatistics::Whole)],
    "whose statistics a batch normalisation takes: each part's own, or the whole mini-batch's, for which all of it goes \
     forward once before each iteration",
);
