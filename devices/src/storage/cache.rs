//! The faster tier that writes go to while it has room (SLC, TurboWrite, WriteBooster).

use crate::storage::Flash;
use crate::units::{Bytes, BytesPerSecond, Nanos};

/// A tier that takes writes at once and is emptied into the rest of the flash while the device is idle.
#[derive(Clone, Debug)]
pub(super) struct WriteCache {
    size: Bytes,
    level: Bytes,
    drain: BytesPerSecond,
}

impl WriteCache {
    /// Empty. It drains as fast as the flash behind it takes writes.
    pub(super) fn new(flash: &Flash) -> Self {
        Self { size: flash.write_cache(), level: Bytes::ZERO, drain: flash.sustained_write() }
    }

    /// Takes a write where it has room for all of it.
    pub(super) fn take(&mut self, bytes: Bytes) -> bool {
        let room = bytes <= self.size.saturating_sub(self.level);
        if room {
            self.level += bytes;
        }
        room
    }

    /// The device was idle for `span`.
    pub(super) fn drain(&mut self, span: Nanos) {
        if self.level > Bytes::ZERO {
            // A float cast saturates.
            self.level = self.level.saturating_sub(Bytes((self.drain.0 * span.seconds()) as u64));
        }
    }

    /// What it holds.
    pub(super) fn level(&self) -> Bytes {
        self.level
    }
}
