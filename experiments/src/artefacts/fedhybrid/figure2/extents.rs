//! Whether the slow-down of figure 2a hangs on what the simulation moves at once: the same rounds with smaller extents.

use haversack_devices::calibration::Settings;

use super::super::setting::{OP10P, PICTURES, S22, from_starts};
use super::round::{Round, Starts, of_round};
use crate::artefacts::prelude::*;

/// Extents, from the usual ones down.
const EXTENTS: [&str; 3] = ["64 KiB", "32 KiB", "16 KiB"];

/// Lists the slow-down at each size of extent.
pub(super) fn list(context: &Context<'_>, outcome: &mut Outcome) -> Result<()> {
    let undisturbed = Starts::simulate(context, OP10P, PICTURES)?.mean(Round::seconds);
    let figures = EXTENTS.map(|extent| {
        let system_set = Settings::from([("reclaim.extent".to_owned(), extent.to_owned())]);
        let rounds = from_starts(context, &Scenario { system_set, ..of_round(context, S22, PICTURES)? })?;
        let ratios: Vec<f64> = rounds.iter().map(|report| report.run.time.seconds() / undisturbed).collect();
        let mean = mean(&ratios).context("no round was simulated")?;
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        Ok(format!("{extent}: {mean:.2}, from {least:.2} to {most:.2}"))
    });
    outcome.list("slow-down by extents", figures.into_iter().collect::<Result<Vec<_>>>()?);
    Ok(())
}
