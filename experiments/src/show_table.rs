//! `haversack show DIR`: the table of a sweep, sorted.
//!
//! On a terminal stand what tells the rows apart, what they came to, and the column that they are sorted by; as JSON every
//! column. Choosing rows is left to what reads Parquet, such as polars or DuckDB.

mod column;

use std::collections::HashMap;
use std::path::Path;

use clap::Args;
use haversack_devices::text::hint;
use haversack_reports::frame::read_parquet;
use haversack_reports::text_table::{self, TextTable};
use polars::prelude::DataFrame;
use serde_json::{Map, Value};

use crate::error::CommandError;
use crate::output::{Format, print};
use crate::scenario::Key;
use crate::sweep::{RESULTS, is_unfinished};
use crate::work::command_of;
use column::{Cell, Cells};

/// Rows on a terminal if nothing is said.
const ROWS: usize = 20;
/// Rows that are printed at once as JSON.
const AT_ONCE: usize = 1 << 10;
/// What every run comes to; shown where any row has it.
const FIGURES: [&str; 6] =
    ["status", "iteration_time_s", "samples_per_s", "peak_memory_bytes", "energy_j", "least_memory_bytes"];
/// Keys that are told of all rows together if they are the same in all.
const COMMON: [&str; 6] = ["device", "model", "batch", "policy", "memory_budget", "status"];
/// Keys that tell nothing where they follow from these.
const FOLLOWING: [&str; 4] = ["stack", "input", "graph", "allocator"];
const LEADING: [&str; 3] = ["device", "model", "policy"];

/// How many rows of a table are shown, and in which order.
#[derive(Clone, Debug, Default, Args)]
pub struct TableOptions {
    /// Sorts by a column, the least first; -COLUMN sorts the greatest first
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub sort: Option<String>,
    /// Shows at most so many rows [default: 20, and all as JSON]
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

impl TableOptions {
    /// Whether anything was chosen.
    pub fn is_given(&self) -> bool {
        self.sort.is_some() || self.limit.is_some()
    }
}

/// Prints the first rows of the sweep in `folder` as the options sort them.
///
/// # Errors
/// A folder without the table of a sweep, a column that it has not got; a standard output that cannot be written.
pub fn show(folder: &Path, options: &TableOptions, format: Format) -> Result<(), CommandError> {
    let table = Table::read(folder)?;
    let mut rows: Vec<usize> = (0..table.height).collect();
    let mut sorted_by = None;
    if let Some(sort) = &options.sort {
        let (name, is_falling) = sort.strip_prefix('-').map_or((sort.as_str(), false), |name| (name, true));
        let place = table.find_sorted(name)?;
        rows.sort_by(|a, b| column::order(&table.columns[place].1, *a, *b, is_falling));
        sorted_by = Some(place);
    }
    let shown = options.limit.unwrap_or(if format == Format::Json { usize::MAX } else { ROWS });
    let cut = &rows[..shown.min(rows.len())];
    match format {
        Format::Json => table.print_json(cut),
        Format::Text => print(&table.text(&rows, cut, sorted_by)),
    }
}

/// The table of a sweep.
struct Table {
    columns: Vec<(String, Cells)>,
    height: usize,
}

impl Table {
    fn read(folder: &Path) -> Result<Self, CommandError> {
        let path = folder.join(RESULTS);
        if !path.is_file() {
            return Err(CommandError::input(no_table(folder)));
        }
        let frame: DataFrame = read_parquet(&path).map_err(CommandError::input)?;
        let columns = frame.columns().iter().map(|column| Ok((column.name().to_string(), Cells::of(column)?)));
        let columns = columns.collect::<Result<_, CommandError>>()?;
        Ok(Self { columns, height: frame.height() })
    }

    /// The place of the column `name`, which `--sort` names.
    fn find_sorted(&self, name: &str) -> Result<usize, CommandError> {
        self.place(name).ok_or_else(|| {
            let names = || self.columns.iter().map(|(name, _)| name.as_str());
            let guess = hint(name, names());
            let all = if guess.is_empty() {
                format!("; the columns are {}", names().collect::<Vec<_>>().join(", "))
            } else {
                guess
            };
            CommandError::input(format!("--sort: no column is called '{name}'{all}"))
        })
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|(found, _)| found == name)
    }

    /// Whether a column holds more than one value in `rows`.
    fn varies(&self, place: usize, rows: &[usize]) -> bool {
        let cells = &self.columns[place].1;
        let first = rows.first().map(|row| cells.get(*row));
        rows.iter().any(|row| Some(cells.get(*row)) != first)
    }

    /// The columns that a terminal shows of `rows`: run, keys that vary, figures that any row has, and that `sorted_by`.
    fn shown(&self, rows: &[usize], sorted_by: Option<usize>) -> Vec<usize> {
        let keys = Key::ALL.iter().map(|key| key.name());
        let tells = |place: &usize| self.varies(*place, rows) && !self.follows(*place, rows);
        let mut shown: Vec<usize> = self.place("run").into_iter().collect();
        shown.extend(keys.filter_map(|key| self.place(key)).filter(tells));
        let any = |place: &usize| rows.iter().any(|row| self.columns[*place].1.get(*row) != Cell::Missing);
        let figures = FIGURES.iter().filter_map(|name| self.place(name)).filter(any);
        shown.extend(figures.filter(|place| self.columns[*place].1.is_numbers() || self.varies(*place, rows)));
        let more = sorted_by.filter(|place| !shown.contains(place) && self.varies(*place, rows));
        shown.extend(more);
        shown
    }

    /// Whether the device, the model and the policy of a row say what it holds in the column `place`.
    fn follows(&self, place: usize, rows: &[usize]) -> bool {
        let (name, cells) = &self.columns[place];
        let leading: Vec<&Cells> =
            LEADING.iter().filter_map(|name| self.place(name)).map(|place| &self.columns[place].1).collect();
        let mut found: HashMap<Vec<Option<&str>>, Cell<'_>> = HashMap::new();
        FOLLOWING.contains(&name.as_str())
            && rows.iter().all(|row| {
                let led = leading.iter().map(|cells| cells.get(*row).words()).collect();
                *found.entry(led).or_insert_with(|| cells.get(*row)) == cells.get(*row)
            })
    }

    /// The rows of `cut`, the first of `rows`, for people.
    fn text(&self, rows: &[usize], cut: &[usize], sorted_by: Option<usize>) -> String {
        let shown = self.shown(rows, sorted_by);
        let layout = shown.iter().enumerate().map(|(at, place)| {
            let column = if self.columns[*place].1.is_numbers() {
                text_table::Column::right(0)
            } else {
                text_table::Column::left(0)
            };
            column.fitted().after(if at == 0 { 0 } else { 2 })
        });
        let mut table = TextTable::new(layout);
        table.row(shown.iter().map(|place| column::heading(&self.columns[*place].0)));
        for row in cut {
            table
                .row(shown.iter().map(|place| column::text(&self.columns[*place].0, self.columns[*place].1.get(*row))));
        }
        let mut text = self.common(rows, &shown, sorted_by);
        text += &table.to_string();
        let more = if cut.len() < rows.len() { "; --limit N shows more" } else { "" };
        text + &format!("\n{} of {} rows{more}\n", cut.len(), rows.len())
    }

    /// What all rows have in common, in a line.
    fn common(&self, rows: &[usize], shown: &[usize], sorted_by: Option<usize>) -> String {
        let Some(first) = rows.first() else { return String::new() };
        let mut places: Vec<usize> = COMMON.iter().filter_map(|name| self.place(name)).collect();
        let more = sorted_by.filter(|place| !places.contains(place));
        places.extend(more);
        let same = places.into_iter().filter(|place| !shown.contains(place)).filter_map(|place| {
            let (name, cells) = &self.columns[place];
            let cell = cells.get(*first);
            (cell != Cell::Missing).then(|| format!("{name} = {}", column::text(name, cell)))
        });
        let same: Vec<String> = same.collect();
        if same.is_empty() { String::new() } else { format!("{} in every row\n\n", same.join(", ")) }
    }

    /// Prints `rows` as an array of objects, a line each.
    fn print_json(&self, rows: &[usize]) -> Result<(), CommandError> {
        print("[")?;
        for (lot, rows) in rows.chunks(AT_ONCE).enumerate() {
            let mut text = String::new();
            for (place, row) in rows.iter().enumerate() {
                text += if lot + place == 0 { "\n" } else { ",\n" };
                let cells = self.columns.iter().map(|(name, cells)| (name.clone(), cells.get(*row).to_json()));
                text += &Value::Object(cells.collect::<Map<_, _>>()).to_string();
            }
            print(&text)?;
        }
        print("\n]\n")
    }
}

/// Why a folder has no table of a sweep.
fn no_table(folder: &Path) -> String {
    let (shown, expected) = (folder.display(), format!("expected the folder of a sweep, with {RESULTS}"));
    if !folder.is_dir() {
        return format!("there is no folder {shown}; {expected}");
    }
    if is_unfinished(folder) {
        return format!("{shown} holds an unfinished sweep; --resume finishes it");
    }
    match command_of(folder) {
        Some(command) => format!("{shown} holds the results of '{command}'; {expected}"),
        None => format!("{shown} holds no {RESULTS}; {expected}"),
    }
}
