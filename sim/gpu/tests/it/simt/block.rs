//! The interface for kernels: one block, whose threads execute each instruction together.
//!
//! An instruction of the block counts once for every warp with a thread in it. The next instruction that is not a load
//! waits for preceding loads, so consecutive loads are one round trip to memory.

mod exchange;

use haversack_gpu::Update;
use haversack_gpu::counts::{SECTOR, row_sectors};
use haversack_kernels::KernelError;

use super::atomic::Operation;
use super::memory::{Buffer, Memory, Touched, Word};
use super::shared::Shared;

/// The counts of all blocks of a kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) read: u64,
    pub(crate) written: u64,
    pub(crate) touched: Touched,
    pub(crate) shared: u64,
    pub(crate) barriers: u64,
    pub(crate) shuffles: u64,
    pub(crate) lane_operations: u64,
    pub(crate) shared_attempts: f64,
}

/// The counts of one block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Own {
    pub(crate) barriers: u64,
    pub(crate) round_trips: u64,
    pub(crate) operations: u64,
    pub(crate) shared_attempts: f64,
    waits: bool,
}

/// A thread's request to update a global cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) buffer: usize,
    pub(crate) word: usize,
    pub(crate) operation: Operation,
    pub(crate) update: Update,
    pub(crate) bits: u64,
    /// The slot of the block, and the index of the request among the block's.
    pub(crate) slot: usize,
    pub(crate) place: usize,
}

/// One block of a running kernel.
#[derive(Debug)]
pub struct Block<'b, 'a> {
    pub(crate) kernel: &'static str,
    pub(crate) index: u64,
    pub(crate) blocks: u64,
    pub(crate) threads: u32,
    pub(crate) lanes: u32,
    pub(crate) slot: usize,
    pub(crate) memory: &'b mut Memory<'a>,
    pub(crate) shared: &'b mut Shared,
    pub(crate) tally: &'b mut Tally,
    pub(crate) own: &'b mut Own,
    pub(crate) requests: &'b mut Vec<Request>,
    pub(crate) wanted: usize,
    pub(crate) seen: &'b [u64],
}

impl Block<'_, '_> {
    /// The index of the block in the grid.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Blocks of the grid.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Threads of the block.
    pub fn threads(&self) -> usize {
        self.threads as usize
    }

    /// Lanes of a warp.
    pub fn lanes(&self) -> usize {
        self.lanes as usize
    }

    fn fault(&self, reason: String) -> KernelError {
        KernelError::Launch { kernel: self.kernel, reason: format!("block {}: {reason}", self.index) }
    }

    fn slots(&self, threads: usize) -> u64 {
        (threads as u64).div_ceil(u64::from(self.lanes)) * u64::from(self.lanes)
    }

    /// Instructions that the first `threads` threads issue without waiting for loads.
    fn issue(&mut self, instructions: u64, threads: usize) {
        self.own.operations += instructions;
        self.tally.lane_operations += instructions * self.slots(threads);
    }

    /// Waits for the loads in flight.
    fn wait(&mut self) {
        self.own.round_trips += u64::from(self.own.waits);
        self.own.waits = false;
    }

    /// Arithmetic: `instructions` in sequence, by the first `threads` threads.
    pub fn operate(&mut self, instructions: u64, threads: usize) {
        self.wait();
        self.issue(instructions, threads);
    }

    /// Words that the first threads already have in registers because the kernel before an epilogue computed them:
    /// thread i has word `start + i`. Costs nothing.
    ///
    /// # Errors
    /// Words outside the buffer.
    pub fn held<T: Word>(&self, buffer: Buffer<T>, start: usize, threads: usize) -> Result<&[T], KernelError> {
        let words = self.memory.words(buffer);
        words
            .get(start..start.saturating_add(threads))
            .ok_or_else(|| self.outside(words.len(), start.saturating_add(threads)))
    }

    fn outside(&self, length: usize, end: usize) -> KernelError {
        self.fault(format!("word {} is outside a buffer of {length}", end.saturating_sub(1)))
    }

    /// Loads a row: thread i of the first `threads` gets word `start + i`.
    ///
    /// # Errors
    /// Words outside the buffer.
    pub fn load_row<T: Word>(&mut self, buffer: Buffer<T>, start: usize, threads: usize) -> Result<&[T], KernelError> {
        self.held(buffer, start, threads)?;
        self.own.waits = true;
        self.issue(1, threads);
        self.tally.read += SECTOR * row_sectors(buffer.bytes, start as u64, threads as u64, self.lanes);
        self.tally.touched.mark(buffer.index(), start as u64 * buffer.bytes, (start + threads) as u64 * buffer.bytes);
        self.held(buffer, start, threads)
    }

    /// Stores a row: thread i of the first ones stores `words[i]` at `start + i`.
    ///
    /// # Errors
    /// Words outside the buffer.
    pub fn store_row<T: Word>(&mut self, buffer: Buffer<T>, start: usize, words: &[T]) -> Result<(), KernelError> {
        self.held(buffer, start, words.len())?;
        self.wait();
        self.issue(1, words.len());
        let end = start + words.len();
        self.tally.written += SECTOR * row_sectors(buffer.bytes, start as u64, words.len() as u64, self.lanes);
        self.tally.touched.mark(buffer.index(), start as u64 * buffer.bytes, end as u64 * buffer.bytes);
        if let Some(place) = self.memory.words_mut(buffer).get_mut(start..end) {
            place.copy_from_slice(words);
        }
        Ok(())
    }

    /// Loads from anywhere: thread i gets word `indices[i]`, or the default if it has no index.
    ///
    /// # Errors
    /// Words outside the buffer.
    pub fn gather<T: Word>(
        &mut self,
        buffer: Buffer<T>,
        indices: &[Option<usize>],
        into: &mut Vec<T>,
    ) -> Result<(), KernelError> {
        self.own.waits = true;
        self.issue(1, indices.len());
        self.tally.read += SECTOR * self.scattered::<T>(buffer, indices);
        let words = self.memory.words(buffer);
        into.clear();
        for index in indices {
            into.push(match index {
                None => T::default(),
                Some(index) => *words.get(*index).ok_or_else(|| self.outside(words.len(), index.saturating_add(1)))?,
            });
        }
        Ok(())
    }

    /// Stores anywhere: thread i stores `words[i]` at `indices[i]`, the last thread last.
    ///
    /// # Errors
    /// Words outside the buffer.
    pub fn scatter<T: Word>(
        &mut self,
        buffer: Buffer<T>,
        indices: &[Option<usize>],
        words: &[T],
    ) -> Result<(), KernelError> {
        self.wait();
        self.issue(1, indices.len());
        self.tally.written += SECTOR * self.scattered::<T>(buffer, indices);
        let target = self.memory.words_mut(buffer);
        let length = target.len();
        for (index, &word) in indices.iter().zip(words) {
            let Some(index) = *index else { continue };
            match target.get_mut(index) {
                Some(place) => *place = word,
                None => return Err(self.outside(length, index.saturating_add(1))),
            }
        }
        Ok(())
    }

    /// Distinct sectors that each warp touches, summed over the warps.
    fn scattered<T: Word>(&mut self, buffer: Buffer<T>, indices: &[Option<usize>]) -> u64 {
        let (mut sectors, length) = (0, self.memory.words(buffer).len());
        let mut met = Vec::with_capacity(self.lanes as usize);
        for warp in indices.chunks(self.lanes as usize) {
            met.clear();
            for &index in warp.iter().flatten().filter(|&&index| index < length) {
                let sector = index as u64 * buffer.bytes / SECTOR;
                // Most warps touch rising addresses.
                if met.last() != Some(&sector) && !met.contains(&sector) {
                    met.push(sector);
                    self.tally.touched.mark(buffer.index(), sector * SECTOR, sector * SECTOR + 1);
                }
            }
            sectors += met.len() as u64;
        }
        sectors
    }

    /// All threads wait for each other; then words that they stored in shared memory may be read.
    pub fn barrier(&mut self) {
        self.wait();
        self.shared.barrier();
        self.own.barriers += 1;
        self.tally.barriers += 1;
    }

    /// Requests an update of one global cell by the first threads, thread i with `words[i]`. The updates happen,
    /// among those of all resident blocks, when the kernel's phase ends with `Next::Atomics`; the next phase can
    /// read the results by `seen`.
    pub fn atomic<T: Word>(&mut self, cell: Buffer<T>, word: usize, operation: Operation, update: Update, words: &[T]) {
        self.wait();
        self.issue(1, words.len());
        self.own.round_trips += update.round_trips();
        for &value in words {
            self.requests.push(Request {
                buffer: cell.index(),
                word,
                operation,
                update,
                bits: value.bits(),
                slot: self.slot,
                place: self.wanted,
            });
            self.wanted += 1;
        }
    }

    /// The value that update number `request` of the last phase found in its cell.
    pub fn seen<T: Word>(&self, request: usize) -> Option<T> {
        self.seen.get(request).map(|&bits| T::from_bits(bits))
    }
}
