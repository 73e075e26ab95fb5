//! `sga`: static gradient accumulation (Sage, section 4.3.1): every micro-batch is half of the mini-batch.

use crate::error::PolicyError;
use crate::policy::{Policy, Schedule};
use crate::setting::Setting;

/// Static gradient accumulation.
#[derive(Clone, Copy, Debug, Default)]
pub struct StaticAccumulation;

impl Policy for StaticAccumulation {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        Ok(Schedule::plain(setting.batch.div_ceil(2)))
    }
}
