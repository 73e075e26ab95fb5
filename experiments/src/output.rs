//! The standard streams: results go to stdout, everything else to stderr, and a closed pipe is not an error.
//!
//! Also the figure that a command draws into the file of `--plot`.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use haversack_devices::ensure;
use haversack_reports::{Figure, write_atomically};
use serde_json::Value;

use crate::{CommandError, Result};

/// How a command prints its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Text.
    #[default]
    Text,
    /// JSON.
    Json,
}

impl Format {
    /// Prints `text` or `json`, depending on the format.
    ///
    /// # Errors
    /// As [`print`].
    pub(crate) fn print(self, text: impl FnOnce() -> String, json: impl FnOnce() -> Value) -> Result<()> {
        match self {
            Self::Text => print(&text()),
            Self::Json => print_json(&json()),
        }
    }
}

/// Prints `text` as the command's result.
///
/// # Errors
/// A standard output that cannot be written, or that its reader has closed.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(plain(text).as_bytes()).and_then(|()| out.flush()).map_err(CommandError::output)
}

/// Prints a JSON value as the command's result.
///
/// # Errors
/// As [`print()`], as JSON.
pub fn print_json(value: &Value) -> Result<()> {
    print(&format!("{value:#}\n"))
}

/// Prints a warning to stderr.
pub fn warn(message: &dyn Display) {
    say("warning", message);
}

/// Prints a note to stderr: what a result depends on.
pub fn note(message: &dyn Display) {
    say("note", message);
}

/// Prints a message to stderr, with its kind in front.
pub fn say(what: &str, message: &dyn Display) {
    // A closed stderr leaves nowhere to report the error.
    let _ = writeln!(io::stderr().lock(), "{what}: {}", plain(&message.to_string()));
}

/// The text without characters that would move a terminal's cursor or change its colours; names may contain them.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let moves = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if text.contains(moves) { text.replace(moves, "\u{fffd}").into() } else { text.into() }
}

/// Appends the keys of `more` to `value`.
pub(crate) fn join(value: &mut Value, more: Value) {
    if let (Value::Object(value), Value::Object(more)) = (value, more) {
        value.extend(more);
    }
}

/// Checks that no output file of these flags is also one of the `inputs` or the file of another flag.
///
/// # Errors
/// The flag, and the file.
pub(crate) fn check_apart<'p>(
    outputs: impl IntoIterator<Item = (&'static str, Option<&'p Path>)>,
    inputs: impl IntoIterator<Item = impl AsRef<Path>>,
) -> Result<()> {
    let place = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let read: Vec<PathBuf> = inputs.into_iter().map(|path| place(path.as_ref())).collect();
    let mut written = Vec::new();
    for (flag, path) in outputs.into_iter().filter_map(|(flag, path)| Some((flag, path?))) {
        let (at, shown) = (place(path), path.display());
        ensure!(!read.contains(&at), CommandError::input(format!("{flag}: {shown} is also read; expected another")));
        let twice =
            || CommandError::input(format!("{flag}: {shown} is written by another flag, too; expected another"));
        // Several flags may write to a device or a FIFO.
        let is_stream = || path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
        ensure!(!written.contains(&at) || is_stream(), twice());
        written.push(at);
    }
    Ok(())
}

/// The path of a file to write, for a flag: its folder exists.
///
/// # Errors
/// The folder.
pub(crate) fn new_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    ensure!(folder.is_dir(), format!("{} is not a folder", folder.display()));
    Ok(path)
}

/// A file for a figure, in the format that its name ends in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plot {
    path: PathBuf,
    is_svg: bool,
}

impl FromStr for Plot {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = new_file(text)?;
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("svg") => Ok(Self { path, is_svg: true }),
            Some("png") => Ok(Self { path, is_svg: false }),
            _ => Err(format!("expected a file that ends in .svg or .png, found '{text}'")),
        }
    }
}

impl Plot {
    /// Where it goes.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Draws `figure` into the file.
    ///
    /// # Errors
    /// A figure without anything to draw, a file that cannot be written.
    pub fn draw(&self, figure: &Figure) -> Result<()> {
        let rendered = figure.render()?;
        let bytes = if self.is_svg { rendered.svg.as_bytes() } else { &rendered.png };
        Ok(write_atomically(&self.path, bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_is_of_the_format_that_its_name_ends_in() {
        assert!("b.SVG".parse::<Plot>().unwrap().is_svg);
        assert_eq!("a/b.svg".parse::<Plot>(), Err("a is not a folder".to_owned()));
        assert!(!"b.png".parse::<Plot>().unwrap().is_svg);
        for text in ["b.pdf", "png", ""] {
            assert!(text.parse::<Plot>().unwrap_err().contains(".svg or .png"), "{text}");
        }
    }
}
