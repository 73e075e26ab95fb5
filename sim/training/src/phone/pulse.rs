//! What is in use all the time is touched once a second, by a thread that may be late.

use haversack_devices::units::{Bytes, Fraction, Nanos};
use haversack_memory::phone::{Access, ActorId, Part, RegionId};

/// What is in use all the time is touched so often.
pub(super) const PULSE: Nanos = Nanos(1_000_000_000);

/// A thread that touches what is in use, a pulse after it began to do so last, or when it has done so where that took longer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pulse {
    pub(super) actor: ActorId,
    /// When it begins next, if it touches nothing then.
    next: Nanos,
    touches: bool,
}

impl Pulse {
    /// The first pulse is at `next`.
    pub(super) const fn new(actor: ActorId, next: Nanos) -> Self {
        Self { actor, next, touches: false }
    }

    /// When it begins next; the end of time while it touches something.
    pub(super) const fn due(&self) -> Nanos {
        if self.touches { Nanos::MAX } else { self.next }
    }

    /// It begins to touch something at `now`.
    pub(super) fn begin(&mut self, now: Nanos) {
        (self.next, self.touches) = (now + PULSE, true);
    }

    /// It has touched all by `now`.
    pub(super) fn end(&mut self, now: Nanos) {
        (self.next, self.touches) = (self.next.max(now), false);
    }
}

/// Memory of which a share is in use all the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) id: RegionId,
    pub(super) bytes: Bytes,
    pub(super) hot: Fraction,
}

impl Region {
    /// What of it is in use.
    pub(super) fn in_use(&self, access: Access) -> Part {
        Part { region: self.id, bytes: Bytes::ZERO..share(self.bytes, self.hot), access }
    }
}

fn share(bytes: Bytes, share: Fraction) -> Bytes {
    // A float cast saturates.
    Bytes((bytes.as_f64() * share.0) as u64)
}
