//! `oom_score_adj`: a whole number that may be below nought, unlike the quantities of other constants.

use crate::calibration::{
    AnyConstant, CalibrationError, Dimension, Field, Kind, Place, Quantity, Unit, choose, nearest,
};
use crate::units::Count;

/// How readily a process is killed under memory pressure: the higher, the sooner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OomScore(pub i32);

impl OomScore {
    /// A process that is never killed.
    pub const LOWEST: Self = Self(-1000);
    /// Above every process.
    pub const HIGHEST: Self = Self(1001);
}

/// A score, and how it is known; `unit` is `"count"`.
#[derive(Clone, Debug)]
pub struct ScoreConstant {
    /// The score.
    pub value: OomScore,
    /// The unit that the file is written in.
    pub unit: &'static Unit,
    /// How it is known.
    pub kind: Kind,
    /// Where it comes from.
    pub source: String,
    /// Anything a reader should know.
    pub note: Option<String>,
}

/// The score that `value` is; the valid range where it is none.
fn score(value: f64) -> Result<OomScore, String> {
    let (lowest, highest) = (OomScore::LOWEST.0, OomScore::HIGHEST.0);
    if value.fract() == 0.0 && (f64::from(lowest)..=f64::from(highest)).contains(&value) {
        Ok(OomScore(value as i32))
    } else {
        Err(format!("a whole number from {lowest} to {highest}"))
    }
}

impl Field for ScoreConstant {
    fn read(parent: &Place<'_>, key: &str) -> Result<Self, CalibrationError> {
        let place = parent.required(key, "{ value, unit, kind, source, note? }")?;
        place.check_keys("{ value, unit, kind, source, note? }", &["value", "unit", "kind", "source", "note"])?;
        let dimension = <Count as Quantity>::DIMENSION;
        let unit = place.required("unit", "the unit of the value")?;
        let symbol = unit.text()?;
        let unit = dimension.unit(symbol).ok_or_else(|| wrong_unit(&unit, symbol, dimension))?;
        let number = place.required("value", "a whole number")?;
        let found = number.number()?;
        let value = score(found).map_err(|expected| {
            let at = number.location();
            CalibrationError::OutOfRange { at, found, expected }
        })?;
        Ok(Self {
            value,
            unit,
            kind: choose(&place.required("kind", "how the constant is known")?)?,
            source: place.required("source", "where the constant comes from")?.text()?.to_owned(),
            note: Option::<String>::read(&place, "note")?,
        })
    }
    fn visit(&self, name: &str, see: &mut dyn FnMut(&str, &dyn AnyConstant)) {
        see(name, self);
    }
    fn visit_mut(&mut self, name: &str, change: &mut dyn FnMut(&str, &mut dyn AnyConstant)) {
        change(name, self);
    }
}

fn wrong_unit(place: &Place<'_>, found: &str, dimension: Dimension) -> CalibrationError {
    CalibrationError::WrongUnit {
        at: place.location(),
        found: found.to_owned(),
        nearest: nearest(found, dimension.symbols()),
        expected: dimension.symbols().map(str::to_owned).collect(),
    }
}

impl AnyConstant for ScoreConstant {
    fn value_in_unit(&self) -> f64 {
        f64::from(self.value.0)
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
        self.value = score(value)?;
        Ok(())
    }
}
