//! One synchronous round: more phones begin than are needed, and the fastest end it.

use serde::{Deserialize, Serialize};

use crate::population::Phone;
use crate::work::Job;

/// The outcome of a phone's round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Outcome {
    /// Its update was accepted.
    Completed,
    /// It stopped being locked, charging and on Wi-Fi before it had finished.
    Dropped,
    /// The operating system killed its process.
    Killed,
    /// The round had ended before it finished.
    TimedOut,
}

/// A phone's part of a round, with its outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    /// The phone.
    pub phone: u32,
    /// Its work.
    pub job: Job,
    /// Seconds of the transfer from the server, of training, and of the transfer to the server.
    pub down_s: f64,
    /// See [`Self::down_s`].
    pub compute_s: f64,
    /// See [`Self::down_s`].
    pub up_s: f64,
    /// Its outcome.
    pub outcome: Outcome,
    /// When it stopped, in seconds after it began; later than the round's end if it timed out.
    pub ended_s: f64,
    /// The energy that it used until it stopped, in joules.
    pub energy_j: f64,
    /// Whether all of its update has reached the server.
    pub is_sent: bool,
}

impl Part {
    /// Bytes that it received and sent.
    pub(crate) fn bytes(&self) -> [u64; 2] {
        let got = if self.ended_s >= self.down_s { self.job.down_bytes } else { 0 };
        let sent = if self.is_sent { self.job.up_bytes } else { 0 };
        [got, sent]
    }

    /// Charges the share of the work that was done when the phone stopped, at most `limit_s` after it began.
    fn charge(&mut self, limit_s: f64) {
        let whole = self.down_s + self.compute_s + self.up_s;
        let done = if whole > 0.0 { (self.ended_s.min(limit_s) / whole).min(1.0) } else { 1.0 };
        self.energy_j = self.job.energy_j * done;
    }
}

/// A phone that begins a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Starter {
    /// Its number.
    pub number: u32,
    /// Its properties.
    pub phone: Phone,
    /// Its work.
    pub job: Job,
    /// How long it stays ready, in seconds.
    pub ready_s: f64,
}

/// The result of a round.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ended {
    /// How long it took, in seconds.
    pub duration_s: f64,
    /// Its phones, in the order in which they were selected.
    pub parts: Vec<Part>,
}

/// A round of `starters` that ends when `wanted` phones have completed theirs, or `deadline_s` after its start, or when
/// all have stopped. Of phones that finish at the same moment, the lower numbers count.
pub(crate) fn synchronous(starters: &[Starter], wanted: usize, deadline_s: Option<f64>) -> Ended {
    let mut parts: Vec<Part> = starters.iter().map(alone).collect();
    let deadline = deadline_s.unwrap_or(f64::INFINITY);
    let ends = |part: &Part| (part.outcome == Outcome::Completed && part.ended_s <= deadline).then_some(part.ended_s);
    let mut completed: Vec<(f64, u32)> = parts.iter().filter_map(|part| Some((ends(part)?, part.phone))).collect();
    completed.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let last = completed.get(wanted.saturating_sub(1)).copied().filter(|_| wanted > 0);
    let duration_s = match last {
        Some((end, _)) => end,
        // Too few: until the deadline, or until the last has stopped for any reason.
        None if deadline_s.is_some() && parts.iter().any(|part| part.ended_s > deadline) => deadline,
        None => parts.iter().map(|part| part.ended_s).fold(0.0, f64::max),
    };
    for part in &mut parts {
        let counts = last.is_none_or(|(end, phone)| (part.ended_s, part.phone) <= (end, phone));
        if part.ended_s > duration_s || (part.outcome == Outcome::Completed && !counts) {
            (part.outcome, part.is_sent) = (Outcome::TimedOut, false);
        }
        part.charge(duration_s);
    }
    Ended { duration_s, parts }
}

/// A phone's part if the round had no other phones.
fn alone(starter: &Starter) -> Part {
    let Starter { number, phone, job, ready_s } = *starter;
    let down_s = job.down_bytes as f64 / f64::from(phone.down);
    let up_s = job.up_bytes as f64 / f64::from(phone.up);
    let whole = down_s + job.compute_s + up_s;
    let killed = job.killed_after_s.map(|after| down_s + after);
    let (outcome, ended_s) = match killed {
        Some(killed) if killed <= ready_s.min(whole) => (Outcome::Killed, killed),
        _ if ready_s < whole => (Outcome::Dropped, ready_s),
        _ => (Outcome::Completed, whole),
    };
    let (compute_s, is_sent, energy_j) = (job.compute_s, outcome == Outcome::Completed, 0.0);
    let mut part = Part { phone: number, job, down_s, compute_s, up_s, outcome, ended_s, energy_j, is_sent };
    part.charge(f64::INFINITY);
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A phone that receives 100 bytes and sends 100 at 100 bytes a second, and computes for `compute_s`.
    fn starter(number: u32, compute_s: f64, ready_s: f64) -> Starter {
        let phone = Phone { memory: 0, device: 0, speed: 1.0, down: 100.0, up: 100.0, samples: 1 };
        let (down_bytes, up_bytes) = (100, 100);
        let job = Job {
            budget_bytes: 0,
            plan: 0,
            width: 0,
            down_bytes,
            up_bytes,
            compute_s,
            energy_j: 0.0,
            killed_after_s: None,
        };
        Starter { number, phone, job, ready_s }
    }

    fn outcomes(ended: &Ended) -> Vec<Outcome> {
        ended.parts.iter().map(|part| part.outcome).collect()
    }

    #[test]
    fn five_phones_by_hand() {
        use Outcome::{Completed, Dropped, Killed, TimedOut};
        // They end after 2 + 8, 2 + 3, and 2 + 20 seconds; the fourth leaves after 4 s, the fifth
        // is killed after 1 + 2 s.
        let mut phones =
            [starter(10, 8.0, 99.0), starter(11, 3.0, 99.0), starter(12, 20.0, 99.0), starter(13, 5.0, 4.0)].to_vec();
        let mut killed = starter(14, 6.0, 99.0);
        killed.job.killed_after_s = Some(2.0);
        phones.push(killed);
        // The second fastest ends the round.
        let ended = synchronous(&phones, 2, None);
        assert_eq!(ended.duration_s, 10.0);
        assert_eq!(outcomes(&ended), [Completed, Completed, TimedOut, Dropped, Killed]);
        assert_eq!(ended.parts.iter().map(|part| part.ended_s).collect::<Vec<_>>(), [10.0, 5.0, 22.0, 4.0, 3.0]);
        assert_eq!(ended.parts[3].bytes(), [100, 0]);
        // Only the fastest counts.
        let ended = synchronous(&phones, 1, None);
        assert_eq!((ended.duration_s, outcomes(&ended)), (5.0, vec![TimedOut, Completed, TimedOut, Dropped, Killed]));
        // Four never complete: the round waits for the third, or until its deadline.
        assert_eq!(synchronous(&phones, 4, None).duration_s, 22.0);
        let ended = synchronous(&phones, 4, Some(12.0));
        assert_eq!((ended.duration_s, outcomes(&ended)), (12.0, vec![Completed, Completed, TimedOut, Dropped, Killed]));
        assert_eq!(synchronous(&phones[1..2], 4, Some(12.0)).duration_s, 5.0);
        assert_eq!(synchronous(&[], 3, None), Ended { duration_s: 0.0, parts: vec![] });
    }

    #[test]
    fn of_phones_that_end_together_the_lower_numbers_count() {
        let ended = synchronous(&[starter(7, 1.0, 9.0), starter(3, 1.0, 9.0)], 1, None);
        assert_eq!(outcomes(&ended), [Outcome::TimedOut, Outcome::Completed]);
    }
}
