//! What a command line could once say and what to use in its place, so that nobody has to search for it.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Words that are gone, and what to use instead. The last word is the one that is no longer known; where it is in
/// capitals, it stands for any word that is no flag. The words before it are the beginning of the command line.
const GONE: [(&str, &str); 7] = [
    ("kernels", "cargo bench -p haversack-kernels"),
    ("list kernels", "cargo bench -p haversack-kernels"),
    ("show --where", "polars.read_parquet or DuckDB on results.parquet"),
    ("calibrate host", "haversack calibrate probe FILE --as NAME"),
    ("calibrate --from", "haversack calibrate probe FILE --as NAME"),
    ("calibrate --table", "haversack show device DEVICE"),
    ("calibrate DEVICE", "haversack calibrate fit DEVICE"),
];

/// The error that says so, where `error` is about something that is gone.
pub(super) fn said(error: &Error, line: &[String]) -> Option<Error> {
    let unknown = unknown(error)?;
    let (words, instead) = GONE.iter().find(|(words, _)| is_meant(words, unknown, line))?;
    Some(Error::raw(ErrorKind::InvalidSubcommand, format!("`haversack {words}` is gone: use `{instead}`\n")))
}

/// What the command line says that is not known.
fn unknown(error: &Error) -> Option<&str> {
    let kind = match error.kind() {
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::InvalidValue => ContextKind::InvalidValue,
        _ => return None,
    };
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// Whether these words are about what is `unknown` in the command line.
fn is_meant(words: &str, unknown: &str, line: &[String]) -> bool {
    let (before, last) = words.rsplit_once(' ').unwrap_or(("", words));
    let is_any = last.chars().all(char::is_uppercase) && !unknown.starts_with('-');
    // A word alone is the command.
    let begins = if before.is_empty() { words } else { before };
    (last == unknown || is_any) && begins.split_whitespace().zip(line).all(|(word, found)| word == found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(words: &str, unknown: &str, line: &str) -> bool {
        is_meant(words, unknown, &line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_last_word_is_the_unknown_one_and_the_others_begin_the_line() {
        assert!(meant("kernels", "kernels", "kernels min --compare"));
        assert!(meant("list kernels", "kernels", "list kernels"));
        assert!(!meant("list kernels", "kernels", "kernels") && !meant("kernels", "kernels", "list kernels"));
        assert!(meant("show --where", "--where", "show out --where a=b") && !meant("show --where", "--where", "list"));
        assert!(meant("calibrate DEVICE", "galaxy-s10", "calibrate galaxy-s10"));
        assert!(!meant("calibrate DEVICE", "--jobs", "calibrate --jobs") && !meant("calibrate DEVICE", "x", "list x"));
    }
}
