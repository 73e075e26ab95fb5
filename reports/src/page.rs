//! The report: one `index.html` that needs no script, no network and no other file but the figures it shows. That of a single
//! run is a [`RunPage`], which holds its figures too.
//!
//! The templates and their style are in `page/`. Everything that comes from data is escaped.

mod run;

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Output, State, Value, context};
use serde::{Deserialize, Serialize};

use crate::table::escaped;
pub use run::{RunPage, RunSection};

/// What the page says.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Page {
    /// The heading.
    pub title: String,
    /// A sentence or two below it.
    pub lead: String,
    /// One row a paper and role.
    pub summary: Summary,
    /// The artefacts, in order.
    pub sections: Vec<Section>,
    /// The constants that were fitted.
    pub constants: Vec<Item>,
    /// The readings that were declared.
    pub readings: Vec<Item>,
}

/// How the roles of the papers came out, as a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The names of the columns, of which the first two hold words and the others figures.
    pub columns: Vec<String>,
    /// One row a paper and role, a cell a column.
    pub rows: Vec<Vec<String>>,
    /// What is said below it, a sentence each.
    pub remarks: Vec<String>,
}

/// One artefact.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Section {
    /// The paper's folder.
    pub paper: String,
    /// The artefact, which names its files in that folder.
    pub artefact: String,
    /// The heading.
    pub title: String,
    /// What the figure shows, in words; `None` where the artefact has no figure.
    pub alt: Option<String>,
    /// The rows of `cells.csv`.
    pub cells: Vec<CellRow>,
    /// What a reader must know to believe them.
    pub notes: Notes,
}

/// One row of `cells.csv`, as it stands there.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CellRow {
    /// The reference id.
    pub id: String,
    /// The simulated value.
    pub simulated: String,
    /// Its unit.
    pub unit: String,
    /// The paper's value.
    pub paper: String,
    /// `fit`, `check` or `withheld`.
    pub role: String,
    /// Signed error, a fraction.
    pub error: Option<f64>,
    /// The same if no constant had been fitted to the row, where that is known; not in `cells.csv`.
    pub left_out: Option<f64>,
    /// `ok`, `off`, `holds`, `fails`, `predicted`, `input` or `not-modelled`.
    pub verdict: String,
    /// What the null baseline gives.
    pub null: String,
    /// Why, where there is something to say.
    pub reason: String,
}

/// Honesty about one artefact; an empty list is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Notes {
    /// What is calibrated.
    pub calibrated: Vec<String>,
    /// What is predicted.
    pub predicted: Vec<String>,
    /// Readings that were declared.
    pub readings: Vec<String>,
    /// What the model leaves out.
    pub left_out: Vec<String>,
    /// Where it misses.
    pub misses: Vec<String>,
}

/// A fitted constant or a declared reading.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Item {
    /// What it is called.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Its unit, or empty.
    pub unit: String,
    /// Where it comes from, or why it was chosen.
    pub source: String,
}

/// The template failed: a mistake of this crate, not of the data.
#[derive(Debug, thiserror::Error)]
#[error("cannot render the page: {0}")]
pub struct PageError(#[from] minijinja::Error);

const VERDICTS: [&str; 7] = ["ok", "off", "holds", "fails", "predicted", "input", "not-modelled"];
/// A longer table of cells is folded until a reader opens it.
const FOLDED_FROM: usize = 16;

impl Page {
    /// The page as HTML. The same page gives the same bytes.
    ///
    /// # Errors
    /// [`PageError`] where the template fails.
    pub fn render(&self) -> Result<String, PageError> {
        let mut environment = environment("index.html", include_str!("page/index.html"))?;
        environment.add_filter("percent", percent);
        environment.add_filter("signed", signed);
        environment.add_filter("anchor", |text: &str| anchor(text));
        environment.add_filter("verdict", |text: &str| VERDICTS.contains(&text).then(|| text.to_owned()));
        let papers = self.papers();
        let counts: Vec<String> = self.sections.iter().map(|s| counts(&s.cells)).collect();
        let template = environment.get_template("index.html")?;
        Ok(template
            .render(context! { page => Serde(self), papers => Serde(papers), counts, folded_from => FOLDED_FROM })?)
    }

    /// The papers in their order, each with the indices of its sections.
    fn papers(&self) -> Vec<(&str, Vec<usize>)> {
        let mut papers: Vec<(&str, Vec<usize>)> = Vec::new();
        for (index, section) in self.sections.iter().enumerate() {
            match papers.iter_mut().find(|(paper, _)| *paper == section.paper) {
                Some((_, sections)) => sections.push(index),
                None => papers.push((&section.paper, vec![index])),
            }
        }
        papers
    }
}

/// What all templates have: the style, and the one way to escape.
fn environment<'t>(name: &'t str, template: &'t str) -> Result<Environment<'t>, PageError> {
    let mut environment = Environment::new();
    environment.add_template(name, template)?;
    environment.add_template("style.css", include_str!("page/style.css"))?;
    environment.set_formatter(write_escaped);
    Ok(environment)
}

/// "12 rows: 9 ok, 2 off, 1 not-modelled".
fn counts(cells: &[CellRow]) -> String {
    let of = |verdict: &str| cells.iter().filter(|c| c.verdict == verdict).count();
    let parts: Vec<String> =
        VERDICTS.iter().map(|v| (of(v), v)).filter(|c| c.0 > 0).map(|(n, v)| format!("{n} {v}")).collect();
    let rows = if cells.len() == 1 { "1 row".to_owned() } else { format!("{} rows", cells.len()) };
    if parts.is_empty() { rows } else { format!("{rows}: {}", parts.join(", ")) }
}

/// Letters and digits kept, everything else a hyphen: safe in an `id` and in a link to it.
fn anchor(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

/// The one way that this crate escapes; minijinja's own turns the slashes of every id into entities.
fn write_escaped(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), minijinja::Error> {
    if value.is_safe() || *state.auto_escape() == AutoEscape::None {
        write!(out, "{value}")?;
    } else if !value.is_none() && !value.is_undefined() {
        out.write_str(&escaped(&value.to_string()))?;
    }
    Ok(())
}

fn fraction(value: &Value) -> Option<f64> {
    f64::try_from(value.clone()).ok().filter(|v| v.is_finite())
}

fn percent(value: &Value) -> String {
    fraction(value).map_or_else(|| "–".into(), |v| format!("{:.1}%", v * 100.0))
}

fn signed(value: &Value) -> String {
    let Some(value) = fraction(value) else { return String::new() };
    let tenths = (value * 1000.0).round() / 10.0;
    let sign = if tenths < 0.0 {
        "−"
    } else if tenths > 0.0 {
        "+"
    } else {
        ""
    };
    format!("{sign}{:.1}%", tenths.abs())
}
