//! Shared resources as pure models: they know no event queue and draw no random numbers.
//!
//! All share one pattern. `insert(now, …)` adds work, `next_completion()` says when the next piece
//! ends if nothing changes, `advance(now)` moves the clock to the next completion or to `now`,
//! whichever is first, and returns what completed there, and `cancel(now, id)` takes work back.
//! `advance` is called until it returns `None`:
//!
//! ```text
//! while let Some(done) = resource.advance(now)? { … }
//! ```
//!
//! # Rules of time
//!
//! * Clocks are integer nanoseconds and never go back ([`ResourceError::Past`]).
//! * A completion that is due must be collected before the clock passes it
//!   ([`ResourceError::Uncollected`]): a model never drops or reorders what its owner has not seen.
//!   Changes at the very nanosecond of a due completion are allowed.
//! * Work that is due at `now` has completed, collected or not; cancelling it then does nothing.
//! * A call that returns an error has changed nothing.

mod rate;
mod shared_bandwidth;

use haversack_devices::units::{BytesPerSecond, Nanos};
use thiserror::Error;

pub use crate::resource::shared_bandwidth::SharedBandwidth;
use crate::slots::Key;

/// Names one flow of one [`SharedBandwidth`]; dies with the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowId(Key);

/// A piece of work that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion<T> {
    /// When it ended.
    pub time: Nanos,
    /// What its owner called it.
    pub item: T,
}

/// A piece of work that was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled<T, R> {
    /// What its owner called it.
    pub item: T,
    /// The work not done: time of service, or bytes.
    pub remaining: R,
}

/// Why a resource refuses a call; it is unchanged then.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// The time has passed.
    #[error("the clock of the resource stands at {clock}, later than {now}")]
    Past {
        /// The time asked for.
        now: Nanos,
        /// The clock of the resource.
        clock: Nanos,
    },
    /// A completion has to be collected with `advance` first.
    #[error("the completion at {due} must be collected before {now}")]
    Uncollected {
        /// The time asked for.
        now: Nanos,
        /// The time of the first uncollected completion.
        due: Nanos,
    },
    /// A capacity that is negative, infinite, not a number or above 4·10¹⁵ B/s.
    #[error("{0} is no capacity: expected a rate from 0 B/s to 4e15 B/s")]
    Capacity(BytesPerSecond),
    /// A cap that is not a number, or below 10⁻³ B/s.
    #[error("{0} is no cap for a flow: expected a rate of at least 1e-3 B/s")]
    Cap(BytesPerSecond),
}

/// The two rules that every change of a resource at `now` obeys.
fn check(now: Nanos, clock: Nanos, due: Option<Nanos>) -> Result<(), ResourceError> {
    if now < clock {
        return Err(ResourceError::Past { now, clock });
    }
    match due {
        Some(due) if due < now => Err(ResourceError::Uncollected { now, due }),
        _ => Ok(()),
    }
}
