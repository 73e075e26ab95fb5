//! Strict reading of the crate's data files: their fields, and the errors.

use haversack_devices::{Kind, TomlError, Visit};
use serde::{Deserialize, Deserializer, de};
use thiserror::Error;

/// Why a data file of the usage model or of the footprints could not be used.
#[derive(Debug, Error)]
pub enum DataError {
    /// The file could not be read, or its name is neither a path nor built in; with the reason.
    #[error("{0}")]
    Absent(String),
    /// Something in the file is wrong.
    #[error(transparent)]
    Wrong(#[from] TomlError),
}

/// Reads the file at `path`.
pub(crate) fn read(path: &str) -> Result<String, DataError> {
    std::fs::read_to_string(path).map_err(|source| DataError::Absent(format!("cannot read {path}: {source}")))
}

/// Relative weights: finite, not negative, and not all zero.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "WrittenWeights")]
pub struct Weights {
    /// The weights, in the order of the weighted items.
    pub values: Vec<f64>,
    /// The kind of evidence for them.
    pub kind: Kind,
    /// Where they come from.
    pub source: String,
}

impl Visit for Weights {}

#[derive(Deserialize)]
struct WrittenWeights {
    values: Vec<f64>,
    kind: Kind,
    source: String,
}

impl TryFrom<WrittenWeights> for Weights {
    type Error = String;

    fn try_from(written: WrittenWeights) -> Result<Self, String> {
        let WrittenWeights { values, kind, source } = written;
        if let Some(value) = values.iter().find(|value| !value.is_finite() || **value < 0.0) {
            return Err(format!("{value}: expected finite weights that are not negative"));
        }
        if values.iter().sum::<f64>() <= 0.0 {
            return Err("expected a weight above zero".to_owned());
        }
        Ok(Self { values, kind, source })
    }
}

/// A decimal number from zero to `most`.
pub(crate) fn number<'de, D: Deserializer<'de>>(from: D, most: f64, unit: &str) -> Result<f64, D::Error> {
    let value = f64::deserialize(from)?;
    let expected = || de::Error::custom(format!("{value}: expected a number from 0 to {most}{unit}"));
    if (0.0..=most).contains(&value) { Ok(value) } else { Err(expected()) }
}
