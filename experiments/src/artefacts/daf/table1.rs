//! Table 1: memory of five methods on eight data sets.

use haversack_training::Record;

use super::null::null;
use super::setting::{ACCURACY, BOARD, METHODS, Network, SUBJECTS, artefact, of_method, reported, scenario};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact = artefact("table1", "memory of five methods on eight data sets", run);

/// The run of each network under each method.
struct Runs(Vec<(Network, &'static str, Record)>);

impl Runs {
    fn simulate(context: &Context<'_>) -> Result<Self, ArtefactError> {
        let mut runs = Vec::new();
        for network in Network::ALL {
            let plain = scenario(context, BOARD, network)?;
            for (method, _) in METHODS {
                runs.push((network, method, context.run(&of_method(context, &plain, method)?)?));
            }
        }
        Ok(Self(runs))
    }

    /// Megabytes as the paper reports them, and of the whole footprint.
    fn memory(&self, network: Network, method: &str) -> Result<(f64, f64), ArtefactError> {
        let found = self.0.iter().find(|(known, of, _)| *known == network && *of == method);
        let (.., record) = found.ok_or_else(|| anyhow::anyhow!("{} under {method} was not run", network.name()))?;
        Ok((reported(record).megabytes(), record.reserved.megabytes()))
    }
}

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let runs = Runs::simulate(context)?;
    let mut outcome = Outcome::default();
    let mut table = Table::new(["data_set", "method", "reported_mb", "footprint_mb", "paper_mb"]);
    let mut grid = Grid::default();
    for (subject, name, network) in SUBJECTS {
        for (method, method_name) in METHODS {
            let id = format!("daf/table1/{subject}/{method}/memory");
            let (reported, footprint) = runs.memory(network, method)?;
            let paper = grid.answer((context, &mut outcome), &id, [name, method_name, "memory"], reported)?;
            table.push([name.into(), method.into(), reported.into(), footprint.into(), paper.into()])?;
        }
    }
    for row in context.rows.iter().filter(|row| row.metric == "accuracy") {
        outcome.not_modelled(row.id.clone(), ACCURACY);
    }
    for network in Network::ALL {
        let ((_, original), (store, footprint)) = (runs.memory(network, "original")?, runs.memory(network, "daf")?);
        outcome.summary.push(format!(
            "table 1, {}: Original's footprint is {:.1} times DAF's store (the paper's way of counting) and {:.1} times DAF's whole footprint",
            network.name(),
            original / store,
            original / footprint,
        ));
    }
    outcome.nulls_of(&context.rows, |row| null(context.reference, row));
    outcome.compare_with_null(&context.rows, "memory", "table 1, memory");
    let figure = Figure::new("DAF, table 1: memory of training on the Jetson AGX Xavier")
            .note("DAF's marks are its activation store alone, as in the paper; all others are whole footprints. Withheld cells have no mark of the paper.")
            .panel_size(1100, 380)
            .panel(Panel::new(grid.bars("memory")).y(Axis::new("memory").unit("MB").log()));
    Ok(outcome.drawn(figure, table))
}
