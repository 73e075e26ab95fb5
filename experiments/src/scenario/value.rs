//! How the values of keys are written, read and shown.

use std::collections::BTreeMap;
use std::str::FromStr;

use haversack_devices::calibration::Settings;
use haversack_devices::text::{alternatives, hint, question};
use haversack_training::AllocatorKind;
use haversack_workloads::{Attention, Gradients, Optimiser};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::Fault;

/// The type as which a literal was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number.
    Integer,
    /// A decimal number.
    Real,
    /// `true` or `false`.
    Boolean,
}

/// A value as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// Its text, without quotation marks.
    pub text: String,
    /// The type as which it was written.
    pub kind: Kind,
}

impl Literal {
    /// A value from a flag, or one made by a program.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Kind::Text }
    }

    /// A description of the value, for messages.
    pub fn found(&self) -> String {
        match self.kind {
            Kind::Text => format!("'{}'", self.text),
            Kind::Integer | Kind::Real => format!("the number {}", self.text),
            Kind::Boolean => self.text.clone(),
        }
    }
}

/// One value of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Cell {
    /// Text, or nothing.
    Text(Option<String>),
    /// A whole number, or nothing.
    Whole(Option<u64>),
    /// A whole number that may be negative, or nothing.
    Signed(Option<i64>),
    /// A decimal number, or nothing.
    Real(Option<f64>),
    /// Names and values.
    Settings(BTreeMap<String, String>),
}

impl Cell {
    /// The whole number, if this is one.
    pub(crate) fn whole(&self) -> Option<u64> {
        if let Self::Whole(number) = self { *number } else { None }
    }

    /// The number that may be negative, if this is one.
    pub(crate) fn signed(&self) -> Option<i64> {
        if let Self::Signed(number) = self { *number } else { None }
    }

    /// The decimal number, if this is one.
    pub(crate) fn real(&self) -> Option<f64> {
        if let Self::Real(number) = self { *number } else { None }
    }

    /// The text, if this is one; of names and values `name=value,...`.
    pub(crate) fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => text,
            Self::Settings(settings) if !settings.is_empty() => {
                let settings = settings.iter().map(|(name, value)| format!("{name}={value}"));
                Some(settings.collect::<Vec<_>>().join(","))
            }
            _ => None,
        }
    }

    /// Whether it is empty.
    pub(super) fn is_nothing(&self) -> bool {
        match self {
            Self::Settings(settings) => settings.is_empty(),
            other => other.to_json().is_null(),
        }
    }

    /// The cell as JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Whole(number) => json!(number),
            Self::Signed(number) => json!(number),
            Self::Real(number) => json!(number),
            Self::Settings(settings) => json!(settings),
        }
    }
}

pub(super) const OPTIMISERS: [(&str, Optimiser); 3] =
    [("sgd", Optimiser::Sgd), ("momentum", Optimiser::Momentum), ("adam", Optimiser::Adam)];
pub(super) const GRADIENTS: [(&str, Gradients); 2] = [("kept", Gradients::Kept), ("streamed", Gradients::Streamed)];
pub(super) const ALLOCATORS: [(&str, AllocatorKind); 3] =
    [("exact", AllocatorKind::Exact), ("caching", AllocatorKind::Caching), ("pool", AllocatorKind::Pool)];
pub(super) const SWITCH: [(&str, bool); 2] = [("true", true), ("false", false)];
pub(super) const ATTENTION: [(&str, Attention); 2] = [("math", Attention::Math), ("fused", Attention::Fused)];

/// Assigns the value of `given`, parsed by `read`, to a field.
pub(super) fn put<T>(field: &mut T, given: &Literal, read: impl Fn(&Literal) -> Result<T, Fault>) -> Result<(), Fault> {
    *field = read(given)?;
    Ok(())
}

/// A field, shown by `show`.
pub(super) fn show<T>(field: &T, show: impl Fn(&T) -> Cell) -> Cell {
    show(field)
}

/// Parses a value by its `FromStr`.
pub(super) fn parsed<T: FromStr>(given: &Literal) -> Result<T, Fault>
where
    Fault: From<T::Err>,
{
    Ok(given.text.trim().parse()?)
}

/// Parses an optional value.
pub(super) fn some<T>(read: impl Fn(&Literal) -> Result<T, Fault>) -> impl Fn(&Literal) -> Result<Option<T>, Fault> {
    move |given| read(given).map(Some)
}

/// Refuses a value for a key whose entries are set one by one.
pub(super) fn no_table(given: &Literal) -> Result<Settings, Fault> {
    Err(Fault::value("a table", given.found()))
}

/// Reads one of `words`.
pub(super) fn word<T: Copy>(given: &Literal, words: &[(&'static str, T)]) -> Result<T, Fault> {
    let text = given.text.trim();
    let names = || words.iter().map(|(name, _)| *name);
    words
        .iter()
        .find(|(name, _)| *name == text)
        .map(|&(_, value)| value)
        .ok_or_else(|| Fault::hinted(alternatives(names()), format!("'{text}'"), hint(text, names())))
}

/// The word of `value`.
pub(super) fn name_of<T: Copy + PartialEq>(value: T, words: &[(&'static str, T)]) -> &'static str {
    words.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}

/// Reads a whole number.
pub(super) fn whole<T: TryFrom<u64>>(least: u64, most: u64) -> impl Fn(&Literal) -> Result<T, Fault> {
    move |given| {
        let parsed = given.text.trim().replace('_', "").parse().ok();
        let number = parsed.filter(|number| (least..=most).contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
            let range = if most == u64::MAX { String::new() } else { format!(" and at most {most}") };
            let expected = format!("a whole number of at least {least}{range}");
            Fault::hinted(expected, given.found(), several(&given.text))
        })
    }
}

/// The hint about a text that contains several values.
fn several(text: &str) -> String {
    let is_list = text.contains([',', ' ']) || text == "all";
    if is_list { "; several values are for `haversack sweep`".to_owned() } else { String::new() }
}

/// Parses an `oom_score_adj`, within the kernel's range.
pub(super) fn score(given: &Literal) -> Result<i32, Fault> {
    let parsed = given.text.trim().parse().ok().filter(|score| (-1000..=1000).contains(score));
    parsed.ok_or_else(|| Fault::value("a whole number from -1000 to 1000", given.found()))
}

/// Reads degrees Celsius.
pub(super) fn degrees(given: &Literal) -> Result<f64, Fault> {
    let parsed = given.text.trim().parse::<f64>().ok().filter(|degrees| (-50.0..=100.0).contains(degrees));
    parsed.ok_or_else(|| {
        let number = given.text.trim().trim_end_matches(['C', 'c', '°']);
        let meant = number.parse::<f64>().ok().filter(|_| number != given.text.trim()).map(|_| number);
        Fault::hinted("degrees Celsius from -50 to 100", given.found(), question(meant))
    })
}

/// Shows a text.
pub(super) fn shown<T: ToString>(value: &T) -> Cell {
    Cell::Text(Some(value.to_string()))
}

/// Shows a text, if there is one.
pub(super) fn maybe<T: ToString>(value: &Option<T>) -> Cell {
    Cell::Text(value.as_ref().map(ToString::to_string))
}

/// Shows the name of a value that is not the default.
pub(super) fn unless_default<T: Copy + Default + PartialEq>(value: &T, name: impl Fn(T) -> &'static str) -> Cell {
    Cell::Text((*value != T::default()).then(|| name(*value).to_owned()))
}

/// Shows a whole number.
pub(super) fn number<T: Copy + Into<u64>>(number: &T) -> Cell {
    Cell::Whole(Some((*number).into()))
}

/// Shows names and values.
pub(super) fn settings(settings: &Settings) -> Cell {
    Cell::Settings(settings.clone())
}
