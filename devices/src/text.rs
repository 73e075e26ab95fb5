//! Suggestions for mistyped names and strict reading of data files, for all crates of the workspace.
//!
//! [`nearest`] guesses which name was meant; [`question`] and [`aside`] put the guess into an error. [`read_toml`] and
//! [`TomlDocument`] read a TOML file strictly through serde: every error names the file, the line and the field, gives
//! the expected type or values and, for a mistyped word, the nearest valid one.

mod document;
mod strict_toml;

use std::cmp::Ordering;

pub use document::{TomlDocument, line_of, read_toml};
pub use strict_toml::{Location, TomlError, TomlProblem, on_lines};

/// Longer text is never compared: it cannot be a name, and the comparison is quadratic.
const LONGEST_NAME: usize = 80;

/// A shorter part of a name does not suggest that the name was meant.
const SHORTEST_PART: usize = 3;

/// The valid name most similar to `found`, or `None` if none is similar enough to be meant.
///
/// Names are compared without regard to case by the number of letters that were inserted, left out, replaced or swapped
/// (optimal string alignment). The limit is a third of the longer name's letters. It does not apply if `found` is the
/// beginning of the name (`high` of `highest`) or its last part (`s22` of `galaxy-s22`). Ties are broken by
/// Jaro-Winkler similarity, which favours a common beginning, then alphabetically.
///
/// ```
/// use haversack_devices::text::nearest;
/// assert_eq!(nearest("memory_bugdet", ["memory_budget", "time_budget"]), Some("memory_budget"));
/// assert_eq!(nearest("zzzzzz", ["batch", "seed"]), None);
/// ```
pub fn nearest<'a>(found: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let found = beginning(found);
    let scored = valid.into_iter().map(|name| Likeness::new(&found, name));
    scored.filter(|one| one.is_meant(&found)).min_by(Likeness::compare).map(|one| one.name)
}

/// `; did you mean 'name'?`, or an empty string without a name.
pub fn question(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean '{name}'?"))
}

/// The [`question`], or `; otherwise` without a name.
pub fn question_or(nearest: Option<&str>, otherwise: &str) -> String {
    nearest.map_or_else(|| format!("; {otherwise}"), |name| question(Some(name)))
}

/// `` (did you mean `name`?)``, with a space before it, or an empty string without a name.
pub fn aside(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// The [`question`] whether the valid name nearest to `found` was meant.
pub fn hint<'a>(found: &str, valid: impl IntoIterator<Item = &'a str>) -> String {
    question(nearest(found, valid))
}

/// Names in a sentence: `a, b or c`.
pub fn alternatives<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

/// How similar a name is to the text.
struct Likeness<'n> {
    name: &'n str,
    errors: usize,
    similarity: f64,
}

impl<'n> Likeness<'n> {
    fn new(found: &str, name: &'n str) -> Self {
        let small = name.to_lowercase();
        let similarity = strsim::jaro_winkler(found, &small);
        Self { name, errors: strsim::osa_distance(found, &small), similarity }
    }

    /// Whether the author of `found` may have meant `name`.
    fn is_meant(&self, found: &str) -> bool {
        let (of_name, of_found) = (self.name.chars().count(), found.chars().count());
        let (longest, shortest) = (of_name.max(of_found), of_name.min(of_found));
        let name = self.name.to_lowercase();
        let is_part = name.starts_with(found) || name.ends_with(&format!("-{found}"));
        let is_begun = shortest >= SHORTEST_PART && is_part;
        self.errors == 0 || self.errors <= longest / 3 || is_begun
    }

    fn compare(&self, other: &Self) -> Ordering {
        let errors = self.errors.cmp(&other.errors);
        errors.then(other.similarity.total_cmp(&self.similarity)).then_with(|| self.name.cmp(other.name))
    }
}

/// The text in the form in which it is compared.
fn beginning(found: &str) -> String {
    found.chars().take(LONGEST_NAME).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_finds_its_name_and_nonsense_finds_none() {
        assert_eq!(nearest("optimiser", ["optimizer", "iterations"]), Some("optimizer"));
        assert_eq!(nearest("Gib", ["B", "KiB", "GiB"]), Some("GiB"));
        assert_eq!(nearest("MUTATED", ["RELEASE", "MUTATE"]), Some("MUTATE"));
        assert_eq!(nearest("zzzzzz", ["batch", "seed"]), None);
        // Two letters of two differ: nothing is left of the name.
        assert_eq!(nearest("zz", ["of", "sr"]), None);
        assert_eq!(nearest("", ["of"]), None);
        assert_eq!(nearest("any", []), None);
    }

    #[test]
    fn equally_many_errors_are_told_apart_by_the_beginning() {
        // "sage" lacks one letter; "sga" has two swapped, and shares only its first letter.
        assert_eq!(nearest("sag", ["sga", "sage"]), Some("sage"));
        // One error and the same similarity: alphabetical order decides, not the order of the arguments.
        assert_eq!(nearest("abx", ["abd", "abc"]), Some("abc"));
        // The beginning of a name, or its last part.
        assert_eq!(nearest("high", ["highest", "lowest"]), Some("highest"));
        assert_eq!(nearest("s22", ["galaxy-s10", "galaxy-s22"]), Some("galaxy-s22"));
        // Two errors in five letters; one letter in common out of two.
        assert_eq!((nearest("all", ["sga", "dga"]), nearest("s", ["B", "KB"])), (None, None));
    }

    #[test]
    fn a_page_of_text_is_compared_by_its_beginning() {
        let page = "x".repeat(1_000_000);
        assert_eq!(nearest(&page, ["x"]), None);
    }

    #[test]
    fn guesses_and_alternatives_become_parts_of_sentences() {
        assert_eq!(question(Some("of")), "; did you mean 'of'?");
        assert_eq!(aside(Some("of")), " (did you mean `of`?)");
        assert_eq!(question(None) + &aside(None), "");
        assert_eq!(question_or(None, "see there") + &question_or(Some("of"), "no"), "; see there; did you mean 'of'?");
        assert_eq!(hint("hlaf", ["half", "whole"]), "; did you mean 'half'?");
        assert_eq!(alternatives([]), "");
        assert_eq!(alternatives(["a"]), "a");
        assert_eq!(alternatives(["a", "b", "c"]), "a, b or c");
    }
}
