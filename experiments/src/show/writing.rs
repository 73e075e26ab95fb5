//! How what is shown looks on a terminal.

use haversack_reports::text_table::{Column, TextTable};

/// Characters of a line of prose.
const WIDTH: usize = 100;
/// Characters of the name before a value.
const NAME: usize = 22;

/// `text` in lines of [`WIDTH`], each behind `indent` blanks.
pub(super) fn paragraph(text: &str, indent: usize) -> String {
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
pub(super) fn fact(name: &str, value: &str) -> String {
    let lines = paragraph(value, NAME);
    format!("{name:NAME$}{}", lines.get(NAME..).unwrap_or_default())
}

/// A table whose columns are as wide as their cells, under a header if there is one: words, and numbers where
/// `is_number` says so.
pub(super) fn table(header: &[&str], is_number: impl Fn(usize) -> bool, rows: Vec<Vec<String>>) -> String {
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
