//! Which constants matter, as people read it.

use haversack_devices::units::{Bytes, Nanos};
use haversack_reports::table::three_digits;
use haversack_reports::text_table::{Column, TextTable};

use super::{Figures, Moved, Sensitivity};
use crate::quantities::{self, Unit, percent};
use crate::scenario::workload;

impl Sensitivity {
    pub(super) fn to_text(&self) -> String {
        let Figures { time_s, energy_j, memory_bytes } = self.base;
        let (scenario, time) = (&self.scenario, Nanos::from_seconds(time_s));
        let mut text = format!(
            "{}, batch {}, on {}, policy {}: {}, {} J, peak memory {}\n",
            workload::called(&scenario.model),
            scenario.batch,
            scenario.device,
            scenario.policy,
            quantities::time(time),
            three_digits(energy_j),
            quantities::size(Bytes(memory_bytes)),
        );
        if !self.moved.is_empty() {
            text += &format!("\neach constant alone {} less and more\n{}", percent(self.by), self.table(time));
        }
        text += &format!("{} constants move nothing\n", self.unmoved);
        text
    }

    fn table(&self, base: Nanos) -> String {
        let unit = Unit::of_times(base);
        let (words, numbers) = (Column::left(0).fitted(), Column::right(0).fitted().after(2));
        let (less, more) = (format!("{} less", unit.symbol), format!("{} more", unit.symbol));
        let columns = [words, numbers, words.after(1), words.after(2), numbers, numbers, numbers, numbers, numbers];
        let mut table = TextTable::new(columns.into_iter().chain([words.after(2)])).indented(2);
        table.row(["constant", "value", "unit", "kind", &less, &more, "time", "energy", "memory", "file"]);
        for moved in &self.moved {
            let entry = &moved.entry;
            let [time, energy, memory] = moved.largest(self.base).map(change);
            let kind = entry.kind.to_string();
            table.row([
                entry.name.as_str(),
                &three_digits(entry.value),
                entry.unit,
                &kind,
                &side(moved, 0, unit),
                &side(moved, 1, unit),
                &time,
                &energy,
                &memory,
                &entry.file,
            ]);
        }
        table.to_string()
    }
}

/// The time with the constant moved to one side.
fn side(moved: &Moved, side: usize, unit: Unit) -> String {
    match moved.sides.get(side).and_then(Option::as_ref).map(|side| side.figures) {
        Some(Some(figures)) => unit.number(figures.time_s * 1e9),
        Some(None) => "does not run".to_owned(),
        None => "out of range".to_owned(),
    }
}

/// How far a figure moves at most.
fn change(largest: f64) -> String {
    if largest.is_finite() { percent(largest) } else { "-".to_owned() }
}
