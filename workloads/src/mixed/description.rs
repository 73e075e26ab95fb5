//! Reading an algorithm's description: what it may say, and how it is refused.

use std::collections::HashMap;
use std::sync::LazyLock;

use haversack_devices::text::{TomlDocument, TomlError};
use serde::{Deserialize, Deserializer, de};
use strum::VariantNames;

use super::algorithm::{Algorithm, OperatorName, Treatment};
use crate::error::WorkloadError;
use crate::operator::{Op, Unary};

/// The operators that a translation may name, by [`crate::Op::name`]; views are no work and need none.
static OPERATORS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let names = Op::VARIANTS.iter().flat_map(|name| match *name {
        "unary" => Unary::VARIANTS,
        "other" | "pairwise" | "reduce" | "take" => &[],
        _ => std::slice::from_ref(name),
    });
    let mut known: Vec<&str> = Vec::new();
    for &name in names.filter(|name| !["view", "slice"].contains(name)) {
        // Some operators go by one name.
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
});
/// Those that leave the range of integers: exponentials and logarithms.
const FLOAT_ONLY: &[&str] = &["softmax", "cross_entropy"];
/// Those that may be left out, because their output has the shape of their input.
const OMISSIBLE: &[&str] = &["batch_norm", "layer_norm"];

impl<'de> Deserialize<'de> for OperatorName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known = OPERATORS.iter().find(|&&known| known == name);
        known.map(|&known| Self(known)).ok_or_else(|| de::Error::unknown_variant(&name, OPERATORS.as_slice()))
    }
}

impl Algorithm {
    /// Reads the description `text` of the file `file`.
    ///
    /// # Errors
    /// Text that is no TOML, a key, word or type that is not expected, an operator with two translations or one that it
    /// cannot have: with the file, the line and the field, what was expected and the nearest valid name.
    pub fn parse(file: &str, text: &str) -> Result<Self, WorkloadError> {
        let read = || {
            let document = TomlDocument::parse(file, text)?;
            let algorithm: Self = document.read()?;
            algorithm.check(&document)?;
            Ok(algorithm)
        };
        read().map_err(WorkloadError::Algorithm)
    }

    fn check(&self, document: &TomlDocument<'_>) -> Result<(), TomlError> {
        let mut seen: HashMap<&str, &str> = HashMap::new();
        for (list, treatment, operators) in self.translation.lists() {
            for &OperatorName(name) in operators {
                let (fits, expected) = match treatment {
                    Treatment::Integer => (!FLOAT_ONLY.contains(&name), "an operator on integers"),
                    Treatment::Absent => (OMISSIBLE.contains(&name), "one of `batch_norm`, `layer_norm`"),
                    Treatment::Float => (true, ""),
                };
                let message = match seen.insert(name, list) {
                    Some(earlier) => format!("`{name}` already stands in `translation.{earlier}`"),
                    None if fits => continue,
                    None => format!("expected {expected}, found `{name}`"),
                };
                return Err(document.refuse(&format!("translation.{list}"), message));
            }
        }
        Ok(())
    }
}
