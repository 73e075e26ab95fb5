//! `haversack show DIR`: the table of a sweep, sorted.
//!
//! A terminal shows the columns that distinguish the rows, their results, and the column that they are sorted by; JSON
//! has every column. To select rows, use a tool that reads Parquet, such as polars or DuckDB.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::Path;

use clap::Args;
use haversack_devices::text::hint;
use haversack_devices::{Bytes, ensure};
use haversack_reports::frame::{read_parquet, texts};
use haversack_reports::table::three_digits;
use polars::prelude::DataType;
use serde_json::{Map, Value, json};

use crate::output::{Format, print};
use crate::sweep::{RESULTS, is_unfinished};
use crate::texts::headed;
use crate::work::command_of;
use crate::{CommandError, Key, Result};

/// The default number of rows on a terminal.
const ROWS: usize = 20;
/// Rows per write of JSON.
const AT_ONCE: usize = 1 << 10;
/// The figures of every run; shown where any row has one.
const FIGURES: [&str; 6] =
    ["status", "iteration_time_s", "samples_per_s", "peak_memory_bytes", "energy_j", "least_memory_bytes"];
/// Keys that are printed once above the table if they are equal in all rows.
const COMMON: [&str; 6] = ["device", "model", "batch", "policy", "memory_budget", "status"];
/// Keys that add nothing where they follow from the device, the model and the policy.
const FOLLOWING: [&str; 4] = ["stack", "input", "graph", "allocator"];
const LEADING: [&str; 3] = ["device", "model", "policy"];

/// The number and order of the rows of a table.
#[derive(Clone, Debug, Default, Args)]
pub struct TableOptions {
    /// Sort by a column, ascending; -COLUMN sorts descending
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub sort: Option<String>,
    /// Show at most N rows [default: 20, or all with --format json]
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

impl TableOptions {
    /// Whether any option was given.
    pub fn is_given(&self) -> bool {
        self.sort.is_some() || self.limit.is_some()
    }
}

/// Prints the first rows of the sweep in `folder` as the options sort them.
///
/// # Errors
/// A folder without the table of a sweep, an unknown column; a standard output that cannot be written.
pub fn show(folder: &Path, options: &TableOptions, format: Format) -> Result<()> {
    let table = Table::read(folder)?;
    let mut rows: Vec<usize> = (0..table.height).collect();
    let mut sorted_by = None;
    if let Some(sort) = &options.sort {
        let (name, is_falling) = sort.strip_prefix('-').map_or((sort.as_str(), false), |name| (name, true));
        let place = table.find_sorted(name)?;
        rows.sort_by(|a, b| table.columns[place].order(*a, *b, is_falling));
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
    columns: Vec<Column>,
    height: usize,
}

/// A column with its cells, from the first row to the last.
struct Column {
    name: String,
    is_numbers: bool,
    cells: Vec<Value>,
}

impl Column {
    /// The column of a file; lists are arrays of numbers.
    fn of(column: &polars::prelude::Column) -> Result<Self> {
        let (name, kind) = (column.name().to_string(), column.dtype());
        let is_numbers = matches!(kind, DataType::UInt64 | DataType::Int64 | DataType::Float64);
        let cells = match column.f64() {
            Ok(reals) => reals.iter().map(|real| json!(real)).collect(),
            Err(_) if is_numbers || matches!(kind, DataType::List(_)) => {
                texts(column)?.map(|text| serde_json::from_str(&text?).ok()).map(Option::unwrap_or_default).collect()
            }
            Err(_) => texts(column)?.map(|text| json!(text)).collect(),
        };
        Ok(Self { name, is_numbers, cells })
    }

    fn get(&self, row: usize) -> &Value {
        self.cells.get(row).unwrap_or(&Value::Null)
    }

    /// The column's heading: its name, with the unit if that is not in the name.
    fn heading(&self) -> String {
        if self.is_bytes() { format!("{} (MB)", self.name) } else { self.name.clone() }
    }

    /// Whether the values are bytes, which a terminal shows as megabytes.
    fn is_bytes(&self) -> bool {
        self.name.ends_with("_bytes")
    }

    /// A cell as text.
    fn text(&self, row: usize) -> String {
        match (self.get(row), self.get(row).as_u64()) {
            (Value::Null, _) => "–".to_owned(),
            (_, Some(bytes)) if self.is_bytes() => three_digits(Bytes(bytes).megabytes()),
            (Value::Number(number), None) if number.is_f64() => three_digits(number.as_f64().unwrap_or_default()),
            (cell, _) => words(cell).into_owned(),
        }
    }

    /// How two rows compare by this column; missing values come last in either order.
    fn order(&self, row: usize, other: usize, is_falling: bool) -> Ordering {
        let (a, b) = (self.get(row), self.get(other));
        if a.is_null() || b.is_null() {
            return a.is_null().cmp(&b.is_null());
        }
        let rising = match (a.as_u64().zip(b.as_u64()), a.as_f64().zip(b.as_f64())) {
            (Some((a, b)), _) => a.cmp(&b),
            (None, Some((a, b))) => a.total_cmp(&b),
            (None, None) => words(a).cmp(&words(b)),
        };
        if is_falling { rising.reverse() } else { rising }
    }
}

/// The text of a cell.
fn words(cell: &Value) -> Cow<'_, str> {
    cell.as_str().map_or_else(|| cell.to_string().into(), Cow::Borrowed)
}

impl Table {
    fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(RESULTS);
        ensure!(path.is_file(), CommandError::input(no_table(folder)));
        let frame = read_parquet(&path).map_err(CommandError::input)?;
        let columns = frame.columns().iter().map(Column::of).collect::<Result<_, _>>()?;
        Ok(Self { columns, height: frame.height() })
    }

    /// The position of the column `name`, given by `--sort`.
    fn find_sorted(&self, name: &str) -> Result<usize> {
        self.place(name).ok_or_else(|| {
            let names = || self.columns.iter().map(|column| column.name.as_str());
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
        self.columns.iter().position(|column| column.name == name)
    }

    /// Whether a column has more than one value in `rows`.
    fn varies(&self, place: usize, rows: &[usize]) -> bool {
        let column = &self.columns[place];
        let first = rows.first().map(|row| column.get(*row));
        rows.iter().any(|row| Some(column.get(*row)) != first)
    }

    /// The columns that a terminal shows of `rows`: run, keys that vary, figures that any row has,
    /// and that `sorted_by`.
    fn shown(&self, rows: &[usize], sorted_by: Option<usize>) -> Vec<usize> {
        let keys = Key::ALL.iter().map(|key| key.name());
        let tells = |place: &usize| self.varies(*place, rows) && !self.follows(*place, rows);
        let mut shown: Vec<usize> = self.place("run").into_iter().collect();
        shown.extend(keys.filter_map(|key| self.place(key)).filter(tells));
        let any = |place: &usize| rows.iter().any(|row| !self.columns[*place].get(*row).is_null());
        let figures = FIGURES.iter().filter_map(|name| self.place(name)).filter(any);
        shown.extend(figures.filter(|place| self.columns[*place].is_numbers || self.varies(*place, rows)));
        let more = sorted_by.filter(|place| !shown.contains(place) && self.varies(*place, rows));
        shown.extend(more);
        shown
    }

    /// Whether the device, the model and the policy of a row determine its value in the column `place`.
    fn follows(&self, place: usize, rows: &[usize]) -> bool {
        let column = &self.columns[place];
        let leading: Vec<usize> = LEADING.iter().filter_map(|name| self.place(name)).collect();
        let mut found: HashMap<Vec<Option<&str>>, &Value> = HashMap::new();
        FOLLOWING.contains(&column.name.as_str())
            && rows.iter().all(|row| {
                let led = leading.iter().map(|place| self.columns[*place].get(*row).as_str()).collect();
                *found.entry(led).or_insert_with(|| column.get(*row)) == column.get(*row)
            })
    }

    /// The rows `cut`, the first ones of `rows`, as text.
    fn text(&self, rows: &[usize], cut: &[usize], sorted_by: Option<usize>) -> String {
        let shown = self.shown(rows, sorted_by);
        let name = |column: &Column| format!("{}{}", if column.is_numbers { ">" } else { "" }, column.heading());
        let names: Vec<String> = shown.iter().map(|place| name(&self.columns[*place])).collect();
        let mut table = headed(&names.join("¦"));
        for row in cut {
            table.row(shown.iter().map(|place| self.columns[*place].text(*row)));
        }
        let mut text = self.common(rows, &shown, sorted_by);
        text += &table.to_string();
        let more = if cut.len() < rows.len() { "; --limit N shows more" } else { "" };
        text + &format!("\n{} of {} rows{more}\n", cut.len(), rows.len())
    }

    /// The values that all rows have in common, in one line.
    fn common(&self, rows: &[usize], shown: &[usize], sorted_by: Option<usize>) -> String {
        let Some(first) = rows.first() else { return String::new() };
        let mut places: Vec<usize> = COMMON.iter().filter_map(|name| self.place(name)).collect();
        let more = sorted_by.filter(|place| !places.contains(place));
        places.extend(more);
        let same = places.into_iter().filter(|place| !shown.contains(place)).filter_map(|place| {
            let column = &self.columns[place];
            (!column.get(*first).is_null()).then(|| format!("{} = {}", column.name, column.text(*first)))
        });
        let same: Vec<String> = same.collect();
        if same.is_empty() { String::new() } else { format!("{} in every row\n\n", same.join(", ")) }
    }

    /// Prints `rows` as an array of objects, one per line.
    fn print_json(&self, rows: &[usize]) -> Result<()> {
        print("[")?;
        for (lot, rows) in rows.chunks(AT_ONCE).enumerate() {
            let mut text = String::new();
            for (place, row) in rows.iter().enumerate() {
                text += if lot + place == 0 { "\n" } else { ",\n" };
                let cells = self.columns.iter().map(|column| (column.name.clone(), column.get(*row).clone()));
                text += &Value::Object(cells.collect::<Map<_, _>>()).to_string();
            }
            print(&text)?;
        }
        print("\n]\n")
    }
}

/// The reason why a folder has no table of a sweep.
fn no_table(folder: &Path) -> String {
    let (shown, expected) = (folder.display(), format!("expected the folder of a sweep, with {RESULTS}"));
    if !folder.is_dir() {
        return format!("{shown} is not a folder; {expected}");
    }
    if is_unfinished(folder) {
        return format!("{shown} has an unfinished sweep; --resume finishes it");
    }
    let Some(command) = command_of(folder) else { return format!("{shown} holds no {RESULTS}; {expected}") };
    format!("{shown} holds the results of '{command}'; {expected}")
}
