//! Reading the crate's data files: strict TOML whose complaints name the file, the line, the field, what was expected
//! and the nearest valid name.

use haversack_devices::calibration::{AnyConstant, Constant, Kind, Quantity, Unit};
use serde::de::{self, DeserializeOwned};
use serde::{Deserialize, Deserializer};
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
    #[error("unknown {what} `{name}`{}; expected the path of a .toml file or `{valid}`", meant(nearest.as_deref()))]
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
    #[error("{file}:{line}: `{field}`: {message}")]
    Wrong {
        /// The file, as shown to people.
        file: String,
        /// The line, from one.
        line: usize,
        /// The dotted name of the field, or of the table that lacks one.
        field: String,
        /// What was expected, what was found, and the nearest valid name.
        message: String,
    },
}

/// Reads `text`, which stands in `file`.
pub(crate) fn parse<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, DataError> {
    toml::from_str(text).map_err(|error| {
        let (line, field) = place(text, error.span().map_or(0, |span| span.start));
        let message = format!("{}{}", error.message(), hint(error.message()));
        DataError::Wrong { file: file.to_owned(), line, field, message }
    })
}

/// Reads the file at `path`.
pub(crate) fn read(path: &str) -> Result<String, DataError> {
    std::fs::read_to_string(path).map_err(|source| DataError::Read { path: path.to_owned(), source })
}

/// A complaint about the table `header` of `file`, such as `package."com.whatsapp"`.
pub(crate) fn wrong(file: &str, text: &str, header: &str, message: String) -> DataError {
    let line =
        text.lines().position(|line| line.trim().trim_matches(['[', ']']) == header).map_or(1, |index| 1 + index);
    DataError::Wrong { file: file.to_owned(), line, field: header.to_owned(), message }
}

/// The line of a byte, from one, and the dotted name of what stands there.
fn place(text: &str, offset: usize) -> (usize, String) {
    let (mut header, mut field, mut line, mut end) = ("", "", 1, 0);
    for (index, written) in text.split_inclusive('\n').enumerate() {
        line = 1 + index;
        let trimmed = written.trim();
        if trimmed.starts_with('[') {
            (header, field) = (trimmed.trim_matches(['[', ']']), "");
        } else if let Some((key, _)) = trimmed.split_once('=').filter(|(key, _)| !key.starts_with('#')) {
            field = key.trim();
        }
        end += written.len();
        if offset < end {
            break;
        }
    }
    let dot = if header.is_empty() || field.is_empty() { "" } else { "." };
    (line, format!("{header}{dot}{field}"))
}

/// The likeliest of the words that a complaint expects, instead of the first that it quotes.
fn hint(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(found) = quoted.next().filter(|_| message.starts_with("unknown")) else { return String::new() };
    meant(nearest(found, quoted))
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// The name most like `name`, where one is close enough to be meant.
pub(crate) fn nearest<'a>(name: &str, valid: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = valid.map(|other| (strsim::jaro_winkler(name, other), other));
    scored.filter(|(score, _)| *score > 0.7).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, other)| other)
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
        E::custom(format!("unknown unit `{symbol}`, expected one of `{}`", valid.join("`, `")))
    })
}

/// Reads a constant; refuses another unit and a number that the quantity cannot have.
pub(crate) fn constant<'de, D: Deserializer<'de>, Q: Quantity>(from: D) -> Result<Constant<Q>, D::Error> {
    let Written { value, unit: symbol, kind, source, note } = Written::<f64>::deserialize(from)?;
    let mut constant = Constant { value: Q::from_base(0.0), unit: unit::<Q, _>(&symbol)?, kind, source, note };
    constant.replace(value).map_err(|expected| de::Error::custom(format!("{value}: expected {expected}")))?;
    Ok(constant)
}

/// A row of numbers that are weights of one another: finite, not negative, and not all nought.
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
            return Err("expected a weight above nought".to_owned());
        }
        Ok(Self { values, kind, source })
    }
}
