//! The slow-down of figure 2a over how much memory is missing: the phone with less and less of it, at what an idle phone holds in
//! the middle, at least and at most. Each point is one start, and the mean of all where everything is run.

use haversack_devices::calibration::Settings;

use super::super::setting::{OP10P, PICTURES, S22, from_starts, system};
use super::round::{Starts, of_round};
use crate::artefacts::prelude::*;

/// Memory of the phones of the curve, in GiB.
const MEMORIES: [f64; 9] = [6.5, 7.0, 7.5, 8.0, 8.5, 9.0, 9.5, 10.0, 11.0];

/// What an idle phone holds: for people, and how much of the middle.
fn holdings(context: &Context<'_>) -> Result<[(&'static str, f64); 3]> {
    let system = system(context)?;
    let (resident, middle) = (&system.constants.resident, system.resident(&context.device(S22)?).total().as_f64());
    let of_middle = |bytes: Bytes| bytes.as_f64() / middle;
    Ok([("middle", 1.0), ("least", of_middle(resident.least.value)), ("most", of_middle(resident.most.value))])
}

/// A point: how much memory is missing, in GB, and how many times as long as without want an iteration takes.
fn point(context: &Context<'_>, ram: f64, share: f64, peak: Bytes, undisturbed: f64) -> Result<(f64, f64)> {
    let system = system(context)?;
    let resident = system.resident(&context.device(S22)?);
    let parts = [("kernel", resident.kernel), ("anonymous", resident.anonymous), ("file", resident.file)];
    let held = |bytes: Bytes| bytes.as_f64() * share / 1e9;
    // What is held does not shrink with the phone here.
    let constants = parts.iter().map(|(name, bytes)| (*name, held(*bytes))).chain([("of", 1.0)]);
    let system_set: Settings =
        constants.map(|(name, held)| (format!("resident.{name}"), format!("{held} GB"))).collect();
    let device_set = Settings::from([("ram".to_owned(), format!("{ram} GiB"))]);
    let scenario = Scenario { device_set, system_set, ..of_round(context, S22, PICTURES)? };
    let reports = if context.full {
        from_starts(context, &scenario)?
    } else {
        vec![context.plan(&scenario)?.run()?.phone.context("the run has no report of a phone")?]
    };
    let times: Vec<f64> = reports.iter().map(|report| report.run.time.seconds()).collect();
    let (first, time) = reports.first().zip(mean(&times)).context("no round was simulated")?;
    let needs = parts.iter().map(|(_, bytes)| held(*bytes)).sum::<f64>() + peak.as_f64() / 1e9;
    Ok((needs - first.managed.as_f64() / 1e9, time / undisturbed))
}

/// Draws the curves, and the paper's point at the deficit of its own phone.
pub(super) fn draw(context: &Context<'_>, outcome: &mut Outcome) -> Result<()> {
    let peak = context.run(&of_round(context, OP10P, PICTURES)?)?.peak_memory;
    let undisturbed = Starts::simulate(context, OP10P, PICTURES)?.mean(super::Round::seconds);
    let of = |(name, share): (&'static str, f64)| {
        let at = |ram: &f64| point(context, *ram, share, peak, undisturbed);
        Ok((name, MEMORIES.par_iter().map(at).collect::<Result<Vec<_>>>()?))
    };
    let curves: Vec<(&str, Vec<(f64, f64)>)> = holdings(context)?.into_par_iter().map(of).collect::<Result<_>>()?;
    let mut lines = Lines::new();
    for (name, points) in curves {
        if name == "middle" {
            let own = MEMORIES.iter().position(|ram| (ram - 8.0).abs() < 0.01).and_then(|place| points.get(place));
            let stated = context.paper(&format!("fedhybrid/figure2a/batch-{PICTURES}/s22/op10p/time-ratio"))?;
            if let Some((own, stated)) = own.zip(stated) {
                lines = lines.series(Series::new("paper", [(own.0, stated)]).look(Look::Hatched));
            }
            let figures = points.iter().map(|(missing, slower)| format!("{missing:.2} GB: {slower:.2}"));
            outcome.list("slow-down by the memory that is missing", figures);
        }
        lines = lines.series(Series::new(format!("idle phone, {name}"), points));
    }
    outcome.panel("by the memory that is missing", lines, axis("memory missing", "GB"), from_zero("time", "x"));
    Ok(())
}
