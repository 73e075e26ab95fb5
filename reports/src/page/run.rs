//! The page of one run: a single file, its figures in it.

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::Serialize;

use super::inline::Looks;
use super::{PageError, environment};

/// What the page of a run says.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunPage {
    /// The heading.
    pub title: String,
    /// What came of the run, a line each.
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
    /// The SVG document of a figure; empty where there is none.
    pub svg: String,
    /// What the figure shows, in words, for those who do not see it.
    pub alt: String,
    /// The names of the table's columns, of which the first holds words and the others figures; none where there is no table.
    pub columns: Vec<String>,
    /// A cell for each column.
    pub rows: Vec<Vec<String>>,
    /// Whether the others hold words, too.
    pub are_words: bool,
}

impl RunPage {
    /// The page as HTML, which loads nothing. The same page gives the same bytes.
    ///
    /// # Errors
    /// [`PageError`] where the template fails.
    pub fn render(&self) -> Result<String, PageError> {
        let environment = environment("run.html", include_str!("run.html"))?;
        let mut looks = Looks::default();
        let drawn = self.sections.iter().map(|section| {
            (!section.svg.is_empty()).then(|| Value::from_safe_string(looks.inline(&section.svg, &section.alt)))
        });
        let figures: Vec<Option<Value>> = drawn.collect();
        let looks = Value::from_safe_string(looks.style_sheet());
        Ok(environment.get_template("run.html")?.render(context! { page => Serde(self), figures, looks })?)
    }
}
