//! `sga`: static gradient accumulation (Sage, section 4.3.1): every micro-batch is half of the mini-batch.

use crate::{BatchStatistics, Policy, PolicyError, Schedule, Setting};

/// Static gradient accumulation.
#[derive(Clone, Copy, Debug, Default)]
pub struct StaticAccumulation {
    /// The statistics that batch normalisations use.
    pub statistics: BatchStatistics,
}

impl Policy for StaticAccumulation {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        Ok(Schedule { batch_statistics: self.statistics, ..Schedule::plain(setting.batch.div_ceil(2)) })
    }
}
