//! Generations of Hexagon, Qualcomm's DSP.

use std::fmt;
use std::str::FromStr;

use crate::calibration::Visit;

/// A version of Hexagon's instruction set, such as `V66`; later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct HexagonVersion(pub u16);

impl Visit for HexagonVersion {}

impl fmt::Display for HexagonVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "V{}", self.0)
    }
}

impl FromStr for HexagonVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix('V').and_then(|number| number.parse().ok());
        number.map(Self).ok_or_else(|| format!("found `{text}`; expected a version of Hexagon such as V66"))
    }
}

impl TryFrom<String> for HexagonVersion {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}
