//! `haversack show`: what a device, a software stack, a network, a policy or an operating system is, and what is known of
//! it; of a folder, the table that a sweep left there.

mod calibrated;
mod device;
mod model;

pub(crate) use model::{parameter_json, parameters};

use std::path::Path;

use clap::{Args, ValueEnum};
use haversack_devices::ensure;
use haversack_devices::text::{alternatives, hint};
use haversack_reports::{Column, TextTable};
use serde_json::Value;

use crate::output::Format;
use crate::show_table::{self, TableOptions};
use crate::{CommandError, Result};

/// What `show` is asked for.
#[derive(Clone, Debug, Args)]
#[command(after_help = include_str!("../help/show.txt"))]
pub struct ShowOptions {
    /// The kind of thing, which is device, stack, model, policy or system; or the folder of a sweep
    #[arg(value_name = "WHAT|DIR")]
    pub what: String,
    /// Which: an id of `haversack list`, or a file: a .toml file of a device, stack or system, an .onnx file of a model
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// How many rows of a sweep are shown, and in which order.
    #[command(flatten)]
    pub table: TableOptions,
}

/// A kind of thing that can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
enum Thing {
    Device,
    Stack,
    Model,
    Policy,
    System,
}

impl Thing {
    /// The kind called `word`.
    fn named(word: &str) -> Result<Self> {
        let words = || Self::value_variants().iter().map(<&str>::from);
        let found = Self::value_variants().iter().find(|thing| <&str>::from(*thing) == word);
        found.copied().ok_or_else(|| {
            let expected = alternatives(words());
            let hint = hint(word, words());
            CommandError::input(format!("WHAT: expected {expected}, or the folder of a sweep, found '{word}'{hint}"))
        })
    }
}

/// What is shown, for people and for programs.
struct Shown {
    text: String,
    json: Value,
}

/// Prints what a thing is.
///
/// # Errors
/// A kind of thing or an id that nothing has, a file that does not describe one; of a folder, as
/// [`show_table::show`].
pub fn run(options: &ShowOptions) -> Result<()> {
    let folder = Path::new(&options.what);
    let thing = match Thing::named(&options.what) {
        Err(_) if folder.is_dir() => return show_table::show(folder, &options.table, options.format),
        thing => thing?,
    };
    ensure!(!options.table.is_given(), CommandError::input("--sort and --limit are for the folder of a sweep"));
    let Some(id) = options.id.as_deref() else {
        let list = match thing {
            Thing::Policy => "policies".to_owned(),
            other => format!("{other}s"),
        };
        return Err(CommandError::input(format!("ID: which {thing}? Expected an id of `haversack list {list}`")));
    };
    let shown = match thing {
        Thing::Device => device::show(id)?,
        Thing::Stack => device::stack(id)?,
        Thing::System => device::system(id)?,
        Thing::Model => model::network(id)?,
        Thing::Policy => model::policy(id)?,
    };
    options.format.print(|| shown.text, || shown.json)
}

/// Characters of a line of prose.
const WIDTH: usize = 100;
/// Characters of the name before a value.
const NAME: usize = 22;

/// `text` in lines of [`WIDTH`], each behind `indent` blanks.
fn paragraph(text: &str, indent: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if indent + line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| format!("{:indent$}{line}\n", "")).collect()
}

/// A name and its value, on as many lines as the value takes.
fn fact(name: &str, value: &str) -> String {
    let lines = paragraph(value, NAME);
    format!("{name:NAME$}{}", lines.get(NAME..).unwrap_or_default())
}

/// A table whose columns are as wide as their cells, under a header if there is one: words, and numbers where
/// `is_number` says so.
fn table(header: &[&str], is_number: impl Fn(usize) -> bool, rows: Vec<Vec<String>>) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(header.len());
    let column = |place: usize| {
        let column = if is_number(place) { Column::right(0) } else { Column::left(0) };
        column.fitted().after(if place == 0 { 0 } else { 2 })
    };
    let mut table = TextTable::new((0..columns).map(column)).indented(2);
    if !header.is_empty() {
        table.row(header.iter().copied());
    }
    for row in rows {
        table.row(row);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_broken_between_words() {
        // 60 words of four letters and a blank: 20 of them fill a line of 99.
        let lines = paragraph(&"word ".repeat(45), 0);
        assert_eq!(lines.lines().map(str::len).collect::<Vec<_>>(), [99, 99, 24]);
        assert_eq!(fact("name", "value"), format!("{:22}value\n", "name"));
        assert_eq!(fact("name", ""), format!("{:22}\n", "name"));
        assert_eq!(paragraph("a b", 2), "  a b\n");
    }

    #[test]
    fn numbers_stand_on_the_right() {
        let rows = vec![vec!["a".to_owned(), "1".to_owned()], vec!["bc".to_owned(), "10".to_owned()]];
        assert_eq!(table(&["x", "y"], |place| place == 1, rows), "  x    y\n  a    1\n  bc  10\n");
    }
}
