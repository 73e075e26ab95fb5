//! The standard streams: results on one, everything else on the other, and a closed pipe is no fault.

use std::fmt::Display;
use std::io::{self, Write};

use serde_json::Value;

use crate::error::{CommandError, Result};

/// How a command prints its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Prints `text` as the command's result.
///
/// # Errors
/// A standard output that cannot be written, or that nobody reads any more.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CommandError::output)
}

/// Prints a JSON value as the command's result.
///
/// # Errors
/// As [`print()`], as JSON.
pub fn print_json(value: &Value) -> Result<()> {
    print(&format!("{value:#}\n"))
}

/// Says what the user may not expect.
pub fn warn(message: &dyn Display) {
    say("warning", message);
}

/// Says what a result rests on.
pub fn note(message: &dyn Display) {
    say("note", message);
}

/// Says what a message is, and the message.
pub fn say(what: &str, message: &dyn Display) {
    // Where nobody listens there is nobody to tell.
    let _ = writeln!(io::stderr().lock(), "{what}: {message}");
}

/// Puts the keys of `more` behind those of `value`.
pub(crate) fn join(value: &mut Value, more: Value) {
    if let (Value::Object(value), Value::Object(more)) = (value, more) {
        value.extend(more);
    }
}
