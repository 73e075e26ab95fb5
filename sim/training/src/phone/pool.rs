//! The engine's pool: memory that tensors free stays with the process, and the next tensor takes the memory that was
//! freed last.
//!
//! The kernel cannot know which of its pages are still needed: freed pages are swapped like all others, and read again
//! when they are overwritten. Pieces are of the kernel's extents; smaller tensors share a slab.
//!
//! Where the trainer's tensors lie in its process: a region of the pool's pieces, and a slab of smaller tensors.

use std::ops::Range;

use haversack_devices::Bytes;
use haversack_memory::phone::{Access, Backing, Part, PhoneError, PhoneMemory, ProcessId, RegionId};
use haversack_workloads::TensorId;

use super::Phone;
use crate::tensors::Change;

/// A run of pieces.
type PieceRun = Range<u64>;

/// Where a tensor lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum PoolPlace {
    /// Nowhere.
    #[default]
    None,
    /// In the slab, with this number of bytes.
    Slab(u64),
    /// In these runs of pieces.
    Runs(Vec<PieceRun>),
}

/// Pieces that are allocated and freed.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    piece: u64,
    /// Pieces that the process has.
    size: u64,
    /// Unused runs, in the order in which they were freed.
    free: Vec<PieceRun>,
    /// Bytes of the slab in use, and the most that ever were.
    slab: u64,
    pub(super) slab_size: u64,
}

impl Pool {
    /// An empty pool with pieces of `piece` bytes.
    pub(super) const fn new(piece: u64) -> Self {
        Self { piece, size: 0, free: Vec::new(), slab: 0, slab_size: 0 }
    }

    /// Bytes of all pieces, in use or not.
    pub(super) const fn bytes(&self) -> u64 {
        self.size * self.piece
    }

    /// A place for `bytes`.
    pub(super) fn take(&mut self, bytes: u64) -> PoolPlace {
        if bytes == 0 {
            return PoolPlace::None;
        }
        if bytes < self.piece {
            self.slab += bytes;
            self.slab_size = self.slab_size.max(self.slab);
            return PoolPlace::Slab(bytes);
        }
        let mut wanted = bytes.div_ceil(self.piece);
        let mut runs: Vec<PieceRun> = Vec::new();
        while wanted > 0 {
            let Some(run) = self.free.pop() else { break };
            let taken = wanted.min(run.end - run.start);
            if taken < run.end - run.start {
                self.free.push(run.start + taken..run.end);
            }
            join(&mut runs, run.start..run.start + taken);
            wanted -= taken;
        }
        if wanted > 0 {
            join(&mut runs, self.size..self.size + wanted);
            self.size += wanted;
        }
        PoolPlace::Runs(runs)
    }

    /// Gives the process's memory behind the last piece in use back to the kernel.
    pub(super) fn trim(&mut self) {
        self.slab_size = self.slab;
        let mut behind: Vec<PieceRun> = self.free.clone();
        behind.sort_unstable_by_key(|run| run.start);
        while let Some(run) = behind.pop().filter(|run| run.end == self.size) {
            self.size = run.start;
        }
        self.free.retain(|run| run.start < self.size);
    }

    /// Frees a place.
    pub(super) fn give(&mut self, place: PoolPlace) {
        match place {
            PoolPlace::None => {}
            PoolPlace::Slab(bytes) => self.slab -= bytes,
            PoolPlace::Runs(runs) => self.free.extend(runs.into_iter().rev()),
        }
    }
}

/// Adds a run behind others: merged into the last one, if it follows that directly.
fn join(runs: &mut Vec<PieceRun>, run: PieceRun) {
    match runs.last_mut().filter(|last| last.end == run.start) {
        Some(last) => last.end = run.end,
        None => runs.push(run),
    }
}

/// The memory of the process that trains.
pub(super) struct Places {
    pub(super) process: ProcessId,
    pool: Pool,
    piece: u64,
    pieces: RegionId,
    slab: RegionId,
    /// Where tensors lie, whole and in another form.
    whole: Vec<PoolPlace>,
    stored: Vec<PoolPlace>,
}

impl Places {
    /// Of a new process that trains with `tensors` tensors, of which it has none yet.
    pub(super) fn new(memory: &mut PhoneMemory, phone: &Phone, tensors: usize) -> Result<Self, PhoneError> {
        let process = memory.spawn("trainer", phone.trainer.adj)?;
        let mut region = || memory.map(process, Bytes::ZERO, Backing::Anonymous(phone.trainer.pages));
        let (pieces, slab) = (region()?, region()?);
        let piece = phone.memory.extent.0;
        let [whole, stored] = [(); 2].map(|()| vec![PoolPlace::None; tensors]);
        Ok(Self { process, pool: Pool::new(piece), piece, pieces, slab, whole, stored })
    }

    /// The number of tensors.
    pub(super) fn tensors(&self) -> usize {
        self.whole.len()
    }

    /// Tensors came and went.
    pub(super) fn follow(&mut self, changes: Vec<Change>, memory: &mut PhoneMemory) -> Result<(), PhoneError> {
        for change in changes {
            let (place, bytes) = match change {
                Change::Whole(tensor, bytes) => (&mut self.whole[tensor as usize], bytes),
                Change::Stored(tensor, bytes) => (&mut self.stored[tensor as usize], bytes),
            };
            self.pool.give(std::mem::take(place));
            *place = self.pool.take(bytes.0);
        }
        self.resize(memory)
    }

    /// The process unmaps the memory that no tensor is in.
    pub(super) fn give_back(&mut self, memory: &mut PhoneMemory) -> Result<(), PhoneError> {
        self.pool.trim();
        self.resize(memory)
    }

    fn resize(&self, memory: &mut PhoneMemory) -> Result<(), PhoneError> {
        memory.resize(self.pieces, Bytes(self.pool.bytes()))?;
        memory.resize(self.slab, Bytes(self.pool.slab_size))
    }

    /// The memory that touching a tensor touches.
    pub(super) fn parts(&self, tensor: TensorId, access: Access) -> impl Iterator<Item = Part> {
        let places = [&self.whole[tensor as usize], &self.stored[tensor as usize]];
        places.into_iter().flat_map(move |place| {
            let (region, ranges) = match place {
                PoolPlace::None => (self.slab, Vec::new()),
                PoolPlace::Slab(_) => (self.slab, vec![Bytes::ZERO..Bytes(self.pool.slab_size)]),
                PoolPlace::Runs(runs) => {
                    let bytes = |piece: u64| Bytes(piece * self.piece);
                    (self.pieces, runs.iter().map(|run| bytes(run.start)..bytes(run.end)).collect())
                }
            };
            ranges.into_iter().map(move |bytes| Part { region, bytes, access })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_back_last_is_taken_first() {
        let mut pool = Pool::new(100);
        // 250 bytes are 3 pieces: 0..3. Then 2 pieces: 3..5.
        let first = pool.take(250);
        let second = pool.take(200);
        let one = |run: PieceRun| PoolPlace::Runs([run].to_vec());
        assert_eq!((first.clone(), second.clone()), (one(0..3), one(3..5)));
        pool.give(first);
        pool.give(second);
        // Four pieces: the two given back last, then two of the other three. One is left; two more make it grow.
        assert_eq!(pool.take(400), PoolPlace::Runs(vec![3..5, 0..2]));
        assert_eq!(pool.bytes(), 500);
        assert_eq!(pool.take(300), PoolPlace::Runs(vec![2..3, 5..7]));
        assert_eq!(pool.bytes(), 700);
    }

    #[test]
    fn what_lies_behind_all_that_is_in_use_goes_back_to_the_kernel() {
        let mut pool = Pool::new(100);
        let [first, second, third, last] = [200, 100, 300, 100].map(|bytes| pool.take(bytes));
        pool.give(first);
        pool.give(last);
        pool.give(third);
        // Pieces 3..6 and 6..7 lie behind the second tensor's 2..3, and 0..2 before it.
        pool.trim();
        assert_eq!(pool.bytes(), 300);
        assert_eq!(pool.take(300), PoolPlace::Runs(vec![0..2, 3..4]));
        pool.give(second);
        // 2..3 lies before the pieces in use.
        pool.trim();
        assert_eq!(pool.bytes(), 400);
    }

    #[test]
    fn small_tensors_share_a_slab() {
        let mut pool = Pool::new(100);
        let places = [pool.take(40), pool.take(99), pool.take(0)];
        assert_eq!(places, [PoolPlace::Slab(40), PoolPlace::Slab(99), PoolPlace::None]);
        places.into_iter().for_each(|place| pool.give(place));
        // 40 + 99 bytes were the most; 50 more fit in the freed part.
        assert_eq!(pool.take(50), PoolPlace::Slab(50));
        assert_eq!((pool.bytes(), pool.slab_size), (0, 139));
    }
}
