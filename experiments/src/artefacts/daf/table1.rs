//! Table 1: memory and accuracy of five methods on eight data sets.

use super::accuracy;
use super::null::null;
use super::setting::{BOARD, DafNetwork, METHODS, NETWORKS, SUBJECTS, of_method, reported, scenario};
use crate::artefacts::prelude::*;

/// Megabytes of `method` as the paper reports them, and of the whole footprint.
fn memory(context: &Context<'_>, network: DafNetwork, method: &str) -> Result<[f64; 2]> {
    let record = context.run(&of_method(context, network.kind(), &scenario(context, BOARD, network)?, method)?)?;
    Ok([reported(&record), record.reserved].map(Bytes::megabytes))
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of("data_set,method,reported_mb,footprint_mb,paper_mb");
    let mut grid = Grid::default();
    for (subject, name, network) in SUBJECTS {
        for (method, method_name) in METHODS {
            let id = format!("daf/table1/{subject}/{method}/memory");
            let memory = memory(context, network, method)?;
            let paper = grid.answer(context, &mut outcome, &id, [name, method_name, "memory"], memory[0])?;
            outcome.row((name, method, memory, paper))?;
        }
    }
    let learned = accuracy::of_methods(context)?;
    accuracy::answer(context, &mut outcome, &learned);
    for network in NETWORKS {
        let ([_, original], [store, footprint]) =
            (memory(context, network, "original")?, memory(context, network, "daf")?);
        outcome.summary.push(format!(
            "table 1, {}: Original's footprint is {:.1} times DAF's store (the paper's way of counting) and {:.1} times DAF's whole footprint",
            network.name,
            original / store,
            original / footprint,
        ));
    }
    outcome.nulls_of(&context.rows, |row| null(context.reference, row));
    outcome.compare_with_null(&context.rows, "memory", "table 1, memory");
    outcome.panel("", grid.bars("memory"), Axis::default(), axis("memory", "MB").log());
    accuracy::bars(&mut outcome, &learned);
    accuracy::draw(context, &mut outcome, &learned)?;
    Ok(outcome)
}
