//! Calibrations: constants with unit, source and kind, read strictly from TOML.
//!
//! A schema is a set of structs made by `section!`: each struct is a table, each field a key. [`Calibrated`] is any
//! schema's file once it is read: its constants can be listed and overridden by name.

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
    /// Fitted to reference numbers; counted beside the results.
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
    /// A rate that its file does not give, which follows from others: no number until it is [`known`](Self::known).
    pub(crate) fn unknown() -> Self {
        let (value, unit) = (FlopsPerCycle(f64::NAN), Dimension::FlopsPerCycle.customary());
        Self { value, unit, kind: Kind::Estimated, source: "derived".to_owned(), note: None }
    }

    /// The same, `rate` where it was not known.
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
    /// The calibration that holds it.
    pub file: String,
}

/// A constant whose quantity is not known to the caller.
pub trait AnyConstant {
    /// The unit of the file.
    fn unit(&self) -> &'static Unit;
    /// What a listing says of it: `name` is its dotted name, `file` the calibration that holds it.
    fn entry(&self, name: &str, file: &str) -> ConstantEntry;
    /// Takes `value`, in the unit of the file.
    ///
    /// # Errors
    /// The valid range, if `value` lies outside.
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

/// A constant or a curve as it is written.
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

/// A number in few digits.
fn short(value: f64) -> String {
    if value.abs() < 1e16 { value.to_string() } else { format!("{value:e}") }
}

/// `value` as a `Q`; `key` is where it stands.
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

/// Something that a key of a calibration can hold: a constant, or what has constants below it.
pub trait Visit {
    /// Shows every constant below, with its dotted name; `name` is that of the key itself.
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

/// Declares the words that a key of a data file can hold; they are written as their names, in lower case with hyphens.
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

/// Declares a table of a data file: its fields are its keys, which `serde` reads and [`Visit`] shows.
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

// What can be wrong with a calibration.

/// Why a calibration could not be loaded or overridden. All are the author's to mend; none is fatal to a program
/// that can name another calibration.
#[derive(Debug, Error)]
pub enum CalibrationError {
    /// The file is not exactly the schema, or contradicts itself; an override that would make it so has no line.
    #[error(transparent)]
    Toml(#[from] TomlError),
    /// In words: an id that no built-in calibration has, a file that could not be read, a shortened name that fits more than one
    /// constant.
    #[error("{0}")]
    Refused(String),
    /// An override of a constant that does not exist.
    #[error("{file}: no constant is named `{name}`{}", aside(nearest.as_deref()))]
    UnknownConstant {
        /// The calibration.
        file: String,
        /// The name that was asked for.
        name: String,
        /// The valid name most like it.
        nearest: Option<String>,
    },
}
