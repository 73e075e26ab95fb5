//! A run: its iterations, one after the other, with heat carried over between them; and the smallest memory budget with
//! which a policy can train.

use haversack_devices::{AllocatorKind, Bytes, Nanos, ensure};
use haversack_numerics::{MiniBatch, Rule};
use haversack_policies::{Oracle, Policy, PolicyError, Room, Setting, Tried};

use crate::error::Result;
use crate::executor::Executor;
use crate::governors::Governors;
use crate::machine::packing::CodecProfile;
use crate::record::Taken;
use crate::setting::{Told, with_codec};
use crate::{Budgets, Job, Lesson, Machine, Observe, Record, RunError};

/// Budgets are searched to this share of the answer.
const RESOLUTION: f64 = 1e-3;
/// How far below the least budget smaller ones are tried where memory has gaps, in fiftieths.
const GAPS: u64 = 15;
/// Limit on an iteration's time: nine years, far from where the clock saturates.
const LONGEST: Nanos = Nanos(1 << 58);

/// Runs `job` on `machine` under `policy`; the record is that of the last iteration, and its times and energy are means
/// of those after the first.
///
/// # Errors
/// [`RunError`]: memory that the policy cannot free, an illegal answer of the policy, a malformed graph.
pub fn simulate(machine: &Machine, job: &Job<'_>, policy: &mut dyn Policy) -> Result<Record> {
    let iterations = std::iter::repeat_n((), job.iterations.max(1) as usize);
    run(machine, job, policy, None, iterations, |_, ()| {}, |_| true)
}

/// Runs `job` once for each of `batches`, each with the rule by which weights are updated, with every tensor's values:
/// `lesson` is updated, `seen` gets the record of every iteration and returns whether to continue.
///
/// # Errors
/// As [`simulate`], and [`RunError::Diverged`] once a value is not finite. The learned state is lost then.
pub fn train(
    machine: &Machine,
    job: &Job<'_>,
    policy: &mut dyn Policy,
    lesson: &mut Lesson<'_>,
    batches: impl Iterator<Item = (MiniBatch, Rule)>,
    seen: impl FnMut(&Record) -> bool,
) -> Result<Record> {
    run(machine, job, policy, Some(lesson), batches, |run, (batch, rule)| run.learn(batch, rule), seen)
}

/// One iteration for each of `iterations`. `begin` is called before each, `seen` after each; `seen` can end the run.
fn run<T>(
    machine: &Machine,
    job: &Job<'_>,
    policy: &mut dyn Policy,
    mut lesson: Option<&mut Lesson<'_>>,
    iterations: impl Iterator<Item = T>,
    mut begin: impl FnMut(&mut Executor<'_>, T),
    mut seen: impl FnMut(&Record) -> bool,
) -> Result<Record> {
    ensure!(job.batch != 0, RunError::EmptyBatch);
    let on_phone = job.phone.map(|_| machine.clone().faulted_by_a_kernel());
    let machine = on_phone.as_ref().unwrap_or(machine);
    let codec = CodecProfile::new(machine, job.graph, job.precision);
    let before = || job.measured.first().map(Vec::as_slice);
    let importance = lesson.as_ref().map(|lesson| &lesson.importance[..]).or_else(before);
    let importance = importance.filter(|measured| !measured.is_empty());
    let in_integers = lesson.as_ref().is_some_and(|lesson| lesson.program.is_in_integers());
    let learned = lesson.as_ref().map(|lesson| &lesson.learned);
    let told = Told { importance, learned, factors: in_integers || !job.factors.is_empty() };
    let mut schedule =
        with_codec(machine, job, &codec, told, &Tries { machine, job, allocator: job.allocator }, |setting| {
            policy.prepare(setting)
        })?;
    let mut governors = Governors::start(machine, job)?;
    let micro_batch = schedule.micro_batch;
    let oracle = Tries::exact(machine, job);
    let mut executor = Executor::new(machine, job, &mut schedule, policy, &codec, lesson.as_deref(), &oracle)?;
    executor.start()?;
    if let Some(lesson) = &mut lesson {
        executor.learn_from(lesson);
    }
    let mut record = Record::default();
    let (mut times, mut taken) = (Vec::new(), Taken::default());
    for iteration in iterations {
        begin(&mut executor, iteration);
        record = executor.iteration(micro_batch)?;
        ensure!((Nanos(1)..LONGEST).contains(&record.iteration), RunError::NoTime(record.iteration));
        taken.note(&record, times.len());
        times.push(record.iteration);
        if let Some(share) = governors.after(&record, executor.cores())? {
            executor.allow(share);
        }
        if !seen(&record) {
            break;
        }
    }
    if let Some(lesson) = lesson {
        lesson.update += times.len() as u64;
        executor.learned(lesson);
    }
    taken.into_means(&mut record);
    record.heat = governors.seen;
    record.iterations = times;
    executor.into_end(&mut record);
    Ok(record)
}

/// Calls `ask` with the information that a policy gets on `job` and `machine` before the first iteration, and returns
/// its result.
pub fn with_setting<T>(machine: &Machine, job: &Job<'_>, ask: impl FnOnce(&Setting<'_>) -> T) -> T {
    let codec = CodecProfile::new(machine, job.graph, job.precision);
    with_codec(machine, job, &codec, Told::default(), &Tries { machine, job, allocator: job.allocator }, ask)
}

/// A job on a machine, for planners to simulate candidate plans.
#[derive(Clone, Copy, Debug)]
pub struct Tries<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The job, whose budgets are the planner's.
    pub job: &'a Job<'a>,
    /// The allocator of tensors.
    pub allocator: AllocatorKind,
}

impl<'a> Tries<'a> {
    /// Every tensor in its own exact piece.
    pub const fn exact(machine: &'a Machine, job: &'a Job<'a>) -> Self {
        Self { machine, job, allocator: AllocatorKind::Exact }
    }
}

impl Oracle for Tries<'_> {
    fn run(&self, policy: &mut dyn Policy, room: Room, iterations: u32) -> Result<Tried, PolicyError> {
        let Room { memory, activations } = room;
        let budgets = Budgets { memory, activations, time: self.job.budgets.time, ..Budgets::default() };
        let job = Job { budgets, iterations, ambient: None, phone: None, ..self.job.clone() };
        let job = Job { observe: Observe::default(), allocator: self.allocator, measured: &[], factors: &[], ..job };
        let record = simulate(self.machine, &job, policy).map_err(|error| PolicyError::Plan(error.to_string()))?;
        let parts = record.micro_batches.len() as u64;
        Ok(Tried {
            time: record.iterations.last().copied().unwrap_or(record.iteration),
            peak: record.peak_memory,
            operators: (job.graph.nodes.len() as u64 * parts + record.recomputed) * u64::from(iterations),
            recomputed: record.recomputed,
            written: record.flash_written,
            losses: record.fidelity.losses(),
        })
    }
}

/// The smallest feasible memory budget of `job`, regardless of its own budget, to a thousandth, rounded up, or to a
/// hundredth where memory has gaps.
///
/// `policy` makes a fresh policy for every try. The result was run, with all iterations, and works; a hundredth less
/// was run, too, and does not. In between, the search assumes that more memory is at least as good, which may be wrong
/// when an allocator's memory is fragmented: then every fiftieth less down to seven tenths was run, too.
///
/// # Errors
/// The error of a run without a budget.
pub fn least_memory(
    machine: &Machine,
    job: &Job<'_>,
    policy: impl Fn() -> Result<Box<dyn Policy>, PolicyError>,
) -> Result<Bytes> {
    let mut job = Job { observe: Observe::default(), ..job.clone() };
    job.budgets.walls.clear();
    job.budgets.traced.clear();
    let (iterations, allocator) = (job.iterations, job.allocator);
    let mut attempt = |memory: Option<Bytes>, iterations: u32| {
        (job.budgets.memory, job.iterations) = (memory, iterations);
        simulate(machine, &job, policy()?.as_mut())
    };
    let start = attempt(None, 1)?.reserved;
    let mut works = |budget, iterations| attempt(Some(budget), iterations).map(drop);
    let mut least = least_that_works(start, iterations, &mut works)?;
    // The gaps in an allocator's memory may be worse in more of it: a much smaller budget may work, too.
    let lower = |least: u64| (0..=GAPS).map(move |step| least.saturating_sub(least.div_ceil(100) * (2 * step).max(1)));
    while allocator != AllocatorKind::Exact
        && let Some(less) = lower(least.0).find(|&less| less < least.0 && works(Bytes(less), iterations).is_ok())
    {
        least = Bytes(less);
    }
    Ok(least)
}

/// The least budget with which `attempt` works for all `iterations`, to a thousandth, rounded up, though a hundredth
/// less does not; `start` is about the peak use without a budget.
///
/// # Errors
/// An error of `attempt` unrelated to its budget, or a failure with budgets far above `start`.
pub fn least_that_works(start: Bytes, iterations: u32, mut attempt: impl FnMut(Bytes, u32) -> Result) -> Result<Bytes> {
    let mut fault = |budget, iterations| match attempt(Bytes(budget), iterations) {
        Err(error) if error.is_infeasible() => Ok(Some(error)),
        other => other.map(|()| None),
    };
    // One iteration nearly always decides. When it does not, since each begins in the gaps that the previous one left
    // in an allocator's memory, all are run from there on.
    let (mut fails, mut least, mut few) = (0, start.0, 1);
    // A budget that has worked for all iterations.
    let mut known = None;
    loop {
        // Bisects below the smallest budget that works, up to the resolution.
        while least > fails + 1 && (least - fails) as f64 > RESOLUTION * least as f64 {
            let middle = fails + (least - fails) / 2;
            if fault(middle, few)?.is_some() {
                fails = middle;
            } else {
                least = middle;
                known = (few == iterations).then_some(middle);
            }
        }
        if known == Some(least) {
            // Fragmentation may be worse in more memory, so smaller budgets that the search skipped may work.
            let less = least - least.div_ceil(100);
            if least == 0 || fault(less, iterations)?.is_some() {
                return Ok(Bytes(least));
            }
            (fails, least, known) = (less, less, Some(less));
            continue;
        }
        let mut more = least.div_ceil(64);
        while let Some(error) = fault(least, iterations)? {
            ensure!(more < start.0.saturating_mul(64), error);
            (fails, least, more) = (least, least.saturating_add(more), more * 2);
        }
        (known, few) = (Some(least), iterations);
    }
}
