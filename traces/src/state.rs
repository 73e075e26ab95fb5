//! The state of phones as counters, and when it makes them available for training: while they charge, on a network
//! that costs nothing.
//!
//! Samples are sparse: a state is assumed to last until the user's next sample, or for a limited time without one.

use haversack_devices::Nanos;

use crate::{CounterRow, UtcTime};

/// The battery's level, in percent.
pub(crate) const BATTERY: &str = "battery_percent";
/// One while the phone charges or is full on its charger, else zero.
pub(crate) const CHARGING: &str = "charging";
/// The phone's connection: `NETWORK_NONE`, `NETWORK_MOBILE` or `NETWORK_WIFI`.
pub const NETWORK: &str = "network";
/// The offset of the user's clock from UTC, in seconds.
pub const UTC_OFFSET: &str = "utc_offset_s";

/// No network.
pub(crate) const NETWORK_NONE: f64 = 0.0;
/// A mobile network, whose traffic may cost money.
pub(crate) const NETWORK_MOBILE: f64 = 1.0;
/// WiFi.
pub(crate) const NETWORK_WIFI: f64 = 2.0;

/// Whether a battery's state, in the words of Carat's client, is that of a phone on its charger; `None`
/// for other words.
pub fn charges(state: &str) -> Option<bool> {
    match state.trim().to_ascii_lowercase().as_str() {
        "charging" | "full" => Some(true),
        "discharging" | "not charging" | "unplugged" => Some(false),
        _ => None,
    }
}

/// The network that a word of Carat's client means; `None` for other words.
pub fn network(status: &str) -> Option<f64> {
    let status = status.trim().to_ascii_lowercase();
    match status.as_str() {
        "wifi" | "wimax" | "ethernet" => Some(NETWORK_WIFI),
        "disconnected" | "none" | "not connected" => Some(NETWORK_NONE),
        other if other.starts_with("mobile") || other == "cellular" => Some(NETWORK_MOBILE),
        _ => None,
    }
}

/// The state of a sample.
#[derive(Clone, Debug, Default)]
struct Sample {
    user: String,
    time: UtcTime,
    charging: Option<bool>,
    network: Option<f64>,
}

impl Sample {
    /// Whether the phone is available; `None` if it is unknown whether it charges. An unknown network is assumed
    /// to cost nothing.
    fn is_available(&self) -> Option<bool> {
        Some(self.charging? && self.network.is_none_or(|network| network >= NETWORK_WIFI))
    }
}

/// How long phones are available, from counters grouped by user, each in order of time.
#[derive(Clone, Debug)]
pub struct Availability {
    /// The longest time that a sample's state lasts without another sample.
    horizon: Nanos,
    sample: Option<Sample>,
    was_available: bool,
    /// The time whose state is known.
    pub covered: Nanos,
    /// Of it, the time in which phones are available.
    pub available: Nanos,
    /// The number of uninterrupted periods in which they are.
    pub stretches: u64,
}

impl Availability {
    /// No rows yet; a sample's state lasts for `horizon` at most.
    pub const fn new(horizon: Nanos) -> Self {
        let zero = Nanos::ZERO;
        Self { horizon, sample: None, was_available: false, covered: zero, available: zero, stretches: 0 }
    }

    /// Reads the next row.
    pub fn see(&mut self, row: &CounterRow<'_>) {
        if ![CHARGING, NETWORK].contains(&row.counter) {
            return;
        }
        let is_same = |sample: &Sample| sample.user == row.user && sample.time == row.time;
        if !self.sample.as_ref().is_some_and(is_same) {
            self.close(Some((row.user, row.time)));
            self.sample = Some(Sample { user: row.user.to_owned(), time: row.time, ..Sample::default() });
        }
        let Some(sample) = &mut self.sample else { return };
        match row.counter {
            CHARGING => sample.charging = Some(row.value > 0.0),
            _ => sample.network = Some(row.value),
        }
    }

    /// The end of all rows.
    pub fn finish(&mut self) {
        self.close(None);
    }

    /// Ends the sample's state at `next`, if that is of the same user.
    fn close(&mut self, next: Option<(&str, UtcTime)>) {
        let Some(sample) = self.sample.take() else { return };
        let until = next.filter(|(user, _)| *user == sample.user);
        let gap = until.and_then(|(_, time)| u64::try_from(time.0 - sample.time.0).ok());
        let held = gap.map_or(self.horizon, |gap| Nanos(gap).min(self.horizon));
        let Some(is_available) = sample.is_available() else {
            self.was_available = false;
            return;
        };
        self.covered += held;
        if is_available {
            self.available += held;
            self.stretches += u64::from(!self.was_available);
        }
        // A gap, or another user, ends a period.
        self.was_available = is_available && gap.is_some_and(|gap| Nanos(gap) <= self.horizon);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phone_is_available_while_it_charges_on_wifi() {
        let hour = 3_600_000_000_000;
        let mut seen = Availability::new(Nanos(2 * hour));
        // Hours, charging, network: two hours available, then on a mobile network, then a gap, then unplugged.
        for (at, charging, network) in [(0, 1.0, 2.0), (1, 1.0, 2.0), (2, 1.0, 1.0), (10, 1.0, 2.0), (11, 0.0, 2.0)] {
            let time = UtcTime(at * hour as i64);
            for (counter, value) in [(BATTERY, 50.0), (CHARGING, charging), (NETWORK, network)] {
                seen.see(&CounterRow { user: "u", time, counter, value });
            }
        }
        seen.finish();
        // 0 to 2 and 10 to 11 of 0 to 4 (two hours after the third sample) and 10 to 13.
        assert_eq!((seen.available, seen.covered, seen.stretches), (Nanos(3 * hour), Nanos(7 * hour), 2));
    }

    #[test]
    fn words_of_the_client_are_read_whatever_their_case() {
        assert_eq!(
            ["Charging", "full", "Discharging", "Not charging", "Unknown"].map(charges),
            [Some(true), Some(true), Some(false), Some(false), None]
        );
        assert_eq!(["WIFI", "MOBILE", "disconnected", "x"].map(network), [Some(2.0), Some(1.0), Some(0.0), None]);
    }
}
