//! Reductions as GPU kernels: one kernel, whose plan says how threads and blocks meet.
//!
//! The numbers are those of [`haversack_kernels::reduce`]: NaN is ignored by the extrema, nothing gives the identity, a zero is +0,
//! sums are f64. Extrema agree with the host's to the bit, sums within 1e-6 of the sum of magnitudes.

use haversack_devices::ProgramCounts;

use crate::atomic::Update;
use crate::block::Block;
use crate::machine::{Kernel, Launch, Machine, Next};
use crate::memory::{Buffer, Memory};
use crate::plan::{Combine, From, NAME, Pass, Placement, Plan, To, instructions, operation};
use crate::shared::Array;
use haversack_kernels::KernelError;
use haversack_kernels::reduce::Statistic;

/// What a reduction found, and what it did.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduced {
    /// One value a statistic, in the order asked for. An extremum is an f32, which an f64 holds exactly.
    pub values: Vec<f64>,
    /// What the machine counted.
    pub counts: ProgramCounts,
}

/// Runs `plan` for `statistics`, all in one pass over `data`.
///
/// # Errors
/// A plan that does not fit the machine: see [`Plan::passes`].
pub fn run(plan: &Plan, statistics: &[Statistic], data: &[f32], machine: &Machine) -> Result<Reduced, KernelError> {
    let passes = plan.passes(statistics, data.len() as u64, machine)?;
    let mut memory = Memory::new();
    let elements = memory.share(data);
    let updates: Vec<Update> = statistics.iter().map(|&statistic| plan.update_of(statistic, machine)).collect();
    let mut counts = ProgramCounts { operators: plan.operators(), memsets: memsets(plan), ..ProgramCounts::default() };
    let mut partials = Vec::new();
    for pass in passes {
        let cells = match pass.to {
            To::Cell => 1,
            To::Partials => usize::try_from(pass.blocks).unwrap_or(usize::MAX),
        };
        let target: Vec<Words> =
            statistics.iter().zip(&updates).map(|(&s, &u)| Words::new(&mut memory, s, u, pass.to, cells)).collect();
        let kernel = Reduction { statistics, updates: &updates, elements, partials: &partials, target: &target, pass };
        let launch = Launch {
            blocks: pass.blocks,
            threads: pass.threads,
            blocks_per_unit: pass.blocks_per_unit,
            epilogue: pass.from == From::Registers,
        };
        counts.kernels.push(machine.run(&mut memory, &kernel, &launch)?);
        partials = target;
    }
    let values = partials.iter().map(|words| words.first(&memory)).collect();
    Ok(Reduced { values, counts })
}

/// Clearings of result cells: one, of all cells of the reduction together, where it ends atomically.
pub(crate) fn memsets(plan: &Plan) -> u32 {
    u32::from(plan.strategy.ends_atomically() && plan.placement == Placement::Own)
}

/// Partial results of one statistic in global memory.
#[derive(Clone, Copy, Debug)]
enum Words {
    F32(Buffer<f32>),
    /// Floats in an integer code of the same order.
    Ordered(Buffer<u32>),
    F64(Buffer<f64>),
}

impl Words {
    fn new(memory: &mut Memory<'_>, statistic: Statistic, update: Update, to: To, length: usize) -> Self {
        let identity = statistic.identity();
        match (statistic.is_order_free(), to, update) {
            (false, ..) => Self::F64(memory.fill(length, identity)),
            (true, To::Cell, Update::Native) => Self::Ordered(memory.fill(length, ordered(identity as f32))),
            (true, ..) => Self::F32(memory.fill(length, identity as f32)),
        }
    }

    /// The first word, a zero as +0.
    fn first(self, memory: &Memory<'_>) -> f64 {
        let value = match self {
            Self::F32(words) => memory.words(words).first().map(|&word| f64::from(word)),
            Self::Ordered(words) => memory.words(words).first().map(|&word| f64::from(from_ordered(word))),
            Self::F64(words) => memory.words(words).first().copied(),
        };
        value.unwrap_or(f64::NAN) + 0.0
    }
}

/// The bits of a float as an integer of the same order: flip all bits of a negative, the sign of the others.
fn ordered(value: f32) -> u32 {
    let bits = value.to_bits();
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

fn from_ordered(code: u32) -> f32 {
    f32::from_bits(if code >> 31 == 1 { code ^ 1 << 31 } else { !code })
}

/// One pass.
struct Reduction<'k> {
    statistics: &'k [Statistic],
    updates: &'k [Update],
    elements: Buffer<f32>,
    partials: &'k [Words],
    target: &'k [Words],
    pass: Pass,
}

/// What the threads of a block hold: a partial result a statistic and thread.
struct Registers {
    partial: Vec<Vec<f64>>,
    shared: Vec<SharedWords>,
    /// Threads that had an operand.
    active: usize,
}

#[derive(Clone, Copy)]
enum SharedWords {
    F32(Array<f32>),
    F64(Array<f64>),
}

impl SharedWords {
    fn new(block: &mut Block<'_, '_>, statistic: Statistic, length: usize) -> Self {
        if statistic.is_order_free() {
            Self::F32(block.shared_array(length))
        } else {
            Self::F64(block.shared_array(length))
        }
    }

    fn store(self, block: &mut Block<'_, '_>, values: &[f64]) -> Result<(), KernelError> {
        match self {
            Self::F32(array) => block.store_shared(array, 0, &narrow(values)),
            Self::F64(array) => block.store_shared(array, 0, values),
        }
    }

    fn load(self, block: &mut Block<'_, '_>, start: usize, threads: usize) -> Result<Vec<f64>, KernelError> {
        match self {
            Self::F32(array) => {
                let mut words = Vec::new();
                block.load_shared(array, start, threads, &mut words)?;
                Ok(words.into_iter().map(f64::from).collect())
            }
            Self::F64(array) => {
                let mut words = Vec::new();
                block.load_shared(array, start, threads, &mut words)?;
                Ok(words)
            }
        }
    }
}

fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

/// `into` with operands of `statistic` added: those of the first pass are elements.
fn accumulate(statistic: Statistic, first: bool, into: &mut [f64], operands: impl Iterator<Item = f64>) {
    let pairs = into.iter_mut().zip(operands);
    match statistic {
        Statistic::Minimum => pairs.for_each(|(so_far, next)| *so_far = if next < *so_far { next } else { *so_far }),
        Statistic::Maximum => pairs.for_each(|(so_far, next)| *so_far = if next > *so_far { next } else { *so_far }),
        Statistic::AbsoluteMaximum => pairs.for_each(|(so_far, next)| {
            let next = next.abs();
            *so_far = if next > *so_far { next } else { *so_far };
        }),
        Statistic::SumOfSquares if first => pairs.for_each(|(so_far, next)| *so_far += next * next),
        Statistic::Sum | Statistic::SumOfSquares => pairs.for_each(|(so_far, next)| *so_far += next),
    }
}

impl Kernel for Reduction<'_> {
    type Registers = Registers;
    const NAME: &'static str = NAME;

    fn start(&self, block: &mut Block<'_, '_>) -> Result<Registers, KernelError> {
        let threads = block.threads();
        let words = match self.pass.combine {
            Combine::Nothing => 0,
            Combine::Tree => threads,
            Combine::Shuffles if threads <= block.lanes() => 0,
            Combine::Shuffles => threads.div_ceil(block.lanes()),
            Combine::SharedCell(_) => 1,
        };
        let shared = self.statistics.iter().map(|&statistic| SharedWords::new(block, statistic, words)).collect();
        let partial = self.statistics.iter().map(|statistic| vec![statistic.identity(); threads]).collect();
        Ok(Registers { partial, shared, active: 0 })
    }

    fn phase(&self, _: u32, registers: &mut Registers, block: &mut Block<'_, '_>) -> Result<Next, KernelError> {
        self.stride(registers, block)?;
        match self.pass.combine {
            Combine::Nothing => {}
            Combine::Tree => self.tree(registers, block)?,
            Combine::Shuffles => self.shuffle(registers, block)?,
            Combine::SharedCell(update) => self.shared_cell(update, registers, block)?,
        }
        self.publish(registers, block)?;
        Ok(Next::Done)
    }
}

impl Reduction<'_> {
    /// Each thread reduces its operands: the block takes every `blocks`th tile, whose rows are loaded in one trip.
    fn stride(&self, registers: &mut Registers, block: &mut Block<'_, '_>) -> Result<(), KernelError> {
        let (threads, end) = (block.threads() as u64, self.pass.elements);
        let tile = threads * u64::from(self.pass.items);
        let mut first = block.index() * tile;
        while first < end {
            let last = (first + tile).min(end);
            let rows = || (first..last).step_by(block_threads(threads));
            for row in rows() {
                let active = (last - row).min(threads) as usize;
                registers.active = registers.active.max(active);
                self.row(row as usize, active, registers, block)?;
            }
            let work = self.statistics.iter().map(|&statistic| instructions(statistic, self.pass.from)).sum();
            for row in rows() {
                block.operate(work, (last - row).min(threads) as usize);
            }
            first += block.blocks() * tile;
        }
        Ok(())
    }

    /// Thread i takes operand `row + i`.
    fn row(
        &self,
        row: usize,
        active: usize,
        registers: &mut Registers,
        block: &mut Block<'_, '_>,
    ) -> Result<(), KernelError> {
        if self.pass.from == From::Partials {
            for ((&statistic, into), words) in self.statistics.iter().zip(&mut registers.partial).zip(self.partials) {
                match *words {
                    Words::F32(words) => {
                        let words = block.load_row(words, row, active)?;
                        accumulate(statistic, false, into, words.iter().map(|&word| f64::from(word)));
                    }
                    Words::Ordered(words) => {
                        let words = block.load_row(words, row, active)?;
                        accumulate(statistic, false, into, words.iter().map(|&word| f64::from(from_ordered(word))));
                    }
                    Words::F64(words) => {
                        accumulate(statistic, false, into, block.load_row(words, row, active)?.iter().copied());
                    }
                }
            }
            return Ok(());
        }
        let elements = match self.pass.from {
            From::Registers => block.held(self.elements, row, active)?,
            _ => block.load_row(self.elements, row, active)?,
        };
        for (&statistic, into) in self.statistics.iter().zip(&mut registers.partial) {
            accumulate(statistic, true, into, elements.iter().map(|&element| f64::from(element)));
        }
        Ok(())
    }

    /// A tree in shared memory: the upper half of the threads' words meets the lower half, and so on.
    fn tree(&self, registers: &mut Registers, block: &mut Block<'_, '_>) -> Result<(), KernelError> {
        for (partial, shared) in registers.partial.iter().zip(&registers.shared) {
            shared.store(block, partial)?;
        }
        block.barrier();
        let mut half = block.threads() / 2;
        while half > 0 {
            for (index, &statistic) in self.statistics.iter().enumerate() {
                let shared = registers.shared[index];
                let mut own = shared.load(block, 0, half)?;
                let other = shared.load(block, half, half)?;
                block.operate(instructions(statistic, From::Partials), half);
                accumulate(statistic, false, &mut own, other.into_iter());
                shared.store(block, &own)?;
                registers.partial[index] = own;
            }
            block.barrier();
            half /= 2;
        }
        Ok(())
    }

    /// Shuffles within each warp; the first lanes meet in shared memory, and the first warp shuffles those.
    fn shuffle(&self, registers: &mut Registers, block: &mut Block<'_, '_>) -> Result<(), KernelError> {
        let (threads, lanes) = (block.threads(), block.lanes());
        for (&statistic, partial) in self.statistics.iter().zip(&mut registers.partial) {
            shuffled(statistic, partial, threads, block);
        }
        if threads <= lanes {
            return Ok(());
        }
        for (partial, shared) in registers.partial.iter().zip(&registers.shared) {
            let firsts: Vec<f64> = partial.iter().step_by(lanes).copied().collect();
            store_of_warps(*shared, &firsts, block)?;
        }
        block.barrier();
        let warps = threads.div_ceil(lanes);
        for (index, &statistic) in self.statistics.iter().enumerate() {
            let mut firsts = registers.shared[index].load(block, 0, warps)?;
            firsts.resize(lanes, statistic.identity());
            shuffled(statistic, &mut firsts, lanes, block);
            registers.partial[index] = firsts;
        }
        Ok(())
    }

    /// The first thread clears a cell, all update it, the first reads it.
    fn shared_cell(
        &self,
        update: Update,
        registers: &mut Registers,
        block: &mut Block<'_, '_>,
    ) -> Result<(), KernelError> {
        for (&statistic, shared) in self.statistics.iter().zip(&registers.shared) {
            shared.store(block, &[statistic.identity()])?;
        }
        block.barrier();
        for (index, &statistic) in self.statistics.iter().enumerate() {
            let values = &registers.partial[index][..registers.active];
            match registers.shared[index] {
                SharedWords::F32(array) => {
                    block.atomic_shared(array, 0, operation(statistic), update, &narrow(values))?;
                }
                SharedWords::F64(array) => block.atomic_shared(array, 0, operation(statistic), update, values)?,
            }
        }
        block.barrier();
        for (partial, shared) in registers.partial.iter_mut().zip(&registers.shared) {
            *partial = shared.load(block, 0, 1)?;
        }
        Ok(())
    }

    /// The first thread, or without a combination every one, hands over what it holds.
    fn publish(&self, registers: &Registers, block: &mut Block<'_, '_>) -> Result<(), KernelError> {
        let active = if self.pass.combine == Combine::Nothing { registers.active } else { 1 };
        for (index, &statistic) in self.statistics.iter().enumerate() {
            let values = &registers.partial[index][..active];
            let (operation, update) = (operation(statistic), self.updates[index]);
            match (self.pass.to, self.target[index]) {
                (To::Cell, Words::F32(cell)) => block.atomic(cell, 0, operation, update, &narrow(values)),
                (To::Cell, Words::F64(cell)) => block.atomic(cell, 0, operation, update, values),
                (To::Cell, Words::Ordered(cell)) => {
                    let codes: Vec<u32> = values.iter().map(|&value| ordered(value as f32)).collect();
                    block.atomic(cell, 0, operation, update, &codes);
                }
                (To::Partials, Words::F32(words)) => {
                    block.store_row(words, block.index() as usize, &narrow(values))?;
                }
                (To::Partials, Words::F64(words)) => block.store_row(words, block.index() as usize, values)?,
                (To::Partials, Words::Ordered(_)) => {}
            }
        }
        Ok(())
    }
}

fn block_threads(threads: u64) -> usize {
    usize::try_from(threads.max(1)).unwrap_or(usize::MAX)
}

/// Every warp's first lane gets the result of its warp.
fn shuffled(statistic: Statistic, values: &mut [f64], threads: usize, block: &mut Block<'_, '_>) {
    let mut distance = block.lanes() / 2;
    while distance > 0 {
        if statistic.is_order_free() {
            let mut words = narrow(values);
            block.shuffle_down(&mut words, threads, distance, |a, b| operation(statistic).apply(a, b));
            values.iter_mut().zip(words).for_each(|(value, word)| *value = f64::from(word));
        } else {
            block.shuffle_down(values, threads, distance, |a, b| a + b);
        }
        block.operate(instructions(statistic, From::Partials), threads);
        distance /= 2;
    }
}

/// The first lane of warp w stores word w.
fn store_of_warps(shared: SharedWords, firsts: &[f64], block: &mut Block<'_, '_>) -> Result<(), KernelError> {
    match shared {
        SharedWords::F32(array) => block.store_shared_of_warps(array, &narrow(firsts)),
        SharedWords::F64(array) => block.store_shared_of_warps(array, firsts),
    }
}
