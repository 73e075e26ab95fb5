//! How the threads of a block exchange words: shuffles within a warp, shared memory between warps.

use haversack_devices::units::Bytes;
use haversack_gpu::Update;
use haversack_kernels::KernelError;

use super::super::atomic::{Operation, contend};
use super::super::memory::Word;
use super::super::shared::Array;
use super::Block;

impl Block<'_, '_> {
    /// Every warp does one shuffle per 32-bit register, of which a word takes `bytes`, among the first `threads`
    /// threads: `step` combines a lane's word with the word of lane `lane + distance` of the same warp, or with its own
    /// if that lane does not exist.
    pub fn shuffle_down<T: Word>(
        &mut self,
        words: &mut [T],
        bytes: u64,
        threads: usize,
        distance: usize,
        step: impl Fn(T, T) -> T,
    ) {
        self.wait();
        let registers = bytes.div_ceil(4);
        self.issue(registers, threads);
        self.tally.shuffles += registers * (threads as u64).div_ceil(u64::from(self.lanes));
        let active = words.len().min(threads);
        for warp in words[..active].chunks_mut(self.lanes as usize) {
            let before = warp.to_vec();
            for (lane, word) in warp.iter_mut().enumerate() {
                let from = lane.saturating_add(distance);
                *word = step(before[lane], before.get(from).copied().unwrap_or(before[lane]));
            }
        }
    }

    /// Reserves shared memory, at the start of a block.
    pub fn shared_array<T: Word>(&mut self, length: usize) -> Array<T> {
        self.shared.array(T::BYTES, length)
    }

    /// The same, with words that the GPU stores in `bytes` bytes: for numbers that a narrower type represents exactly.
    pub(crate) fn shared_array_as<T: Word>(&mut self, bytes: u64, length: usize) -> Array<T> {
        self.shared.array(bytes, length)
    }

    /// Shared memory of the block.
    pub fn shared_held(&self) -> Bytes {
        Bytes(self.shared.bytes())
    }

    /// Stores words in shared memory, each by a warp at an index.
    fn put<T: Word>(
        &mut self,
        array: Array<T>,
        words: impl Iterator<Item = (usize, usize, T)>,
    ) -> Result<(), KernelError> {
        for (warp, index, word) in words {
            self.tally.shared += array.bytes;
            self.shared.store(array, index, warp as u32, word).map_err(|reason| self.fault(reason))?;
        }
        Ok(())
    }

    /// The word at an index of shared memory, for a thread.
    fn take<T: Word>(&mut self, array: Array<T>, index: usize, thread: usize) -> Result<T, KernelError> {
        self.shared.load(array, index, thread as u32 / self.lanes).map_err(|reason| self.fault(reason))
    }

    /// Stores a row in shared memory: thread i of the first ones stores `words[i]` at `start + i`.
    ///
    /// # Errors
    /// Words outside the array; a missing barrier.
    pub fn store_shared<T: Word>(&mut self, array: Array<T>, start: usize, words: &[T]) -> Result<(), KernelError> {
        self.wait();
        self.issue(1, words.len());
        let lanes = self.lanes();
        let place = |(thread, &word): (usize, &T)| (thread / lanes, start.saturating_add(thread), word);
        self.put(array, words.iter().enumerate().map(place))
    }

    /// The first lane of every warp stores a word: that of warp w stores `words[w]` at w.
    ///
    /// # Errors
    /// Words outside the array; a missing barrier.
    pub fn store_shared_of_warps<T: Word>(&mut self, array: Array<T>, words: &[T]) -> Result<(), KernelError> {
        self.wait();
        self.issue(1, words.len() * self.lanes());
        self.put(array, words.iter().enumerate().map(|(warp, &word)| (warp, warp, word)))
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
    ) -> Result<Vec<T>, KernelError> {
        self.wait();
        self.issue(1, threads);
        self.tally.shared += threads as u64 * array.bytes;
        (0..threads).map(|thread| self.take(array, start.saturating_add(thread), thread)).collect()
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
        self.tally.shared += 2 * counts.attempts as u64 * array.bytes;
        Ok(())
    }
}
