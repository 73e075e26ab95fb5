//! The fields of a sample that are read; all others are skipped without a copy.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Visitor};

/// A text, borrowed from the line where no escape stands in its way. (A bare `Option<Cow>` would always be a copy.)
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'l>(#[serde(borrow)] pub(super) Cow<'l, str>);

/// A line.
#[derive(Deserialize)]
pub(super) struct Sample<'l> {
    #[serde(borrow)]
    pub(super) uuid: Text<'l>,
    #[serde(alias = "timestamp")]
    pub(super) time: Number,
    #[serde(borrow, default, alias = "batteryStatus", rename = "batteryState")]
    pub(super) battery: Option<Text<'l>>,
    #[serde(borrow, default)]
    pub(super) apps: Option<Vec<App<'l>>>,
    #[serde(default)]
    pub(super) memory: Option<Memory>,
}

/// A process.
#[derive(Deserialize)]
pub(super) struct App<'l> {
    #[serde(borrow, rename = "processName")]
    pub(super) name: Text<'l>,
    #[serde(borrow, default)]
    pub(super) priority: Option<Text<'l>>,
}

/// The memory of a phone as the client wrote it down: kB, and not what the names say.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Memory {
    #[serde(rename = "memoryActive")]
    pub(super) active: Number,
    #[serde(rename = "memoryInactive")]
    pub(super) inactive: Number,
    #[serde(rename = "memoryFree")]
    pub(super) free: Number,
    #[serde(rename = "memoryUser")]
    pub(super) user: Number,
}

/// A number, with or without a fraction: Thrift's doubles reach JSON as either.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number(pub(super) f64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Numbers;
        impl Visitor<'_> for Numbers {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }
            fn visit_u64<E>(self, number: u64) -> Result<Number, E> {
                Ok(Number(number as f64))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Number, E> {
                Ok(Number(number as f64))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Number, E> {
                Ok(Number(number))
            }
        }
        deserializer.deserialize_any(Numbers)
    }
}
