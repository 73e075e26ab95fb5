//! The commands of a page, in order.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use haversack::cli::Arguments;

use super::markdown::{Block, Page, root};

/// Commands that are not run: programs that a reader has but a test may not have.
const NOT_RUN: [&str; 8] = ["cargo", "python3", "sh", ".", "adb", "target/release/haversack", "mkdir", "git"];

/// Runs the page's commands and compares their output with the page's; returns the differences.
pub(super) fn check(page: &Page) -> Vec<String> {
    let mut faults = Vec::new();
    let folder = tempfile::tempdir().unwrap();
    symlink(root().join("examples"), folder.path().join("examples")).unwrap();
    for code in page.code().into_iter().filter(|code| code.starts_with("haversack ") && !code.contains('…')) {
        let words = words(&code);
        // A command name without arguments is mentioned, not called.
        let is_named = words.len() == 2 && Arguments::command().find_subcommand(&words[1]).is_some();
        if let Err(message) = parse(&words[1..])
            && !is_named
        {
            faults.push(format!("{}: {code}\n{message}", page.name()));
        }
    }
    let blocks = page.blocks();
    let mut shown = Vec::new();
    for (place, block) in blocks.iter().enumerate() {
        let place_in_page = format!("{}:{}", page.name(), block.line + 1);
        match block.language.as_str() {
            "toml" => write_file(block, folder.path()),
            "sh" => {
                let printed = run(block, folder.path(), &place_in_page, &mut faults);
                // Only blank lines between the two.
                let after = blocks.get(place + 1).filter(|next| next.language == "text");
                let end = block.line + block.text.lines().count() + 1;
                if let Some(next) = after
                    .filter(|next| page.text.lines().take(next.line - 1).skip(end).all(str::is_empty) && !block.is_long)
                {
                    shown.push((next, printed));
                }
            }
            "rust" if !is_in_a_linked_file(page, block) => {
                faults.push(format!("{place_in_page}: this code is in no file that the page links"));
            }
            "text" | "rust" | "python" => {}
            other => faults.push(format!("{place_in_page}: a block of '{other}'")),
        }
    }
    if env::var("HAVERSACK_DOCS").is_ok_and(|mode| mode == "update") {
        update(page, &shown);
    } else {
        for (block, printed) in shown {
            let expected = excerpt(&printed, &block.text);
            if block.text != expected {
                faults.push(format!("{}:{}: what is printed is\n{expected}", page.name(), block.line + 1));
            }
        }
    }
    faults
}

/// Writes a block whose first line is `# NAME.toml` to the file of that name.
fn write_file(block: &Block, folder: &Path) {
    let name = block.text.lines().next().and_then(|line| line.strip_prefix("# "));
    if let Some(name) = name.filter(|name| name.ends_with(".toml") && !name.contains(' ')) {
        fs::write(folder.join(name), &block.text).unwrap();
    }
}

/// Whether a file that the page links has the block's text.
fn is_in_a_linked_file(page: &Page, block: &Block) -> bool {
    let folder = page.path.parent().unwrap();
    let files = page.links().into_iter().filter(|link| link.ends_with(".rs"));
    files.map(|link| fs::read_to_string(folder.join(link)).unwrap()).any(|text| text.contains(&block.text))
}

/// The part of `printed` that `shown` shows.
fn excerpt(printed: &str, shown: &str) -> String {
    let lines = shown.lines().count();
    if shown.lines().last() != Some("…") {
        return printed.to_owned();
    }
    printed.lines().take(lines - 1).chain(["…"]).map(|line| format!("{line}\n")).collect()
}

fn update(page: &Page, shown: &[(&Block, String)]) {
    let mut lines: Vec<String> = page.text.lines().map(str::to_owned).collect();
    for (block, printed) in shown.iter().rev() {
        let text = excerpt(printed, &block.text);
        lines.splice(block.line..block.line + block.text.lines().count(), text.lines().map(str::to_owned));
    }
    fs::write(&page.path, lines.join("\n") + "\n").unwrap();
}

/// Runs the block's commands; returns the output of the last one.
fn run(block: &Block, folder: &Path, place: &str, faults: &mut Vec<String>) -> String {
    let mut printed = String::new();
    for line in block.text.replace("\\\n", " ").lines().filter(|line| !line.trim().is_empty()) {
        let words = words(line);
        let Some(program) = words.first() else { continue };
        let arguments = match program.as_str() {
            "haversack" => &words[1..],
            "cargo" if words.get(1).is_some_and(|word| word == "run") => {
                let before = words.iter().position(|word| word == "--");
                if words.iter().any(|word| word == "--example") {
                    &[]
                } else {
                    &words[before.map_or(words.len(), |at| at + 1)..]
                }
            }
            other => {
                if !NOT_RUN.contains(&other) {
                    faults.push(format!("{place}: '{other}' is neither run nor known"));
                }
                continue;
            }
        };
        let found = match parse(arguments) {
            Ok(()) if program == "haversack" && !block.is_long => call(line, folder),
            Ok(()) => Ok(String::new()),
            Err(message) => Err(message),
        };
        match found {
            Ok(text) => printed = text,
            Err(message) => faults.push(format!("{place}: {line}\n{message}")),
        }
    }
    printed
}

/// Whether the command line accepts the arguments.
fn parse(arguments: &[String]) -> Result<(), String> {
    if arguments.is_empty() {
        return Ok(());
    }
    let words = std::iter::once("haversack").chain(arguments.iter().map(String::as_str));
    match Arguments::try_parse_from(words) {
        Err(error) if !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            Err(error.to_string())
        }
        _ => Ok(()),
    }
}

/// Runs the line as a shell does; a comment `# exit code N` gives the expected exit code if it is not 0.
fn call(line: &str, folder: &Path) -> Result<String, String> {
    let built = Path::new(env!("CARGO_BIN_EXE_haversack")).parent().unwrap();
    let path = env::join_paths([built.to_path_buf()].into_iter().chain(env::split_paths(&env::var("PATH").unwrap())));
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(folder).stdin(Stdio::null()).env("PATH", path.unwrap());
    let output = shell.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let expected = line.split_once("# exit code ").map_or(0, |(_, code)| code.trim().parse().unwrap());
    if output.status.code() != Some(expected) {
        return Err(format!("ends with {:?} instead of {expected}: {said}", output.status.code()));
    }
    Ok(String::from_utf8(output.stdout).unwrap())
}

/// The words of a line up to a pipe, a redirection or a comment, as a shell splits them.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('|' | '>', None) => break,
            ('#', None) if word.is_none() => break,
            (' ', None) => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[test]
fn words_are_those_of_a_shell() {
    let line = "haversack simulate --set \"order=half, x\" --apps a#b > out # two";
    assert_eq!(words(line), ["haversack", "simulate", "--set", "order=half, x", "--apps", "a#b"]);
}

#[test]
fn an_excerpt_has_as_many_lines_as_the_page_shows() {
    assert_eq!(excerpt("a\nb\nc\n", "x\n…\n"), "a\n…\n");
    assert_eq!(excerpt("a\nb\n", "x\n"), "a\nb\n");
}
