//! Flash storage: one command queue, the work of its driver on a core, a write cache, and others' commands beside.
//!
//! [`Flash`] knows what a command costs the device, [`Driver`] what it costs a core, and [`FlashQueue`] is the
//! resource: requests of many commands that pass through a driver and one queue. Who asks, and why, is not known here.
//!
//! Commands side by side: one alone keeps a share of the device busy, its occupation over its time alone. Commands fall
//! on dies at random, so that together they keep 1 − Π(1 − share) busy where they ask for Σ share, and all slow down
//! by the quotient. Where one alone keeps the device fully busy this is processor sharing.

mod cache;
mod driver;
mod flash;
mod queue;
mod sharing;

pub use driver::{Driver, ScalarSpeed};
pub use flash::Flash;
pub use queue::{Completed, FlashQueue, RequestId, WriteBehind};

use crate::units::{Bytes, BytesPerSecond};

/// A page of memory, and the least that the flash reads or writes.
pub const PAGE: Bytes = Bytes(4096);

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the flash.
    Read,
    /// To the flash.
    Write,
}

/// A transfer, cut into commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which way.
    pub direction: Direction,
    /// How much.
    pub bytes: Bytes,
    /// Bytes of each command but for the last; at least a page.
    pub command: Bytes,
    /// Commands that may be under way at once, in the driver, in the queue or in the device; at least one.
    pub depth: u32,
}

/// Somebody else's steady input or output: commands at equal intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    /// Which way.
    pub direction: Direction,
    /// How much in the mean.
    pub rate: BytesPerSecond,
    /// Bytes of each command; at least a page.
    pub command: Bytes,
    /// Commands of it that may be in the queue; while that many are, it issues none and makes up for none.
    pub depth: u32,
}
