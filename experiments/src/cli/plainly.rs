//! What the reader of the command line finds wrong with it, in words that say what was expected, and without guesses that
//! nobody can have meant.

use std::error::Error as _;

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use haversack_devices::text::nearest;

/// What Rust says of a number that is none, and what was expected.
const NUMBERS: [(&str, &str); 8] = [
    ("number would be zero for non-zero type", "expected a whole number of at least 1"),
    ("invalid digit found in string", "expected a whole number"),
    ("cannot parse integer from empty string", "expected a whole number"),
    ("number too large to fit in target type", "expected a smaller whole number"),
    ("number too small to fit in target type", "expected a larger whole number"),
    ("invalid float literal", "expected a number such as 0.5"),
    ("cannot parse float from empty string", "expected a number such as 0.5"),
    ("provided string was not `true` or `false`", "expected true or false"),
];

/// The error in plain words.
pub(super) fn said(mut error: Error) -> Error {
    match error.kind() {
        ErrorKind::ValueValidation => value(error),
        ErrorKind::InvalidSubcommand => {
            keep_likely(&mut error, ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand);
            error
        }
        ErrorKind::UnknownArgument => {
            keep_likely(&mut error, ContextKind::InvalidArg, ContextKind::SuggestedArg);
            // That a flag could be passed as a value: nobody names a file so.
            error.remove(ContextKind::Suggested);
            error
        }
        ErrorKind::InvalidValue => {
            keep_likely(&mut error, ContextKind::InvalidValue, ContextKind::SuggestedValue);
            error
        }
        _ => error,
    }
}

/// A value that its flag cannot have.
fn value(error: Error) -> Error {
    let said = error.source().map(ToString::to_string).unwrap_or_default();
    let Some((_, expected)) = NUMBERS.iter().find(|(known, _)| *known == said) else { return error };
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let (argument, found) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
    let percent = found.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    let hint = match percent {
        Some(percent) if expected.contains("0.5") => format!("; did you mean '{}'?", percent / 100.0),
        _ => String::new(),
    };
    let message =
        format!("invalid value '{found}' for '{argument}': {expected}{hint}\n\nFor more information, try '--help'.\n");
    Error::raw(ErrorKind::ValueValidation, message)
}

/// Takes away what is suggested in the place of what was found, unless it is near.
fn keep_likely(error: &mut Error, found: ContextKind, suggested: ContextKind) {
    let texts = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    };
    let is_likely =
        texts(found).first().is_some_and(|found| nearest(found, texts(suggested).iter().map(String::as_str)).is_some());
    if !is_likely {
        error.remove(suggested);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    fn of(line: &str) -> String {
        let command = Command::new("t").subcommand(Command::new("calibrate")).arg(
            Arg::new("jobs").long("jobs").value_name("N").value_parser(clap::value_parser!(std::num::NonZeroUsize)),
        );
        let command =
            command.arg(Arg::new("ratio").long("ratio").value_name("R").value_parser(clap::value_parser!(f64)));
        said(command.try_get_matches_from(line.split(' ')).unwrap_err()).to_string()
    }

    #[test]
    fn a_number_that_is_none_says_what_was_expected() {
        let zero = of("t --jobs 0");
        assert!(zero.starts_with("error: invalid value '0' for '--jobs <N>': expected a whole number of at least 1\n"));
        assert!(of("t --jobs two").contains("expected a whole number\n"));
        assert!(of("t --ratio 50%").contains("expected a number such as 0.5; did you mean '0.5'?"));
    }

    #[test]
    fn only_what_is_near_is_suggested() {
        assert!(!of("t frobnicate").contains("calibrate"));
        assert!(of("t calibrat").contains("'calibrate'"));
        assert!(of("t --job 1").contains("'--jobs'") && !of("t --quick").contains("as a value"));
    }
}
