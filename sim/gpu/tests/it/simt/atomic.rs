//! Atomic updates of one cell by threads that contend for it, in lock step.
//!
//! Contenders have all loaded the cell. In a round, each that is not done attempts its update, first come first
//! served; a compare-and-swap that finds the cell changed since its load fails, remembers the new value, and
//! attempts again in the next round. A round therefore has at most one change: attempts before it did not change the
//! cell, and all attempts after it fail. The simulation's cost of a round is thus proportional to the completed
//! updates, not to the failed ones.

use haversack_devices::AtomicCounts;
use haversack_gpu::Update;

use super::memory::Word;

/// The effect of an update on a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The smaller of cell and value; a NaN value leaves the cell.
    Minimum,
    /// The larger of cell and value; a NaN value leaves the cell.
    Maximum,
    /// The sum of cell and value.
    Add,
}

impl Operation {
    /// The cell after the update; a value that does not beat the cell leaves its bits unchanged.
    pub fn apply<T: Word>(self, cell: T, value: T) -> T {
        match self {
            Self::Minimum if value < cell => value,
            Self::Maximum if value > cell => value,
            Self::Minimum | Self::Maximum => cell,
            Self::Add => cell.plus(value),
        }
    }
}

/// Updates `cell` by each of `values`, whose threads all contend; `seen` receives the value that each found in
/// the cell when it was done.
pub fn contend<T: Word>(
    cell: &mut T,
    operation: Operation,
    update: Update,
    values: &[T],
    seen: &mut Vec<T>,
) -> AtomicCounts {
    seen.clear();
    match (update, operation) {
        (Update::Tested, Operation::Minimum | Operation::Maximum) => tested(cell, operation, values, seen),
        _ => in_turn(cell, operation, update != Update::Native, values, seen),
    }
}

/// One after the other; for swaps, each change fails all behind it.
fn in_turn<T: Word>(
    cell: &mut T,
    operation: Operation,
    they_swap: bool,
    values: &[T],
    seen: &mut Vec<T>,
) -> AtomicCounts {
    let (mut changes, mut retries, mut refetches) = (0_u64, 0_u64, 0_u64);
    for (index, &value) in values.iter().enumerate() {
        seen.push(*cell);
        let next = operation.apply(*cell, value);
        if next.bits() != cell.bits() {
            let failed = if they_swap { (values.len() - index - 1) as u64 } else { 0 };
            changes += 1;
            retries += failed;
            refetches += u64::from(failed > 0);
            *cell = next;
        }
    }
    let issued = values.len() as f64;
    AtomicCounts {
        issued,
        attempts: issued + retries as f64,
        retries: retries as f64,
        changes: changes as f64,
        refetches: refetches as f64,
    }
}

fn tested<T: Word>(cell: &mut T, operation: Operation, values: &[T], seen: &mut Vec<T>) -> AtomicCounts {
    let would_change = |cell: T, value: T| operation.apply(cell, value).bits() != cell.bits();
    seen.resize(values.len(), *cell);
    // Those whose test passes, worst first: each change ends a prefix of them.
    let mut by_rank: Vec<usize> = (0..values.len()).filter(|&index| would_change(*cell, values[index])).collect();
    let in_order = by_rank.clone();
    by_rank.sort_by(|&a, &b| {
        let order = values[a].partial_cmp(&values[b]).unwrap_or(std::cmp::Ordering::Equal);
        if operation == Operation::Minimum { order.reverse() } else { order }
    });
    let mut counts = AtomicCounts { issued: values.len() as f64, ..AtomicCounts::default() };
    let mut ended = 0;
    for winner in in_order {
        if !would_change(*cell, values[winner]) {
            continue;
        }
        let attempting = by_rank.len() - ended;
        counts.attempts += attempting as f64;
        counts.retries += (attempting - 1) as f64;
        counts.changes += 1.0;
        counts.refetches += 1.0;
        seen[winner] = *cell;
        *cell = values[winner];
        while let Some(&index) = by_rank.get(ended).filter(|&&index| !would_change(*cell, values[index])) {
            if index != winner {
                seen[index] = *cell;
            }
            ended += 1;
        }
    }
    counts
}
