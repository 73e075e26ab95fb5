//! Users, or counters, in the order of time: repetitions, reversals and gaps.
//!
//! The state of a user is small and their number is bounded, so that memory does not grow with the input.

use indexmap::IndexMap;

use super::Coverage;
use crate::UtcTime;

/// Users that are tracked; 100 thousand of them take some 20 MB.
const MOST_USERS: usize = 100_000;
/// Bytes of all their names.
const MOST_NAME_BYTES: usize = 16 << 20;

/// The order of a sample relative to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The first of the user.
    First,
    /// Later.
    Later {
        /// Nanoseconds since the previous sample.
        gap: u64,
    },
    /// At the same time, with other content.
    SameTime,
    /// At the same time, with the same content.
    Same,
    /// Earlier.
    Earlier {
        /// The time of the previous sample.
        than: UtcTime,
    },
    /// Unknown, because there are too many users.
    Untracked,
}

#[derive(Debug)]
struct State {
    first: UtcTime,
    last: UtcTime,
    /// The time of the sample before this one, which `last` need not be.
    before: UtcTime,
    content: u64,
    samples: u64,
    days: u64,
    longest_gap: u64,
}

/// All users seen.
#[derive(Debug, Default)]
pub struct Tracker {
    users: IndexMap<Box<str>, State>,
    name_bytes: usize,
}

impl Tracker {
    /// The place of a user who was seen.
    pub(super) fn place(&self, user: &str) -> Option<usize> {
        self.users.get_index_of(user)
    }

    /// Records a sample whose content hashes to `content`.
    pub fn see(&mut self, user: &str, time: UtcTime, content: u64) -> Order {
        let Some(state) = self.users.get_mut(user) else {
            return self.first(user, time, content);
        };
        if state.before == time && state.content == content {
            return Order::Same;
        }
        state.samples += 1;
        state.days += u64::from(day(time) != day(state.before));
        let before = state.before;
        (state.before, state.content) = (time, content);
        state.first = state.first.min(time);
        if time > state.last {
            state.longest_gap = state.longest_gap.max(time.0.abs_diff(state.last.0));
            state.last = time;
        }
        match time.cmp(&before) {
            std::cmp::Ordering::Greater => Order::Later { gap: time.0.abs_diff(before.0) },
            std::cmp::Ordering::Equal => Order::SameTime,
            std::cmp::Ordering::Less => Order::Earlier { than: before },
        }
    }

    fn first(&mut self, user: &str, time: UtcTime, content: u64) -> Order {
        if self.users.len() >= MOST_USERS || self.name_bytes + user.len() > MOST_NAME_BYTES {
            return Order::Untracked;
        }
        self.name_bytes += user.len();
        let (samples, days, longest_gap) = (1, 1, 0);
        let state = State { first: time, last: time, before: time, content, samples, days, longest_gap };
        self.users.insert(user.into(), state);
        Order::First
    }

    /// The extent of each user's data.
    pub fn coverage(self) -> Vec<Coverage> {
        let users = self.users.into_iter();
        users
            .map(|(user, state)| Coverage {
                user: user.into(),
                samples: state.samples,
                days: state.days,
                first_s: state.first.seconds(),
                last_s: state.last.seconds(),
                longest_gap_s: state.longest_gap as f64 * 1e-9,
            })
            .collect()
    }
}

fn day(time: UtcTime) -> i64 {
    time.0.div_euclid(86_400_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_told_user_by_user() {
        let mut users = Tracker::default();
        let at = UtcTime::from_seconds;
        assert_eq!(users.see("a", at(100), 1), Order::First);
        assert_eq!(users.see("b", at(50), 1), Order::First);
        assert_eq!(users.see("a", at(160), 2), Order::Later { gap: 60_000_000_000 });
        assert_eq!(users.see("a", at(160), 2), Order::Same);
        assert_eq!(users.see("a", at(160), 3), Order::SameTime);
        assert_eq!(users.see("a", at(90), 3), Order::Earlier { than: at(160) });
        assert_eq!(users.see("a", at(100_000), 3), Order::Later { gap: 99_910_000_000_000 });
        let users = users.coverage();
        // Of a: 100, 160, 160, 90, 100000; the duplicate does not count. The longest gap is from 160 to 100000, and
        // 100000 s are on the second day.
        let a = &users[0];
        assert_eq!((a.user.as_str(), a.samples, a.days), ("a", 5, 2));
        assert_eq!((a.first_s, a.last_s, a.longest_gap_s), (90.0, 100_000.0, 99_840.0));
        assert_eq!((users[1].user.as_str(), users[1].samples), ("b", 1));
    }

    #[test]
    fn users_beyond_the_bounds_are_not_tracked() {
        let mut users = Tracker::default();
        let at = UtcTime::from_seconds(1);
        // 16 MiB of names have space for 32768 of 512 bytes.
        let orders: Vec<Order> = (0..32_769).map(|user| users.see(&format!("{user:0>512}"), at, 0)).collect();
        assert!(orders[..32_768].iter().all(|order| *order == Order::First));
        assert_eq!(orders[32_768], Order::Untracked);
        assert_eq!(users.see(&format!("{:0>512}", 7), at, 0), Order::Same);
        assert_eq!(users.coverage().len(), 32_768);
    }
}
