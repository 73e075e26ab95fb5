//! What a kernel's time is bound by: of the terms that run at once the longest counts for all of it.

use std::ops::{Add, Mul};

use crate::units::Nanos;

/// What a processor waits for while it is busy; the rest of that time it computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Stalls {
    /// Bytes that DRAM moves.
    pub dram: Nanos,
    /// Bytes that a cache, shared memory or a core's own path to memory moves.
    pub caches: Nanos,
    /// Barriers, contended atomics, and whatever works in the processor's place.
    pub waiting: Nanos,
    /// Integers that find the places of elements, in generic kernels.
    pub indices: Nanos,
}

impl Stalls {
    /// `seconds` more are bound by `limit`.
    pub(crate) fn add(&mut self, limit: Limit, seconds: f64) {
        let part = match limit {
            Limit::Arithmetic => return,
            Limit::Dram => &mut self.dram,
            Limit::Caches => &mut self.caches,
            Limit::Waiting => &mut self.waiting,
            Limit::Indices => &mut self.indices,
        };
        *part = Nanos(part.0.saturating_add(Nanos::from_seconds(seconds).0));
    }
}

impl Add for Stalls {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            dram: self.dram + other.dram,
            caches: self.caches + other.caches,
            waiting: self.waiting + other.waiting,
            indices: self.indices + other.indices,
        }
    }
}

impl Mul<u64> for Stalls {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self {
            dram: self.dram * times,
            caches: self.caches * times,
            waiting: self.waiting * times,
            indices: self.indices * times,
        }
    }
}

/// What one term of a kernel's time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Arithmetic,
    Dram,
    Caches,
    Waiting,
    Indices,
}

/// The longest of terms that run at once; of equal ones the first.
pub(crate) fn longest(terms: impl IntoIterator<Item = (f64, Limit)>) -> (f64, Limit) {
    let none = (0.0, Limit::Arithmetic);
    terms.into_iter().fold(none, |longest, term| if term.0 > longest.0 { term } else { longest })
}
