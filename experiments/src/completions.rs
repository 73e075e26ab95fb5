//! `haversack completions` and `haversack man`: what a shell completes, and the manual's pages, from the command line itself.

use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use haversack_reports::files::{create_folder, write_atomically};

use crate::error::{CommandError, Result};
use crate::output::{note, print};

const COMPLETIONS_HELP: &str = "Examples:
  bash:        haversack completions bash > ~/.local/share/bash-completion/completions/haversack
  zsh:         haversack completions zsh > ~/.zfunc/_haversack       (with fpath+=~/.zfunc in ~/.zshrc)
  fish:        haversack completions fish > ~/.config/fish/completions/haversack.fish";

/// For which shell completions are printed.
#[derive(Clone, Copy, Debug, Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub struct CompletionsOptions {
    /// The shell that completes
    shell: Shell,
}

/// Where the pages of the manual go.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  haversack man | man -l -\n  haversack man --out ~/.local/share/man/man1")]
pub struct ManOptions {
    /// Writes a page for every command into this folder [default: prints the page of `haversack`]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints the script that completes `program` in a shell.
///
/// # Errors
/// A standard output that cannot be written.
pub fn completions(options: CompletionsOptions, mut program: Command) -> Result<()> {
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut program, name, &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Prints the page of `program`, or writes a page for it and for every command into a folder.
///
/// # Errors
/// A folder or a standard output that cannot be written.
pub fn man(options: &ManOptions, program: Command) -> Result<()> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let Some(folder) = &options.out else {
        let (_, page) = render(program)?;
        return print(&String::from_utf8_lossy(&page));
    };
    create_folder(folder)?;
    let pages = write_pages(&program, folder)?;
    note(&format!("{pages} pages in {}", folder.display()));
    Ok(())
}

/// Writes the pages of `command` and of those under it; how many they are.
fn write_pages(command: &Command, folder: &Path) -> Result<usize> {
    let (name, page) = render(command.clone())?;
    write_atomically(&folder.join(name), &page)?;
    command.get_subcommands().try_fold(1, |pages, below| Ok(pages + write_pages(below, folder)?))
}

/// A page's file name and its text.
fn render(command: Command) -> Result<(String, Vec<u8>)> {
    let man = Man::new(command);
    let mut page = Vec::new();
    man.render(&mut page).map_err(CommandError::failed)?;
    Ok((man.get_filename(), page))
}
