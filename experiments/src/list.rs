//! `haversack list`: the names that scenarios can use, one id per line, each with a description.

use clap::{Args, ValueEnum};
use haversack_devices::{Listing, load};
use haversack_policies::{Entry, registry};
use haversack_reports::table::three_digits;
use haversack_workloads::models::{MODELS, Model, Sample};
use haversack_workloads::onnx;
use serde_json::{Value, json};

use crate::output::Format;
use crate::papers::{Reference, catalogue};
use crate::scenario::InputShape;
use crate::texts::{headed, text};
use crate::{CommandError, Result, show};

/// The things that can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// Devices that train, with their memory
    Devices,
    /// Networks that are trained, with the shape of a sample
    Models,
    /// Memory policies; `list policies ID` has the parameters of one
    Policies,
    /// Software stacks
    Stacks,
    /// Operating systems
    Systems,
    /// Figures and tables of the papers
    Artefacts,
    /// Operators supported in ONNX files
    Operators,
}

/// The options of `list`.
#[derive(Clone, Debug, Args)]
#[command(after_help = include_str!("../help/list.txt"))]
pub struct ListOptions {
    /// Kind of names to list
    pub what: Listed,
    /// Policy whose parameters to list
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// An id, a further column of text and of JSON, and a description.
struct Row {
    id: String,
    column: Option<(&'static str, String, Value)>,
    about: String,
}

impl Row {
    fn new(id: impl Into<String>, about: impl Into<String>) -> Self {
        Self { id: id.into(), column: None, about: about.into() }
    }

    fn json(&self) -> Value {
        let mut value = json!({ "id": self.id, "about": self.about });
        if let Some((key, _, column)) = &self.column {
            value[*key] = column.clone();
        }
        value
    }
}

/// Prints the list.
///
/// # Errors
/// An unknown policy, a built-in calibration that does not load, or a standard output that cannot be written.
pub fn run(options: &ListOptions) -> Result<()> {
    if let Some(id) = &options.id {
        return parameters(options, id);
    }
    let mut rows: Vec<Row> = match options.what {
        Listed::Devices => devices()?,
        Listed::Stacks => calibrations(haversack_devices::list_stacks()?),
        Listed::Systems => calibrations(haversack_devices::list_systems()?),
        Listed::Models => MODELS.iter().map(model).collect(),
        Listed::Policies => registry::all().map(policy).collect(),
        Listed::Artefacts => artefacts()?,
        Listed::Operators => onnx::operators().map(operator).collect(),
    };
    rows.sort_by_cached_key(|row| natural(&row.id));
    options.format.print(|| lines(&rows), || rows.iter().map(Row::json).collect())
}

fn lines(rows: &[Row]) -> String {
    let mut table = headed(if rows.iter().any(|row| row.column.is_some()) { "¦>¦" } else { "¦" });
    for Row { id, column, about } in rows {
        let middle = column.as_ref().map(|(_, text, _)| text.as_str());
        table.row([id.as_str()].into_iter().chain(middle).chain([about.as_str()]));
    }
    table.to_string()
}

/// An id with its numbers as numbers, so that `figure9` comes before `figure10`.
fn natural(id: &str) -> Vec<(String, u64)> {
    let parts = id.as_bytes().chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit());
    let parts = parts.map(|part| String::from_utf8_lossy(part).into_owned());
    parts.map(|part| part.parse().map_or((part, 0), |number| (String::new(), number))).collect()
}

/// The parameters of the policy `id`.
fn parameters(options: &ListOptions, id: &str) -> Result<()> {
    if options.what != Listed::Policies {
        let what = options.what.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        return Err(CommandError::input(format!("only policies have parameters to list; found '{id}' after {what}")));
    }
    let entry = registry::find(id)?;
    let parameters = || show::parameters(entry);
    let all = || json!({ "policy": entry.id, "parameters": parameters() });
    options.format.print(|| text(include_str!("../texts/parameters.txt"), &all()), parameters)
}

fn devices() -> Result<Vec<Row>> {
    let row = |listing: Listing| {
        let device = load(listing.id)?;
        let bytes = device.ram();
        let memory = format!("{} GiB", three_digits(bytes.as_f64() / f64::from(1_u32 << 30)));
        let stack = &device.constants.default_stack;
        let about = format!("{}, default stack {stack}", listing.line);
        Ok(Row { column: Some(("ram_bytes", memory, json!(bytes.0))), ..Row::new(listing.id, about) })
    };
    haversack_devices::list()?.into_iter().map(row).collect()
}

fn calibrations(listed: Vec<Listing>) -> Vec<Row> {
    listed.into_iter().map(|listing| Row::new(listing.id, listing.line)).collect()
}

fn model(model: &Model) -> Row {
    let shape = model.sample.own();
    let unit = if matches!(model.sample, Sample::Tokens { .. }) { " tokens" } else { "" };
    let text = format!("{}{unit}", InputShape(shape.to_vec()));
    Row { column: Some(("input", text, json!(shape))), ..Row::new(model.id, model.about) }
}

fn operator(name: &'static str) -> Row {
    let gradients = onnx::carries_gradients(name);
    Row::new(name, if gradients { "trained through" } else { "of constants and shapes alone" })
}

/// A policy with its source and the names of its parameters.
fn policy(entry: &Entry) -> Row {
    let names: Vec<&str> = entry.parameters.iter().map(|parameter| parameter.name).collect();
    let parameters = if names.is_empty() { String::new() } else { format!("; parameters: {}", names.join(", ")) };
    Row::new(entry.id, format!("{} ({}){parameters}", entry.about, entry.citation))
}

/// Every artefact that can be selected.
fn artefacts() -> Result<Vec<Row>> {
    let reference = Reference::load().map_err(CommandError::failed)?;
    let mut rows = Vec::new();
    for (paper, id) in reference.artefacts() {
        let known = catalogue::entry(paper, id);
        rows.push(Row::new(format!("{paper}/{id}"), known.map_or("not modelled yet", |artefact| artefact.about)));
    }
    // The comparison's artefacts have no reference rows.
    for artefact in catalogue::entries() {
        let id = artefact.place();
        if !rows.iter().any(|row| row.id == id) {
            rows.push(Row::new(id, artefact.about));
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::natural;

    #[test]
    fn numbers_in_ids_are_ordered_as_numbers() {
        let mut ids =
            ["sage/figure10", "sage/figure9b", "daf/table1", "sage/figure9a", "resnet50", "resnet18-cifar", "resnet18"];
        ids.sort_by_key(|id| natural(id));
        let sorted =
            ["daf/table1", "resnet18", "resnet18-cifar", "resnet50", "sage/figure9a", "sage/figure9b", "sage/figure10"];
        assert_eq!(ids, sorted);
    }
}
