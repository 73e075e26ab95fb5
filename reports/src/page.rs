//! The report: one `index.html` that needs neither network nor other files, because it contains its figures. The page
//! of a single run is a [`RunPage`].
//!
//! The templates, their style and their script are in `page/`. Everything that comes from data is escaped. Without the
//! script, everything can be read; with it, a mark shows its value when a reader points at it, fronts can be filtered
//! by method and panel, and sections by device and verdict.
//!
//! Styles that the figures of a page share are written once, in the page's style sheet.
//!
//! Looks in the attributes of elements become classes, whose colours have a darker counterpart
//! for readers who prefer one.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use indexmap::IndexSet;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Output, State, Value, context};
use serde::{Deserialize, Serialize};

use crate::table::escaped;

/// The contents of the page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Page {
    /// The heading.
    pub title: String,
    /// A sentence or two below it.
    pub lead: String,
    /// Counts at the top of the page, in order.
    pub cards: Vec<Card>,
    /// All numbers together, as a figure; `None` if there are none.
    pub overview: Option<Drawn>,
    /// One row a paper and role.
    pub summary: Summary,
    /// The artefacts, in order.
    pub sections: Vec<Section>,
    /// The constants that were fitted.
    pub constants: Vec<Item>,
    /// The declared readings of the papers.
    pub readings: Vec<Item>,
}

/// A count at the top of the page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Card {
    /// Its label.
    pub label: String,
    /// The count.
    pub count: usize,
    /// A few words below.
    pub note: String,
    /// The verdict that gives it its colours, such as `ok`; any other text for none.
    pub verdict: String,
}

/// A figure in the page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Drawn {
    /// A description of it in words.
    pub alt: String,
    /// The document that [`Figure::render`](crate::Figure::render) drew.
    pub svg: String,
}

/// The results of each paper and role, as a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The names of the columns, of which the first two are text and the others numbers.
    pub columns: Vec<String>,
    /// One row a paper and role, a cell a column.
    pub rows: Vec<Vec<String>>,
    /// Remarks below it, one sentence each.
    pub remarks: Vec<String>,
}

/// One artefact.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Section {
    /// The paper's folder.
    pub paper: String,
    /// The usual name of the paper.
    pub paper_name: String,
    /// The artefact, which names its files in that folder.
    pub artefact: String,
    /// The heading, short: "Figure 9a".
    pub name: String,
    /// A short description; may be empty.
    pub about: String,
    /// How well it was reproduced, in a sentence; may be empty.
    pub sentence: String,
    /// The devices of the artefact.
    pub devices: Vec<String>,
    /// The figure; `None` if the artefact has none.
    pub figure: Option<Drawn>,
    /// The rows of `cells.csv`.
    pub cells: Vec<CellRow>,
    /// Notes that a reader needs to judge the results.
    pub notes: Notes,
}

/// One row of `cells.csv`, as in the file.
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
    /// The error with constants that were not fitted to this row, if known; not in `cells.csv`.
    pub left_out: Option<f64>,
    /// `ok`, `off`, `holds`, `fails`, `predicted`, `input` or `not-modelled`.
    pub verdict: String,
    /// The prediction of the null baseline.
    pub null: String,
    /// The reason, if there is one.
    pub reason: String,
}

/// The limits of one artefact; an empty list is not shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Notes {
    /// Calibrated quantities.
    pub calibrated: Vec<String>,
    /// Predicted quantities.
    pub predicted: Vec<String>,
    /// Declared readings.
    pub readings: Vec<String>,
    /// Effects that the model leaves out.
    pub left_out: Vec<String>,
    /// Where the model misses.
    pub misses: Vec<String>,
}

/// A fitted constant or a declared reading.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Item {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Its unit, or empty.
    pub unit: String,
    /// Its source, or the reason for it.
    pub source: String,
}

/// The template failed: a bug of this crate, not of the data.
#[derive(Debug, thiserror::Error)]
#[error("cannot render the page: {0}")]
pub struct PageError(#[from] minijinja::Error);

const VERDICTS: [&str; 7] = ["ok", "off", "holds", "fails", "predicted", "input", "not-modelled"];
impl Page {
    /// The page as HTML. The same page gives the same bytes.
    ///
    /// # Errors
    /// [`PageError`] if the template fails.
    pub fn render(&self) -> Result<String, PageError> {
        let mut environment = environment("index.html", include_str!("page/index.html"))?;
        environment.add_filter("signed", signed);
        environment.add_filter("anchor", |text: &str| anchor(text));
        let mut looks = Looks::default();
        let overview = looks.drawn(self.overview.as_ref());
        let drawn = self.sections.iter().map(|section| looks.drawn(section.figure.as_ref()));
        let figures: Vec<Option<Value>> = drawn.collect();
        let devices: BTreeSet<&String> = self.sections.iter().flat_map(|section| &section.devices).collect();
        let template = environment.get_template("index.html")?;
        Ok(template.render(context! {
            page => Serde(self),
            papers => Serde(self.papers()),
            devices => Serde(devices),
            verdicts => VERDICTS,
            looks => Value::from_safe_string(looks.style_sheet()),
            overview,
            figures,
        })?)
    }

    /// The papers in their order, each with its name and the indices of its sections.
    fn papers(&self) -> Vec<(&str, &str, Vec<usize>)> {
        let mut papers: Vec<(&str, &str, Vec<usize>)> = Vec::new();
        for (index, section) in self.sections.iter().enumerate() {
            match papers.iter_mut().find(|(paper, ..)| *paper == section.paper) {
                Some((.., sections)) => sections.push(index),
                None => papers.push((&section.paper, &section.paper_name, vec![index])),
            }
        }
        papers
    }
}

/// The environment of all templates: the style, the script, and the only escaping function.
fn environment<'t>(name: &'t str, template: &'t str) -> Result<Environment<'t>, PageError> {
    let mut environment = Environment::new();
    environment.add_template(name, template)?;
    environment.add_template("head.html", include_str!("page/head.html"))?;
    environment.add_template("style.css", include_str!("page/style.css"))?;
    environment.add_template("page.js", include_str!("page/page.js"))?;
    environment.set_formatter(write_escaped);
    Ok(environment)
}

/// Letters and digits kept, everything else a hyphen: safe in an `id` and in a link to it.
fn anchor(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

/// The only escaping function of this crate; minijinja's own turns the slashes of every id into entities.
fn write_escaped(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), minijinja::Error> {
    if value.is_safe() || *state.auto_escape() == AutoEscape::None {
        write!(out, "{value}")?;
    } else if !value.is_none() && !value.is_undefined() {
        out.write_str(&escaped(&value.to_string()))?;
    }
    Ok(())
}

fn signed(value: &Value) -> String {
    let Some(value) = f64::try_from(value.clone()).ok().filter(|v| v.is_finite()) else { return String::new() };
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

// The page of one run: a single file that contains its figures.

/// The contents of the page of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunPage {
    /// The heading.
    pub title: String,
    /// The results of the run, a line each.
    pub lead: Vec<String>,
    /// Its parts, in order.
    pub sections: Vec<RunSection>,
}

/// A figure, a table, or both, under a heading.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunSection {
    /// The heading.
    pub title: String,
    /// A sentence or two below it, or nothing.
    pub note: String,
    /// The figure, if there is one.
    pub figure: Option<Drawn>,
    /// The names of the table's columns, of which the first is text and the others numbers; empty without a table.
    pub columns: Vec<String>,
    /// A cell for each column.
    pub rows: Vec<Vec<String>>,
    /// Whether the other columns are text, too.
    pub are_words: bool,
}

impl RunPage {
    /// The page as HTML, which loads nothing. The same page gives the same bytes.
    ///
    /// # Errors
    /// [`PageError`] if the template fails.
    pub fn render(&self) -> Result<String, PageError> {
        let environment = environment("run.html", include_str!("page/run.html"))?;
        let mut looks = Looks::default();
        let drawn = self.sections.iter().map(|section| looks.drawn(section.figure.as_ref()));
        let figures: Vec<Option<Value>> = drawn.collect();
        let looks = Value::from_safe_string(looks.style_sheet());
        Ok(environment.get_template("run.html")?.render(context! { page => Serde(self), figures, looks })?)
    }
}

/// Attributes of looks that a style sheet can set.
const LOOKS: [&str; 6] = ["fill", "stroke", "stroke-width", "font-size", "font-weight", "text-anchor"];
/// Colours of axes, text, grids, bands and the sheet itself, each with its counterpart on a dark page.
const DARK: [(&str, &str); 6] = [
    ("#FFFFFF", "#1E2227"),
    ("#22262B", "#E4E7EA"),
    ("#5C636B", "#9AA3AC"),
    ("#E3E6E9", "#343A41"),
    ("#E7E8E9", "#2E343A"),
    ("#C1C4C7", "#4A5057"),
];

/// The classes of all figures of a page.
#[derive(Default)]
struct Looks(IndexSet<String>);

impl Looks {
    /// As [`inline`](Self::inline), for a template.
    fn drawn(&mut self, figure: Option<&Drawn>) -> Option<Value> {
        figure.map(|figure| Value::from_safe_string(self.inline(&figure.svg, &figure.alt)))
    }

    /// A figure for the page, with its looks as classes and a label for those who cannot see it.
    fn inline(&mut self, svg: &str, label: &str) -> String {
        let mut inline = String::with_capacity(svg.len());
        for line in svg.lines() {
            if let Some(tag) = line.strip_prefix("<svg ") {
                let (width, view) = (attribute(tag, "width"), attribute(tag, "viewBox"));
                let (width, view) = (width.unwrap_or_default(), view.unwrap_or_default());
                let label = crate::table::escaped(label);
                let _ = writeln!(
                    inline,
                    "<svg role=\"img\" aria-label=\"{label}\" viewBox=\"{view}\" style=\"max-width:{width}px\">"
                );
            } else if !line.starts_with("<title>") {
                self.element(line, &mut inline);
            }
        }
        inline
    }

    /// Adds an element, which is one line.
    fn element(&mut self, line: &str, inline: &mut String) {
        let drawn = ["<rect ", "<text ", "<circle ", "<polygon ", "<polyline ", "<path "];
        let end = line.find('>').filter(|_| drawn.iter().any(|start| line.starts_with(start)));
        let Some(end) = end else {
            inline.extend([line, "\n"]);
            return;
        };
        let (head, rest) = line.split_at(end);
        let mut words = head.split("\" ");
        let mut looks = String::new();
        let mut kept = String::new();
        let first = words.next().unwrap_or_default();
        let (name, first) = first.split_once(' ').unwrap_or((first, ""));
        for word in std::iter::once(first).chain(words) {
            let word = word.strip_suffix('/').unwrap_or(word);
            let Some((key, value)) = word.split_once("=\"") else { continue };
            let value = value.strip_suffix('"').unwrap_or(value);
            if LOOKS.contains(&key) {
                let unit = if key == "font-size" { "px" } else { "" };
                let _ = write!(looks, "{key}:{value}{unit};");
            } else {
                let _ = write!(kept, " {key}=\"{value}\"");
            }
        }
        let (class, _) = self.0.insert_full(looks);
        let close = if head.ends_with('/') { "/" } else { "" };
        let _ = writeln!(inline, "{name} class=\"f{class}\"{kept}{close}{rest}");
    }

    /// The rules of the classes, for light and dark pages.
    fn style_sheet(&self) -> String {
        let mut sheet = String::new();
        for (number, looks) in self.0.iter().enumerate() {
            let _ = writeln!(sheet, ".f{number}{{{looks}}}");
        }
        sheet.push_str("@media (prefers-color-scheme: dark) {\n");
        for (number, looks) in self.0.iter().enumerate() {
            let dark = DARK.iter().fold(looks.clone(), |looks, (light, dark)| looks.replace(light, dark));
            if dark != *looks {
                let _ = writeln!(sheet, ".f{number}{{{dark}}}");
            }
        }
        sheet.push_str("}\n");
        sheet
    }
}

/// The value of an attribute of a tag.
fn attribute<'t>(tag: &'t str, key: &str) -> Option<&'t str> {
    tag.split_once(&format!("{key}=\""))?.1.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_classes_that_figures_share() {
        let mut looks = Looks::default();
        let svg = "<svg role=\"img\" width=\"90\" height=\"40\" viewBox=\"0 0 360 160\">\n<title>old</title>\n\
                   <rect x=\"1\" y=\"2\" fill=\"#FFFFFF\"/>\n<text x=\"3\" font-size=\"50\" fill=\"#22262B\">a > b</text>\n</svg>\n";
        let inline = looks.inline(svg, "a <figure>");
        let expected = "<svg role=\"img\" aria-label=\"a &lt;figure&gt;\" viewBox=\"0 0 360 160\" style=\"max-width:90px\">\n\
                        <rect class=\"f0\" x=\"1\" y=\"2\"/>\n<text class=\"f1\" x=\"3\">a > b</text>\n</svg>\n";
        assert_eq!(inline, expected);
        assert_eq!(looks.inline(svg, "a <figure>"), inline);
        let sheet = looks.style_sheet();
        assert!(sheet.starts_with(".f0{fill:#FFFFFF;}\n.f1{font-size:50px;fill:#22262B;}\n@media"), "{sheet}");
        assert!(sheet.contains(".f1{font-size:50px;fill:#E4E7EA;}"), "{sheet}");
    }
}
