//! The epochs as a data frame, and what was reached as text.

use std::path::Path;

use haversack_reports::frame::write_parquet;
use haversack_reports::{Column, TextTable};
use haversack_workloads::data::Part;

use super::{Row, Subject};
use crate::Result;
use crate::measured::interval;
use crate::progress::word;
use crate::rows::Rows;

/// Writes the rows to `path`.
pub(super) fn write(path: &Path, rows: &[Row], subjects: &[Subject]) -> Result<()> {
    let frame = Rows::of(rows)
        .with("seed", |row| row.seed)
        .with("epoch", |row| u64::from(row.epoch))
        .with("split", |row| <&str>::from(row.split))
        .with("loss", |row| row.loss)
        .with("accuracy", |row| row.accuracy)
        .with("simulated_time_s", |row| row.simulated_time_s)
        .with("energy_j", |row| row.energy_j)
        .with("peak_memory_bytes", |row| row.peak_memory_bytes)
        .with("run", |row| row.run)
        .with("scenario", |row| subjects[row.run as usize].label.as_str())
        .frame()?;
    Ok(write_parquet(path, &frame)?)
}

/// What each scenario has reached in its last epoch, over its seeds.
pub(super) fn text(rows: &[Row], subjects: &[Subject], path: &Path) -> String {
    let widths = [Column::left(0).fitted(), Column::right(0).fitted().after(2)];
    let mut table = TextTable::new(widths.into_iter().chain([widths[1]; 4]));
    table.row(["scenario", "validation", "test", "simulated time", "energy", "peak memory"]);
    for (run, subject) in subjects.iter().enumerate() {
        let of = |part: Part| last(rows, run as u64, part);
        let (validation, test) = (of(Part::Validation), of(Part::Test));
        let mean =
            |rows: &[Row], value: fn(&Row) -> f64| rows.iter().map(value).sum::<f64>() / rows.len().max(1) as f64;
        if test.is_empty() {
            table.row([subject.label.as_str(), "none", "none", "", "", ""]);
            continue;
        }
        table.row([
            subject.label.clone(),
            share(&validation),
            share(&test),
            format!("{:.1} s", mean(&test, |row| row.simulated_time_s)),
            format!("{:.1} J", mean(&test, |row| row.energy_j)),
            format!("{:.1} MB", mean(&test, |row| row.peak_memory_bytes as f64) / 1e6),
        ]);
    }
    format!("{table}{}\n", word(path))
}

/// Accuracies as a mean in percent, with half of the interval where there are several seeds.
fn share(rows: &[Row]) -> String {
    let values: Vec<f64> = rows.iter().map(|row| row.accuracy).collect();
    let (mean, half) = interval(&values);
    if values.len() < 2 {
        format!("{:.1}%", mean * 100.0)
    } else {
        format!("{:.1}% ± {:.1}", mean * 100.0, half * 100.0)
    }
}

/// The rows of the last epoch of a scenario.
pub(super) fn last(rows: &[Row], run: u64, part: Part) -> Vec<Row> {
    let of = |row: &&Row| row.run == run && row.split == part;
    let epoch = rows.iter().filter(of).map(|row| row.epoch).max().unwrap_or(0);
    rows.iter().filter(of).filter(|row| row.epoch == epoch).copied().collect()
}
