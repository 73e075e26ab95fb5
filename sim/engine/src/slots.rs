//! A slab whose keys become stale when their value is removed.
//!
//! The storage behind every handle of this crate. It has no order; [`crate::agenda`] adds one.

use std::mem;

const NONE: u32 = u32::MAX;

/// An occupancy of a slot. The next occupancy of the same slot has another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) slot: u32,
    generation: u32,
}

/// The generation is in every variant, rather than next to the enum, so that the tag shares its padding: a slot of an
/// 8-byte value takes 16 bytes.
#[derive(Clone, Debug)]
enum Slot<T> {
    Free {
        generation: u32,
        next: u32,
    },
    /// The value was removed, but the owner still refers to the slot by number; or the slot has used up its
    /// generations.
    Vacated {
        generation: u32,
    },
    Full {
        generation: u32,
        value: T,
    },
}

impl<T> Slot<T> {
    fn generation(&self) -> u32 {
        match self {
            Self::Free { generation, .. } | Self::Vacated { generation } | Self::Full { generation, .. } => *generation,
        }
    }
}

/// Values in numbered slots, reused last in, first out.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: u32,
}

impl<T> Slots<T> {
    pub(crate) const BYTES_PER_SLOT: usize = size_of::<Slot<T>>();

    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { slots: Vec::with_capacity(capacity), free: NONE }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// The slot that the next insertion takes.
    pub(crate) fn next_slot(&self) -> u32 {
        if self.free == NONE { self.slots.len() as u32 } else { self.free }
    }

    /// Stores `value`.
    ///
    /// # Panics
    ///
    /// With 2³² − 1 slots in use, as a `Vec` does when its capacity overflows.
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> Key {
        if let Some(entry) = self.slots.get_mut(self.free as usize)
            && let Slot::Free { generation, next } = *entry
        {
            let key = Key { slot: self.free, generation };
            self.free = next;
            *entry = Slot::Full { generation, value };
            return key;
        }
        self.grow(value)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, value: T) -> Key {
        assert!(self.slots.len() < NONE as usize, "more than 2^32 - 1 values are stored at once");
        let key = Key { slot: self.slots.len() as u32, generation: 0 };
        self.slots.push(Slot::Full { generation: 0, value });
        key
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        match self.slots.get(key.slot as usize) {
            Some(Slot::Full { generation, value }) if *generation == key.generation => Some(value),
            _ => None,
        }
    }

    pub(crate) fn is_full(&self, slot: u32) -> bool {
        matches!(self.slots.get(slot as usize), Some(Slot::Full { .. }))
    }

    pub(crate) fn at(&self, slot: u32) -> Option<&T> {
        let Some(Slot::Full { value, .. }) = self.slots.get(slot as usize) else { return None };
        Some(value)
    }

    pub(crate) fn at_mut(&mut self, slot: u32) -> Option<&mut T> {
        let Some(Slot::Full { value, .. }) = self.slots.get_mut(slot as usize) else { return None };
        Some(value)
    }

    /// Removes the value, and keeps the slot from being reused until it is released.
    pub(crate) fn vacate(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        let entry = self.slots.get_mut(key.slot as usize)?;
        let vacated = Slot::Vacated { generation: key.generation };
        let Slot::Full { value, .. } = mem::replace(entry, vacated) else { return None };
        Some(value)
    }

    /// Releases the slot, with the value if there still is one.
    #[inline]
    pub(crate) fn release(&mut self, slot: u32) -> Option<T> {
        let entry = self.slots.get_mut(slot as usize)?;
        // A slot whose generations are used up is never reused, so a stale handle stays stale.
        let emptied = match entry.generation().checked_add(1) {
            Some(generation) => {
                let next = mem::replace(&mut self.free, slot);
                Slot::Free { generation, next }
            }
            None => Slot::Vacated { generation: u32::MAX },
        };
        let Slot::Full { value, .. } = mem::replace(entry, emptied) else { return None };
        Some(value)
    }

    /// Removes the value and releases the slot.
    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        self.release(key.slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_of_an_eight_byte_value_takes_sixteen_bytes() {
        // tag 1 + padding 3 + generation 4 + value 8 = 16.
        assert_eq!(Slots::<u64>::BYTES_PER_SLOT, 16);
        assert_eq!(Slots::<(u32, u32)>::BYTES_PER_SLOT, 16);
    }

    #[test]
    fn a_key_dies_with_its_value() {
        let mut slots = Slots::with_capacity(0);
        let first = slots.insert('a');
        assert_eq!(slots.remove(first), Some('a'));
        let second = slots.insert('b');
        // The slot is reused, so the two keys differ only in generation.
        assert_eq!(first.slot, second.slot);
        assert_eq!(slots.get(first), None);
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.get(second), Some(&'b'));
    }

    #[test]
    fn a_vacated_slot_waits_for_its_release() {
        let mut slots = Slots::with_capacity(0);
        let first = slots.insert('a');
        assert_eq!(slots.vacate(first), Some('a'));
        assert_eq!(slots.vacate(first), None);
        assert_ne!(slots.insert('b').slot, first.slot);
        assert_eq!(slots.release(first.slot), None);
        assert_eq!(slots.insert('c').slot, first.slot);
    }

    #[test]
    fn a_slot_rests_when_its_generations_are_used_up() {
        let mut slots = Slots::with_capacity(0);
        slots.slots.push(Slot::Full { generation: u32::MAX, value: 'a' });
        let last = Key { slot: 0, generation: u32::MAX };
        assert_eq!(slots.remove(last), Some('a'));
        // Generation 2³² − 1 has no successor: the next value takes a new slot, and `last` stays dead.
        assert_eq!(slots.insert('b'), Key { slot: 1, generation: 0 });
        assert_eq!(slots.get(last), None);
    }
}
