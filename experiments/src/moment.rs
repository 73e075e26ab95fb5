//! The memory that a phone in use leaves to training at a moment of its user's day.

use haversack_devices::{Bytes, Device, Nanos, System};
use haversack_policies::budget::{BudgetRule, Sample, SwapKind};
use haversack_policies::fedhybrid::predictor::{Parameters, Predictor};
use haversack_traces::{AppTimeline, FootprintTable, UsageModel};
use haversack_training::{AtRest, watch};

use crate::scenario::{app_changes, phone_in_use};
use crate::{CommandError, Result};

/// A phone and the system and apps that run on it.
pub(crate) struct Watched {
    pub(crate) device: Device,
    pub(crate) system: System,
    at_rest: AtRest,
    pub(crate) model: UsageModel,
    pub(crate) footprints: FootprintTable,
}

/// The memory that a phone leaves at the end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// `MemAvailable`.
    pub(crate) available: Bytes,
    /// `available` without the pages that reclaim keeps, FedHybrid's `M_safe`.
    pub(crate) safe: Bytes,
    /// FedHybrid's prediction, over the whole window.
    pub(crate) predicted: Bytes,
}

impl Watched {
    /// # Errors
    /// A device and a system that do not fit together.
    pub(crate) fn new(device: Device, system: System, model: UsageModel, footprints: FootprintTable) -> Result<Self> {
        let phone = phone_in_use(&device, &system, Vec::new()).map_err(CommandError::input)?;
        let at_rest = AtRest::of(&phone).map_err(CommandError::failed)?;
        Ok(Self { device, system, at_rest, model, footprints })
    }

    /// The memory that the phone leaves at rest, without any app.
    pub(crate) fn at_rest(&self) -> Bytes {
        self.at_rest.available()
    }

    /// The memory seen by a background service, once a second for `window`, while the apps of `timeline` run
    /// and nothing trains.
    ///
    /// # Errors
    /// A device and a system that do not fit together, or memory that even the kernel's own killer does not free.
    pub(crate) fn moment(&self, timeline: &AppTimeline, window: Nanos, seed: u64) -> Result<Moment> {
        Ok(self.moment_and_after(timeline, window, window, seed)?.0)
    }

    /// The same, and `MemAvailable` once a second from then on until `end`.
    ///
    /// # Errors
    /// As [`Self::moment`].
    pub(crate) fn moment_and_after(
        &self,
        timeline: &AppTimeline,
        window: Nanos,
        end: Nanos,
        seed: u64,
    ) -> Result<(Moment, Vec<Bytes>)> {
        let changes = app_changes(timeline, &self.footprints, &self.model, seed);
        let phone = phone_in_use(&self.device, &self.system, changes).map_err(CommandError::input)?;
        let swap = if phone.memory.zram > Bytes::ZERO { SwapKind::Zram } else { SwapKind::Flash };
        let mut predictor = Predictor::new(Parameters::for_epoch(window));
        let (mut available, mut safe) = (Bytes::ZERO, Bytes::ZERO);
        let seen = watch(self.at_rest.clone(), &phone, end).map_err(CommandError::failed)?;
        for seen in seen.iter().take_while(|seen| seen.time < window) {
            let sample = Sample {
                time: seen.time,
                available: seen.available,
                watermark_high: seen.watermark_high,
                swap,
                adjustments: &seen.adjustments,
            };
            (available, safe) = (sample.available, sample.safe());
            predictor.observe(&sample).map_err(CommandError::failed)?;
        }
        let moment = Moment { available, safe, predicted: predictor.prediction().unwrap_or(safe) };
        let after = seen.iter().skip_while(|seen| seen.time < window).map(|seen| seen.available);
        Ok((moment, after.collect()))
    }
}
