//! Upper limits of numbers on the command line or in a specification (`limits.toml`).
//!
//! A call with a larger number is refused before it begins: it would take longer than anyone would wait, or more memory
//! than the machine has.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use clap::ArgMatches;
use toml::de::{DeTable, DeValue};

static MOST: LazyLock<BTreeMap<String, BTreeMap<String, f64>>> =
    LazyLock::new(|| toml::from_str(include_str!("../limits.toml")).unwrap_or_default());

/// The table of flags.
pub(crate) const FLAGS: &str = "flags";

/// The error message if `text`, a value of `name` in `table`, is a number beyond its limit.
pub(crate) fn beyond(table: &str, name: &str, text: &str) -> Option<String> {
    let most = *MOST.get(table)?.get(name)?;
    let number: f64 = text.trim().replace('_', "").parse().ok()?;
    (number.abs() > most).then(|| format!("expected at most {most}, found {text}"))
}

/// The first flag of the command line, or of a command below, whose number is beyond its limit.
pub(crate) fn flag_beyond(matches: &ArgMatches) -> Option<String> {
    let below = || flag_beyond(matches.subcommand()?.1);
    let of = |name: &String| {
        let mut values = matches.try_get_raw(name).ok()??;
        let message = values.find_map(|text| beyond(FLAGS, name, text.to_str()?))?;
        Some(format!("--{}: {message}", name.replace('_', "-")))
    };
    MOST.get(FLAGS).into_iter().flat_map(BTreeMap::keys).find_map(of).or_else(below)
}

/// The first top-level key of a specification's `text` whose number is beyond its limit, and the error message.
pub(crate) fn key_beyond(text: &str) -> Option<(String, String)> {
    let table = DeTable::parse(text).ok()?;
    let beyond = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let number = match value.get_ref() {
            DeValue::Integer(number) => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return None,
        };
        let key: &std::borrow::Cow<'_, str> = key.get_ref();
        Some((key.to_string(), beyond("keys", key, number)?))
    };
    table.get_ref().iter().find_map(beyond)
}
