//! When phones can take part: locked, charging and on Wi-Fi (FedHybrid, section 4.2: phones check in only then).

use crate::draw::{Draws, Purpose};
use crate::quantiles::Quantiles;

/// A phone's sessions start this long before the federation, in seconds, so that it begins in the middle of them.
const FOLLOWED: f64 = 7.0 * 86_400.0;

/// Sessions of every phone, drawn as time passes.
#[derive(Clone, Debug)]
pub struct Availability {
    seed: u64,
    ready: Quantiles,
    between: Quantiles,
    /// Each phone's current or next session.
    sessions: Vec<Session>,
}

/// From `start` to `end`, in seconds from the start of the federation; session number `number` of its phone, from one,
/// or zero if none was drawn yet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Session {
    start: f64,
    end: f64,
    number: u32,
}

impl Availability {
    /// The sessions of `phones` phones.
    pub fn new(seed: u64, phones: usize, ready: Quantiles, between: Quantiles) -> Self {
        Self { seed, ready, between, sessions: vec![Session::default(); phones] }
    }

    /// The same phones, always ready.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.sessions.fill(Session { start: f64::NEG_INFINITY, end: f64::INFINITY, number: 1 });
        self
    }

    /// The time until which a phone is ready, seen from `now`, in seconds; `None` if it is not ready. Calls for one
    /// phone must be in the order of time: past sessions are forgotten.
    pub fn ready_until(&mut self, phone: u32, now: f64) -> Option<f64> {
        let session = self.sessions[phone as usize];
        let mut session = if session.number == 0 { self.first(phone) } else { session };
        while session.end <= now {
            session = self.next(phone, session);
        }
        self.sessions[phone as usize] = session;
        (session.start <= now).then_some(session.end)
    }

    fn first(&self, phone: u32) -> Session {
        let before = -FOLLOWED * Draws::new(self.seed, Purpose::Phase, phone).even(0) - 1.0;
        self.next(phone, Session { start: before, end: before, number: 0 })
    }

    /// The session after `last`. Both of its lengths are at least a second.
    fn next(&self, phone: u32, Session { end, number, .. }: Session) -> Session {
        let draw = |purpose| Draws::new(self.seed, purpose, phone).even(number);
        let start = end + self.between.at(draw(Purpose::Gap)).max(1.0);
        let end = start + self.ready.at(draw(Purpose::Session)).max(1.0);
        Session { start, end, number: number + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(length: f64) -> Quantiles {
        Quantiles::new(vec![0.0, 1.0], vec![length, length]).unwrap()
    }

    #[test]
    fn phones_are_ready_for_their_share_of_the_time() {
        let mut availability = Availability::new(1, 2000, lengths(300.0), lengths(900.0));
        for now in [0.0, 1e4, 1e6] {
            let ready = (0..2000).filter(|&phone| availability.ready_until(phone, now).is_some()).count();
            // 300 of 1,200 seconds.
            assert!((440..560).contains(&ready), "{ready} at {now}");
        }
    }

    #[test]
    fn phones_that_are_always_ready_never_leave() {
        let mut availability = Availability::new(1, 3, lengths(300.0), lengths(900.0)).always();
        for now in [0.0, 1e9] {
            assert_eq!(
                (0..3).map(|phone| availability.ready_until(phone, now)).min_by(|a, b| a.partial_cmp(b).unwrap()),
                Some(Some(f64::INFINITY))
            );
        }
    }

    #[test]
    fn a_session_ends_where_it_was_said_to() {
        let mut availability = Availability::new(3, 50, lengths(300.0), lengths(900.0));
        for phone in 0..50 {
            let Some(until) = availability.ready_until(phone, 500.0) else { continue };
            assert!(until > 500.0 && until <= 800.0);
            assert_eq!(availability.ready_until(phone, until - 0.5), Some(until));
            assert_eq!(availability.ready_until(phone, until + 0.5), None);
        }
        let mut again = Availability::new(3, 10, lengths(300.0), lengths(900.0));
        let mut other = Availability::new(3, 50, lengths(300.0), lengths(900.0));
        // A phone's sessions depend neither on the others nor on earlier calls.
        assert_eq!(again.ready_until(7, 700.0), other.ready_until(7, 700.0));
    }
}
