//! The interleaved run: every contender in every round, in shuffled order.
//!
//! A machine's speed drifts with its neighbours and its clock. Contenders that take turns within milliseconds meet the
//! same conditions, and the shuffle prevents that one always follows another; the median over the rounds drops
//! disturbances of a single turn.

use std::time::Duration;

use crate::bench::random::Random;
use haversack_kernels::KernelError;

/// One pass of a runner over the tensors `T`. It must hide its result from the optimiser.
pub(crate) type Pass<T> = Box<dyn FnMut(&mut T) -> Result<(), KernelError>>;

/// How long a race lasts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Rounds, each with every runner.
    pub(crate) rounds: usize,
    /// A runner repeats its pass within a round for at least this time, so that the cost of reading
    /// the clock is negligible.
    pub(crate) least_turn: Duration,
    /// Slow runners drop out after this much time, but not before [`LEAST_ROUNDS`].
    pub(crate) patience: Duration,
    /// Whether a pass that is not counted comes first in each turn, to bring the tensor back into the cache.
    pub(crate) warm: bool,
}

/// The rounds that every runner takes part in: a median of fewer means nothing.
pub(crate) const LEAST_ROUNDS: usize = 3;
/// The most passes in a turn, for a clock that does not advance.
const MOST_PASSES: u128 = 100_000;

/// Time of one pass of each runner, the median of its rounds.
///
/// # Errors
/// The first failure of a pass.
pub(crate) fn race<T>(tensors: &mut T, runners: &mut [Pass<T>], rules: Rules) -> Result<Vec<Duration>, KernelError> {
    let mut plans = Vec::with_capacity(runners.len());
    for pass in runners.iter_mut() {
        plans.push(Plan::new(pass, tensors, rules)?);
    }
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); runners.len()];
    let mut order: Vec<usize> = (0..runners.len()).collect();
    let mut random = Random::default();
    for round in 0..rules.rounds {
        shuffle(&mut order, &mut random);
        for &index in &order {
            if round < plans[index].rounds {
                let time = turn(&mut runners[index], tensors, &plans[index])?;
                times[index].push(time);
            }
        }
    }
    Ok(times.into_iter().map(median).collect())
}

/// A runner's plan, from a trial pass.
struct Plan {
    passes: u32,
    rounds: usize,
    warm: bool,
}

impl Plan {
    fn new<T>(pass: &mut Pass<T>, tensors: &mut T, rules: Rules) -> Result<Self, KernelError> {
        // The first pass pays for page faults and for loading code.
        pass(tensors)?;
        let pass = time(|| pass(tensors))?.as_nanos().max(1);
        let passes = rules.least_turn.as_nanos().div_ceil(pass).clamp(1, MOST_PASSES);
        let rounds = (rules.patience.as_nanos() / (pass * passes)).try_into().unwrap_or(usize::MAX);
        Ok(Self {
            passes: u32::try_from(passes).unwrap_or(u32::MAX),
            rounds: rounds.max(LEAST_ROUNDS).min(rules.rounds),
            // For so long a pass it does not matter that its tensor comes from memory.
            warm: rules.warm && pass < rules.patience.as_nanos() / 4,
        })
    }
}

/// One turn: the time of a pass, averaged over the planned number of passes. The thread's clock is too
/// coarse for single passes.
fn turn<T>(pass: &mut Pass<T>, tensors: &mut T, plan: &Plan) -> Result<Duration, KernelError> {
    if plan.warm {
        pass(tensors)?;
    }
    Ok(time(|| (0..plan.passes).try_for_each(|_| pass(tensors)))? / plan.passes)
}

pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    // A clock that did not advance would make an infinite rate.
    times.get(times.len() / 2).map_or(Duration::MAX, |&time| time.max(Duration::from_nanos(1)))
}

/// Fisher and Yates's shuffle.
fn shuffle(order: &mut [usize], random: &mut Random) {
    for last in (1..order.len()).rev() {
        order.swap(last, (random.next() % (last as u64 + 1)) as usize);
    }
}

/// The processor time that `work` takes on this thread.
pub(crate) fn time<E>(work: impl FnOnce() -> Result<(), E>) -> Result<Duration, E> {
    let start = thread_time();
    work()?;
    Ok(thread_time().saturating_sub(start))
}

/// The processor time that this thread has used, which other processes do not lengthen.
#[cfg(unix)]
fn thread_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one `timespec`, and `now` is one.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    if status != 0 {
        return wall_time();
    }
    Duration::from_secs(now.tv_sec.unsigned_abs()) + Duration::from_nanos(now.tv_nsec.unsigned_abs())
}

/// The wall-clock time: threads have no clock here.
#[cfg(not(unix))]
fn thread_time() -> Duration {
    wall_time()
}

/// The wall-clock time since the first call, for systems whose threads have no clock.
fn wall_time() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}
