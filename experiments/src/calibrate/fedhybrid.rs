//! What FedHybrid's paper observed and may be fitted: a phone short of memory.

use super::declared::Files;
use super::observation::{Measure, Observation, Simulated};
use super::paper::Paper;
use crate::artefacts::ARTEFACTS;
use crate::artefacts::fedhybrid::figure2;
use crate::error::CommandError;
use crate::papers::reference::{ReferenceRow, Role};
use crate::reproduce::{Artefact, ArtefactError, Context, Kept};
use crate::run::Plan;

const PAPER: &str = "fedhybrid";

/// Figure 2: how a phone that is short of memory does beside one that is not.
pub(super) fn reclaim() -> Result<Vec<Observation>, CommandError> {
    of_artefacts(&["figure2a", "figure2b"], |context, row| {
        let Some(of_row) = figure2::RoundsOfRow::new(context, row)? else { return Ok(None) };
        let plans = of_row.rounds.iter().map(|round| context.plan(round)).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Box::new(move |files: &Files| {
            let span = |plan: &Plan| Some(plan.run_under(files.system.as_ref()?)?.phone?.run);
            let spans = plans.iter().map(span).collect::<Option<Vec<_>>>();
            spans.and_then(|spans| of_row.answer(&spans)).unwrap_or(f64::INFINITY)
        })))
    })
}

/// The numbers of `artefacts` that may be fitted, above zero.
fn of_artefacts(
    artefacts: &[&str],
    simulates: impl Fn(&Context<'_>, &ReferenceRow) -> Result<Option<Box<Simulated>>, ArtefactError>,
) -> Result<Vec<Observation>, CommandError> {
    let Paper { reference, readings, cache, .. } = &Paper::load(PAPER)?;
    let mut observations = Vec::new();
    for &artefact in artefacts {
        let artefact: &Artefact = ARTEFACTS
            .iter()
            .find(|known| known.paper == PAPER && known.id == artefact)
            .ok_or_else(|| CommandError::failed(format!("{PAPER}/{artefact} is not modelled")))?;
        let rows: Vec<&ReferenceRow> = reference.of(PAPER, artefact.id).collect();
        let kept = Kept::default();
        let context =
            Context { seed: 0, full: false, artefact, rows, reference, readings, cache, trace: None, kept: &kept };
        for row in context.rows.iter().filter(|row| row.role() == Role::Fit) {
            let Some(observed) = row.number().filter(|number| *number > 0.0) else { continue };
            let Some(simulates) = simulates(&context, row).map_err(CommandError::failed)? else { continue };
            let unit = if row.unit == "percent" { "%" } else { "x" };
            observations.push(Observation::of(row, observed, unit, Measure::Other(simulates)));
        }
    }
    Ok(observations)
}
