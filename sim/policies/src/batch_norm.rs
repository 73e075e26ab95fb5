//! What a batch normalisation of a mini-batch in parts normalises by (Gim and Ko, MobiSys 2022, section 5).

use crate::entry::Choice;
use crate::policy::BatchStatistics;

/// How scenarios choose it, for policies that split mini-batches.
pub(crate) static BATCH_NORM: Choice<BatchStatistics> = Choice::new(
    "batch_norm",
    BatchStatistics::Part,
    &[("part", BatchStatistics::Part), ("whole", BatchStatistics::Whole)],
    "whose statistics a batch normalisation takes: each part's own, or the whole mini-batch's, for which all of it goes \
     forward once before each iteration",
);
