//! `haversack cite` and `CITATION.cff` name the same publications, and the version that is built.

use std::fs;

use crate::docs::markdown::root;
use crate::support::{call, stdout};

/// The compared fields of a publication: title, authors as "family, given", year, venue, DOI, and its use in haversack.
type Entry = (String, Vec<String>, String, String, String, String);

/// The text after `key` on its line, without the marks around it.
fn field(text: &str, key: &str, marks: &[char]) -> String {
    let line = text.lines().map(|line| line.trim_start_matches([' ', '-'])).find_map(|line| line.strip_prefix(key));
    line.unwrap_or_default().trim_end_matches(',').trim_matches(marks).to_owned()
}

fn of_cff(text: &str) -> Entry {
    let names =
        |key: &'static str| text.lines().filter_map(move |line| line.trim_start_matches([' ', '-']).strip_prefix(key));
    let authors =
        names("family-names: ").zip(names("given-names: ")).map(|(family, given)| format!("{family}, {given}"));
    let one = |key: &str| field(text, key, &['"']);
    (one("title: "), authors.collect(), one("year: "), one("collection-title: "), one("doi: "), one("notes: "))
}

fn of_bib(text: &str) -> Entry {
    let one = |key: &str| field(text, &format!("{key} = "), &['{', '}']);
    let authors = one("author").split(" and ").map(str::to_owned).collect();
    (one("title"), authors, one("year"), one("booktitle"), one("doi"), one("note"))
}

#[test]
fn the_citation_file_and_bibtex_say_the_same() {
    let printed = stdout(&call("cite"));
    let file = fs::read_to_string(root().join("CITATION.cff")).unwrap();
    let (own, references) = file.split_once("\nreferences:\n").unwrap();
    let (own_printed, printed) = printed.split_once("\n\n").unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(field(own, "version: ", &[]), version);
    assert_eq!(field(own_printed, "howpublished = ", &['{', '}']), format!("Software, version {version}"));
    assert_eq!(field(own, "title: ", &['"']), field(own_printed, "title = ", &['{', '}']));

    let listed: Vec<Entry> = references.split("  - type: ").skip(1).map(of_cff).collect();
    assert_eq!(listed, printed.split("\n\n").map(of_bib).collect::<Vec<_>>());
    // The four papers that are reproduced, and the one whose logs are replayed, which has no DOI.
    let dois: Vec<&str> = listed.iter().map(|entry| entry.4.as_str()).collect();
    let known =
        ["10.1145/3498361.3539765", "10.1145/3495243.3560545", "10.1145/3666025.3699346", "10.1145/3711875.3729145"];
    assert_eq!(dois, [&known[..], &[""]].concat());
    assert!(listed.iter().all(|(title, authors, year, venue, ..)| {
        !title.is_empty() && authors.len() > 1 && year.len() == 4 && !venue.is_empty()
    }));
}

#[test]
fn the_changelog_has_the_version_that_is_built() {
    let text = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let mut released = text.lines().filter_map(|line| line.strip_prefix("## [")).filter(|line| line.contains("] - "));
    assert!(released.next().unwrap().starts_with(env!("CARGO_PKG_VERSION")));
}
