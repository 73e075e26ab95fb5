//! Calibrations: constants with unit, source and kind, read strictly from TOML.
//!
//! A schema is a set of structs made by `section!`: each struct is a table, each field a key. [`Calibrated`] is a
//! loaded file of any schema: its constants can be listed, and overridden by name.

mod base;
mod calibrated;

use serde::{Deserialize, Deserializer, de};
use thiserror::Error;

use crate::text::{aside, nearest};
use crate::{FlopsPerCycle, TomlError};

pub use crate::units::{Dimension, Quantity, Unit};
pub use base::Settings;
pub(crate) use base::is_path;
pub use calibrated::{BuiltIn, Calibrated, Contradiction, Digest, Listing, Schema, digest, entries, fnv1a};
pub(crate) use calibrated::{CORES, DEVICES, FLASH, STACKS, SYSTEMS, against, zero_divisor};

/// How a constant is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, serde::Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Kind {
    /// Published by the vendor, a driver or a specification page.
    Datasheet,
    /// A public measurement on that chip, or on the chip that the note names.
    Measured,
    /// Fitted to reference numbers; results report how many constants are fitted.
    Fitted,
    /// Derived, or an engineering guess.
    Estimated,
}

/// A quantity, and how it is known.
#[derive(Clone, Debug)]
pub struct Constant<Q> {
    /// The quantity, converted.
    pub value: Q,
    /// The unit that the file is written in; overrides are in this unit too.
    pub unit: &'static Unit,
    /// How it is known.
    pub kind: Kind,
    /// Where it comes from.
    pub source: String,
    /// Anything a reader should know.
    pub note: Option<String>,
}

impl Constant<FlopsPerCycle> {
    /// A rate that its file leaves out and that follows from others: NaN until it is [`known`](Self::known).
    pub(crate) fn unknown() -> Self {
        let (value, unit) = (FlopsPerCycle(f64::NAN), Dimension::FlopsPerCycle.customary());
        Self { value, unit, kind: Kind::Estimated, source: "derived".to_owned(), note: None }
    }

    /// Replaces an unknown rate by `rate`; a known one stays.
    pub(crate) fn known(&mut self, rate: f64) {
        if self.value.0.is_nan() {
            self.value.0 = rate;
        }
    }
}

/// A row of quantities, such as the frequencies of a DVFS table.
#[derive(Clone, Debug)]
pub struct Curve<Q> {
    /// The quantities, converted.
    pub values: Vec<Q>,
    /// The unit that the file is written in.
    pub unit: &'static Unit,
    /// How they are known.
    pub kind: Kind,
    /// Where they come from.
    pub source: String,
    /// Anything a reader should know.
    pub note: Option<String>,
}

/// A constant as a listing, and `run.json`, show it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ConstantEntry {
    /// The dotted name, e.g. `gpu.efficiency.convolution`.
    pub name: String,
    /// The value in `unit`.
    pub value: f64,
    /// The unit of the file.
    pub unit: &'static str,
    /// How it is known.
    pub kind: Kind,
    /// Where it comes from.
    pub source: String,
    /// The calibration file that defines it.
    pub file: String,
}

/// A constant of any quantity.
pub trait AnyConstant {
    /// The unit of the file.
    fn unit(&self) -> &'static Unit;
    /// Its entry in a listing: `name` is its dotted name, `file` the calibration file that defines it.
    fn entry(&self, name: &str, file: &str) -> ConstantEntry;
    /// Sets the constant to `value`, in the unit of the file.
    ///
    /// # Errors
    /// The valid range, if `value` is outside it.
    fn replace(&mut self, value: f64) -> Result<(), String>;
}

impl<Q: Quantity> AnyConstant for Constant<Q> {
    fn unit(&self) -> &'static Unit {
        self.unit
    }
    fn entry(&self, name: &str, file: &str) -> ConstantEntry {
        let value = self.value.base() / self.unit.scale;
        let (name, source, file) = (name.to_owned(), self.source.clone(), file.to_owned());
        ConstantEntry { name, value, unit: self.unit.symbol, kind: self.kind, source, file }
    }
    fn replace(&mut self, value: f64) -> Result<(), String> {
        self.value = Q::convert(value, self.unit)?;
        Ok(())
    }
}

/// A constant or a curve as the file writes it.
#[derive(Deserialize)]
#[serde(rename = "{ value, unit, kind, source, note? }", deny_unknown_fields)]
struct Written<V> {
    value: V,
    unit: String,
    kind: Kind,
    source: String,
    note: Option<String>,
}

impl<V> Written<V> {
    /// The unit, which must measure a `Q`.
    fn unit<Q: Quantity, E: de::Error>(&self) -> Result<&'static Unit, E> {
        let symbols = || Q::DIMENSION.symbols();
        Q::DIMENSION.unit(&self.unit).ok_or_else(|| {
            let (near, valid) = (aside(nearest(&self.unit, symbols())), symbols().collect::<Vec<_>>().join(", "));
            E::custom(format!("wrong unit `{}`{near}; expected one of {valid}", self.unit))
        })
    }
}

/// A number with few digits.
fn short(value: f64) -> String {
    if value.abs() < 1e16 { value.to_string() } else { format!("{value:e}") }
}

/// Converts `value` to a `Q`; errors name `key`.
fn quantity<Q: Quantity, E: de::Error>(key: &str, value: f64, unit: &Unit) -> Result<Q, E> {
    let out_of_range = |expected| E::custom(format!(".{key}: {} is out of range; expected {expected}", short(value)));
    Q::convert(value, unit).map_err(out_of_range)
}

impl<'de, Q: Quantity> Deserialize<'de> for Constant<Q> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let written = Written::<f64>::deserialize(from)?;
        let unit = written.unit::<Q, D::Error>()?;
        let value = quantity("value", written.value, unit)?;
        Ok(Self { value, unit, kind: written.kind, source: written.source, note: written.note })
    }
}

impl<'de, Q: Quantity> Deserialize<'de> for Curve<Q> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let written = Written::<Vec<f64>>::deserialize(from)?;
        let unit = written.unit::<Q, D::Error>()?;
        let values = written.value.iter().enumerate();
        let values = values.map(|(index, &value)| quantity(&format!("value.{index}"), value, unit));
        let values = values.collect::<Result<_, _>>()?;
        Ok(Self { values, unit, kind: written.kind, source: written.source, note: written.note })
    }
}

/// A value of a calibration: a constant, or a table with constants below it.
pub trait Visit {
    /// Calls `see` with every constant below and its dotted name; `name` is that of the key itself.
    fn visit(&mut self, _name: &str, _see: &mut dyn FnMut(&str, &mut dyn AnyConstant)) {}
}

impl Visit for String {}

impl Visit for bool {}

impl<Q> Visit for Curve<Q> {}

impl<Q: Quantity> Visit for Constant<Q> {
    fn visit(&mut self, name: &str, see: &mut dyn FnMut(&str, &mut dyn AnyConstant)) {
        see(name, self);
    }
}

impl<V: Visit> Visit for Option<V> {
    fn visit(&mut self, name: &str, see: &mut dyn FnMut(&str, &mut dyn AnyConstant)) {
        if let Some(value) = self {
            value.visit(name, see);
        }
    }
}

impl<V: Visit> Visit for Vec<V> {
    fn visit(&mut self, name: &str, see: &mut dyn FnMut(&str, &mut dyn AnyConstant)) {
        for (index, section) in self.iter_mut().enumerate() {
            section.visit(&format!("{name}.{index}"), see);
        }
    }
}

/// Declares an enum for a key whose value is a word. The words are the variants' names in lower case, with hyphens.
macro_rules! words {
    ($($(#[$meta:meta])* pub enum $name:ident { $($body:tt)* })+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize, strum::Display)]
        #[serde(rename_all = "kebab-case")]
        #[strum(serialize_all = "kebab-case")]
        pub enum $name { $($body)* }

        impl $crate::Visit for $name {}
    )+};
}
pub(crate) use words;

/// Declares a table of a data file. Its fields are its keys; `serde` reads them and [`Visit`] visits them.
#[macro_export]
macro_rules! section {
    ($(#[$doc:meta])* pub struct $name:ident {
        $($(#[$field_doc:meta])* $visible:vis $field:ident: $type:ty,)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, serde::Deserialize)]
        pub struct $name {
            $($(#[$field_doc])* $visible $field: $type,)+
        }

        impl $crate::calibration::Visit for $name {
            fn visit(&mut self, name: &str, see: &mut dyn FnMut(&str, &mut dyn $crate::calibration::AnyConstant)) {
                let dot = if name.is_empty() { "" } else { "." };
                $(self.$field.visit(&format!("{name}{dot}{}", stringify!($field)), see);)+
            }
        }
    };
}
pub use section;

// Errors of calibrations.

/// Why a calibration could not be loaded or overridden. The author of the file can fix each of them, and a program may
/// continue with another calibration.
#[derive(Debug, Error)]
pub enum CalibrationError {
    /// The file does not match the schema, or contradicts itself; the error has no line if an override causes it.
    #[error(transparent)]
    Toml(#[from] TomlError),
    /// Other errors, in words: an unknown built-in id, an unreadable file, an abbreviated name that fits several
    /// constants.
    #[error("{0}")]
    Refused(String),
    /// An override of a constant that does not exist.
    #[error("{file}: no constant is named `{name}`{}", aside(nearest.as_deref()))]
    UnknownConstant {
        /// The calibration.
        file: String,
        /// The name in the request.
        name: String,
        /// The most similar valid name.
        nearest: Option<String>,
    },
}
