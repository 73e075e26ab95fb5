//! How the threads of a block exchange words: shuffles within a warp, shared memory between warps.

use haversack_devices::units::Bytes;

use crate::atomic::{Operation, Update, contend};
use crate::block::Block;
use crate::memory::{Buffer, Word};
use crate::shared::Array;
use haversack_kernels::KernelError;

impl Block<'_, '_> {
    /// Every warp does one shuffle a register of 32 bits, among the first `threads` threads: `step` combines a lane's word with the word of
    /// lane `lane + distance` of the same warp, and gets its own where there is no such lane.
    pub fn shuffle_down<T: Word>(
        &mut self,
        words: &mut [T],
        threads: usize,
        distance: usize,
        step: impl Fn(T, T) -> T,
    ) {
        self.shuffle(words, threads, |lane| lane.saturating_add(distance), step);
    }

    /// The same with lane `lane ^ mask`.
    pub fn shuffle_xor<T: Word>(&mut self, words: &mut [T], threads: usize, mask: usize, step: impl Fn(T, T) -> T) {
        self.shuffle(words, threads, |lane| lane ^ mask, step);
    }

    fn shuffle<T: Word>(
        &mut self,
        words: &mut [T],
        threads: usize,
        from: impl Fn(usize) -> usize,
        step: impl Fn(T, T) -> T,
    ) {
        self.wait();
        let registers = T::BYTES.div_ceil(4);
        self.issue(registers, threads);
        self.tally.shuffles += registers * (threads as u64).div_ceil(u64::from(self.lanes));
        let active = words.len().min(threads);
        for warp in words[..active].chunks_mut(self.lanes as usize) {
            let before = warp.to_vec();
            for (lane, word) in warp.iter_mut().enumerate() {
                *word = step(before[lane], before.get(from(lane)).copied().unwrap_or(before[lane]));
            }
        }
    }

    /// Reserves shared memory, at the start of a block.
    pub fn shared_array<T: Word>(&mut self, length: usize) -> Array<T> {
        self.shared.array(length)
    }

    /// Shared memory that the block holds.
    #[must_use]
    pub fn shared_held(&self) -> Bytes {
        Bytes(self.shared.bytes())
    }

    /// Stores a row in shared memory: thread i of the first ones stores `words[i]` at `start + i`.
    ///
    /// # Errors
    /// Words outside the array; a missing barrier.
    pub fn store_shared<T: Word>(&mut self, array: Array<T>, start: usize, words: &[T]) -> Result<(), KernelError> {
        self.wait();
        self.issue(1, words.len());
        self.tally.shared += words.len() as u64 * T::BYTES;
        for (thread, &word) in words.iter().enumerate() {
            let warp = thread as u32 / self.lanes;
            self.shared.store(array, start.saturating_add(thread), warp, word).map_err(|reason| self.fault(reason))?;
        }
        Ok(())
    }

    /// The first lane of every warp stores a word: that of warp w stores `words[w]` at w.
    ///
    /// # Errors
    /// Words outside the array; a missing barrier.
    pub fn store_shared_of_warps<T: Word>(&mut self, array: Array<T>, words: &[T]) -> Result<(), KernelError> {
        self.wait();
        self.issue(1, words.len() * self.lanes());
        self.tally.shared += words.len() as u64 * T::BYTES;
        for (warp, &word) in words.iter().enumerate() {
            self.shared.store(array, warp, warp as u32, word).map_err(|reason| self.fault(reason))?;
        }
        Ok(())
    }

    /// Loads a row from shared memory: thread i of the first `threads` gets word `start + i`.
    ///
    /// # Errors
    /// Words outside the array; a missing barrier.
    pub fn load_shared<T: Word>(
        &mut self,
        array: Array<T>,
        start: usize,
        threads: usize,
        into: &mut Vec<T>,
    ) -> Result<(), KernelError> {
        self.wait();
        self.issue(1, threads);
        self.tally.shared += threads as u64 * T::BYTES;
        into.clear();
        for thread in 0..threads {
            let warp = thread as u32 / self.lanes;
            into.push(
                self.shared.load(array, start.saturating_add(thread), warp).map_err(|reason| self.fault(reason))?,
            );
        }
        Ok(())
    }

    /// Loads from anywhere in shared memory: thread i gets word `indices[i]`, or the default where it has none.
    ///
    /// # Errors
    /// Words outside the array; a missing barrier.
    pub fn gather_shared<T: Word>(
        &mut self,
        array: Array<T>,
        indices: &[Option<usize>],
        into: &mut Vec<T>,
    ) -> Result<(), KernelError> {
        self.wait();
        self.issue(1, indices.len());
        into.clear();
        for (thread, index) in indices.iter().enumerate() {
            let Some(index) = *index else {
                into.push(T::default());
                continue;
            };
            self.tally.shared += T::BYTES;
            let warp = thread as u32 / self.lanes;
            into.push(self.shared.load(array, index, warp).map_err(|reason| self.fault(reason))?);
        }
        Ok(())
    }

    /// Stores anywhere in shared memory: thread i stores a word at an index, where it has one.
    ///
    /// # Errors
    /// Words outside the array; a missing barrier.
    pub fn scatter_shared<T: Word>(
        &mut self,
        array: Array<T>,
        words: &[Option<(usize, T)>],
    ) -> Result<(), KernelError> {
        self.wait();
        self.issue(1, words.len());
        for (thread, word) in words.iter().enumerate() {
            let Some((index, word)) = *word else { continue };
            self.tally.shared += T::BYTES;
            let warp = thread as u32 / self.lanes;
            self.shared.store(array, index, warp, word).map_err(|reason| self.fault(reason))?;
        }
        Ok(())
    }

    /// Shows whoever launched the kernel what the block has in shared memory from `start` on, in words `indices` of a
    /// buffer. No kernel could, so nothing is counted.
    ///
    /// # Errors
    /// Words outside the array or the buffer; a missing barrier.
    pub fn hand_over<T: Word>(
        &mut self,
        buffer: Buffer<T>,
        indices: &[usize],
        array: Array<T>,
        start: usize,
    ) -> Result<(), KernelError> {
        for (place, &index) in indices.iter().enumerate() {
            let warp = place as u32 / self.lanes;
            let word =
                self.shared.load(array, start.saturating_add(place), warp).map_err(|reason| self.fault(reason))?;
            let words = self.memory.words_mut(buffer);
            let length = words.len();
            match words.get_mut(index) {
                Some(target) => *target = word,
                None => return Err(self.outside(length, index.saturating_add(1))),
            }
        }
        Ok(())
    }

    /// The first threads update one shared cell, thread i by `words[i]`, and contend for it.
    ///
    /// # Errors
    /// A word outside the array; a missing barrier.
    pub fn atomic_shared<T: Word>(
        &mut self,
        array: Array<T>,
        index: usize,
        operation: Operation,
        update: Update,
        words: &[T],
    ) -> Result<(), KernelError> {
        self.wait();
        self.issue(1, words.len());
        let bits = match self.shared.cell(array, index) {
            Ok(bits) => bits,
            Err(reason) => return Err(self.fault(reason)),
        };
        let mut cell = T::from_bits(*bits);
        let counts = contend(&mut cell, operation, update, words, &mut Vec::new());
        *bits = cell.bits();
        self.own.shared_attempts = self.own.shared_attempts.max(counts.attempts);
        self.tally.shared += 2 * counts.attempts as u64 * T::BYTES;
        Ok(())
    }
}
