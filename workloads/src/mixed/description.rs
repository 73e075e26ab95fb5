//! Reading an algorithm's description: what it may say, and how it is refused.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

use super::algorithm::{Algorithm, Operator, Treatment};
use crate::error::WorkloadError;

/// The operators that a translation may name, by [`crate::Op::name`]; views are no work and need none.
const OPERATORS: &[&str] = &[
    "convolution",
    "linear",
    "matmul",
    "batch_norm",
    "layer_norm",
    "relu",
    "relu6",
    "gelu",
    "tanh",
    "pow",
    "scale",
    "add_constant",
    "divide",
    "where",
    "drop_path",
    "add",
    "mul",
    "concat",
    "max_pool",
    "average_pool",
    "global_average_pool",
    "dropout",
    "softmax",
    "embedding",
    "index_table",
    "copy",
    "cross_entropy",
];
/// Those that leave the range of integers: exponentials and logarithms.
const FLOAT_ONLY: &[&str] = &["softmax", "cross_entropy"];
/// Those that may be left out, because their output has the shape of their input.
const OMISSIBLE: &[&str] = &["batch_norm", "layer_norm"];

impl<'de> Deserialize<'de> for Operator {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(OfOperator)
    }
}

/// Refuses a name while the parser still knows where it stands.
struct OfOperator;

impl de::Visitor<'_> for OfOperator {
    type Value = Operator;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of an operator")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Operator, E> {
        if OPERATORS.contains(&name) {
            return Ok(Operator(name.to_owned()));
        }
        Err(E::unknown_variant(name, OPERATORS))
    }
}

impl Algorithm {
    /// Reads the description `text` of the file `file`.
    ///
    /// # Errors
    /// Text that is no TOML, a key, word or type that is not expected, an operator with two translations or one that it
    /// cannot have: with the file, the line or the field, what was expected and the nearest valid name.
    pub fn parse(file: &str, text: &str) -> Result<Self, WorkloadError> {
        let algorithm: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            let message = format!("{}{}", error.message(), hint(error.message()));
            WorkloadError::Algorithm { file: format!("{file}:{line}"), message }
        })?;
        algorithm.check(file)?;
        Ok(algorithm)
    }

    fn check(&self, file: &str) -> Result<(), WorkloadError> {
        let fault = |message: String| Err(WorkloadError::Algorithm { file: file.to_owned(), message });
        let mut seen: Vec<(&str, &str)> = Vec::new();
        for (list, treatment, operators) in self.translation.lists() {
            for Operator(name) in operators {
                if let Some((earlier, _)) = seen.iter().find(|(_, other)| other == name) {
                    return fault(format!("`translation.{list}`: `{name}` already stands in `translation.{earlier}`"));
                }
                let (fits, expected) = match treatment {
                    Treatment::Integer => (!FLOAT_ONLY.contains(&name.as_str()), "an operator on integers"),
                    Treatment::Absent => (OMISSIBLE.contains(&name.as_str()), "one of `batch_norm`, `layer_norm`"),
                    Treatment::Float => (true, ""),
                };
                if !fits {
                    return fault(format!("`translation.{list}`: expected {expected}, found `{name}`"));
                }
                seen.push((list, name));
            }
        }
        Ok(())
    }
}

/// The likeliest of the words that a complaint expects instead of the first that it quotes.
fn hint(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(found) = quoted.next() else { return String::new() };
    nearest(found, quoted).map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// The name most like `name`, where one is close enough to be meant.
pub(super) fn nearest<'a>(name: &str, valid: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = valid.map(|other| (strsim::jaro_winkler(name, other), other));
    scored.filter(|(score, _)| *score > 0.7).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, other)| other)
}
