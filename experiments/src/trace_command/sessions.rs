//! The sessions of a table: how long its users look at their phones, and how many apps are behind.
//!
//! What a session is, [`haversack_traces::usage::SessionReader`] says; here, sessions with a pause between them that is
//! shorter than the user of the command says are one.

use std::collections::HashSet;

use haversack_devices::{Fraction, Nanos};
use haversack_traces::usage::{Session, SessionStatistics, UserSessions};
use serde_json::{Value, json};

use super::stats::Distribution;

/// Upper bounds of the bins of session lengths, in seconds.
const BOUNDS: [u64; 8] = [15, 30, 60, 120, 240, 480, 960, 1920];
/// Sessions that FedHybrid calls typical (section 3, figure 11), in seconds.
const TYPICAL: (u64, u64) = (126, 412);
/// The mean session of most of FedHybrid's users (section 3, figure 11), in seconds, and how near a user's has to be.
const USUAL_MEAN: (u64, Fraction) = (153, Fraction(0.1));

/// The sessions of a table.
pub(super) struct Sessions {
    pub(super) pause: Nanos,
    pub(super) statistics: SessionStatistics,
    /// The lengths in whole seconds.
    pub(super) lengths: Distribution,
    /// The apps behind the one in front.
    pub(super) background: Distribution,
}

impl Sessions {
    /// The sessions of `statistics`, joined over pauses shorter than `pause`.
    pub(super) fn new(mut statistics: SessionStatistics, pause: Nanos) -> Self {
        let (mut lengths, mut background) = (Distribution::default(), Distribution::default());
        for user in &mut statistics.users {
            user.sessions = joined(&user.sessions, pause);
            for session in &user.sessions {
                lengths.add(session.length.seconds().round() as u64);
                background.add(session.background as u64);
            }
        }
        Self { pause, statistics, lengths, background }
    }

    /// Whether a user's rows come in several pieces, with others between.
    pub(super) fn is_interrupted(&self) -> bool {
        let mut names = HashSet::new();
        self.statistics.users.iter().any(|user| !names.insert(&user.user))
    }

    /// The lengths in bins: the name of the bin, and the number of sessions.
    pub(super) fn bins(&self) -> Vec<(String, u64)> {
        let mut bins: Vec<(String, u64)> = BOUNDS.iter().map(|bound| (format!("under {bound} s"), 0)).collect();
        bins.push((format!("{} s and more", BOUNDS.last().copied().unwrap_or_default()), 0));
        for session in self.statistics.users.iter().flat_map(|user| &user.sessions) {
            let place = BOUNDS.iter().position(|bound| session.length < seconds(*bound)).unwrap_or(BOUNDS.len());
            if let Some((_, count)) = bins.get_mut(place) {
                *count += 1;
            }
        }
        bins
    }

    /// What figure 11 of FedHybrid counts, in words and as a share.
    pub(super) fn typical(&self) -> [(String, f64); 2] {
        let ((low, high), (mean, tolerance)) = (TYPICAL, USUAL_MEAN);
        [
            (
                format!("sessions from {low} to {high} s"),
                self.statistics.sessions_within(seconds(low), seconds(high)).0,
            ),
            (
                format!("users with a mean of {mean} s ± {:.0}%", 100.0 * tolerance.0),
                self.statistics.users_near(seconds(mean), tolerance).0,
            ),
        ]
    }

    /// The mean length, in seconds.
    pub(super) fn mean_s(&self) -> f64 {
        let all = self.statistics.users.iter().flat_map(|user| &user.sessions);
        all.map(|session| session.length.seconds()).sum::<f64>() / self.statistics.count().max(1) as f64
    }

    pub(super) fn to_json(&self) -> Value {
        let mut lengths = self.lengths.to_json();
        if let Value::Object(lengths) = &mut lengths {
            lengths.insert("mean".to_owned(), json!(self.mean_s()));
        }
        let [typical, usual] = self.typical();
        json!({
            "pause_s": self.pause.seconds(),
            "count": self.statistics.count(),
            "cut": self.statistics.cut,
            "length_s": lengths,
            "lengths": self.bins().into_iter().map(|(name, count)| (name, json!(count))).collect::<serde_json::Map<String, Value>>(),
            "share_of_sessions_from_126_to_412_s": typical.1,
            "share_of_users_with_mean_of_153_s_within_10_percent": usual.1,
            "background": self.background.to_json(),
            "users": self.statistics.users.iter().map(user_json).collect::<Vec<_>>(),
        })
    }
}

fn user_json(user: &UserSessions) -> Value {
    json!({
        "user": user.user,
        "sessions": user.sessions.len(),
        "mean_s": user.mean().seconds(),
        "deviation_s": user.deviation().seconds(),
        "sessions_a_day": user.per_day().0,
        "background": user.background().0,
    })
}

const fn seconds(seconds: u64) -> Nanos {
    Nanos(seconds * 1_000_000_000)
}

/// The sessions, with those that are less than `pause` apart as one: it has the apps behind it that its last part has.
fn joined(sessions: &[Session], pause: Nanos) -> Vec<Session> {
    let mut joined: Vec<Session> = Vec::with_capacity(sessions.len());
    for session in sessions {
        match joined.last_mut() {
            Some(before) if session.start.saturating_sub(before.end()) < pause => {
                before.length = session.end().saturating_sub(before.start).max(before.length);
                before.background = session.background;
            }
            _ => joined.push(*session),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_pauses_do_not_end_a_session() {
        let session =
            |start, length, background| Session { start: seconds(start), length: seconds(length), background };
        let sessions = [session(0, 10, 3), session(15, 5, 4), session(30, 7, 1)];
        // From 10 to 15 are 5 s, from 20 to 30 are 10 s: under a pause of 10 s the first two are one of 20 s.
        assert_eq!(joined(&sessions, seconds(10)), [session(0, 20, 4), session(30, 7, 1)]);
        assert_eq!(joined(&sessions, seconds(11)), [session(0, 37, 1)]);
        assert_eq!(joined(&sessions, Nanos::ZERO), sessions);
    }
}
