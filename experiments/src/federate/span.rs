//! The federations of a specification: one, or one for each combination of listed values.

use std::ops::Range;

use serde_json::{Map, Value, json};
use toml::de::{DeTable, DeValue};

use super::specification::Specification;
use crate::{CommandError, Result, work};

/// A key that lists values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spanned {
    pub(super) name: String,
    /// The values, as written in the file.
    pub(super) values: Vec<String>,
    /// The position of the list in the file.
    place: Range<usize>,
}

/// Federations in order: the first key in the file varies slowest.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) keys: Vec<Spanned>,
    pub(super) federations: Vec<Specification>,
}

impl Span {
    /// Parses the text of a specification, named `file` in errors; `seed` overrides its own.
    ///
    /// # Errors
    /// As [`Specification::parse`], for any of the combinations; an empty list.
    pub(super) fn parse(file: &str, text: &str, seed: Option<u64>) -> Result<Self> {
        let keys = spanned(text);
        let wrong = |key: &Spanned, why: &str| {
            let line = text[..key.place.start].lines().count().max(1);
            CommandError::input(format!("{file}:{line}: `{}` {why}", key.name))
        };
        if let Some(empty) = keys.iter().find(|key| key.values.is_empty()) {
            return Err(wrong(empty, "lists nothing, expected at least one value"));
        }
        if let Some(seeds) = keys.iter().find(|key| seed.is_some() && key.name == "seed") {
            return Err(wrong(seeds, "lists seeds, and --seed gives one; expected one of them"));
        }
        let number: usize = keys.iter().map(|key| key.values.len()).product();
        let one = |run| Specification::parse(file, &combination(text, &keys, run), seed);
        Ok(Self { federations: (0..number).map(one).collect::<Result<_, _>>()?, keys })
    }

    /// Whether there can be more than one.
    pub(super) fn is_spanned(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The value of each key in federation number `run`, from zero.
    pub(super) fn values(&self, run: usize) -> Vec<(&str, &str)> {
        let values = self.keys.iter().zip(places(&self.keys, run));
        values.map(|(key, place)| (key.name.as_str(), key.values[place].trim_matches(['"', '\'']))).collect()
    }

    /// The record that identifies a folder: the complete specification.
    pub(super) fn record(&self) -> Map<String, Value> {
        let first = self.federations.first().map(Specification::record).unwrap_or_default();
        if !self.is_spanned() {
            return first;
        }
        let spans: Map<String, Value> = self.keys.iter().map(|key| (key.name.clone(), json!(key.values))).collect();
        let specification = json!({ "spans": spans, "first": first.get("specification") });
        let record = json!({ "command": "federate", "specification": specification, "runs": self.federations.len() });
        serde_json::from_value(record).unwrap_or_default()
    }
}

/// The keys with lists of values, in the order of the file; none if the file is not valid TOML, an error that is
/// reported when it is read as one federation.
fn spanned(text: &str) -> Vec<Spanned> {
    let Ok(table) = DeTable::parse(text) else { return Vec::new() };
    let mut keys: Vec<Spanned> = table
        .get_ref()
        .iter()
        .filter_map(|(name, value)| match value.get_ref() {
            DeValue::Array(items) => {
                let values = items.iter().map(|item| text[item.span()].to_owned()).collect();
                Some(Spanned { name: name.get_ref().to_string(), values, place: value.span() })
            }
            _ => None,
        })
        .collect();
    keys.sort_by_key(|key| key.place.start);
    keys
}

/// The index of each key's value in federation number `run`.
fn places(keys: &[Spanned], run: usize) -> Vec<usize> {
    work::places(run, keys.iter().map(|key| key.values.len()))
}

/// The text with each list replaced by one of its values, on the same lines.
fn combination(text: &str, keys: &[Spanned], run: usize) -> String {
    let mut text = text.to_owned();
    for (key, place) in keys.iter().zip(places(keys, run)).rev() {
        let lines = text[key.place.clone()].matches('\n').count();
        let value = format!("{}{}", key.values[place], "\n".repeat(lines));
        text.replace_range(key.place.clone(), &value);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "population = 100\nselector = [\"random\", # any\n  'fedhybrid']\ncohort = 10\nrounds = 3\nnetwork = \"lenet5\"\n";

    fn refused(text: &str, seed: Option<u64>) -> String {
        Span::parse("f.toml", text, seed).unwrap_err().to_string()
    }

    #[test]
    fn lists_span_a_product_of_which_the_first_varies_slowest() {
        let span = Span::parse("f.toml", &format!("{SPEC}seed = [4, 5, 6]\n"), None).unwrap();
        let found: Vec<(&str, u64)> = span.federations.iter().map(|f| (f.rules.selector.name(), f.seed)).collect();
        let expected = ["random", "fedhybrid"].map(|name| [4, 5, 6].map(|seed| (name, seed))).concat();
        assert_eq!(found, expected);
        assert_eq!(span.values(4), [("selector", "fedhybrid"), ("seed", "5")]);
        assert!(
            !Span::parse("f.toml", &SPEC.replace(",", "").replace("'fedhybrid'", ""), None)
                .unwrap()
                .values(0)
                .is_empty()
        );
    }

    #[test]
    fn one_federation_is_recorded_as_itself() {
        let text = "population = 100\nselector = \"random\"\ncohort = 10\nrounds = 3\nnetwork = \"lenet5\"\n";
        let span = Span::parse("f.toml", text, None).unwrap();
        assert_eq!((span.is_spanned(), span.record()), (false, span.federations[0].record()));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        assert!(refused(&format!("{SPEC}seed = []\n"), None).contains("f.toml:7: `seed` lists nothing"));
        assert!(refused(&format!("{SPEC}seed = [1]\n"), Some(3)).contains("f.toml:7: `seed` lists seeds"));
        assert!(
            refused(&SPEC.replace("cohort = 10", "cohort = [10, 200]"), None).contains("f.toml:4: `cohort` is 200")
        );
        assert!(refused(&SPEC.replace("'fedhybrid'", "'fedhybird'"), None).contains("f.toml:2"));
        assert!(refused("population = ", None).contains("f.toml:1"));
    }
}
