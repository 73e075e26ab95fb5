//! Figure 9: throughput on a single core and on infinitely many.

use haversack_reports::figure::Figure;
use haversack_reports::table::Table;

use super::setting::{RESNET, least, scenario, under};
use super::throughput::{Curves, SCHEMES, curves};
use crate::reproduce::{Answer, ArtefactError, Context, Outcome};

/// The schemes without Sage, which merges with the better of its parts here.
const WITHOUT_SAGE: usize = 4;
const DGC: usize = 2;
const DGA: usize = 3;

pub(super) fn single_core(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    one(context, "single-core", "9a", "sage/figure9a/single-core/dga>dgc/throughput", DGA, DGC)
}

pub(super) fn infinite_cores(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    one(context, "infinite-cores", "9b", "sage/figure9b/infinite-cores/dgc>dga/throughput", DGC, DGA)
}

fn one(
    context: &Context<'_>,
    device: &'static str,
    number: &str,
    row: &str,
    first: usize,
    second: usize,
) -> Result<Outcome, ArtefactError> {
    let found = curves(context, device, RESNET, &SCHEMES[..WITHOUT_SAGE])?;
    let mut outcome = Outcome::default();
    outcome.answer(row, Answer::Order(never_below(&found, first, second, context.predicate(row)?.tolerance)));
    outcome.table = Some(data(&found, device)?);
    let title = format!("Sage, figure {number}: ResNet-50 on {device}");
    let panel = found.panel("", &SCHEMES[..WITHOUT_SAGE]);
    outcome.figure = Some(Figure::new(title).panel_size(560, 340).panel(panel));
    outcome.notes.predicted.push("All curves: the two machines are idealised and nothing about them is fitted.".into());
    Ok(outcome)
}

/// Whether `first` is nowhere slower than `second` where both fit and memory is short.
fn never_below(curves: &Curves, first: usize, second: usize, tolerance: f64) -> bool {
    let pairs = curves.by_scheme[first].iter().zip(&curves.by_scheme[second]).zip(&curves.percents);
    let compared: Vec<_> =
        pairs.filter(|(_, percent)| **percent < 100.0).filter_map(|((a, b), _)| Some(((*a)?, (*b)?))).collect();
    !compared.is_empty() && compared.iter().all(|(a, b)| *a >= b * (1.0 - tolerance))
}

fn data(curves: &Curves, device: &str) -> Result<Table, ArtefactError> {
    let mut table = Table::new(["device", "scheme", "budget_mb", "samples_per_s"]);
    for ((name, _, _), curve) in SCHEMES.iter().zip(&curves.by_scheme) {
        for (&percent, value) in curves.percents.iter().zip(curve) {
            table.push([device.into(), (*name).into(), curves.megabytes(percent).into(), (*value).into()])?;
        }
    }
    Ok(table)
}

pub(super) fn both(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    let mut table = Table::new(["device", "scheme", "least_memory_mb"]);
    let mut figure = Figure::new("Sage, figure 9: ResNet-50 on two extreme machines").panel_size(430, 320);
    let mut lower = true;
    for device in ["single-core", "infinite-cores"] {
        let scenario = scenario(context, device, RESNET)?;
        let mut reached = Vec::new();
        for (name, policy, set) in &SCHEMES[..WITHOUT_SAGE] {
            let memory = least(context, &under(&scenario, policy, set))?;
            table.push([device.into(), (*name).into(), memory.megabytes().into()])?;
            reached.push(memory);
        }
        lower &= reached[DGC] < reached[0] && reached[DGA] < reached[1];
        let found = curves(context, device, RESNET, &SCHEMES[..WITHOUT_SAGE])?;
        figure = figure.panel(found.panel(device, &SCHEMES[..WITHOUT_SAGE]));
    }
    outcome.answer("sage/figure9/all/dynamic-vs-static/lowest-reachable-memory", Answer::Order(lower));
    outcome.figure = Some(figure);
    outcome.table = Some(table);
    outcome.notes.predicted.push("The least memory of every scheme.".into());
    Ok(outcome)
}
