//! The flash's own work once its write cache is full: it moves one piece after another out of the cache, and erases a
//! block once that was moved.

use crate::storage::flash::{Demand, MOVED, WriteCache};
use crate::{Bytes, Flash};

/// A piece of that work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collection {
    /// [`MOVED`] out of the write cache.
    Move,
    /// Erasing a block that was moved out of the cache.
    Erase,
}

/// Whether a piece is in progress, and the bytes moved since a block was last erased.
#[derive(Clone, Debug, Default)]
pub(super) struct Collector {
    pub(super) is_at_work: bool,
    moved: Bytes,
}

impl Collector {
    /// The first piece; `None` if one is in progress, or if the flash empties its cache only while it is idle.
    pub(super) fn begin(&mut self, flash: &Flash) -> Option<(Collection, Demand)> {
        if self.is_at_work || !flash.collects() {
            return None;
        }
        self.is_at_work = true;
        Some((Collection::Move, flash.moving()))
    }

    /// The piece that follows a completed one; `None` if the cache has room.
    pub(super) fn after(
        &mut self,
        done: Collection,
        cache: &mut WriteCache,
        flash: &Flash,
    ) -> Option<(Collection, Demand)> {
        if done == Collection::Move {
            cache.give_back(MOVED);
            self.moved += MOVED;
        }
        let next = match flash.erasing() {
            Some((demand, block)) if self.moved >= block => {
                self.moved = Bytes::ZERO;
                Some((Collection::Erase, demand))
            }
            _ if cache.is_full() => Some((Collection::Move, flash.moving())),
            _ => None,
        };
        self.is_at_work = next.is_some();
        next
    }
}
