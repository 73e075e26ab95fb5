//! How a reduction is spread over a GPU: the strategies of DAF's section 3.2 and of CUB, and their passes.

use haversack_devices::Bytes;
use haversack_kernels::{KernelError, Statistic};
use strum::IntoStaticStr;

use crate::machine::Machine;

/// CUB's `CUB_SUBSCRIPTION_FACTOR`: its grid has at most this many times the resident blocks.
const SUBSCRIPTION: u32 = 5;

/// More elements than fit in any memory, and few enough that no count of them overflows.
pub(crate) const MOST_ELEMENTS: u64 = 1 << 48;

/// How partial results are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Strategy {
    /// A tree in shared memory within the block, whose results go to DRAM, and further launches over those until one is
    /// left (section 3.2.1). One element per thread.
    Tree,
    /// Every thread updates the one global cell atomically (section 3.2.2, Algorithm 1). One element per thread.
    Atomic,
    /// A tree within the block, then one atomic per block on the global cell (figure 4).
    Hybrid,
    /// Threads update a cell of their block in shared memory, then one atomic per block updates the
    /// global cell (section 3.2.2).
    ThreadThenBlock,
    /// CUB's `DeviceReduce`: tiles, shuffles within the block, and a second launch of one block over the results; a
    /// single launch if one tile covers all elements.
    TwoPass,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: [Self; 5] = [Self::Tree, Self::Atomic, Self::Hybrid, Self::ThreadThenBlock, Self::TwoPass];

    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it ends with atomics on a global cell, which must be cleared before, so that it can be an epilogue.
    pub const fn ends_atomically(self) -> bool {
        matches!(self, Self::Atomic | Self::Hybrid | Self::ThreadThenBlock)
    }
}

/// How the update is made atomic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Update {
    /// DAF's Algorithm 1: load, then compare-and-swap on the bits until none interferes, even if
    /// the value does not change.
    #[default]
    Unconditional,
    /// The same, but only while a test shows that the value would change the cell; a sum always
    /// would, so it is unconditional.
    Tested,
    /// One instruction of the memory system: on an extremum, the integer one on an order-preserving code of the float.
    Native,
}

impl Update {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::Unconditional, Self::Tested, Self::Native];

    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Round trips to memory that a thread waits for without interference: the load, and the swap unless the test made
    /// it unnecessary; a thread does not wait for a native update whose result is unused.
    pub const fn round_trips(self) -> u64 {
        match self {
            Self::Unconditional => 2,
            Self::Tested => 1,
            Self::Native => 0,
        }
    }
}

/// The number of blocks of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grid {
    /// One block per tile.
    Whole,
    /// At most this many times the resident blocks; each strides over the tensor.
    Resident(u32),
    /// At most this many blocks per unit; each strides over the tensor.
    PerUnit(u32),
}

/// Where a reduction runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    /// In its own kernels.
    #[default]
    Own,
    /// At the end of the kernel that computes the tensor (section 3.2.3): without a launch and without reading the
    /// tensor again. The grid is that kernel's, one tile per block. Its cells are cleared together with those of all
    /// tensors of the iteration, without a separate launch.
    Epilogue,
}

/// A reduction, ready to run on any machine and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[must_use]
pub struct Plan {
    /// How partial results are combined.
    pub strategy: Strategy,
    /// How extrema are updated atomically, in global and in shared memory; also sums, except in the global cell of a
    /// machine that adds natively.
    pub update: Update,
    /// Threads of a block: a power of two.
    pub threads: u32,
    /// Elements per thread in a tile, loaded in one round trip.
    pub items: u32,
    /// The number of blocks.
    pub grid: Grid,
    /// Whether warps combine by shuffles rather than by a tree in shared memory.
    pub shuffles: bool,
    /// Where it runs.
    pub placement: Placement,
}

impl Plan {
    /// The strategy as in the paper or in CUB, with blocks of `threads` threads.
    pub fn new(strategy: Strategy, threads: u32) -> Self {
        let (items, grid) = match strategy {
            Strategy::Tree | Strategy::Atomic => (1, Grid::Whole),
            Strategy::Hybrid | Strategy::ThreadThenBlock => (4, Grid::Resident(1)),
            Strategy::TwoPass => (16, Grid::Resident(SUBSCRIPTION)),
        };
        let shuffles = strategy == Strategy::TwoPass;
        Self { strategy, update: Update::Unconditional, threads, items, grid, shuffles, placement: Placement::Own }
    }

    /// The strategy as the epilogue of a kernel whose threads compute `outputs` elements each.
    pub fn epilogue(strategy: Strategy, threads: u32, outputs: u32) -> Self {
        let placement = Placement::Epilogue;
        Self { items: outputs, grid: Grid::Whole, placement, ..Self::new(strategy, threads) }
    }

    /// Framework operators for it: none if it is an epilogue.
    pub fn operators(&self) -> u32 {
        u32::from(!matches!(self.placement, Placement::Epilogue))
    }

    /// Memsets of result cells: one, for all cells of the reduction together, if it ends atomically.
    pub(crate) fn memsets(&self) -> u32 {
        u32::from(self.strategy.ends_atomically() && self.placement == Placement::Own)
    }

    /// The same plan with another update.
    pub fn with_update(self, update: Update) -> Self {
        Self { update, ..self }
    }

    /// How the plan updates the global cell of `statistic` on `machine`.
    pub fn update_of(&self, statistic: Statistic, machine: &Machine) -> Update {
        match self.update {
            _ if statistic.is_order_free() => self.update,
            _ if machine.adds_natively => Update::Native,
            Update::Native => Update::Unconditional,
            update => update,
        }
    }

    /// The passes over `elements` elements.
    ///
    /// # Errors
    /// No statistics; more than 2^48 elements; a block size that is not a power of two or does not fit; no elements per
    /// thread; a tree of one thread; an epilogue with a strategy that needs its own launch; with shuffles, more warps
    /// than a warp has lanes to combine them.
    pub fn passes(&self, statistics: &[Statistic], elements: u64, machine: &Machine) -> Result<Vec<Pass>, KernelError> {
        self.check(statistics, elements, machine)?;
        let tile = u64::from(self.threads) * u64::from(self.items);
        let (combine, from) = (self.combine(), self.from());
        let shared = combine.shared(statistics, self.threads, machine.lanes);
        let blocks_per_unit = machine.blocks_per_unit(NAME, self.threads, shared)?;
        let units = u64::from(machine.limits.units);
        let tiles = elements.div_ceil(tile).max(1);
        let most = match self.grid {
            Grid::Whole => u64::MAX,
            Grid::Resident(times) => (units * u64::from(blocks_per_unit)).saturating_mul(u64::from(times.max(1))),
            Grid::PerUnit(blocks) => units * u64::from(blocks.max(1)),
        };
        let pass = |elements, blocks, from, to| Pass {
            elements,
            blocks,
            threads: self.threads,
            items: self.items,
            blocks_per_unit,
            from,
            combine,
            to,
        };
        let blocks = tiles.min(most);
        if self.strategy.ends_atomically() {
            return Ok(vec![pass(elements, blocks, from, To::Cell)]);
        }
        let mut passes = vec![pass(elements, blocks, from, To::Partials)];
        let mut left = blocks;
        while left > 1 {
            let blocks = if self.strategy == Strategy::Tree { left.div_ceil(tile) } else { 1 };
            passes.push(pass(left, blocks, From::Partials, To::Partials));
            left = blocks;
        }
        Ok(passes)
    }

    fn check(&self, statistics: &[Statistic], elements: u64, machine: &Machine) -> Result<(), KernelError> {
        let refuse = |reason: String| Err(KernelError::Launch { kernel: NAME, reason });
        if elements > MOST_ELEMENTS {
            return refuse(format!("{elements} elements are more than any memory holds"));
        }
        if statistics.is_empty() {
            return refuse("no statistics are requested".to_owned());
        }
        machine.blocks_per_unit(NAME, self.threads, Bytes::ZERO)?;
        if !self.threads.is_power_of_two() {
            return refuse(format!("a block of {} threads; expected a power of two", self.threads));
        }
        if self.items == 0 {
            return refuse("no elements a thread".to_owned());
        }
        if self.strategy == Strategy::Tree && self.threads == 1 && self.items == 1 {
            return refuse("a tree over blocks of one element never ends".to_owned());
        }
        if self.placement == Placement::Epilogue && !self.strategy.ends_atomically() {
            return refuse(format!("{} needs a launch of its own and cannot be an epilogue", self.strategy.name()));
        }
        if self.placement == Placement::Epilogue && self.grid != Grid::Whole {
            return refuse("the grid of an epilogue is its kernel's, a tile a block".to_owned());
        }
        let warps = self.threads.div_ceil(machine.lanes);
        if self.combine() == Combine::Shuffles && warps > machine.lanes {
            return refuse(format!("{warps} warps; one warp of {} lanes must combine them", machine.lanes));
        }
        Ok(())
    }

    fn combine(&self) -> Combine {
        match self.strategy {
            Strategy::Atomic => Combine::Nothing,
            Strategy::ThreadThenBlock => Combine::SharedCell(self.update),
            _ if self.shuffles => Combine::Shuffles,
            _ => Combine::Tree,
        }
    }

    fn from(&self) -> From {
        match self.placement {
            Placement::Own => From::Elements,
            Placement::Epilogue => From::Registers,
        }
    }
}

/// The name of reductions in errors.
pub const NAME: &str = "a reduction";

/// The source of a pass's operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The tensor, in global memory.
    Elements,
    /// The tensor, in registers.
    Registers,
    /// The results of the previous pass, one per block and statistic.
    Partials,
}

/// The destination of a pass's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// A word per block and statistic.
    Partials,
    /// One cell per statistic, updated atomically.
    Cell,
}

/// How the threads of a block combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// They do not: each thread updates the global cell itself.
    Nothing,
    /// A tree in shared memory.
    Tree,
    /// Shuffles within warps, shared memory between them.
    Shuffles,
    /// Atomics on a cell in shared memory.
    SharedCell(Update),
}

impl Combine {
    /// Words of shared memory of a block, for each statistic.
    pub fn words(self, threads: u32, lanes: u32) -> u32 {
        match self {
            Self::Nothing => 0,
            Self::Tree => threads,
            Self::Shuffles if threads <= lanes => 0,
            Self::Shuffles => threads.div_ceil(lanes),
            Self::SharedCell(_) => 1,
        }
    }

    /// Shared memory of a block.
    pub fn shared(self, statistics: &[Statistic], threads: u32, lanes: u32) -> Bytes {
        let bytes: u64 = statistics.iter().map(|&statistic| word_bytes(statistic)).sum();
        Bytes(bytes * u64::from(self.words(threads, lanes)))
    }
}

/// One launch of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Operands.
    pub elements: u64,
    /// Blocks.
    pub blocks: u64,
    /// Threads of a block.
    pub threads: u32,
    /// Operands per thread in a tile.
    pub items: u32,
    /// Blocks resident on a unit.
    pub blocks_per_unit: u32,
    /// The source of the operands.
    pub from: From,
    /// How a block combines them.
    pub combine: Combine,
    /// The destination of the results.
    pub to: To,
}

/// Bytes of a partial result: an extremum is an f32; a sum is an f64, or two f32 on a GPU without f64.
pub fn word_bytes(statistic: Statistic) -> u64 {
    if statistic.is_order_free() { 4 } else { 8 }
}

/// Instructions to add an operand to a partial result: one for an extremum; four for a sum, as a compensated addition
/// of f32, which a GPU with few or no f64 units would use; one more for a square.
pub fn instructions(statistic: Statistic, from: From) -> u64 {
    match (statistic, from) {
        (Statistic::Minimum | Statistic::Maximum, _) => 1,
        (Statistic::SumOfSquares, From::Elements | From::Registers) => 5,
        (Statistic::SumOfSquares, _) => 4,
    }
}
