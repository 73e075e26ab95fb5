//! The users of a trace in a sweep: all, those whose names match, or a sample of them.

use haversack_devices::Stream;
use haversack_devices::text::{hint, nearest};
use rand::RngExt;
use std::path::Path;
use std::sync::Arc;

use crate::papers::notes::matches;
use crate::scenario::{Document, Fault, Field, Item, Key, Literal, Origin, ScenarioError, trace_file};
use crate::trace_table::Reader;

/// The keys of a sweep in addition to a scenario's.
pub(super) const KEYS: [&str; 2] = [USERS, SAMPLE];
const USERS: &str = "users";
const SAMPLE: &str = "sample";
/// The pattern that matches every user.
const ALL: &str = "*";

/// Replaces each table of traces of `document` by one value for each of its selected users.
///
/// # Errors
/// Users without a table of traces, or with a trace that names its user; a pattern that matches no user; a sample of
/// more users than match.
pub(super) fn expand(document: &mut Document) -> Result<(), ScenarioError> {
    let own = std::mem::take(&mut document.own);
    let field = |name: &str| own.iter().find(|field| field.name == name);
    let (users, sample) = (field(USERS), field(SAMPLE));
    let Some(given) = users.or(sample) else { return Ok(()) };
    let file = Arc::clone(&document.file);
    let origin = |line: usize| Origin::File { file: Arc::clone(&file), line };
    let wrong = |field: &Field, fault: Fault| ScenarioError::new(origin(field.line), &field.name, fault);
    let patterns = match users.map(|field| (field, &field.item)) {
        None => vec![ALL.to_owned()],
        Some((_, Item::One(pattern))) => vec![pattern.text.clone()],
        Some((_, Item::Many(patterns))) if !patterns.is_empty() => {
            patterns.iter().map(|(pattern, _)| pattern.text.clone()).collect()
        }
        Some((field, _)) => {
            let expected = "names of users, or patterns such as \"*\" or [\"a*\", \"b?\"]";
            return Err(wrong(field, Fault::value(expected, "something else")));
        }
    };
    let number = match sample {
        None => None,
        Some(field) => {
            let found = field.item.one().map_err(|fault| wrong(field, fault))?;
            let number = found.text.parse::<usize>().ok().filter(|number| *number > 0);
            let fault = || Fault::value("a whole number of users, at least 1", found.found());
            Some((field, number.ok_or_else(|| wrong(field, fault()))?))
        }
    };
    let seed = seed(document);
    let mut tables = 0;
    for (key, traces) in &mut document.fields {
        if ![Key::Trace, Key::Apps].contains(key) {
            continue;
        }
        let Some(named) = traces.named() else { continue };
        let mut values = Vec::new();
        for (value, line) in named {
            let (table, user) = trace_file(Path::new(&value.text));
            if table.extension().is_none_or(|extension| extension != "parquet") {
                values.push((value, line));
                continue;
            }
            tables += 1;
            if let Some(user) = user {
                let message = format!("{} names the user {user} already; leave one of the two out", key.name());
                return Err(wrong(given, Fault::Refused(message)));
            }
            let refused = |message: String| wrong(given, Fault::Refused(message));
            let reader = Reader::open(&table).map_err(|error| refused(error.to_string()))?;
            let all = reader.users().map_err(|error| refused(error.to_string()))?;
            let mut found = matching(&all, &patterns).map_err(|why| refused(format!("{}: {why}", table.display())))?;
            if let Some((field, number)) = number {
                if number > found.len() {
                    let expected = format!("at most the {} users that match", found.len());
                    return Err(wrong(field, Fault::value(expected, number.to_string())));
                }
                found = drawn(found, number, seed);
            }
            values.extend(found.iter().map(|user| (Literal::text(format!("{}#{user}", value.text)), line)));
        }
        traces.item = Item::Many(values);
    }
    if tables == 0 {
        let message = "a trace of users is missing; name one too, such as trace = \"users.parquet\"";
        return Err(wrong(given, Fault::Refused(message.to_owned())));
    }
    Ok(())
}

/// The first seed of the sweep.
fn seed(document: &Document) -> u64 {
    let field = document.fields.iter().find(|(key, _)| *key == Key::Seed).map(|(_, field)| &field.item);
    let text = match field {
        Some(Item::One(value) | Item::Span { from: value, .. }) => Some(&value.text),
        Some(Item::Many(values)) => values.first().map(|(value, _)| &value.text),
        Some(Item::Table(_)) | None => None,
    };
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The users of `all` that match any of `patterns`, in the order of `all`.
///
/// # Errors
/// A pattern that matches no user, with the nearest name.
pub(crate) fn matching<'a>(all: &'a [String], patterns: &[String]) -> Result<Vec<&'a str>, String> {
    for pattern in patterns {
        if !all.iter().any(|user| matches(pattern, user)) {
            let names = || all.iter().map(String::as_str);
            // Without a similar name, the alphabetically next one is suggested.
            let plain = pattern.replace(['*', '?'], "");
            let neighbour = all.partition_point(|user| *user < plain).min(all.len().saturating_sub(1));
            let near = match nearest(&plain, names()) {
                Some(_) => hint(&plain, names()),
                None => all.get(neighbour).map_or_else(String::new, |user| format!("; the nearest is '{user}'")),
            };
            return Err(format!("no user matches '{pattern}'{near}"));
        }
    }
    Ok(all.iter().map(String::as_str).filter(|user| patterns.iter().any(|pattern| matches(pattern, user))).collect())
}

/// A random sample of `number` of `users`: those with the smallest draws, each of which depends only on the
/// user and the seed.
pub(crate) fn drawn(users: Vec<&str>, number: usize, seed: u64) -> Vec<&str> {
    let mut draws: Vec<(u64, &str)> =
        users.iter().map(|user| (Stream::of_user(seed, user, "sample").random(), *user)).collect();
    draws.sort_unstable();
    let mut chosen: Vec<&str> = draws.into_iter().take(number).map(|(_, user)| user).collect();
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_characters() {
        for (pattern, yes, no) in [
            ("*", "", None),
            ("a*", "abc", Some("ba")),
            ("*c", "abcc", Some("cb")),
            ("a?c", "abc", Some("ac")),
            ("a*b*c", "aXbYbZc", Some("aXbY")),
            ("ü?", "üx", Some("ü")),
        ] {
            assert!(matches(pattern, yes), "{pattern} {yes}");
            assert!(no.is_none_or(|no| !matches(pattern, no)), "{pattern} {no:?}");
        }
    }

    #[test]
    fn a_sample_is_drawn_by_the_seed_and_grows_by_whom_it_has() {
        let users: Vec<String> = (0..50).map(|user| format!("user-{user}")).collect();
        let all: Vec<&str> = users.iter().map(String::as_str).collect();
        let (five, six) = (drawn(all.clone(), 5, 1), drawn(all.clone(), 6, 1));
        assert!(five.len() == 5 && five.iter().all(|user| six.contains(user)));
        assert_ne!(five, drawn(all, 5, 2));
        // For a pattern unlike any name, the alphabetically next one is suggested.
        let error = |pattern: &str| matching(&users, &[pattern.to_owned()]).unwrap_err();
        assert!(error("usr-7").ends_with("did you mean 'user-7'?"), "{}", error("usr-7"));
        assert_eq!(error("zz*"), "no user matches 'zz*'; the nearest is 'user-49'");
        assert_eq!(matching(&users, &["user-1?".into()]).unwrap().len(), 10);
    }
}
