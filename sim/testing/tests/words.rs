//! Plain English: comments, documentation, help and messages do without the words that STYLE.md replaces.
//!
//! Code in backticks, code blocks and the targets of links do not count.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

/// Words in lower case, and plain ones that mean the same. STYLE.md has the same table.
const WORDS: [(&str, &str); 20] = [
    ("held", "kept, stored, contained"),
    ("asked", "requested, given, selected"),
    ("told", "reported, given"),
    ("beside", "next to, besides, along with"),
    ("stands", "is, appears"),
    ("anew", "again"),
    ("nobody", "no one, nothing, no user"),
    ("whoever", "anyone who, the user who"),
    ("so many", "the number of, that many"),
    ("is no", "is not a"),
    ("are no", "are not"),
    ("was no", "was not a"),
    ("one's own", "custom, your own"),
    ("hangs on", "depends on"),
    ("no matter", "regardless of, ignored"),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("under way", "in progress, in flight"),
    ("alike", "the same, both"),
    ("farthest", "largest first, furthest"),
];
/// Phrases with such words that are plain English, or the glossary's.
const EXCEPTIONS: [&str; 4] = ["is no longer", "are no longer", "was no longer", "stands in for"];
/// Only in documentation and comments: in a message a question may be meant.
const OPENING: &str = "What";
/// The glossary's noun and its verb, for each 10,000 words.
const HOLD: usize = 4;

/// The name of a file, a line's number in it, and its text without code.
type Line = (PathBuf, usize, String);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The files below `folder` that have prose, without data of tests.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !["data", "fixtures", "target", "measured"].contains(&name) || folder.ends_with("src") {
                files(&path, found);
            }
        } else if [".rs", ".md", ".toml", ".py", ".txt", ".html"].iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
}

fn prose_files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let folders = ["devices", "docs", "examples", "experiments", "python", "reports", "sim", "traces", "workloads"];
    folders.iter().for_each(|folder| files(&root().join(folder), &mut found));
    found.extend(["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "STYLE.md"].map(|name| root().join(name)));
    // Lists that are data: names of fields, and what clap says. Licences are quoted.
    let is_licence = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("LICENSE");
    found.retain(|path| !path.ends_with("experiments/tests/it/constants_not_reached.txt") && !is_licence(path));
    found.sort();
    found
}

/// The prose of a line of this kind of file.
fn prose<'a>(line: &'a str, kind: &str) -> &'a str {
    let comment = |mark: &str| line.split_once(mark).map_or("", |(_, comment)| comment);
    match kind {
        "rs" => line.trim_start().strip_prefix("//").map_or("", |comment| comment.trim_start_matches(['/', '!'])),
        "toml" => comment("# "),
        // The words of a page are checked as messages are.
        "html" => "",
        _ => line,
    }
}

/// A line without what is in backticks, in the targets of links and in the variables of a template.
fn without_code(line: &str) -> String {
    let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" x ");
    let plain: String = plain.split("{{").flat_map(|part| part.rsplit("}}").next()).collect();
    plain.split("](").enumerate().fold(String::new(), |text, (place, part)| {
        let rest = if place == 0 { part } else { part.split_once(')').map_or("", |(_, rest)| rest) };
        text + " " + rest
    })
}

/// The lines of documentation, comments and help.
fn documentation() -> Vec<Line> {
    let mut lines = Vec::new();
    for path in prose_files() {
        let text = fs::read_to_string(&path).unwrap();
        let kind = path.extension().unwrap().to_str().unwrap();
        let (mut is_code, mut is_docstring) = (false, false);
        for (number, line) in text.lines().enumerate() {
            let mut line = prose(line, kind).to_owned();
            if kind == "py" {
                let is_within = is_docstring || line.contains("\"\"\"");
                is_docstring ^= line.matches("\"\"\"").count() % 2 == 1;
                if !is_within {
                    line = line.split_once("# ").map_or(String::new(), |(_, comment)| comment.to_owned());
                }
            }
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            let text = if is_code || is_fence { String::new() } else { without_code(&line) };
            lines.push((path.clone(), number + 1, text));
        }
    }
    lines
}

/// The strings of a source, with the lines on which they begin.
fn strings(tokens: TokenStream, found: &mut Vec<(usize, String)>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => strings(group.stream(), found),
            TokenTree::Literal(literal) if literal.to_string().starts_with(['"', 'r']) => {
                found.push((literal.span().start().line, literal.to_string()));
            }
            _ => {}
        }
    }
}

/// The messages of the program: strings of several words, up to a file's tests, the values of its data files, and pages.
fn messages() -> Vec<Line> {
    let mut lines = Vec::new();
    // NITI's text is part of the keys of committed trainings: other words would ask for all of them again.
    let is_data = |path: &PathBuf| {
        path.extension().is_some_and(|kind| kind == "toml" || kind == "html") && !path.ends_with("niti.toml")
    };
    for path in prose_files().into_iter().filter(is_data) {
        let text = fs::read_to_string(&path).unwrap();
        lines.extend(text.lines().enumerate().map(|(row, line)| (path.clone(), row + 1, without_code(line))));
    }
    let is_source =
        |path: &PathBuf| path.extension().is_some_and(|kind| kind == "rs") && path.iter().any(|part| part == "src");
    for path in prose_files().into_iter().filter(is_source) {
        let text = fs::read_to_string(&path).unwrap();
        let code: Vec<&str> = text
            .lines()
            .take_while(|line| !line.trim_start().starts_with("#[cfg(test)]"))
            .map(|line| if line.trim_start().starts_with("//") { "" } else { line })
            .collect();
        let mut found = Vec::new();
        strings(code.join("\n").parse().unwrap_or_default(), &mut found);
        let sentences = found.into_iter().filter(|(_, text)| text.contains(' '));
        lines.extend(sentences.map(|(number, text)| (path.clone(), number, without_code(&text))));
    }
    lines
}

/// The words of a text in lower case, with one space before, between and behind them.
fn spaced(text: &str) -> String {
    let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '\'');
    let words = parts.filter(|part| !part.is_empty()).map(str::to_lowercase);
    format!(" {} ", words.collect::<Vec<_>>().join(" "))
}

/// The places where these lines have words of the table, and the plain words.
fn found(lines: &[Line]) -> Vec<String> {
    let mut places = Vec::new();
    for (path, number, text) in lines {
        let text = EXCEPTIONS.iter().fold(spaced(text), |text, exception| text.replace(&format!(" {exception} "), " "));
        for (word, plain) in WORDS.iter().filter(|(word, _)| text.contains(&format!(" {word} "))) {
            let shown = path.strip_prefix(root()).unwrap().display();
            places.push(format!("{shown}:{number}: '{word}': write {plain}"));
        }
    }
    places
}

#[test]
fn documentation_is_plain_english() {
    let lines = documentation();
    let places = found(&lines);
    assert!(places.is_empty(), "{} places:\n{}", places.len(), places.join("\n"));
}

#[test]
fn messages_are_plain_english() {
    let places = found(&messages());
    assert!(places.is_empty(), "{} places:\n{}", places.len(), places.join("\n"));
}

#[test]
fn only_questions_open_with_what() {
    let lines = documentation();
    let mut places = Vec::new();
    for (place, (path, number, text)) in lines.iter().enumerate() {
        for (begin, _) in text.match_indices(OPENING) {
            let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            if is_word(text[..begin].chars().last()) || is_word(text[begin + OPENING.len()..].chars().next()) {
                continue;
            }
            let rest = lines[place + 1..].iter().take(4).take_while(|(_, _, text)| !text.trim().is_empty());
            let sentence = rest.fold(text[begin..].to_owned(), |sentence, (_, _, text)| sentence + " " + text);
            let end = sentence.find(['.', '?', '!', '|', ':']).unwrap_or(sentence.len());
            if !sentence[end..].starts_with('?') {
                let shown = path.strip_prefix(root()).unwrap().display();
                places.push(format!("{shown}:{number}: {}", text.trim()));
            }
        }
    }
    assert!(places.is_empty(), "{} places:\n{}", places.len(), places.join("\n"));
}

#[test]
fn hold_is_a_term() {
    let lines = documentation();
    let words: usize = lines.iter().map(|(_, _, text)| spaced(text).split_whitespace().count()).sum();
    let counts =
        |text: &str| spaced(text).split_whitespace().filter(|word| ["hold", "holds", "holding"].contains(word)).count();
    let holds: usize = lines.iter().map(|(_, _, text)| counts(text)).sum();
    assert!(holds * 10_000 <= HOLD * words, "{holds} in {words} words");
}
