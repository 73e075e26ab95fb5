//! The committed results, and the table of them in the README.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use haversack::calibrate::left_out::errors;
use haversack::papers::committed;
use haversack::papers::reference::Reference;
use haversack::papers::summary::{COLUMNS, Tally, Total, tallies};

/// Between these lines, the README has the table that this test makes from the committed results.
const MARKS: [&str; 2] = ["<!-- results -->\n", "<!-- /results -->"];

#[test]
fn the_readme_shows_the_committed_results() {
    let cells = committed::cells(&Reference::load().unwrap()).unwrap();
    let tallies = tallies(&cells, &errors().unwrap());
    let line = |cells: [&str; 9]| format!("| {} |\n", cells.join(" | "));
    let mut expected = format!("{}\n\n{}{}", Total::of(&cells), line(COLUMNS), line(["---"; 9]));
    for tally in &tallies {
        let figures = tally.figures();
        expected += &line(figures.each_ref().map(String::as_str));
    }
    for words in tallies.iter().flat_map(Tally::remarks) {
        let _ = write!(expected, "\n- {words}");
    }
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).unwrap();
    let [from, to] = MARKS;
    let shown = readme.split_once(from).and_then(|(_, rest)| rest.split_once(to)).map(|(shown, _)| shown);
    let shown = shown.expect("the README has both marks").trim();
    assert_eq!(shown, expected.trim(), "\nbetween its marks the README should say:\n\n{expected}\n");
}
