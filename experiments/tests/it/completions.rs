//! Shell completions and manual pages come from the command line: every command is in them.

use std::fs;

use clap::CommandFactory;
use haversack::cli::Arguments;

use crate::support::{call, call_in, refusal, stdout};

/// The names of all commands.
fn commands() -> Vec<String> {
    Arguments::command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

#[test]
fn every_shell_completes_every_command() {
    let commands = commands();
    assert!(commands.len() > 10, "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = call(&format!("completions {shell}"));
        assert_eq!(output.status.code(), Some(0), "{shell}");
        let script = stdout(&output);
        for command in &commands {
            assert!(script.contains(command.as_str()), "{shell} does not complete {command}");
        }
        assert!(script.contains("memory-budget"), "{shell} does not complete the flags of simulate");
    }
    assert!(refusal(&call("completions tcsh"), 2).contains("bash"));
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let page = stdout(&call("man"));
    assert!(page.contains(".TH haversack 1"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(call_in(folder.path(), &["man", "--out", "share/man1"]).status.code(), Some(0));
    for command in commands() {
        assert!(page.contains(&command), "the page does not name {command}");
        let own = fs::read_to_string(folder.path().join(format!("share/man1/haversack-{command}.1"))).unwrap();
        assert!(own.contains(".SH OPTIONS"), "{command}: {own}");
    }
    let import = fs::read_to_string(folder.path().join("share/man1/haversack-trace-import.1")).unwrap();
    assert!(import.contains("carat\\-semantics"), "{import}");
}

#[test]
fn a_folder_that_cannot_be_made_is_a_failure_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    assert!(refusal(&call_in(folder.path(), &["man", "--out", "file/man1"]), 1).contains("file/man1"));
}
