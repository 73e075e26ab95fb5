//! What a federation came to with one seed.

use serde::{Deserialize, Serialize};

use crate::federate::Held;

/// Accuracy over time, and what became of phones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::artefacts) struct Course {
    /// When each measured round ended, in seconds, and the share of test samples that are answered rightly.
    measured: Vec<(f64, f64)>,
    /// The numbers of these rounds.
    numbers: Vec<u32>,
    /// How long all rounds took, in seconds, and what all phones took, in joules.
    end_s: f64,
    energy_j: f64,
    pub(in crate::artefacts) rounds: u32,
    /// Parts of phones in all rounds.
    selected: u64,
    pub(in crate::artefacts) completed: u64,
    pub(in crate::artefacts) dropped: u64,
    pub(in crate::artefacts) killed: u64,
    /// Phones that hold no plan, and all phones.
    left_out: u64,
    phones: u64,
}

impl Course {
    /// Of a federation that was held.
    pub(super) fn of(held: &Held) -> Self {
        let all = |of: fn(&haversack_federation::rows::RoundRow) -> u32| {
            held.rounds.iter().map(|row| u64::from(of(row))).sum::<u64>()
        };
        let end = |row: &haversack_federation::rows::RoundRow| row.start_s + row.duration_s;
        Self {
            measured: held.rounds.iter().filter_map(|row| Some((end(row), row.accuracy?))).collect(),
            numbers: held.rounds.iter().filter(|row| row.accuracy.is_some()).map(|row| row.round).collect(),
            end_s: held.rounds.last().map_or(0.0, end),
            energy_j: held.rounds.iter().fold(0.0, |sum, row| sum + row.energy_j),
            rounds: held.rounds.len() as u32,
            selected: all(|row| row.selected),
            completed: all(|row| row.completed),
            dropped: all(|row| row.dropped),
            killed: all(|row| row.killed),
            left_out: held.exclusions.len() as u64,
            phones: u64::from(held.phones),
        }
    }

    /// The highest accuracy, in percent.
    pub(in crate::artefacts) fn best(&self) -> f64 {
        self.measured.iter().map(|(_, accuracy)| accuracy * 100.0).fold(0.0, f64::max)
    }

    /// When an accuracy in percent is first reached, in seconds.
    pub(in crate::artefacts) fn time_to(&self, percent: f64) -> Option<f64> {
        self.measured.iter().find(|(_, accuracy)| accuracy * 100.0 >= percent).map(|(time, _)| *time)
    }

    /// The mean time of a round, in seconds.
    pub(in crate::artefacts) fn round_s(&self) -> f64 {
        self.end_s / f64::from(self.rounds.max(1))
    }

    /// The share of phones that hold no plan, in percent.
    pub(in crate::artefacts) fn excluded(&self) -> f64 {
        self.left_out as f64 / self.phones.max(1) as f64 * 100.0
    }

    /// A number of parts over that of rounds.
    pub(in crate::artefacts) fn per_round(&self, parts: u64) -> f64 {
        parts as f64 / f64::from(self.rounds.max(1))
    }

    /// A number of parts over that of all, in percent.
    pub(in crate::artefacts) fn share(&self, parts: u64) -> f64 {
        parts as f64 / self.selected.max(1) as f64 * 100.0
    }

    /// The mean energy of a round over all phones of the population, those that took no part, too, in joules.
    pub(in crate::artefacts) fn round_of_a_phone_j(&self) -> f64 {
        self.energy_j / f64::from(self.rounds.max(1)) / self.phones.max(1) as f64
    }

    /// The number and the accuracy in percent of each measured round.
    pub(in crate::artefacts) fn by_round(&self) -> Vec<(u32, f64)> {
        self.numbers.iter().zip(&self.measured).map(|(&round, (_, accuracy))| (round, accuracy * 100.0)).collect()
    }

    /// Hours and accuracy in percent of each measured round.
    pub(in crate::artefacts) fn curve(&self) -> Vec<(f64, f64)> {
        self.measured.iter().map(|(time, accuracy)| (time / 3600.0, accuracy * 100.0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course() -> Course {
        let measured = vec![(1800.0, 0.25), (3600.0, 1.0 / 3.0), (5400.0, 0.3)];
        Course {
            measured,
            numbers: vec![1, 2, 3],
            end_s: 6000.0,
            energy_j: 96.0,
            rounds: 4,
            selected: 20,
            completed: 12,
            killed: 1,
            left_out: 3,
            phones: 12,
            ..Course::default()
        }
    }

    #[test]
    fn a_target_is_reached_when_it_is_first_measured() {
        assert_eq!(course().time_to(30.0), Some(3600.0));
        assert_eq!(course().time_to(34.0), None);
        assert!((course().best() - 100.0 / 3.0).abs() < 1e-12);
        assert_eq!(
            (course().round_s(), course().excluded(), course().per_round(12), course().share(1)),
            (1500.0, 25.0, 3.0, 5.0)
        );
        assert_eq!(course().curve()[0], (0.5, 25.0));
        // 96 J in four rounds of twelve phones.
        assert_eq!(course().round_of_a_phone_j(), 2.0);
    }
}
