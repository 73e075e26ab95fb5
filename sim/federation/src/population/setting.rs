//! The constants from which a population is drawn: `data/population.toml`, embedded, with units, sources and kinds.

use std::collections::BTreeMap;

use haversack_devices::text::read_toml;
use serde::Deserialize;

use crate::draw::place_of;
use crate::quantiles::Quantiles;

const FILE: &str = "sim/federation/data/population.toml";
const TEXT: &str = include_str!("../../data/population.toml");

/// How far the sum of shares may be from one.
const ROUNDING: f64 = 1e-6;

/// The constants from which a population is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct PopulationSetting {
    /// The memory of phones.
    pub memory: Vec<MemoryClass>,
    /// Their links.
    pub link: Link,
    /// The additional power of a phone while it sends or receives, in watts.
    pub radio_w: f64,
    /// When they are ready.
    pub sessions: Sessions,
}

/// Phones with one size of memory.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryClass {
    /// Their memory, in GB.
    pub size_gb: f64,
    /// The devices that they are modelled after, by id, each equally often.
    pub devices: Vec<String>,
    /// Their share of all.
    pub share: f64,
    /// The standard deviation of the logarithm of their speeds.
    pub speed_spread: f64,
}

/// The speed of links, each way from a log-normal distribution.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The median, in megabits a second.
    pub median_mbit_per_s: f64,
    /// The standard deviation of the logarithm.
    pub spread: f64,
}

impl Link {
    /// The median, in bytes a second.
    pub fn bytes_per_s(&self) -> f64 {
        self.median_mbit_per_s * 1e6 / 8.0
    }
}

/// Lengths of a phone's sessions and of the gaps between them, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Sessions {
    /// While it is locked, charging and on Wi-Fi.
    pub ready: Quantiles,
    /// Gaps between such sessions.
    pub between: Quantiles,
}

/// Why a population cannot be drawn, in words: a setting out of its range, a memory class without a device, or an
/// embedded file that does not follow its schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PopulationError(pub(super) String);

impl PopulationError {
    pub(super) fn wrong(field: &str, value: impl std::fmt::Display, expected: &str) -> Self {
        Self(format!("`{field}` is {value}, expected {expected}"))
    }
}

/// The embedded file. Kinds and sources are for readers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PopulationFile {
    memory: Vec<MemoryClass>,
    link: Link,
    radio: RadioTable,
    sessions: SessionTable,
    #[serde(rename = "source")]
    _sources: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RadioTable {
    power_w: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionTable {
    shares: Vec<f64>,
    ready_s: Vec<f64>,
    between_s: Vec<f64>,
}

impl PopulationSetting {
    /// The setting of the embedded file.
    ///
    /// # Errors
    /// A file that does not follow its schema.
    pub fn embedded() -> Result<Self, PopulationError> {
        let wrong = |error: String| PopulationError(format!("{FILE}: {error}"));
        let file: PopulationFile = read_toml(FILE, TEXT).map_err(|error| wrong(error.to_string()))?;
        let SessionTable { shares, ready_s, between_s } = file.sessions;
        let sessions = Sessions {
            ready: Quantiles::new(shares.clone(), ready_s).map_err(wrong)?,
            between: Quantiles::new(shares, between_s).map_err(wrong)?,
        };
        let setting = Self { memory: file.memory, link: file.link, radio_w: file.radio.power_w, sessions };
        setting.check()?;
        Ok(setting)
    }

    /// # Errors
    /// No memory class or more than fit in a byte, shares that do not add up to one, or a number out of its range.
    pub fn check(&self) -> Result<(), PopulationError> {
        let wrong = |field: &str, value: f64, expected| Err(PopulationError::wrong(field, value, expected));
        let above_zero = |field: &str, value: f64| {
            if value > 0.0 && value.is_finite() { Ok(()) } else { wrong(field, value, "a number above 0") }
        };
        let from_zero = |field: &str, value: f64| {
            if value >= 0.0 && value.is_finite() { Ok(()) } else { wrong(field, value, "a number from 0") }
        };
        if self.memory.is_empty() || self.memory.len() > usize::from(u8::MAX) {
            return wrong("memory_mix", self.memory.len() as f64, "from 1 to 255 classes");
        }
        for MemoryClass { size_gb, share, speed_spread, .. } in &self.memory {
            above_zero("memory_mix.size_gb", *size_gb)?;
            if !(0.0..=1.0).contains(share) {
                return wrong("memory_mix.share", *share, "from 0 to 1");
            }
            from_zero("memory_mix.speed_spread", *speed_spread)?;
        }
        let shares: f64 = self.memory.iter().map(|class| class.share).sum();
        if (shares - 1.0).abs() > ROUNDING {
            return wrong("memory_mix.share", shares, "shares that add up to 1");
        }
        above_zero("link.median_mbit_per_s", self.link.median_mbit_per_s)?;
        from_zero("link.spread", self.link.spread)?;
        from_zero("radio.power_w", self.radio_w)
    }

    /// The memory class at `share` of all phones.
    pub(super) fn memory_at(&self, share: f64) -> usize {
        let found = place_of(share, self.memory.iter().map(|class| class.share));
        // The remainder from rounding belongs to the last class that has phones.
        found.or_else(|| self.memory.iter().rposition(|class| class.share > 0.0)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_file_follows_its_schema() {
        let setting = PopulationSetting::embedded().unwrap();
        assert_eq!((setting.memory.len(), setting.memory[2].size_gb, setting.memory[2].share), (5, 8.0, 0.30));
        assert_eq!(setting.memory_at(0.39), 1);
        assert_eq!([0.0, 1.0].map(|share| setting.memory_at(share)), [0, 4]);
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let setting = PopulationSetting::embedded().unwrap();
        let refused = |change: fn(&mut PopulationSetting)| {
            let mut changed = setting.clone();
            change(&mut changed);
            changed.check().unwrap_err().to_string()
        };
        assert_eq!(refused(|s| s.memory.clear()), "`memory_mix` is 0, expected from 1 to 255 classes");
        assert_eq!(
            refused(|s| s.memory[0].share = 0.1),
            "`memory_mix.share` is 0.95, expected shares that add up to 1"
        );
        assert_eq!(refused(|s| s.memory[0].share = -1.0), "`memory_mix.share` is -1, expected from 0 to 1");
        assert_eq!(refused(|s| s.link.spread = f64::NAN), "`link.spread` is NaN, expected a number from 0");
        assert!(refused(|s| s.memory[1].size_gb = 0.0).starts_with("`memory_mix.size_gb` is 0"));
        assert!(refused(|s| s.link.median_mbit_per_s = -3.0).starts_with("`link.median_mbit_per_s` is -3"));
    }
}
