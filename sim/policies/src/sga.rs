//! `sga`: static gradient accumulation (Sage, section 4.3.1): every micro-batch is half of the mini-batch.

use crate::sage::BATCH_NORM;
use crate::{BatchStatistics, Entry, Policy, PolicyError, Schedule, Setting};

/// How scenarios name it, and what they can set.
pub static ENTRY: Entry = Entry {
    id: "sga",
    about: "static gradient accumulation: two micro-batches",
    description: "The mini-batch is trained as two halves whose gradients are added up, whether memory is short or not. Saved tensors are half as large, and the processor is used less well.",
    citation: "Gim and Ko, MobiSys 2022, section 4.3.1",
    parameters: &[&BATCH_NORM],
    ..Entry::built_by(|settings| Ok(Box::new(StaticAccumulation { statistics: settings.get(&BATCH_NORM)? })))
};

/// Static gradient accumulation.
#[derive(Clone, Copy, Debug, Default)]
pub struct StaticAccumulation {
    /// Whose statistics batch normalisations take.
    pub statistics: BatchStatistics,
}

impl Policy for StaticAccumulation {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        Ok(Schedule { batch_statistics: self.statistics, ..Schedule::plain(setting.batch.div_ceil(2)) })
    }
}
