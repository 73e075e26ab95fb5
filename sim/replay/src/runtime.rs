//! The runtime: the resident and locked storages, and the rules by which they change.
//!
//! The order of all steps is part of the model, since it decides between equal candidates. Each heuristic implements
//! [`Bookkeeping`] and gets its own compiled scan.

use haversack_devices::{Bytes, Nanos, ensure};

use crate::program::{Event, Op, Program};
use crate::spanset::Pool;
use crate::{Outcome, Status};

/// The largest clock: a float represents it exactly in scores.
const MOST_CLOCK: u64 = 1 << 53;

/// The state that a heuristic keeps up to date, and its scores.
pub(crate) trait Bookkeeping {
    /// The initial state for a program.
    fn new(program: &Program) -> Self;
    /// The outputs of `op` exist, but have not been computed.
    fn created(&mut self, _state: &mut State<'_>, _op: &Op) {}
    /// `storage` has just been evicted.
    fn evicted(&mut self, _state: &mut State<'_>, _storage: u32) {}
    /// `storages` have just been computed, in the order in which they entered the pool.
    fn materialised(&mut self, _state: &mut State<'_>, _storages: &[u32]) {}
    /// `storage` has just entered the pool.
    fn pooled(&mut self, _storage: u32) {}
    /// Scores are needed next.
    fn settle(&mut self, _state: &mut State<'_>) {}
    /// The score of a storage at the clock `now`; the lowest is evicted.
    #[inline]
    fn score(state: &State<'_>, storage: usize, now: f64) -> f64 {
        let (cost, size) = (state.cost[storage], state.program.sizes[storage]);
        per_byte_and_staleness(cost, size, now - state.last_access[storage])
    }
}

/// `cost / (size × staleness)`: expensive, small and recently used tensors stay. Infinite if the denominator is zero,
/// so that a tensor whose eviction frees nothing is evicted last.
///
/// Whole numbers below 2^53 are exact in a float, so the product and the quotient are each
/// rounded once, as if the integers had been multiplied first and then divided.
#[inline]
pub fn per_byte_and_staleness(cost: f64, size: f64, staleness: f64) -> f64 {
    per_byte(cost, size * staleness)
}

/// `cost / size`; infinite if the size is zero.
#[inline]
pub fn per_byte(cost: f64, size: f64) -> f64 {
    if size > 0.0 { cost / size } else { f64::INFINITY }
}

/// The limits of a run.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    budget: u64,
    rematerialised: u64,
}

impl Limits {
    pub(crate) fn new(program: &Program, memory_ratio: f64, overhead_limit: f64) -> Self {
        // Float casts round down and saturate. A whole number exceeds a float limit exactly when it
        // exceeds the limit rounded down.
        let overhead = program.baseline_compute as f64 * (overhead_limit - 1.0);
        // The last operator may exceed the limit by its own cost: leave room for it below 2^53.
        let room = MOST_CLOCK - 2 * program.baseline_compute - 2;
        Self {
            budget: (program.baseline_memory as f64 * memory_ratio) as u64,
            rematerialised: (overhead as u64).min(room),
        }
    }
}

/// The state that the rules and the heuristics use.
pub(crate) struct State<'p> {
    pub(crate) program: &'p Program,
    /// Number of operators created so far: neighbours appear with them.
    pub(crate) created: u32,
    pub(crate) pool: Pool,
    /// By storage.
    pub(crate) material: Vec<bool>,
    pub(crate) pinned: Vec<bool>,
    /// Costs of the distinct operators of a storage's tensors; a view adds to its base.
    pub(crate) compute: Vec<u64>,
    /// The numerator of the score, maintained by the heuristic.
    pub(crate) cost: Vec<f64>,
    pub(crate) last_access: Vec<f64>,
    /// The number of locks on each storage.
    locks: Vec<u32>,
    references: Vec<i64>,
    /// By tensor.
    defined: Vec<bool>,
    clock: u64,
    memory: u64,
}

/// An operator that waits for its arguments. Chains of thousands are common, so they are on an explicit stack
/// instead of the call stack.
struct Frame {
    tensor: u32,
    again: bool,
    /// The index of its first missing argument among all awaited ones, and of the next one.
    awaited: usize,
    next: usize,
}

struct Runtime<'p, B> {
    state: State<'p>,
    books: B,
    limits: Limits,
    frames: Vec<Frame>,
    awaited: Vec<u32>,
    fresh: Vec<u32>,
    outcome: Outcome,
}

/// Replays `program`, with the scan compiled for one heuristic.
pub(crate) fn run<B: Bookkeeping>(program: &Program, limits: Limits) -> Outcome {
    let mut runtime = Runtime::<B>::new(program, limits);
    let stopped = program.events.iter().try_for_each(|&event| runtime.event(event));
    runtime.finish(stopped.err().unwrap_or(Status::Ok))
}

impl<'p, B: Bookkeeping> Runtime<'p, B> {
    fn new(program: &'p Program, limits: Limits) -> Self {
        let storages = program.roots.len();
        let state = State {
            program,
            created: 0,
            pool: Pool::new(storages),
            material: vec![false; storages],
            pinned: vec![false; storages],
            compute: vec![0; storages],
            cost: vec![0.0; storages],
            last_access: vec![0.0; storages],
            locks: vec![0; storages],
            references: vec![0; storages],
            defined: vec![false; program.tensor_op.len()],
            clock: 1,
            memory: 0,
        };
        let outcome = Outcome {
            evict_hash: 0xcbf2_9ce4_8422_2325,
            budget: Bytes(limits.budget),
            baseline_compute: Nanos(program.baseline_compute),
            baseline_memory: Bytes(program.baseline_memory),
            ..Outcome::default()
        };
        let books = B::new(program);
        Self { state, books, limits, frames: Vec::new(), awaited: Vec::new(), fresh: Vec::new(), outcome }
    }

    fn finish(mut self, status: Status) -> Outcome {
        self.outcome.status = status;
        self.outcome.clock_final = self.state.clock;
        self.outcome.slowdown = self.state.clock as f64 / self.state.program.baseline_compute as f64;
        self.outcome
    }

    fn event(&mut self, event: Event) -> Result<(), Status> {
        match event {
            Event::Compute(op) => return self.compute(op),
            Event::Pin(tensor) => return self.pin(tensor),
            Event::Get(storage) => self.state.references[storage as usize] += 1,
            Event::Release(storage) => self.release(storage),
        }
        Ok(())
    }

    fn compute(&mut self, op: u32) -> Result<(), Status> {
        let program = self.state.program;
        let operator = &program.ops[op as usize];
        for &storage in &operator.stores {
            self.state.compute[storage as usize] += operator.cost;
        }
        for tensor in operator.outputs.clone() {
            self.state.references[program.tensor_storage[tensor as usize] as usize] += 1;
        }
        self.state.created = op + 1;
        self.books.created(&mut self.state, operator);
        self.materialise(operator.outputs.start, false)?;
        let now = self.state.clock as f64;
        for &storage in &operator.stores {
            self.state.last_access[storage as usize] = now;
        }
        Ok(())
    }

    /// Eager eviction: a storage without references is evicted immediately, and may be rematerialised later.
    fn release(&mut self, storage: u32) {
        let s = storage as usize;
        self.state.references[s] -= 1;
        if self.state.references[s] == 0 && self.state.material[s] && !self.state.pinned[s] {
            self.evict(storage);
        }
    }

    fn pin(&mut self, tensor: u32) -> Result<(), Status> {
        if !self.state.defined[tensor as usize] {
            self.materialise(tensor, true)?;
        }
        let storage = self.state.program.tensor_storage[tensor as usize];
        if !self.state.pinned[storage as usize] {
            self.lock(storage);
            self.state.pinned[storage as usize] = true;
        }
        Ok(())
    }

    /// Computes `tensor` after its missing arguments, depth first.
    fn materialise(&mut self, tensor: u32, again: bool) -> Result<(), Status> {
        self.enter(tensor, again);
        while let Some(frame) = self.frames.last_mut() {
            if let Some(&arg) = self.awaited.get(frame.next) {
                // A sibling may have computed it meanwhile.
                if self.state.defined[arg as usize] {
                    frame.next += 1;
                    self.lock(self.state.program.tensor_storage[arg as usize]);
                } else {
                    self.enter(arg, true);
                }
            } else {
                let (tensor, again) = (frame.tensor, frame.again);
                self.awaited.truncate(frame.awaited);
                self.frames.pop();
                self.execute(tensor, again)?;
            }
        }
        Ok(())
    }

    /// Touches the arguments of a tensor's operator, locks the resident ones, and awaits the others.
    fn enter(&mut self, tensor: u32, again: bool) {
        let program = self.state.program;
        let op = &program.ops[program.tensor_op[tensor as usize] as usize];
        let now = self.state.clock as f64;
        let start = self.awaited.len();
        for &arg in &op.args {
            let storage = program.tensor_storage[arg as usize];
            self.state.last_access[storage as usize] = now;
            if self.state.defined[arg as usize] {
                self.lock(storage);
            } else {
                self.awaited.push(arg);
            }
        }
        self.frames.push(Frame { tensor, again, awaited: start, next: start });
    }

    /// Executes the operator of `tensor`; all arguments are resident and locked.
    fn execute(&mut self, tensor: u32, again: bool) -> Result<(), Status> {
        let program = self.state.program;
        let op = &program.ops[program.tensor_op[tensor as usize] as usize];
        // Outputs that are still resident count too, since the operator recomputes all of them.
        while self.state.memory + op.need > self.limits.budget {
            let victim = self.choose().ok_or(Status::Oom)?;
            self.outcome.heuristic_evictions += 1;
            self.evict(victim);
        }
        self.state.clock += op.cost;
        self.state.memory += op.need;
        self.outcome.peak_memory = self.outcome.peak_memory.max(Bytes(self.state.memory));
        self.outcome.operators += 1;
        if again {
            self.outcome.rematerialised_operators += 1;
            self.outcome.rematerialised_compute += Nanos(op.cost);
        } else {
            self.outcome.model_compute += Nanos(op.cost);
        }
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.clear();
        for sibling in op.outputs.clone() {
            if self.state.defined[sibling as usize] {
                // The second copy of a resident output is dropped after it has been made.
                self.state.memory -= program.tensor_bytes[sibling as usize];
            } else if sibling != tensor {
                self.define(sibling, &mut fresh);
            }
        }
        self.define(tensor, &mut fresh);
        for &storage in &fresh {
            self.push(storage);
        }
        self.books.materialised(&mut self.state, &fresh);
        self.fresh = fresh;
        for &arg in &op.args {
            self.unlock(program.tensor_storage[arg as usize]);
        }
        ensure!(self.outcome.rematerialised_compute.0 <= self.limits.rematerialised, Status::Thrash);
        Ok(())
    }

    fn define(&mut self, tensor: u32, fresh: &mut Vec<u32>) {
        let storage = self.state.program.tensor_storage[tensor as usize];
        self.state.defined[tensor as usize] = true;
        if !self.state.material[storage as usize] {
            self.state.material[storage as usize] = true;
            fresh.push(storage);
        }
    }

    /// The candidate with the lowest score, the last of several; a candidate with cost zero ends the scan.
    fn choose(&mut self) -> Option<u32> {
        self.books.settle(&mut self.state);
        let now = self.state.clock as f64;
        let members = &self.state.pool.members;
        let (victim, scanned) = scan(members, |storage| B::score(&self.state, storage as usize, now));
        self.outcome.heuristic_evaluations += scanned as u64;
        victim
    }

    fn evict(&mut self, storage: u32) {
        let s = storage as usize;
        self.state.material[s] = false;
        self.state.memory -= self.state.program.bytes[s];
        self.state.pool.remove(storage);
        for &tensor in &self.state.program.members[storage as usize] {
            self.state.defined[tensor as usize] = false;
        }
        for word in [u64::from(self.state.program.roots[s]), self.state.clock] {
            self.outcome.evict_hash = (self.outcome.evict_hash ^ word).wrapping_mul(0x0100_0000_01b3);
        }
        self.outcome.evictions += 1;
        self.books.evicted(&mut self.state, storage);
    }

    fn push(&mut self, storage: u32) {
        self.state.pool.push(storage);
        self.books.pooled(storage);
    }

    fn lock(&mut self, storage: u32) {
        if self.state.locks[storage as usize] == 0 {
            self.state.pool.remove(storage);
        }
        self.state.locks[storage as usize] += 1;
    }

    fn unlock(&mut self, storage: u32) {
        self.state.locks[storage as usize] -= 1;
        if self.state.locks[storage as usize] == 0 {
            self.push(storage);
        }
    }
}

/// The last candidate with the lowest score, and the number of scores computed. A zero ends the scan,
/// whether it is the lowest or not.
#[inline]
fn scan(members: &[u32], score: impl Fn(u32) -> f64) -> (Option<u32>, usize) {
    let mut best = f64::INFINITY;
    let mut victim = None;
    for (place, &storage) in members.iter().enumerate() {
        let score = score(storage);
        if score <= best {
            best = score;
            victim = Some(storage);
        }
        if score == 0.0 {
            return (victim, place + 1);
        }
    }
    (victim, members.len())
}

#[cfg(test)]
mod tests {
    use super::scan;

    /// Scans candidates 0, 1, 2 … with the given scores.
    fn victim(scores: &[f64]) -> (Option<u32>, usize) {
        let members: Vec<u32> = (0..scores.len() as u32).collect();
        scan(&members, |i| scores[i as usize])
    }

    #[test]
    fn the_last_minimum_wins() {
        assert_eq!(victim(&[2.0, 1.0, 3.0, 1.0, 2.0]), (Some(3), 5));
        assert_eq!(victim(&[]), (None, 0));
    }

    #[test]
    fn a_pool_of_infinities_gives_its_tail() {
        assert_eq!(victim(&[f64::INFINITY; 4]), (Some(3), 4));
    }

    #[test]
    fn a_zero_ends_the_scan_where_it_stands() {
        assert_eq!(victim(&[1.0, 0.0, 0.0, -1.0]), (Some(1), 2));
        // A drifted estimate may be negative: then the zero ends the scan without being chosen.
        assert_eq!(victim(&[-1.0, 0.0, -2.0]), (Some(0), 2));
    }
}
