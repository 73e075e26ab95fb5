//! Runs a grid of blocks, wave by wave, and counts.
//!
//! The resident blocks of a wave advance in lock step, a phase at a time; at the end of a phase, the atomics of all of
//! them contend. Blocks of the next wave start together when the last of the wave has ended.

use std::collections::{BTreeMap, BTreeSet};

use haversack_devices::units::Bytes;
use haversack_devices::{AtomicCounts, KernelCounts};
use haversack_gpu::Machine;
use haversack_gpu::counts::SECTOR;
use haversack_kernels::KernelError;

use super::atomic::contend;
use super::block::{Block, Own, Request, Tally};
use super::memory::{Memory, Storage, Word};
use super::shared::Shared;
use crate::common::both;

/// A grid to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks of the grid.
    pub blocks: u64,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks resident on a unit.
    pub blocks_per_unit: u32,
    /// Whether the kernel is launched, or is the epilogue of one that is launched anyway.
    pub epilogue: bool,
}

/// How a phase of a kernel ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The block waits for its global atomics, then enters its next phase.
    Atomics,
    /// The block is done, once its global atomics are.
    Done,
}

/// A kernel: the work of one block, in phases that end at its global atomics.
pub trait Kernel {
    /// The state that the threads of a block keep from one phase to the next.
    type Registers;

    /// Its name, for errors.
    const NAME: &'static str;

    /// Starts a new block, which reserves its shared memory.
    ///
    /// # Errors
    /// An error of the block.
    fn start(&self, block: &mut Block<'_, '_>) -> Result<Self::Registers, KernelError>;

    /// One phase of a block; phases count from zero.
    ///
    /// # Errors
    /// An error of the block.
    fn phase(
        &self,
        phase: u32,
        registers: &mut Self::Registers,
        block: &mut Block<'_, '_>,
    ) -> Result<Next, KernelError>;
}

/// A resident block.
struct Slot<R> {
    index: u64,
    registers: Option<R>,
    shared: Shared,
    own: Own,
    seen: Vec<u64>,
    phase: u32,
}

impl<R> Slot<R> {
    fn new() -> Self {
        let (shared, own) = (Shared::default(), Own::default());
        Self { index: 0, registers: None, shared, own, seen: Vec::new(), phase: 0 }
    }
}

/// Runs kernels.
pub trait Run {
    /// Runs `kernel` on `memory`.
    ///
    /// # Errors
    /// A launch that does not fit the machine, a word outside a buffer, a missing barrier.
    fn run<K: Kernel>(&self, memory: &mut Memory<'_>, kernel: &K, launch: &Launch)
    -> Result<KernelCounts, KernelError>;
}

/// Blocks resident on all units.
fn resident(machine: &Machine, kernel: &'static str, launch: &Launch) -> Result<u64, KernelError> {
    machine.blocks_per_unit(kernel, launch.threads, Bytes::ZERO)?;
    let resident = machine.resident(launch.blocks_per_unit, launch.blocks);
    if resident == 0 {
        let reason = format!("{} blocks, of which {} a unit", launch.blocks, launch.blocks_per_unit);
        return Err(KernelError::Launch { kernel, reason });
    }
    Ok(resident)
}

impl Run for Machine {
    fn run<K: Kernel>(
        &self,
        memory: &mut Memory<'_>,
        kernel: &K,
        launch: &Launch,
    ) -> Result<KernelCounts, KernelError> {
        let resident = resident(self, K::NAME, launch)?;
        let mut grid = Grid::new(self, memory, kernel, launch, resident);
        let mut first = 0;
        while first < launch.blocks {
            let end = (first + resident).min(launch.blocks);
            grid.wave(first..end)?;
            first = end;
        }
        Ok(grid.counts())
    }
}

/// A running grid.
struct Grid<'g, 'a, K: Kernel> {
    machine: &'g Machine,
    memory: &'g mut Memory<'a>,
    kernel: &'g K,
    launch: &'g Launch,
    resident: u64,
    waves: u64,
    slots: Vec<Slot<K::Registers>>,
    requests: Vec<Request>,
    tally: Tally,
    most: Own,
    shared_held: u64,
    cells: BTreeMap<(usize, usize), AtomicCounts>,
}

impl<'g, 'a, K: Kernel> Grid<'g, 'a, K> {
    fn new(machine: &'g Machine, memory: &'g mut Memory<'a>, kernel: &'g K, launch: &'g Launch, resident: u64) -> Self {
        Self {
            machine,
            memory,
            kernel,
            launch,
            resident,
            waves: 0,
            slots: (0..resident).map(|_| Slot::new()).collect(),
            requests: Vec::new(),
            tally: Tally::default(),
            most: Own::default(),
            shared_held: 0,
            cells: BTreeMap::new(),
        }
    }

    /// Runs the blocks of one wave to their ends.
    fn wave(&mut self, blocks: std::ops::Range<u64>) -> Result<(), KernelError> {
        self.waves += 1;
        let mut running = Vec::with_capacity(self.slots.len());
        for (slot, index) in blocks.enumerate() {
            let place = &mut self.slots[slot];
            place.index = index;
            place.own = Own::default();
            place.shared.clear();
            place.seen.clear();
            place.phase = 0;
            place.registers = None;
            running.push(slot);
        }
        while !running.is_empty() {
            let mut still = Vec::with_capacity(running.len());
            for &slot in &running {
                if self.advance(slot)? == Next::Atomics {
                    still.push(slot);
                }
            }
            self.serve()?;
            running = still;
        }
        Ok(())
    }

    /// Executes one phase of one block.
    fn advance(&mut self, slot: usize) -> Result<Next, KernelError> {
        let place = &mut self.slots[slot];
        let seen = std::mem::take(&mut place.seen);
        let mut block = Block {
            kernel: K::NAME,
            index: place.index,
            blocks: self.launch.blocks,
            threads: self.launch.threads,
            lanes: self.machine.lanes,
            slot,
            memory: self.memory,
            shared: &mut place.shared,
            tally: &mut self.tally,
            own: &mut place.own,
            requests: &mut self.requests,
            wanted: 0,
            seen: &seen,
        };
        let registers = match &mut place.registers {
            Some(registers) => registers,
            empty => empty.insert(self.kernel.start(&mut block)?),
        };
        let next = self.kernel.phase(place.phase, registers, &mut block)?;
        let held = block.shared_held();
        if held > self.machine.limits.shared {
            let reason = format!("a block with {held} of shared memory; a unit has {}", self.machine.limits.shared);
            return Err(KernelError::Launch { kernel: K::NAME, reason });
        }
        place.seen = vec![0; block.wanted];
        place.phase += 1;
        self.shared_held = self.shared_held.max(held.0);
        if next == Next::Done {
            let own = place.own;
            self.most.barriers = self.most.barriers.max(own.barriers);
            self.most.round_trips = self.most.round_trips.max(own.round_trips);
            self.most.operations = self.most.operations.max(own.operations);
            self.tally.shared_attempts += own.shared_attempts;
        }
        Ok(next)
    }

    /// Executes the atomics of all resident blocks, cell by cell; requests for one cell in the
    /// order of blocks and threads.
    fn serve(&mut self) -> Result<(), KernelError> {
        let mut requests = std::mem::take(&mut self.requests);
        requests.sort_by_key(|request| (request.buffer, request.word));
        for group in requests.chunk_by(|a, b| (a.buffer, a.word) == (b.buffer, b.word)) {
            let first = group[0];
            if group.iter().any(|request| (request.operation, request.update) != (first.operation, first.update)) {
                let reason = "two kinds of atomics on one cell in one phase".to_owned();
                return Err(KernelError::Launch { kernel: K::NAME, reason });
            }
            let counts = match self.memory.buffers.get_mut(first.buffer) {
                Some(Storage::F32(words)) => serve_cell(words.to_mut(), group, &mut self.slots),
                Some(Storage::U32(words)) => serve_cell(words.to_mut(), group, &mut self.slots),
                Some(Storage::F64(words)) => serve_cell(words.to_mut(), group, &mut self.slots),
                None => None,
            };
            let Some(counts) = counts else {
                let reason = format!("an atomic on word {}, outside its buffer", first.word);
                return Err(KernelError::Launch { kernel: K::NAME, reason });
            };
            let cell = self.cells.entry((first.buffer, first.word)).or_default();
            *cell = both(*cell, counts);
        }
        requests.clear();
        self.requests = requests;
        Ok(())
    }

    fn counts(mut self) -> KernelCounts {
        // A cell is read into the L2 once, and written back once.
        let sector = SECTOR;
        let place = |&(buffer, word): &(usize, usize)| (buffer, word as u64 * self.memory.bytes[buffer] / sector);
        let sectors: BTreeSet<_> = self.cells.keys().map(place).collect();
        for &(buffer, place) in &sectors {
            self.tally.touched.mark(buffer, place * sector, place * sector + 1);
        }
        let cells = sectors.len() as u64 * sector;
        KernelCounts {
            launches: u32::from(!self.launch.epilogue),
            blocks: self.launch.blocks,
            threads: self.launch.threads,
            resident_blocks: self.resident,
            waves: self.waves,
            read: Bytes(self.tally.read + cells),
            written: Bytes(self.tally.written + cells),
            working_set: Bytes(self.tally.touched.bytes()),
            shared: Bytes(self.tally.shared),
            shared_held: Bytes(self.shared_held),
            barriers: self.most.barriers,
            barriers_of_all: self.tally.barriers,
            shuffles: self.tally.shuffles,
            round_trips: self.most.round_trips,
            operations: self.most.operations,
            lane_operations: self.tally.lane_operations,
            shared_attempts: self.tally.shared_attempts / self.launch.blocks as f64,
            atomics: AtomicCounts::most_contended(self.cells.values().copied().collect()),
            atomic_cells: self.cells.len() as u64,
        }
    }
}

/// Executes the contending requests for a cell and gives each block the value that it found; `None`
/// if the word does not exist.
fn serve_cell<T: Word, R>(words: &mut [T], group: &[Request], slots: &mut [Slot<R>]) -> Option<AtomicCounts> {
    let first = group.first()?;
    let cell = words.get_mut(first.word)?;
    let values: Vec<T> = group.iter().map(|request| T::from_bits(request.bits)).collect();
    let mut seen = Vec::new();
    let counts = contend(cell, first.operation, first.update, &values, &mut seen);
    for (request, found) in group.iter().zip(seen) {
        if let Some(place) = slots.get_mut(request.slot).and_then(|slot| slot.seen.get_mut(request.place)) {
            *place = found.bits();
        }
    }
    Some(counts)
}
