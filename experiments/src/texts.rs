//! Text output: templates of `experiments/texts`, rendered from the JSON of the answer.

use haversack_devices::{Bytes, Nanos};
use haversack_reports::table::{shortest, three_digits};
use haversack_reports::{Column, TextTable};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Error};
use serde_json::Value;

use crate::quantities::{self, percent};

/// The width of running text, in characters.
const WIDTH: usize = 100;
/// The width of a fact's name, in characters.
const NAME: usize = 22;
/// The separator between the cells of a table in a template.
const BAR: char = '¦';
/// The templates that others include.
const INCLUDED: [(&str, &str); 4] = [
    ("head.txt", include_str!("../texts/head.txt")),
    ("belief.txt", include_str!("../texts/belief.txt")),
    ("parameters.txt", include_str!("../texts/parameters.txt")),
    ("traces.txt", include_str!("../texts/traces.txt")),
];

/// The text of `template` for `answer`; if rendering fails, which is a bug in the template, the error.
pub(crate) fn text(template: &str, answer: &Value) -> String {
    filled(template, answer).unwrap_or_else(|error| format!("{error:#}\n"))
}

fn filled(template: &str, answer: &Value) -> Result<String, Error> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build()?;
    environment.set_syntax(syntax);
    environment.add_function("fact", fact);
    environment.add_function("row", |name: &str, value: &str| format!("{name:24}{value}"));
    environment.add_filter("binary", binary);
    environment.add_filter("bytes", |bytes: u64| Bytes(bytes).to_string());
    environment.add_filter("digits", three_digits);
    environment.add_filter("paragraph", |text: &str| paragraph(text, 0));
    environment.add_filter("percent", percent);
    // As written in the file, before it was converted there and back; or with fewer digits.
    environment.add_filter("plain", |value: f64, digits: Option<usize>| {
        let digits = digits.unwrap_or(10).saturating_sub(1);
        shortest(format!("{value:.digits$e}").parse().unwrap_or(value))
    });
    environment.add_filter("shortest", shortest);
    environment.add_filter("size", |bytes: u64| quantities::size(Bytes(bytes)));
    environment.add_filter("table", table);
    environment.add_filter("time", |seconds: f64| quantities::time(Nanos::from_seconds(seconds)));
    for (name, template) in INCLUDED {
        environment.add_template(name, template)?;
    }
    environment.render_str(template, Serde(answer))
}

/// `text` wrapped to [`WIDTH`] characters, each line after `indent` blanks, without a final newline.
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
    lines.iter().map(|line| format!("{:indent$}{line}", "")).collect::<Vec<_>>().join("\n")
}

/// A name and its value, on as many lines as the value takes.
fn fact(name: &str, value: &str) -> String {
    format!("{name:NAME$}{}", paragraph(value, NAME).get(NAME..).unwrap_or_default())
}

/// A size in the units of memory chips.
fn binary(bytes: f64) -> String {
    let units =
        [(30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "B")].map(|(shift, unit)| (f64::from(1_u32 << shift), unit));
    let (size, unit) = units.into_iter().find(|(size, _)| bytes >= *size).unwrap_or((1.0, "B"));
    format!("{} {unit}", three_digits(bytes / size))
}

/// The lines of `rows` in columns below `header`, as [`headed`] takes it.
fn table(rows: &str, header: &str) -> String {
    let mut table = headed(header).indented(2);
    for row in rows.lines() {
        table.row(row.split(BAR));
    }
    table.to_string()
}

/// A table whose columns are as wide as their cells below the names in `header`, if any has a name; columns marked with
/// `>` contain numbers.
pub(crate) fn headed(header: &str) -> TextTable {
    let column = |(place, name): (usize, &str)| {
        let column = if name.starts_with('>') { Column::right(0) } else { Column::left(0) };
        column.fitted().after(if place == 0 { 0 } else { 2 })
    };
    let mut table = TextTable::new(header.split(BAR).enumerate().map(column));
    let names = header.split(BAR).map(|name| name.trim_start_matches('>'));
    if names.clone().any(|name| !name.is_empty()) {
        table.row(names);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{fact, paragraph, table, text};

    #[test]
    fn prose_is_broken_between_words() {
        // 60 words of four letters and a blank: 20 of them fill a line of 99.
        let lines = paragraph(&"word ".repeat(45), 0);
        assert_eq!(lines.lines().map(str::len).collect::<Vec<_>>(), [99, 99, 24]);
        assert_eq!(fact("name", "value"), format!("{:22}value", "name"));
        assert_eq!(fact("name", ""), format!("{:22}", "name"));
        assert_eq!(paragraph("a b", 2), "  a b");
    }

    #[test]
    fn a_table_has_a_header_where_its_columns_have_names() {
        assert_eq!(table("a¦1\nlong¦20\n", "name¦>n"), "  name   n\n  a      1\n  long  20\n");
        assert_eq!(table("a¦1\n", "¦>"), "  a  1\n");
    }

    #[test]
    fn a_template_that_fails_says_why() {
        assert!(text("{{ a.b.c }}", &serde_json::json!({})).contains("undefined value"));
    }
}
