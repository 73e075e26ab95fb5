//! `haversack show`: describes a device, a software stack, a network, a policy or an operating system, and how well its
//! constants are known; for a folder, the table of its sweep.

mod calibrated;
mod device;
mod model;

pub(crate) use model::parameters;

use std::path::Path;

use clap::{Args, ValueEnum};
use haversack_devices::ensure;
use haversack_devices::text::{alternatives, hint};
use serde_json::Value;

use crate::output::{Format, join};
use crate::show_table::{self, TableOptions};
use crate::texts::text;
use crate::{CommandError, Result};

/// The options of `show`.
#[derive(Clone, Debug, Args)]
#[command(after_help = include_str!("../help/show.txt"))]
pub struct ShowOptions {
    /// Kind (device, stack, model, policy or system), or the folder of a sweep
    #[arg(value_name = "WHAT|DIR")]
    pub what: String,
    /// Id of `haversack list`, or a file: .toml of a device, stack or system, .onnx of a model
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// The number and order of a sweep's rows.
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

/// The description of a thing, as text and as JSON.
struct Shown {
    text: String,
    json: Value,
}

impl Shown {
    /// The answer `json`; the template also reads `more`.
    fn new(template: &str, json: Value, more: Value) -> Self {
        let mut all = json.clone();
        join(&mut all, more);
        Self { text: text(template, &all), json }
    }
}

/// Prints the description of a thing.
///
/// # Errors
/// An unknown kind or id, a file that does not describe one; for a folder, as [`show_table::show`].
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
