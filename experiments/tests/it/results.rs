//! The committed results: the table in docs/limits.md, and its rows of role check in the README.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use haversack::calibrate::left_out::errors;
use haversack::papers::committed;
use haversack::papers::reference::Reference;
use haversack::papers::summary::{COLUMNS, Tally, Total, tallies};

/// A page has what this test makes of the committed results between these lines.
const MARKS: [&str; 2] = ["<!-- results -->\n", "<!-- /results -->"];
/// The columns that the README shows: paper, rows, median error of numbers, null baseline, claims.
const SHORT: [usize; 5] = [0, 2, 4, 7, 8];

/// The block of a page, which has to be `expected`.
fn check_block(page: &str, expected: &str) {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page)).unwrap();
    let [from, to] = MARKS;
    let shown = text.split_once(from).and_then(|(_, rest)| rest.split_once(to)).map(|(shown, _)| shown);
    let shown = shown.unwrap_or_else(|| panic!("{page} lacks a mark")).trim();
    assert_eq!(shown, expected.trim(), "\nbetween its marks {page} should say:\n\n{expected}\n");
}

#[test]
fn pages_show_the_committed_results() {
    let cells = committed::cells(&Reference::load().unwrap()).unwrap();
    let tallies = tallies(&cells, &errors().unwrap());
    let line = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
    let mut whole = format!("{}\n\n{}{}", Total::of(&cells), line(&COLUMNS), line(&["---"; 9]));
    let mut short = line(&SHORT.map(|column| COLUMNS[column])) + &line(&["---"; 5]);
    for tally in &tallies {
        let figures = tally.figures();
        let figures = figures.each_ref().map(String::as_str);
        whole += &line(&figures);
        if figures[1] == "check" {
            short += &line(&SHORT.map(|column| figures[column]));
        }
    }
    for words in tallies.iter().flat_map(Tally::remarks) {
        let _ = write!(whole, "\n- {words}");
    }
    check_block("docs/limits.md", &whole);
    check_block("README.md", &short);
}
