//! All artefacts of a folder, and the files that tell of them together: `cells.csv`, `index.html`, `run.json`.

use std::collections::BTreeSet;

use super::folder::{self};
use super::record::{self};
use super::{
    Artefact, CELLS, Calibrations, Content, Finished, Folder, KEPT, Reproduction, Selection, Sources, page, report,
};
use crate::papers::cells;
use crate::work::OutputFolder;
use crate::{CommandError, Result};

const PAGE: &str = "index.html";

/// The files of a folder that has those of these artefacts, by name.
pub(super) fn names(of_artefacts: impl Iterator<Item = String>) -> Vec<String> {
    let names: BTreeSet<String> = [CELLS, PAGE].map(str::to_owned).into_iter().chain(of_artefacts).collect();
    names.into_iter().collect()
}

/// All artefacts of a folder.
pub(super) struct Whole<'a> {
    pub(super) sources: Sources<'a>,
    /// All that was ever asked for.
    pub(super) selection: &'a Selection<'a>,
    pub(super) finished: &'a [Finished<'a>],
}

impl Whole<'_> {
    /// Writes the files, and deletes what the record listed and nobody stands for any more; the report is of all
    /// artefacts but those that are `kept` beside what was asked for.
    pub(super) fn write(&self, folder: &Folder, owned: &OutputFolder, kept: &[usize]) -> Result<Reproduction> {
        let calibrations = &self.calibrations()?;
        let content = Content::new(self.sources, calibrations, self.selection, self.finished);
        folder.write(CELLS, &cells::table(&content.cells).map_err(CommandError::failed)?.to_csv())?;
        folder.write(PAGE, &page::page(&content, folder)?.render().map_err(CommandError::failed)?)?;
        let written = names(self.finished.iter().flat_map(|f| folder::names(f.paper, f.artefact)));
        // What took long to find is there for those that failed, until they are run again.
        let has_failed = self.finished.iter().any(|finished| !finished.faults.is_empty());
        let written = written.into_iter().chain((has_failed && self.sources.options.full).then(|| KEPT.to_owned()));
        let outputs: Vec<String> = written.filter(|name| owned.path(name).is_file()).collect();
        owned.record(record::record(&content).map_err(CommandError::failed)?, &outputs)?;
        if kept.is_empty() {
            return Ok(reproduction(&content, self.finished));
        }
        let asked = self.finished.iter().enumerate().filter(|(place, _)| !kept.contains(place));
        let asked: Vec<Finished<'_>> = asked.map(|(_, finished)| finished.clone()).collect();
        let mut reproduction = reproduction(&Content::new(self.sources, calibrations, self.selection, &asked), &asked);
        let (all, out) = (self.finished.len(), self.sources.options.work.out.display());
        reproduction.report += &format!("\n{out} holds {all} artefacts; its {CELLS} and {PAGE} are of all of them\n");
        Ok(reproduction)
    }

    fn calibrations(&self) -> Result<Calibrations> {
        let model = |finished: &Finished<'_>| {
            let mut known = self.sources.artefacts.iter();
            known.find(|model| model.paper == finished.paper && model.id == finished.artefact).copied()
        };
        Calibrations::of(&self.finished.iter().filter_map(model).collect::<Vec<Artefact>>())
    }
}

fn reproduction(content: &Content<'_>, finished: &[Finished<'_>]) -> Reproduction {
    let faults = |f: &Finished<'_>| {
        let place = format!("{}/{}", f.paper, f.artefact);
        f.faults.iter().map(move |why| format!("{place}: {why}")).collect::<Vec<_>>()
    };
    Reproduction {
        report: report::text(&content.tallies, &content.cells, finished, &content.remarks, content.sources.reference),
        failures: finished.iter().flat_map(faults).collect(),
    }
}
