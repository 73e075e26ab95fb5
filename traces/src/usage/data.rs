//! Reading the crate's data files, strictly: what their fields hold, and why one is refused.

use haversack_devices::calibration::{AnyConstant, Constant, Kind, Quantity, Unit};
use haversack_devices::text::{TomlError, aside, nearest};
use serde::{Deserialize, Deserializer, de};
use thiserror::Error;

/// Why a data file of the usage model or of the footprints could not be used.
#[derive(Debug, Error)]
pub enum DataError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The path.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Nothing that the crate brings along has this name.
    #[error("unknown {what} `{name}`{}; expected the path of a .toml file or `{valid}`", aside(nearest.as_deref()))]
    Unknown {
        /// What was looked for.
        what: &'static str,
        /// The name that was asked for.
        name: String,
        /// The valid name most like it.
        nearest: Option<String>,
        /// The valid names.
        valid: &'static str,
    },
    /// Something in the file is wrong.
    #[error(transparent)]
    Wrong(#[from] TomlError),
}

/// Reads the file at `path`.
pub(crate) fn read(path: &str) -> Result<String, DataError> {
    std::fs::read_to_string(path).map_err(|source| DataError::Read { path: path.to_owned(), source })
}

/// `{ value, unit, kind, source, note? }`, as in the calibrations of devices.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written<V> {
    value: V,
    unit: String,
    #[serde(deserialize_with = "kind")]
    kind: Kind,
    source: String,
    note: Option<String>,
}

/// How a number is known.
pub(crate) fn kind<'de, D: Deserializer<'de>>(from: D) -> Result<Kind, D::Error> {
    let word = String::deserialize(from)?;
    [Kind::Datasheet, Kind::Measured, Kind::Fitted, Kind::Estimated]
        .into_iter()
        .find(|kind| kind.to_string() == word)
        .ok_or_else(|| de::Error::unknown_variant(&word, &["datasheet", "measured", "fitted", "estimated"]))
}

/// The unit with this symbol, if it measures a `Q`.
fn unit<Q: Quantity, E: de::Error>(symbol: &str) -> Result<&'static Unit, E> {
    Q::DIMENSION.unit(symbol).ok_or_else(|| {
        let valid: Vec<_> = Q::DIMENSION.symbols().collect();
        let near = aside(nearest(symbol, valid.iter().copied()));
        E::custom(format!(".unit: unknown unit `{symbol}`{near}, expected one of `{}`", valid.join("`, `")))
    })
}

/// Reads a constant; refuses another unit and a number that the quantity cannot have.
pub(crate) fn constant<'de, D: Deserializer<'de>, Q: Quantity>(from: D) -> Result<Constant<Q>, D::Error> {
    let Written { value, unit: symbol, kind, source, note } = Written::<f64>::deserialize(from)?;
    let mut constant = Constant { value: Q::from_base(0.0), unit: unit::<Q, _>(&symbol)?, kind, source, note };
    constant.replace(value).map_err(|expected| de::Error::custom(format!(".value: {value}: expected {expected}")))?;
    Ok(constant)
}

/// A row of numbers that are weights of one another: finite, not negative, and not all zero.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "WrittenWeights")]
pub struct Weights {
    /// The weights, in the order of what they weigh.
    pub values: Vec<f64>,
    /// How they are known.
    pub kind: Kind,
    /// Where they come from.
    pub source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenWeights {
    values: Vec<f64>,
    #[serde(deserialize_with = "kind")]
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
