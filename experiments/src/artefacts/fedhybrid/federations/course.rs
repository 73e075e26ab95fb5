//! The results of a federation with one seed: accuracy over time, and the outcomes of phones.

use haversack_federation::rows::RoundRow;

use crate::federate::Held;
pub(in crate::artefacts) use crate::measured::Learned as Course;
use crate::measured::Rounds;

impl Course {
    /// The course of a federation simulated with `seed`.
    pub(super) fn of(held: &Held, seed: u64) -> Self {
        let all = |of: fn(&RoundRow) -> u32| held.rounds.iter().map(|row| u64::from(of(row))).sum::<u64>();
        let end = |row: &RoundRow| row.start_s + row.duration_s;
        let measured = || held.rounds.iter().filter(|row| row.accuracy.is_some());
        let rounds = Rounds {
            number: measured().map(|row| row.round).collect(),
            end_s: measured().map(end).collect(),
            all_s: held.rounds.last().map_or(0.0, end),
            energy_j: held.rounds.iter().fold(0.0, |sum, row| sum + row.energy_j),
            all: held.rounds.len() as u32,
            selected: all(|row| row.selected),
            completed: all(|row| row.completed),
            dropped: all(|row| row.dropped),
            killed: all(|row| row.killed),
            left_out: held.exclusions.len() as u64,
            phones: u64::from(held.phones),
            eligible: u64::from(held.eligible),
            contributed: u64::from(held.contributed),
            reached: held.reached * 100.0,
        };
        let accuracy = held.rounds.iter().filter_map(|row| Some(row.accuracy? * 100.0)).collect();
        Self { seed, accuracy, rounds: Some(rounds), validation: 0.0 }
    }

    /// The number of a quantity of its rounds.
    pub(in crate::artefacts) fn total(&self, of: impl Fn(&Rounds) -> f64) -> f64 {
        self.rounds.as_ref().map(of).unwrap_or_default()
    }

    /// The highest accuracy, in percent.
    pub(in crate::artefacts) fn best(&self) -> f64 {
        self.accuracy.iter().copied().fold(0.0, f64::max)
    }

    /// The time at which an accuracy in percent is first reached, in seconds.
    pub(in crate::artefacts) fn time_to(&self, percent: f64) -> Option<f64> {
        self.curve().into_iter().find(|(_, accuracy)| *accuracy >= percent).map(|(hours, _)| hours * 3600.0)
    }

    /// The round after which an accuracy in percent is first reached.
    pub(in crate::artefacts) fn rounds_to(&self, percent: f64) -> Option<u32> {
        self.by_round().into_iter().find(|(_, accuracy)| *accuracy >= percent).map(|(number, _)| number)
    }

    /// The time of all rounds, in seconds.
    pub(in crate::artefacts) fn all_s(&self) -> f64 {
        self.total(|rounds| rounds.all_s)
    }

    /// Whether at least twice as many phones can take part as are selected per round.
    pub(in crate::artefacts) fn has_choice(&self) -> bool {
        self.total(|rounds| 2.0 * rounds.selected as f64 / f64::from(rounds.all.max(1)) - rounds.eligible as f64) <= 0.0
    }

    /// The mean time of a round, in seconds.
    pub(in crate::artefacts) fn round_s(&self) -> f64 {
        self.total(|rounds| rounds.all_s / f64::from(rounds.all.max(1)))
    }

    /// The share of phones that cannot take part, in percent.
    pub(in crate::artefacts) fn excluded(&self) -> f64 {
        self.total(|rounds| (1.0 - rounds.eligible as f64 / rounds.phones.max(1) as f64) * 100.0)
    }

    /// The percentage of phones with an aggregated update.
    pub(in crate::artefacts) fn contributed(&self) -> f64 {
        self.total(|rounds| rounds.contributed as f64 / rounds.phones.max(1) as f64 * 100.0)
    }

    /// The highest accuracy by `end_s`, in percent.
    pub(in crate::artefacts) fn best_by(&self, end_s: f64) -> f64 {
        let ended = self.curve().into_iter().filter(|(hours, _)| hours * 3600.0 <= end_s);
        ended.map(|(_, accuracy)| accuracy).fold(0.0, f64::max)
    }

    /// The gain of the mean accuracy in the last fifth of the rounds over the fifth before, in points.
    pub(in crate::artefacts) fn last_gain(&self) -> f64 {
        let fifth = self.accuracy.len().div_ceil(5);
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
        let mut fifths = self.accuracy.rchunks(fifth.max(1)).map(mean);
        fifths.next().zip(fifths.next()).map_or(0.0, |(last, before)| last - before)
    }

    /// The aggregated updates per round.
    pub(in crate::artefacts) fn updates(&self) -> f64 {
        self.total(|rounds| rounds.completed as f64 / f64::from(rounds.all.max(1)))
    }

    /// The percentage of updates lost because the system killed the process.
    pub(in crate::artefacts) fn killed(&self) -> f64 {
        self.total(|rounds| rounds.killed as f64 / rounds.selected.max(1) as f64 * 100.0)
    }

    /// The percentage of updates lost because the phone was no longer ready.
    pub(in crate::artefacts) fn dropped(&self) -> f64 {
        self.total(|rounds| rounds.dropped as f64 / rounds.selected.max(1) as f64 * 100.0)
    }

    /// The mean energy of a round over all phones of the population, including those that took no part, in joules.
    pub(in crate::artefacts) fn round_of_a_phone_j(&self) -> f64 {
        self.total(|rounds| rounds.energy_j / f64::from(rounds.all.max(1)) / rounds.phones.max(1) as f64)
    }

    /// The number and the accuracy in percent of each measured round.
    pub(in crate::artefacts) fn by_round(&self) -> Vec<(u32, f64)> {
        let rounds = self.rounds.iter().flat_map(|rounds| &rounds.number).copied();
        rounds.zip(self.accuracy.iter().copied()).collect()
    }

    /// Hours and accuracy in percent of each measured round.
    pub(in crate::artefacts) fn curve(&self) -> Vec<(f64, f64)> {
        let ends = self.rounds.iter().flat_map(|rounds| &rounds.end_s).map(|end_s| end_s / 3600.0);
        ends.zip(self.accuracy.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course() -> Course {
        let rounds = Rounds {
            number: vec![1, 2, 3],
            end_s: vec![1800.0, 3600.0, 5400.0],
            all_s: 6000.0,
            energy_j: 96.0,
            all: 4,
            selected: 20,
            completed: 12,
            killed: 1,
            left_out: 1,
            phones: 12,
            eligible: 9,
            contributed: 6,
            ..Rounds::default()
        };
        Course { accuracy: vec![25.0, 100.0 / 3.0, 30.0], rounds: Some(rounds), ..Course::default() }
    }

    #[test]
    fn a_target_is_reached_when_it_is_first_measured() {
        assert_eq!(course().time_to(30.0), Some(3600.0));
        assert_eq!(course().time_to(34.0), None);
        assert!((course().best() - 100.0 / 3.0).abs() < 1e-12);
        assert_eq!(
            (course().round_s(), course().excluded(), course().updates(), course().killed()),
            (1500.0, 25.0, 3.0, 5.0)
        );
        assert_eq!((course().curve()[0], course().by_round()[2]), ((0.5, 25.0), (3, 30.0)));
        assert_eq!((course().rounds_to(30.0), course().rounds_to(34.0), course().has_choice()), (Some(2), None, false));
        assert_eq!(
            (course().contributed(), course().best_by(3599.0), course().best_by(1e9)),
            (50.0, 25.0, 100.0 / 3.0)
        );
        // A fifth of three measured rounds is one of them.
        assert!((course().last_gain() - (30.0 - 100.0 / 3.0)).abs() < 1e-12);
        // 96 J in four rounds of twelve phones.
        assert_eq!(course().round_of_a_phone_j(), 2.0);
    }
}
