//! Scores, by which a victim is chosen: the tensor with the lowest score is evicted.
//!
//! The score functions are pure, so a policy of the simulator can rank its tensors with them as the replay
//! does. This module also has the bookkeeping of the three heuristics that ignore neighbours; `classes` and
//! `region` have that of the others.

use std::str::FromStr;

use haversack_devices::text::nearest;
use haversack_devices::{Bytes, Nanos};
use serde::Deserialize;
use strum::{Display, IntoStaticStr};

use crate::ReplayError;
use crate::program::{Op, Program};
use crate::runtime::{Bookkeeping, State, per_byte, per_byte_and_staleness};

/// A rule that ranks tensors for eviction (DTR, ICLR 2021, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, IntoStaticStr, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Heuristic {
    /// h_DTR (e*): cost of the tensor and its exact evicted neighbourhood, over size and staleness.
    Dtr,
    /// h_DTR_eq: as h_DTR, the neighbourhood approximated by union-find classes.
    DtrEq,
    /// h_DTR_local: own cost over size and staleness.
    DtrLocal,
    /// h_MSPS: cost of the tensor and its evicted ancestors, over size.
    Msps,
    /// h_LRU: the time of the last access.
    Lru,
    /// h_size: the largest tensor first.
    Size,
}

impl Heuristic {
    /// Every heuristic, in the order of the help text.
    pub const ALL: [Self; 6] = [Self::Dtr, Self::DtrEq, Self::DtrLocal, Self::Msps, Self::Lru, Self::Size];

    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The score of one candidate; the lowest is evicted.
    pub fn score(self, candidate: &Candidate) -> f64 {
        // Saturating, since an estimate for a neighbourhood may have drifted below zero.
        let own = i64::try_from(candidate.compute.0).unwrap_or(i64::MAX);
        let cost = own.saturating_add(candidate.neighbourhood) as f64;
        let size = candidate.size.as_f64();
        let staleness = candidate.now.saturating_sub(candidate.last_access).0 as f64;
        match self {
            Self::Dtr | Self::DtrEq => per_byte_and_staleness(cost, size, staleness),
            Self::DtrLocal => per_byte_and_staleness(own as f64, size, staleness),
            Self::Msps => per_byte(cost, size),
            Self::Lru => least_recent(candidate.last_access.0 as f64),
            Self::Size => largest(size),
        }
    }
}

impl FromStr for Heuristic {
    type Err = ReplayError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|h| h.as_str() == name).ok_or_else(|| ReplayError::UnknownHeuristic {
            found: name.to_owned(),
            nearest: nearest(name, Self::ALL.map(Self::as_str)),
            valid: Self::ALL.map(Self::as_str).to_vec(),
        })
    }
}

/// The properties of a candidate for eviction that a heuristic may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Time to compute the tensor from its inputs.
    pub compute: Nanos,
    /// Nanoseconds to recompute the evicted neighbours that it would join, as estimated by the heuristic; signed, since
    /// an estimate can drift below zero.
    pub neighbourhood: i64,
    /// The bytes that its eviction frees.
    pub size: Bytes,
    /// The time of its last use.
    pub last_access: Nanos,
    /// The clock.
    pub now: Nanos,
}

/// The time of the last access: the oldest is evicted first.
#[inline]
pub fn least_recent(last_access: f64) -> f64 {
    last_access
}

/// `1 / size`: the largest is evicted first.
#[inline]
pub fn largest(size: f64) -> f64 {
    per_byte(1.0, size)
}

/// Bookkeeping of h_DTR_local, in which a storage's cost is only its own.
pub(crate) struct Local;

impl Bookkeeping for Local {
    fn new(_: &Program) -> Self {
        Self
    }

    fn created(&mut self, state: &mut State<'_>, op: &Op) {
        for &s in &op.stores {
            state.cost[s as usize] = state.compute[s as usize] as f64;
        }
    }
}

/// h_LRU needs no bookkeeping.
pub(crate) struct LeastRecent;

impl Bookkeeping for LeastRecent {
    fn new(_: &Program) -> Self {
        Self
    }

    #[inline]
    fn score(state: &State<'_>, s: usize, _: f64) -> f64 {
        least_recent(state.last_access[s])
    }
}

/// h_size needs no bookkeeping.
pub(crate) struct Largest;

impl Bookkeeping for Largest {
    fn new(_: &Program) -> Self {
        Self
    }

    #[inline]
    fn score(state: &State<'_>, s: usize, _: f64) -> f64 {
        largest(state.program.sizes[s])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_follow_their_formulas() {
        let candidate =
            Candidate { compute: Nanos(30), neighbourhood: 10, size: Bytes(5), last_access: Nanos(6), now: Nanos(8) };
        // Staleness is 8 - 6 = 2: (30 + 10) / (5 * 2) = 4, 30 / 10 = 3, 40 / 5 = 8, 6 and 1 / 5.
        let scores = Heuristic::ALL.map(|h| h.score(&candidate));
        assert_eq!(scores, [4.0, 4.0, 3.0, 8.0, 6.0, 0.2]);
        // Evicting an empty tensor frees nothing, and evicting one used just now gains nothing.
        let empty = Candidate { size: Bytes(0), ..candidate };
        assert_eq!(Heuristic::Msps.score(&empty), f64::INFINITY);
        assert_eq!(Heuristic::Size.score(&empty), f64::INFINITY);
        let fresh = Candidate { last_access: Nanos(8), ..candidate };
        assert_eq!(Heuristic::Dtr.score(&fresh), f64::INFINITY);
    }

    #[test]
    fn names_are_read_back_and_near_ones_suggested() {
        for heuristic in Heuristic::ALL {
            assert_eq!(heuristic.to_string().parse::<Heuristic>(), Ok(heuristic));
        }
        let error = "dtr-eqq".parse::<Heuristic>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown heuristic 'dtr-eqq'; expected dtr, dtr-eq, dtr-local, msps, lru or size; did you mean 'dtr-eq'?"
        );
    }
}
