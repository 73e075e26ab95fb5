//! The counts of a machine that runs a plan, computed for any size without data.
//!
//! All counts are exact except for contention, which depends on the data; here it is the expectation, with the
//! machine's own rounds, over elements that are all different and in random order. Order matters a lot: the first of k
//! values in falling order is the smallest so far k times, in random order H(k) ≈ ln k + 0.58 times.

use haversack_devices::{AtomicCounts, Bytes, KernelCounts, ProgramCounts};

use haversack_kernels::{KernelError, Statistic};

use crate::machine::Machine;
use crate::plan::{Combine, From, Pass, Plan, To, Update, instructions, word_bytes};

/// Bytes that global memory moves in one access: a sector of a cache line.
pub const SECTOR: u64 = 32;

/// Sectors that the warps of `lanes` lanes touch if thread i of `threads` touches word `start + i`,
/// for words of `bytes` bytes.
pub fn row_sectors(bytes: u64, start: u64, threads: u64, lanes: u32) -> u64 {
    let mut sectors = 0;
    let (mut first, end) = (start, start + threads);
    while first < end {
        let last = (first + u64::from(lanes)).min(end);
        sectors += (last * bytes - 1) / SECTOR - first * bytes / SECTOR + 1;
        first = last;
    }
    sectors
}

/// The counts of a machine that runs `plan` on `elements` elements.
///
/// # Errors
/// A plan that does not fit the machine: see [`Plan::passes`].
pub fn counts_of(
    plan: &Plan,
    statistics: &[Statistic],
    elements: u64,
    machine: &Machine,
) -> Result<ProgramCounts, KernelError> {
    let passes = plan.passes(statistics, elements, machine)?;
    let kernels = passes.iter().map(|pass| kernel(plan, pass, statistics, machine)).collect();
    Ok(ProgramCounts { kernels, memsets: plan.memsets(), operators: plan.operators() })
}

/// The work of the threads of one block, in instructions and bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    operations: u64,
    lane_operations: u64,
    barriers: u64,
    shuffles: u64,
    shared: f64,
    attempts: f64,
}

impl Share {
    fn issue(&mut self, instructions: u64, threads: u64, lanes: u64) {
        self.operations += instructions;
        self.lane_operations += instructions * slots(threads, lanes);
    }
}

fn slots(threads: u64, lanes: u64) -> u64 {
    threads.div_ceil(lanes) * lanes
}

fn kernel(plan: &Plan, pass: &Pass, statistics: &[Statistic], machine: &Machine) -> KernelCounts {
    let resident = machine.resident(pass.blocks_per_unit, pass.blocks);
    let (threads, lanes) = (u64::from(pass.threads), u64::from(machine.lanes));
    let tile = threads * u64::from(pass.items);
    let tiles = pass.elements.div_ceil(tile);
    // Threads with an operand: all of them, except perhaps in the last block, if its only tile is the last.
    let in_last = pass.elements - tiles.saturating_sub(1) * tile;
    let short = if tiles <= pass.blocks { threads.min(in_last) } else { threads };
    let (most, last) = (combine(pass, statistics, threads, lanes), combine(pass, statistics, short, lanes));
    let publishing = |active| if pass.combine == Combine::Nothing { active } else { 1 };
    let ends = statistics.len() as u64;
    let published = ends * (slots(publishing(threads), lanes) * (pass.blocks - 1) + slots(publishing(short), lanes));
    let loads = match pass.from {
        From::Elements => 1,
        From::Registers => 0,
        From::Partials => ends,
    };
    let a_row: u64 = loads + statistics.iter().map(|&statistic| instructions(statistic, pass.from)).sum::<u64>();
    let row_slots = pass.elements / threads * slots(threads, lanes) + slots(pass.elements % threads, lanes);
    let blocks = pass.blocks as f64;
    let total = |most: f64, last: f64| most * (blocks - 1.0) + last;
    let traffic = traffic(pass, statistics, machine.lanes);
    let updates = |statistic| plan.update_of(statistic, machine);
    let waits = match pass.to {
        To::Cell => statistics.iter().map(|&statistic| updates(statistic).round_trips()).sum(),
        To::Partials => 0,
    };
    let (own_tiles, own_rows) = first_block(pass, tiles);
    let cells = cells(plan, pass, statistics, machine, resident, threads * (pass.blocks - 1) + short);
    KernelCounts {
        launches: u32::from(pass.from != From::Registers),
        blocks: pass.blocks,
        threads: pass.threads,
        resident_blocks: resident,
        waves: pass.blocks.div_ceil(resident),
        read: Bytes(traffic.read),
        written: Bytes(traffic.written),
        working_set: Bytes(traffic.touched),
        shared: Bytes(total(most.shared, last.shared).round() as u64),
        shared_held: pass.combine.shared(statistics, pass.threads, machine.lanes),
        barriers: most.barriers,
        barriers_of_all: most.barriers * pass.blocks,
        shuffles: most.shuffles * pass.blocks,
        round_trips: own_tiles * u64::from(loads > 0) + waits,
        operations: own_rows * a_row + most.operations + ends,
        lane_operations: row_slots * a_row
            + most.lane_operations * (pass.blocks - 1)
            + last.lane_operations
            + published,
        shared_attempts: total(most.attempts, last.attempts) / blocks,
        atomic_cells: cells.len() as u64,
        atomics: AtomicCounts::most_contended(cells),
    }
}

/// The tiles and rows of the first block, which has the most.
fn first_block(pass: &Pass, tiles: u64) -> (u64, u64) {
    let items = u64::from(pass.items);
    let own = tiles.div_ceil(pass.blocks);
    let mut rows = own * items;
    if tiles > 0 && (tiles - 1).is_multiple_of(pass.blocks) {
        let in_last = pass.elements.div_ceil(u64::from(pass.threads)) - (tiles - 1) * items;
        rows -= items - in_last;
    }
    (own, rows)
}

/// A block's combination, in which `active` threads have an operand.
fn combine(pass: &Pass, statistics: &[Statistic], active: u64, lanes: u64) -> Share {
    let threads = u64::from(pass.threads);
    let mut share = Share::default();
    let warps = threads.div_ceil(lanes);
    for &statistic in statistics {
        let (bytes, work) = (word_bytes(statistic), instructions(statistic, From::Partials));
        match pass.combine {
            Combine::Nothing => {}
            Combine::Tree => {
                share.issue(1, threads, lanes);
                let mut half = threads / 2;
                while half > 0 {
                    share.issue(3 + work, half, lanes);
                    half /= 2;
                }
                share.shared += (bytes * (threads + 3 * (threads - 1))) as f64;
            }
            Combine::Shuffles => {
                let steps = u64::from(lanes.min(threads).trailing_zeros());
                let registers = bytes / 4;
                share.issue(steps * (registers + work), threads, lanes);
                share.shuffles += steps * registers * warps;
                if warps > 1 {
                    share.issue(1, warps * lanes, lanes);
                    share.issue(1, warps, lanes);
                    share.issue(steps * (registers + work), lanes, lanes);
                    share.shuffles += steps * registers;
                    share.shared += (2 * bytes * warps) as f64;
                }
            }
            Combine::SharedCell(update) => {
                share.issue(2, 1, lanes);
                share.issue(1, active, lanes);
                let attempts = expected(statistic, update, active, active).attempts;
                share.attempts = share.attempts.max(attempts);
                share.shared += bytes as f64 * (2.0 + 2.0 * attempts);
            }
        }
    }
    share.barriers = match pass.combine {
        Combine::Nothing => 0,
        Combine::Tree => 1 + u64::from(threads.trailing_zeros()),
        Combine::Shuffles => u64::from(warps > 1),
        Combine::SharedCell(_) => 2,
    };
    share
}

/// Bytes of global memory.
#[derive(Default)]
struct Moved {
    read: u64,
    written: u64,
    touched: u64,
}

fn traffic(pass: &Pass, statistics: &[Statistic], lanes: u32) -> Moved {
    let threads = u64::from(pass.threads);
    let sectors = |bytes: u64| {
        let (full, tail) = (pass.elements / threads, pass.elements % threads);
        let row = |start, length| row_sectors(bytes, start, length, lanes);
        SECTOR * (full * row(0, threads) + row(full * threads, tail))
    };
    let whole = |bytes: u64| bytes.div_ceil(SECTOR) * SECTOR;
    let mut moved = Moved::default();
    if pass.from == From::Elements {
        moved.read += sectors(4);
        moved.touched += whole(4 * pass.elements);
    }
    let contended = pass.combine != Combine::Nothing || pass.elements > 0;
    for &statistic in statistics {
        let bytes = word_bytes(statistic);
        if pass.from == From::Partials {
            moved.read += sectors(bytes);
            moved.touched += whole(bytes * pass.elements);
        }
        match pass.to {
            To::Partials => {
                moved.written += SECTOR * pass.blocks;
                moved.touched += whole(bytes * pass.blocks);
            }
            To::Cell if contended => {
                moved.read += SECTOR;
                moved.written += SECTOR;
                moved.touched += SECTOR;
            }
            To::Cell => {}
        }
    }
    moved
}

/// The atomics on each global cell, if `active` threads have operands.
fn cells(
    plan: &Plan,
    pass: &Pass,
    statistics: &[Statistic],
    machine: &Machine,
    resident: u64,
    active: u64,
) -> Vec<AtomicCounts> {
    let (updates, contenders) = match (pass.to, pass.combine) {
        (To::Partials, _) => return Vec::new(),
        (To::Cell, Combine::Nothing) => (active, resident * u64::from(pass.threads)),
        (To::Cell, _) => (pass.blocks, resident),
    };
    if updates == 0 {
        return Vec::new();
    }
    let of = |&statistic| expected(statistic, plan.update_of(statistic, machine), updates, contenders);
    statistics.iter().map(of).collect()
}

/// Waves that are computed one by one; later ones are summed in closed form.
const WAVES: u64 = 1024;

/// The expected counts of `updates` updates of one cell by waves of `contenders` that contend.
///
/// Of a wave of q after a updates, value i is the best so far with probability 1 / (a + i), and an unconditional swap
/// then fails the q − i behind it. With a test, only threads that beat the cell attempt: of m that do, the first to
/// arrive wins and leaves a random number of them, so they attempt A(m) = m + mean of A(0)…A(m − 1) = 2m − H(m) times.
/// Every sum changes the cell and fails all others of its wave.
pub fn expected(statistic: Statistic, update: Update, updates: u64, contenders: u64) -> AtomicCounts {
    let (k, q) = (updates as f64, contenders.max(1).min(updates) as f64);
    let changes = if statistic.is_order_free() { harmonic(k) } else { k };
    let mut counts = AtomicCounts { issued: k, attempts: k, changes, ..AtomicCounts::default() };
    if updates == 0 || update == Update::Native {
        return counts;
    }
    if !statistic.is_order_free() {
        let full = (k / q).floor();
        let rest = k - full * q;
        counts.retries = full * q * (q - 1.0) / 2.0 + rest * (rest - 1.0).max(0.0) / 2.0;
        counts.refetches = full * (q - 1.0) + (rest - 1.0).max(0.0);
        counts.attempts += counts.retries;
        return counts;
    }
    let (mut retries, mut refetches, mut beaten) = (0.0, 0.0, 0.0);
    let mut before = 0.0;
    for _ in 0..WAVES {
        let wave = q.min(k - before);
        if wave <= 0.0 {
            break;
        }
        let improvements = harmonic(before + wave) - harmonic(before);
        retries += (before + wave) * improvements - wave;
        refetches += improvements - 1.0 / (before + wave);
        beaten += wave / (before + 1.0);
        before += wave;
    }
    if before < k {
        // Waves w of q after wq: to first order in 1 / w, half of the q − 1 others fail at each change.
        let late = harmonic(k / q) - harmonic(before / q);
        retries += (q - 1.0) / 2.0 * late;
        refetches += (q - 1.0) / q * late;
        beaten += late;
    }
    if update == Update::Tested {
        counts.attempts = 2.0 * beaten - changes;
        counts.retries = counts.attempts - changes;
        counts.refetches = changes;
    } else {
        counts.attempts = k + retries;
        counts.retries = retries;
        counts.refetches = refetches;
    }
    counts
}

/// H(n) = 1 + 1/2 + … + 1/n: of n values in random order, the expected number that are the smallest so far.
pub fn harmonic(n: f64) -> f64 {
    /// Euler's γ.
    const GAMMA: f64 = 0.577_215_664_901_532_9;
    if n < 16.0 {
        return (1..=n as u32).map(|i| 1.0 / f64::from(i)).sum();
    }
    n.ln() + GAMMA + 0.5 / n - 1.0 / (12.0 * n * n)
}
