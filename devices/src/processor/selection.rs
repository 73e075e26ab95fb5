//! The cores that a run uses, and their frequency.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::calibration::Dimension;
use crate::text::{aside, nearest};
use crate::{ClusterClass, Hertz};

/// The cores of a run: `all`, or `big:4`, `middle:2`, `little:1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::Display)]
pub enum CoreSelection {
    /// Every core.
    #[default]
    #[strum(to_string = "all")]
    All,
    /// The fastest cores of a class; `big` continues into the middle clusters.
    #[strum(to_string = "{class}:{count}")]
    Some {
        /// The class.
        class: ClusterClass,
        /// The number of cores.
        count: usize,
    },
}

impl CoreSelection {
    /// The same, or all cores of the class if `chosen` failed because it has too few.
    #[must_use]
    pub fn or_all_of_class<T>(self, chosen: Result<T, SelectionError>) -> Self {
        match (self, chosen) {
            (Self::Some { class, .. }, Err(SelectionError::TooMany { available: count, .. })) => {
                Self::Some { class, count }
            }
            _ => self,
        }
    }

    /// Whether a core of `class` can be among the chosen.
    pub(crate) fn admits(self, class: ClusterClass) -> bool {
        match self {
            Self::All => true,
            Self::Some { class: ClusterClass::Big, .. } => class != ClusterClass::Little,
            Self::Some { class: wanted, .. } => class == wanted,
        }
    }
}

/// Why a selection of cores or a frequency is invalid.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SelectionError {
    /// Neither `all` nor `class:count`.
    #[error("cores `{found}` are not understood{hint}; expected `all`, `big:N`, `middle:N` or `little:N`")]
    Syntax {
        /// The text.
        found: String,
        /// A guess at the intended text, or nothing.
        hint: String,
    },
    /// The device has no cluster of that class.
    #[error("the device has no {class} cores; it has {}", names(classes))]
    NoSuchClass {
        /// The requested class.
        class: ClusterClass,
        /// The device's classes.
        classes: Vec<ClusterClass>,
    },
    /// The device has fewer cores than requested.
    #[error("{count} {class} cores were requested; the device has {available}")]
    TooMany {
        /// The requested class.
        class: ClusterClass,
        /// The requested number.
        count: usize,
        /// The number of such cores in the device.
        available: usize,
    },
    /// Neither a frequency policy nor a frequency.
    #[error(
        "frequency `{found}` is not understood{hint}; expected `highest`, `lowest`, `governor` or an operating point \
         such as `1.8GHz` or `1804.8MHz`"
    )]
    Frequency {
        /// The text.
        found: String,
        /// A guess at the intended text, or nothing.
        hint: String,
    },
    /// The core cannot run at a fixed frequency.
    #[error(
        "{core} has no operating point at {}; the nearest {}, of {} to {}",
        written(*asked), neighbours(*below, *above), written(range[0]), written(range[1])
    )]
    NoOperatingPoint {
        /// The fastest of the chosen cores.
        core: String,
        /// The requested frequency.
        asked: Hertz,
        /// Its nearest operating point below.
        below: Option<Hertz>,
        /// Its nearest operating point above.
        above: Option<Hertz>,
        /// Its lowest and its highest operating point.
        range: [Hertz; 2],
    },
}

fn neighbours(below: Option<Hertz>, above: Option<Hertz>) -> String {
    let [below, above] = [below, above].map(|point| point.map(written));
    match (below, above) {
        (Some(below), Some(above)) => format!("are {below} and {above}"),
        (one, other) => format!("is {}", one.or(other).unwrap_or_default()),
    }
}

/// A frequency in text, in the unit that gives fewer characters.
fn written(frequency: Hertz) -> String {
    let hertz = frequency.0.round();
    let [mega, giga] = [(1e6, "MHz"), (1e9, "GHz")].map(|(scale, unit)| format!("{}{unit}", hertz / scale));
    if giga.len() < mega.len() { giga } else { mega }
}

fn names(classes: &[ClusterClass]) -> String {
    let names: Vec<String> = classes.iter().map(ToString::to_string).collect();
    names.join(", ")
}

impl FromStr for CoreSelection {
    type Err = SelectionError;

    fn from_str(found: &str) -> Result<Self, SelectionError> {
        if found == "all" {
            return Ok(Self::All);
        }
        let classes = || ClusterClass::ALL.into_iter().map(ClusterClass::word);
        let syntax = |hint: String| SelectionError::Syntax { found: found.to_owned(), hint };
        let Some((word, count)) = found.split_once(':') else {
            let near = nearest(found, classes().chain(["all"]));
            return Err(syntax(near.map_or_else(String::new, |word| {
                let count = if word == "all" { "" } else { ":1" };
                format!(" (did you mean `{word}{count}`?)")
            })));
        };
        let Some(class) = ClusterClass::ALL.into_iter().find(|class| class.word() == word) else {
            return Err(syntax(aside(nearest(word, classes()))));
        };
        match count.parse() {
            Ok(count) if count > 0 => Ok(Self::Some { class, count }),
            _ => Err(syntax(" (the number of cores is a whole number from 1)".to_owned())),
        }
    }
}

/// The frequency of the cores: `highest`, `lowest`, `governor`, or an operating point such as `1.8GHz`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Frequency {
    /// The highest operating point.
    #[default]
    Highest,
    /// The lowest frequency of the governor, from the device's file.
    Lowest,
    /// The highest at first, then set by load and heat ([`Schedutil`](super::Schedutil),
    /// [`StepWise`](super::StepWise)).
    Governor,
    /// An operating point of the fastest of the cores.
    Fixed(Hertz),
}

impl Frequency {
    const WORDS: [(&'static str, Self); 3] =
        [("highest", Self::Highest), ("lowest", Self::Lowest), ("governor", Self::Governor)];
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Highest => f.write_str("highest"),
            Self::Lowest => f.write_str("lowest"),
            Self::Governor => f.write_str("governor"),
            Self::Fixed(frequency) => f.write_str(&written(*frequency)),
        }
    }
}

impl FromStr for Frequency {
    type Err = SelectionError;

    fn from_str(found: &str) -> Result<Self, SelectionError> {
        if let Some(&(_, frequency)) = Self::WORDS.iter().find(|(word, _)| *word == found) {
            return Ok(frequency);
        }
        let error = |hint| SelectionError::Frequency { found: found.to_owned(), hint };
        let (number, unit) = found.split_at(found.find(|c: char| c.is_alphabetic()).unwrap_or(found.len()));
        let Ok(number) = number.trim().parse::<f64>() else {
            return Err(error(aside(nearest(found, Self::WORDS.map(|(word, _)| word)))));
        };
        let Some(unit) = Dimension::Frequency.unit(unit) else {
            let meant = if unit.is_empty() { Some("MHz") } else { nearest(unit, Dimension::Frequency.symbols()) };
            let meant = meant.map(|unit| format!("{number}{unit}"));
            return Err(error(aside(meant.as_deref())));
        };
        let hertz = number * unit.scale;
        if hertz.is_finite() && hertz >= 1.0 {
            Ok(Self::Fixed(Hertz(hertz)))
        } else {
            Err(error(" (a frequency is a positive number)".to_owned()))
        }
    }
}
