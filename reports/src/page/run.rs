//! The page of one run: a single file, its figures in it.

use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

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
        let mut environment = environment("run.html", include_str!("run.html"))?;
        environment.add_filter("data_uri", |svg: &str| data_uri(svg));
        Ok(environment.get_template("run.html")?.render(context! { page => Serde(self) })?)
    }
}

/// An SVG document as an address that holds all of it (RFC 2397).
fn data_uri(svg: &str) -> String {
    let mut uri = String::from("data:image/svg+xml,");
    for letter in svg.chars() {
        match letter {
            '%' => uri.push_str("%25"),
            '#' => uri.push_str("%23"),
            '"' => uri.push_str("%22"),
            '<' => uri.push_str("%3C"),
            '>' => uri.push_str("%3E"),
            '\n' => uri.push_str("%0A"),
            letter => uri.push(letter),
        }
    }
    uri
}
