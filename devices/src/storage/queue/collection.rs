//! What the flash does of its own accord where its write cache is full: a part of it is moved on at a time, and a block that was
//! moved is erased.

use crate::storage::flash::{Demand, MOVED, WriteCache};
use crate::{Bytes, Flash};

/// A piece of that work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collection {
    /// [`MOVED`] out of the write cache.
    Move,
    /// A block that it was moved out of.
    Erase,
}

/// Whether a piece is under way, and what was moved since a block was last erased.
#[derive(Clone, Debug, Default)]
pub(super) struct Collector {
    pub(super) is_at_work: bool,
    moved: Bytes,
}

impl Collector {
    /// What is done first; `None` if a piece is under way, or the flash empties its cache only while it is idle.
    pub(super) fn begin(&mut self, flash: &Flash) -> Option<(Collection, Demand)> {
        if self.is_at_work || !flash.collects() {
            return None;
        }
        self.is_at_work = true;
        Some((Collection::Move, flash.moving()))
    }

    /// What follows a piece that has ended; `None` where there is room.
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
