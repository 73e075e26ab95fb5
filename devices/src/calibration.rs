//! Calibrations: constants with unit, source and kind, read strictly from TOML.
//!
//! What a device or a software stack holds is declared in [`crate::device`] and [`crate::stack`];
//! how any such file is read, listed and overridden is here.

mod dimension;
mod error;
mod reader;
mod table;

use std::fmt;

pub use dimension::{Dimension, Quantity, Unit};
pub(crate) use error::nearest;
pub use error::{CalibrationError, Location};
pub(crate) use reader::{Place, parse};
pub(crate) use table::{consistent, entries, replace};

/// How a constant is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
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

/// A fixed set of words that a calibration may use for a field.
pub(crate) trait Choice: Copy + 'static {
    /// Every value with its word.
    const WORDS: &'static [(&'static str, Self)];
}

impl Choice for Kind {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("datasheet", Self::Datasheet),
        ("measured", Self::Measured),
        ("fitted", Self::Fitted),
        ("estimated", Self::Estimated),
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Self::WORDS.iter().find(|(_, kind)| kind == self);
        f.write_str(word.map_or("", |(word, _)| word))
    }
}

/// Reads the word at `place`.
pub(crate) fn choose<C: Choice>(place: &Place<'_>) -> Result<C, CalibrationError> {
    let found = place.text()?;
    let words = || C::WORDS.iter().map(|(word, _)| *word);
    C::WORDS.iter().find(|(word, _)| *word == found).map(|&(_, choice)| choice).ok_or_else(|| {
        CalibrationError::UnknownChoice {
            at: place.location(),
            found: found.to_owned(),
            nearest: nearest(found, words()),
            expected: words().map(str::to_owned).collect(),
        }
    })
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
    /// The value in the unit of the file.
    fn value_in_unit(&self) -> f64;
    /// The unit of the file.
    fn unit(&self) -> &'static Unit;
    /// How it is known.
    fn kind(&self) -> Kind;
    /// Where it comes from.
    fn source(&self) -> &str;
    /// Takes `value`, in the unit of the file; gives the valid range where it is not in it.
    fn replace(&mut self, value: f64) -> Result<(), String>;
}

/// `value` in base units; the valid range, in `unit`, where it is not in it.
fn to_base(value: f64, unit: &Unit) -> Result<f64, String> {
    let base = value * unit.scale;
    let ceiling = unit.dimension.ceiling();
    if base.is_finite() && (0.0..=ceiling).contains(&base) {
        Ok(base)
    } else if ceiling < f64::MAX {
        Err(format!("a number from 0 to {}", ceiling / unit.scale))
    } else {
        Err("a finite number that is not negative".to_owned())
    }
}

impl<Q: Quantity> AnyConstant for Constant<Q> {
    fn value_in_unit(&self) -> f64 {
        self.value.base() / self.unit.scale
    }
    fn unit(&self) -> &'static Unit {
        self.unit
    }
    fn kind(&self) -> Kind {
        self.kind
    }
    fn source(&self) -> &str {
        &self.source
    }
    fn replace(&mut self, value: f64) -> Result<(), String> {
        self.value = Q::from_base(to_base(value, self.unit)?);
        Ok(())
    }
}

/// Something that a key of a calibration can hold.
pub(crate) trait Field: Sized {
    /// Reads the value of `key` in the table `parent`.
    fn read(parent: &Place<'_>, key: &str) -> Result<Self, CalibrationError>;
    /// Shows every constant below, with its dotted name.
    fn visit(&self, _name: &str, _see: &mut dyn FnMut(&str, &dyn AnyConstant)) {}
    /// As `visit`, to change them.
    fn visit_mut(&mut self, _name: &str, _change: &mut dyn FnMut(&str, &mut dyn AnyConstant)) {}
}

/// A table of a calibration; made by [`section!`].
pub(crate) trait Section: Sized {
    /// Reads the table at `place`, refusing keys that it does not have.
    fn from_place(place: &Place<'_>) -> Result<Self, CalibrationError>;
}

/// The parts that constants and curves share: unit, kind, source, note.
struct Provenance {
    unit: &'static Unit,
    kind: Kind,
    source: String,
    note: Option<String>,
}

const CONSTANT: &str = "{ value, unit, kind, source, note? }";

fn provenance(place: &Place<'_>, dimension: Dimension) -> Result<Provenance, CalibrationError> {
    place.check_keys(CONSTANT, &["value", "unit", "kind", "source", "note"])?;
    let unit = place.required("unit", "the unit of the value")?;
    let symbol = unit.text()?;
    let unit = dimension.unit(symbol).ok_or_else(|| CalibrationError::WrongUnit {
        at: place.location(),
        found: symbol.to_owned(),
        nearest: nearest(symbol, dimension.symbols()),
        expected: dimension.symbols().map(str::to_owned).collect(),
    })?;
    Ok(Provenance {
        unit,
        kind: choose(&place.required("kind", "how the constant is known")?)?,
        source: place.required("source", "where the constant comes from")?.text()?.to_owned(),
        note: Option::<String>::read(place, "note")?,
    })
}

fn quantity<Q: Quantity>(place: &Place<'_>, unit: &Unit) -> Result<Q, CalibrationError> {
    let found = place.number()?;
    let base = to_base(found, unit).map_err(|expected| {
        let at = place.location();
        CalibrationError::OutOfRange { at, found, expected }
    })?;
    Ok(Q::from_base(base))
}

impl<Q: Quantity> Field for Constant<Q> {
    fn read(parent: &Place<'_>, key: &str) -> Result<Self, CalibrationError> {
        let place = parent.required(key, CONSTANT)?;
        let Provenance { unit, kind, source, note } = provenance(&place, Q::DIMENSION)?;
        let value = quantity(&place.required("value", "a number")?, unit)?;
        Ok(Self { value, unit, kind, source, note })
    }
    fn visit(&self, name: &str, see: &mut dyn FnMut(&str, &dyn AnyConstant)) {
        see(name, self);
    }
    fn visit_mut(&mut self, name: &str, change: &mut dyn FnMut(&str, &mut dyn AnyConstant)) {
        change(name, self);
    }
}

impl<Q: Quantity> Field for Curve<Q> {
    fn read(parent: &Place<'_>, key: &str) -> Result<Self, CalibrationError> {
        let place = parent.required(key, CONSTANT)?;
        let Provenance { unit, kind, source, note } = provenance(&place, Q::DIMENSION)?;
        let items = place.required("value", "an array of numbers")?.items()?;
        let values = items.iter().map(|item| quantity(item, unit)).collect::<Result<_, _>>()?;
        Ok(Self { values, unit, kind, source, note })
    }
}

impl Field for String {
    fn read(parent: &Place<'_>, key: &str) -> Result<Self, CalibrationError> {
        Ok(parent.required(key, "text")?.text()?.to_owned())
    }
}

impl<F: Field> Field for Option<F> {
    fn read(parent: &Place<'_>, key: &str) -> Result<Self, CalibrationError> {
        match parent.child(key) {
            Some(_) => F::read(parent, key).map(Some),
            None => Ok(None),
        }
    }
    fn visit(&self, name: &str, see: &mut dyn FnMut(&str, &dyn AnyConstant)) {
        if let Some(field) = self {
            field.visit(name, see);
        }
    }
    fn visit_mut(&mut self, name: &str, change: &mut dyn FnMut(&str, &mut dyn AnyConstant)) {
        if let Some(field) = self {
            field.visit_mut(name, change);
        }
    }
}

impl<S: Section + Field> Field for Vec<S> {
    fn read(parent: &Place<'_>, key: &str) -> Result<Self, CalibrationError> {
        let items = parent.child(key).map_or_else(|| Ok(Vec::new()), |place| place.items())?;
        items.iter().map(S::from_place).collect()
    }
    fn visit(&self, name: &str, see: &mut dyn FnMut(&str, &dyn AnyConstant)) {
        for (index, section) in self.iter().enumerate() {
            section.visit(&format!("{name}.{index}"), see);
        }
    }
    fn visit_mut(&mut self, name: &str, change: &mut dyn FnMut(&str, &mut dyn AnyConstant)) {
        for (index, section) in self.iter_mut().enumerate() {
            section.visit_mut(&format!("{name}.{index}"), change);
        }
    }
}

/// Declares a table of a calibration: its fields are its keys.
macro_rules! section {
    ($(#[$doc:meta])* pub struct $name:ident {
        $($(#[$field_doc:meta])* pub $field:ident: $type:ty,)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)+
        }

        impl $crate::calibration::Section for $name {
            fn from_place(
                place: &$crate::calibration::Place<'_>,
            ) -> Result<Self, $crate::calibration::CalibrationError> {
                place.check_keys("a table", &[$(stringify!($field)),+])?;
                Ok(Self {
                    $($field: $crate::calibration::Field::read(place, stringify!($field))?,)+
                })
            }
        }

        impl $crate::calibration::Field for $name {
            fn read(
                parent: &$crate::calibration::Place<'_>,
                key: &str,
            ) -> Result<Self, $crate::calibration::CalibrationError> {
                $crate::calibration::Section::from_place(&parent.required(key, "a table")?)
            }
            fn visit(
                &self,
                name: &str,
                see: &mut dyn FnMut(&str, &dyn $crate::calibration::AnyConstant),
            ) {
                $($crate::calibration::Field::visit(
                    &self.$field,
                    &$crate::calibration::join(name, stringify!($field)),
                    see,
                );)+
            }
            fn visit_mut(
                &mut self,
                name: &str,
                change: &mut dyn FnMut(&str, &mut dyn $crate::calibration::AnyConstant),
            ) {
                $($crate::calibration::Field::visit_mut(
                    &mut self.$field,
                    &$crate::calibration::join(name, stringify!($field)),
                    change,
                );)+
            }
        }
    };
}
pub(crate) use section;

/// `name` below `parent`, which may be the top of the file.
pub(crate) fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}
