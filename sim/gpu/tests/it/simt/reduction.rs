//! Reductions as GPU kernels: one kernel, whose plan defines how threads and blocks combine their results.
//!
//! The numbers are those of [`haversack_kernels::reduce`]: extrema ignore NaN, empty input gives the identity, a zero
//! is +0, sums are f64. Extrema agree with the host's to the bit, sums within 1e-6 of the sum of magnitudes.

use haversack_devices::ProgramCounts;
use haversack_gpu::plan::{Combine, From, NAME, Pass, To, instructions, word_bytes};
use haversack_gpu::{Machine, Placement, Plan, Update};
use haversack_kernels::KernelError;
use haversack_kernels::reduce::Statistic;

use super::atomic::Operation;
use super::block::Block;
use super::machine::{Kernel, Launch, Next, Run};
use super::memory::{Buffer, Memory};
use super::shared::Array;

/// The result of a reduction, and its counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduced {
    /// One value per statistic, in the requested order. An extremum is an f32, which an f64 represents exactly.
    pub values: Vec<f64>,
    /// The machine's counts.
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
    let memsets = u32::from(plan.strategy.ends_atomically() && plan.placement == Placement::Own);
    let mut counts = ProgramCounts { operators: plan.operators(), memsets, ..ProgramCounts::default() };
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

/// Partial results of one statistic in global memory: an extremum is an f32 there, which an f64 represents exactly.
#[derive(Clone, Copy, Debug)]
struct Words {
    buffer: Buffer<f64>,
    /// Whether they are floats in an order-preserving integer code.
    are_ordered: bool,
}

impl Words {
    fn new(memory: &mut Memory<'_>, statistic: Statistic, update: Update, to: To, length: usize) -> Self {
        let are_ordered = statistic.is_order_free() && (to, update) == (To::Cell, Update::Native);
        let identity = if are_ordered { ordered(statistic.identity()) } else { statistic.identity() };
        Self { buffer: memory.fill_as(word_bytes(statistic), length, identity), are_ordered }
    }

    /// The first word, with a zero as +0.
    fn first(self, memory: &Memory<'_>) -> f64 {
        let word = memory.words(self.buffer).first().copied().unwrap_or(f64::NAN);
        (if self.are_ordered { from_ordered(word) } else { word }) + 0.0
    }
}

/// The bits of a float as an integer in the same order: flips all bits of a negative number, and the sign of others.
fn ordered(value: f64) -> f64 {
    let bits = (value as f32).to_bits();
    f64::from(if bits >> 31 == 1 { !bits } else { bits | 1 << 31 })
}

fn from_ordered(code: f64) -> f64 {
    let code = code as u32;
    f64::from(f32::from_bits(if code >> 31 == 1 { code ^ 1 << 31 } else { !code }))
}

/// The operation that combines two partial results.
fn operation(statistic: Statistic) -> Operation {
    match statistic {
        Statistic::Minimum => Operation::Minimum,
        Statistic::Maximum => Operation::Maximum,
        Statistic::SumOfSquares => Operation::Add,
    }
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

/// The registers of a block: a partial result per statistic and thread.
struct Registers {
    partial: Vec<Vec<f64>>,
    shared: Vec<Array<f64>>,
    /// Threads that had an operand.
    active: usize,
}

/// `into` with operands of `statistic` added: those of the first pass are elements.
fn accumulate(statistic: Statistic, first: bool, into: &mut [f64], operands: impl Iterator<Item = f64>) {
    let pairs = into.iter_mut().zip(operands);
    match statistic {
        Statistic::Minimum => pairs.for_each(|(so_far, next)| *so_far = if next < *so_far { next } else { *so_far }),
        Statistic::Maximum => pairs.for_each(|(so_far, next)| *so_far = if next > *so_far { next } else { *so_far }),
        Statistic::SumOfSquares if first => pairs.for_each(|(so_far, next)| *so_far += next * next),
        Statistic::SumOfSquares => pairs.for_each(|(so_far, next)| *so_far += next),
    }
}

impl Kernel for Reduction<'_> {
    type Registers = Registers;
    const NAME: &'static str = NAME;

    fn start(&self, block: &mut Block<'_, '_>) -> Result<Registers, KernelError> {
        let threads = block.threads();
        let words = self.pass.combine.words(block.threads, block.lanes) as usize;
        let array = |&statistic: &Statistic| block.shared_array_as(word_bytes(statistic), words);
        let shared = self.statistics.iter().map(array).collect();
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
    /// Each thread reduces its operands: the block takes every `blocks`th tile, whose rows are
    /// loaded in one round trip.
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
                let operands = block.load_row(words.buffer, row, active)?.iter();
                let operands = operands.map(|&word| if words.are_ordered { from_ordered(word) } else { word });
                accumulate(statistic, false, into, operands);
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

    /// A tree in shared memory: combines the upper half of the threads' words with the lower half, and so on.
    fn tree(&self, registers: &mut Registers, block: &mut Block<'_, '_>) -> Result<(), KernelError> {
        for (partial, shared) in registers.partial.iter().zip(&registers.shared) {
            block.store_shared(*shared, 0, partial)?;
        }
        block.barrier();
        let mut half = block.threads() / 2;
        while half > 0 {
            for (index, &statistic) in self.statistics.iter().enumerate() {
                let shared = registers.shared[index];
                let mut own = block.load_shared(shared, 0, half)?;
                let other = block.load_shared(shared, half, half)?;
                block.operate(instructions(statistic, From::Partials), half);
                accumulate(statistic, false, &mut own, other.into_iter());
                block.store_shared(shared, 0, &own)?;
                registers.partial[index] = own;
            }
            block.barrier();
            half /= 2;
        }
        Ok(())
    }

    /// Shuffles within each warp; the first lanes' results go through shared memory, and the first warp shuffles those.
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
            block.store_shared_of_warps(*shared, &firsts)?;
        }
        block.barrier();
        let warps = threads.div_ceil(lanes);
        for (index, &statistic) in self.statistics.iter().enumerate() {
            let mut firsts = block.load_shared(registers.shared[index], 0, warps)?;
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
            block.store_shared(*shared, 0, &[statistic.identity()])?;
        }
        block.barrier();
        for (index, &statistic) in self.statistics.iter().enumerate() {
            let values = &registers.partial[index][..registers.active];
            block.atomic_shared(registers.shared[index], 0, operation(statistic), update, values)?;
        }
        block.barrier();
        for (partial, shared) in registers.partial.iter_mut().zip(&registers.shared) {
            *partial = block.load_shared(*shared, 0, 1)?;
        }
        Ok(())
    }

    /// The first thread, or every thread without a combination, writes its partial result.
    fn publish(&self, registers: &Registers, block: &mut Block<'_, '_>) -> Result<(), KernelError> {
        let active = if self.pass.combine == Combine::Nothing { registers.active } else { 1 };
        for (index, &statistic) in self.statistics.iter().enumerate() {
            let values = &registers.partial[index][..active];
            let Words { buffer, are_ordered } = self.target[index];
            match self.pass.to {
                To::Partials => block.store_row(buffer, block.index() as usize, values)?,
                To::Cell => {
                    let codes: Vec<f64> =
                        values.iter().map(|&value| if are_ordered { ordered(value) } else { value }).collect();
                    block.atomic(buffer, 0, operation(statistic), self.updates[index], &codes);
                }
            }
        }
        Ok(())
    }
}

fn block_threads(threads: u64) -> usize {
    usize::try_from(threads.max(1)).unwrap_or(usize::MAX)
}

/// Every warp's first lane gets the result of its warp. A block with fewer threads than lanes has no other lanes to
/// read.
fn shuffled(statistic: Statistic, values: &mut [f64], threads: usize, block: &mut Block<'_, '_>) {
    let mut distance = block.lanes().min(threads) / 2;
    while distance > 0 {
        let step = |a, b| operation(statistic).apply(a, b);
        block.shuffle_down(values, word_bytes(statistic), threads, distance, step);
        block.operate(instructions(statistic, From::Partials), threads);
        distance /= 2;
    }
}
