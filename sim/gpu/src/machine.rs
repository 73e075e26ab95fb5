//! Runs a grid of blocks, wave by wave, and counts.
//!
//! The resident blocks of a wave advance in lock step, a phase at a time; at the end of a phase the atomics of all of
//! them contend. Blocks of the next wave start together when the last of the wave has ended.

use std::collections::{BTreeMap, BTreeSet};

use haversack_devices::units::Bytes;
use haversack_devices::{AtomicCounts, Device, Gpu, GpuLimits, KernelCounts};

use crate::atomic::contend;
use crate::block::{Block, Own, Request, Tally};
use crate::memory::{Memory, SECTOR, Storage, Word};
use crate::shared::Shared;
use haversack_kernels::KernelError;

/// The most threads of a block in CUDA and in the OpenCL of the GPUs modelled.
const MOST_THREADS: u32 = 1024;

/// What runs a kernel: what a GPU holds at once, and how wide its warps are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Machine {
    /// What is resident at once.
    pub limits: GpuLimits,
    /// Lanes of a warp: 32 on NVIDIA's GPUs, 64 or 128 on Adreno, 8 or 16 on Mali.
    pub lanes: u32,
    /// Whether the memory system adds floats by itself, as CUDA's does; OpenCL 2 needs a compare-and-swap.
    pub adds_natively: bool,
}

/// A grid to be run.
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

/// A kernel: what one block does, in phases that end where its global atomics do.
pub trait Kernel {
    /// What the threads of a block keep from one phase to the next.
    type Registers;

    /// Its name, for errors.
    const NAME: &'static str;

    /// A new block: reserves shared memory.
    ///
    /// # Errors
    /// Whatever the block refuses.
    fn start(&self, block: &mut Block<'_, '_>) -> Result<Self::Registers, KernelError>;

    /// One phase of a block; phases count from nought.
    ///
    /// # Errors
    /// Whatever the block refuses.
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

impl Machine {
    /// The machine of a GPU with warps of 32 lanes that adds floats by compare-and-swap.
    pub fn of(gpu: &Gpu) -> Self {
        Self { limits: gpu.limits(), lanes: 32, adds_natively: false }
    }

    /// The machine of a device's GPU, where it has one: with the lanes and the float atomics that its file gives it.
    pub fn of_device(device: &Device) -> Option<Self> {
        let constants = device.constants.gpu.as_ref()?;
        let machine = Self { adds_natively: constants.native_float_atomics, ..Self::of(&device.gpu()?) };
        let lanes = constants.lanes.as_ref().map_or(machine.lanes, |lanes| lanes.value.0 as u32);
        Some(machine.with_lanes(lanes))
    }

    /// The same machine with warps of so many lanes.
    pub fn with_lanes(self, lanes: u32) -> Self {
        Self { lanes, ..self }
    }

    /// Blocks of `threads` threads and `shared` bytes of shared memory, resident on a unit.
    ///
    /// # Errors
    /// No threads; more than a block may have; more shared memory than a unit has; a width of warps that is no power
    /// of two up to 128.
    pub fn blocks_per_unit(&self, kernel: &'static str, threads: u32, shared: Bytes) -> Result<u32, KernelError> {
        let refuse = |reason: String| Err(KernelError::Launch { kernel, reason });
        if !self.lanes.is_power_of_two() || self.lanes > 128 {
            return refuse(format!("warps of {} lanes; expected a power of two up to 128", self.lanes));
        }
        if threads == 0 {
            return refuse("a block of no threads".to_owned());
        }
        let most = self.limits.threads.min(MOST_THREADS);
        if threads > most {
            return refuse(format!("a block of {threads} threads; this GPU runs at most {most}"));
        }
        if shared > self.limits.shared {
            return refuse(format!("a block with {shared} of shared memory; a unit has {}", self.limits.shared));
        }
        if self.limits.blocks == 0 {
            return refuse("no block is resident on a unit".to_owned());
        }
        Ok(self.limits.blocks_per_unit(threads, shared).max(1))
    }

    /// Blocks resident on all units.
    fn resident(&self, kernel: &'static str, launch: &Launch) -> Result<u64, KernelError> {
        self.blocks_per_unit(kernel, launch.threads, Bytes::ZERO)?;
        let resident = (u64::from(self.limits.units) * u64::from(launch.blocks_per_unit)).min(launch.blocks);
        if resident == 0 {
            let reason = format!("{} blocks, of which {} a unit", launch.blocks, launch.blocks_per_unit);
            return Err(KernelError::Launch { kernel, reason });
        }
        Ok(resident)
    }

    /// Runs `kernel` on `memory`.
    ///
    /// # Errors
    /// A launch that does not fit the machine, a word outside a buffer, a missing barrier.
    pub fn run<K: Kernel>(
        &self,
        memory: &mut Memory<'_>,
        kernel: &K,
        launch: &Launch,
    ) -> Result<KernelCounts, KernelError> {
        let resident = self.resident(K::NAME, launch)?;
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

    /// One phase of one block.
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

    /// The atomics of all resident blocks, cell by cell; requests of one cell in the order of blocks and threads.
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
            *cell = cell.and(counts);
        }
        requests.clear();
        self.requests = requests;
        Ok(())
    }

    fn counts(mut self) -> KernelCounts {
        // A cell comes to the L2 once, and leaves it once.
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

/// Lets the requests contend for their cell and tells each block what it found; nothing where there is no such word.
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
