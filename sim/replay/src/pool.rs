//! The evictable storages, in the order in which they became so.
//!
//! The order decides between equal scores, so removal keeps it. The pool is one dense vector of
//! small integers: closing a gap is a short `memmove`, and the scan for a victim stays contiguous.

/// An ordered set of storages.
pub(crate) struct Pool {
    pub(crate) members: Vec<u32>,
    /// When each storage was last pushed; 0 while it is outside. Increases along `members`, which
    /// makes a member's place a binary search.
    pushed: Vec<u64>,
    pushes: u64,
}

impl Pool {
    pub(crate) fn new(storages: usize) -> Self {
        Self { members: Vec::with_capacity(storages), pushed: vec![0; storages], pushes: 0 }
    }

    pub(crate) fn contains(&self, storage: u32) -> bool {
        self.pushed[storage as usize] != 0
    }

    /// Appends a storage that is outside.
    pub(crate) fn push(&mut self, storage: u32) {
        debug_assert!(!self.contains(storage));
        self.pushes += 1;
        self.pushed[storage as usize] = self.pushes;
        self.members.push(storage);
    }

    /// Takes a storage out, wherever it stands; nothing happens where it is outside.
    pub(crate) fn remove(&mut self, storage: u32) {
        let stamp = self.pushed[storage as usize];
        if stamp == 0 {
            return;
        }
        let place = self.members.partition_point(|&other| self.pushed[other as usize] < stamp);
        self.members.remove(place);
        self.pushed[storage as usize] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::Pool;

    #[test]
    fn removal_keeps_the_order_and_a_returning_member_goes_last() {
        let mut pool = Pool::new(5);
        for storage in [3, 1, 4, 0] {
            pool.push(storage);
        }
        pool.remove(1);
        assert_eq!(pool.members, [3, 4, 0]);
        pool.remove(1);
        pool.push(1);
        pool.remove(3);
        pool.push(3);
        assert_eq!(pool.members, [4, 0, 1, 3]);
        assert!(pool.contains(1) && !pool.contains(2));
    }
}
