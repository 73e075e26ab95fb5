//! The interleaved run: everybody in every round, in shuffled order.
//!
//! A machine's speed drifts with its neighbours and its clock. Runners that take turns within milliseconds meet the
//! same conditions, and the shuffle keeps one from always following another; the median over the rounds drops what
//! hit one of them alone.

use std::time::{Duration, Instant};

use super::clock::{Clock, Time};
use super::random::Random;
use haversack_kernels::KernelError;

/// What a runner does in one pass over the tensors `T`. Whatever it computes, it must hide from the optimiser.
pub(super) type Pass<T> = Box<dyn FnMut(&mut T) -> Result<(), KernelError>>;

/// One of those that are compared.
pub(super) struct Runner<T> {
    /// By which clock.
    pub(super) clock: Clock,
    /// One pass.
    pub(super) pass: Pass<T>,
}

/// How long a race lasts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Rounds, each with every runner.
    pub(super) rounds: usize,
    /// A runner repeats its pass within a round until this has gone by, so that the clock's own cost is nothing.
    pub(super) least_turn: Duration,
    /// Slow runners drop out after this much time, but not before [`LEAST_ROUNDS`].
    pub(super) patience: Duration,
    /// Whether a pass that is not counted comes first in each turn, to bring the tensor back into the cache.
    pub(super) warm: bool,
}

/// Rounds that nobody is spared: a median of fewer is none.
pub(super) const LEAST_ROUNDS: usize = 3;
/// How long a turn waits for two threads to run at once.
const TRYING: Duration = Duration::from_millis(20);
/// Passes in a turn at most, for a clock that stands still.
const MOST_PASSES: u128 = 100_000;

/// Time of one pass of each runner: the median of its rounds by the thread's clock, by the wall's the best of
/// those in which its threads ran at the same time.
///
/// `after_turn` is called as often as [`turns`] says.
///
/// # Errors
/// The first failure of a pass.
pub(super) fn race<T>(
    tensors: &mut T,
    runners: &mut [Runner<T>],
    rules: Rules,
    mut after_turn: impl FnMut(),
) -> Result<Vec<Duration>, KernelError> {
    let mut plans = Vec::with_capacity(runners.len());
    for runner in runners.iter_mut() {
        plans.push(Plan::new(runner, tensors, rules)?);
    }
    let mut times: Vec<Vec<Time>> = vec![Vec::new(); runners.len()];
    let mut order: Vec<usize> = (0..runners.len()).collect();
    let mut random = Random::default();
    for round in 0..rules.rounds {
        shuffle(&mut order, &mut random);
        for &index in &order {
            let (Some(runner), Some(plan)) = (runners.get_mut(index), plans.get(index)) else { continue };
            if round < plan.rounds {
                let time = turn(runner, tensors, plan)?;
                times[index].push(time);
            }
            after_turn();
        }
    }
    Ok(runners.iter().zip(times).map(|(runner, times)| summary(runner.clock, times)).collect())
}

/// Turns of a race, for a progress bar.
pub(super) fn turns(runners: usize, rules: Rules) -> u64 {
    (runners * rules.rounds) as u64
}

/// What a trial pass tells about a runner.
struct Plan {
    passes: u32,
    rounds: usize,
    warm: bool,
}

impl Plan {
    fn new<T>(runner: &mut Runner<T>, tensors: &mut T, rules: Rules) -> Result<Self, KernelError> {
        // The first pass pays for pages and code that are not there yet.
        (runner.pass)(tensors)?;
        let pass = runner.clock.time(|| (runner.pass)(tensors))?.span.as_nanos().max(1);
        let passes = rules.least_turn.as_nanos().div_ceil(pass).clamp(1, MOST_PASSES);
        let rounds = (rules.patience.as_nanos() / (pass * passes)).try_into().unwrap_or(usize::MAX);
        Ok(Self {
            passes: u32::try_from(passes).unwrap_or(u32::MAX),
            rounds: rounds.max(LEAST_ROUNDS).min(rules.rounds),
            // To a pass of so long it is nothing that its tensor comes from memory.
            warm: rules.warm && pass < rules.patience.as_nanos() / 4,
        })
    }
}

/// One turn: the time of a pass, from as many of them as planned.
fn turn<T>(runner: &mut Runner<T>, tensors: &mut T, plan: &Plan) -> Result<Time, KernelError> {
    let Runner { clock, pass } = runner;
    let passes = plan.passes;
    if plan.warm {
        pass(tensors)?;
    }
    match clock {
        // The thread's clock is too coarse for single passes.
        Clock::Thread => {
            let time = clock.time(|| (0..passes).try_for_each(|_| pass(tensors)))?;
            Ok(Time { span: time.span / passes, ..time })
        }
        Clock::Wall => {
            let (mut times, start) = (Vec::new(), Instant::now());
            // On a busy machine two threads seldom run at once; it is worth a few more tries.
            while times.len() < passes as usize || (start.elapsed() < TRYING && !times.iter().any(Time::is_together)) {
                times.push(clock.time(|| pass(tensors))?);
            }
            Ok(best(&times).unwrap_or(Time { span: Duration::MAX, processors: 0.0 }))
        }
    }
}

fn summary(clock: Clock, mut times: Vec<Time>) -> Duration {
    let time = match clock {
        Clock::Thread => {
            times.sort_unstable_by_key(|time| time.span);
            times.get(times.len() / 2).copied()
        }
        Clock::Wall => best(&times),
    };
    // A clock that stood still would make an infinite rate.
    time.map_or(Duration::MAX, |time| time.span.max(Duration::from_nanos(1)))
}

/// The shortest of those in which the threads were nearly as busy as they ever were, two at the most.
///
/// Where one waits for a processor, the other is alone with the data: two that contend look faster than they are.
fn best(times: &[Time]) -> Option<Time> {
    let busiest = times.iter().map(|time| time.processors).fold(0.0, f64::max).min(2.0);
    times.iter().copied().filter(|time| time.processors >= 0.85 * busiest).min_by_key(|time| time.span)
}

/// Fisher and Yates's shuffle.
fn shuffle(order: &mut [usize], random: &mut Random) {
    for last in (1..order.len()).rev() {
        order.swap(last, (random.next() % (last as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { rounds: 5, least_turn: Duration::ZERO, patience: Duration::MAX, warm: false };

    fn runner<T>(clock: Clock, pass: impl FnMut(&mut T) -> Result<(), KernelError> + 'static) -> Runner<T> {
        Runner { clock, pass: Box::new(pass) }
    }

    #[test]
    fn everybody_runs_once_a_round_and_not_always_in_the_same_order() {
        let mut runners: Vec<Runner<Vec<i32>>> = (0..6)
            .map(|name| {
                runner(Clock::Thread, move |seen: &mut Vec<i32>| {
                    seen.push(name);
                    Ok(())
                })
            })
            .collect();
        let (mut seen, mut ticks) = (Vec::new(), 0);
        let times = race(&mut seen, &mut runners, RULES, || ticks += 1).unwrap();
        assert_eq!((times.len(), ticks), (6, turns(6, RULES)));
        // Two trial passes each come first; then five rounds of one pass each.
        let rounds = seen.split_off(12);
        assert_eq!(seen, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
        let mut rounds: Vec<Vec<i32>> = rounds.chunks(6).map(<[i32]>::to_vec).collect();
        assert_eq!(rounds.len(), 5);
        assert!(rounds.windows(2).any(|pair| pair[0] != pair[1]), "{rounds:?}");
        rounds.iter_mut().for_each(|round| round.sort_unstable());
        assert!(rounds.iter().all(|round| *round == [0, 1, 2, 3, 4, 5]), "{rounds:?}");
    }

    #[test]
    fn whoever_has_used_up_the_patience_drops_out_but_not_before_three_rounds() {
        // Two trial passes, then in each round a counted pass, and a warming one before it unless a pass is long.
        for (patience, passes_in_rounds) in [(Duration::ZERO, LEAST_ROUNDS), (Duration::MAX, RULES.rounds * 2)] {
            let mut runners = [runner(Clock::Thread, |passes: &mut usize| {
                *passes += 1;
                Ok(())
            })];
            let mut passes = 0;
            race(&mut passes, &mut runners, Rules { patience, warm: true, ..RULES }, || ()).unwrap();
            assert_eq!(passes, 2 + passes_in_rounds);
        }
    }

    #[test]
    fn a_turn_on_the_wall_tries_again_while_only_one_thread_runs() {
        let mut runners = [runner(Clock::Wall, |passes: &mut usize| {
            *passes += 1;
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        })];
        let mut passes = 0;
        race(&mut passes, &mut runners, RULES, || ()).unwrap();
        // A sleeper is never two busy threads: more than the two trial passes and one for each of five rounds.
        assert!(passes > 2 + 5, "{passes}");
    }

    #[test]
    fn the_thread_clock_gives_the_median_and_the_wall_clock_the_best_time_together() {
        let times = |processors: [f64; 5]| {
            let spans = [5, 1, 9, 3, 7].map(Duration::from_nanos);
            spans.into_iter().zip(processors).map(|(span, processors)| Time { span, processors }).collect()
        };
        assert_eq!(summary(Clock::Thread, times([1.0; 5])), Duration::from_nanos(5));
        assert_eq!(summary(Clock::Wall, times([2.0, 1.8, 1.9, 2.0, 2.0])), Duration::from_nanos(1));
        // In the round of 1 ns one thread was alone half of the time: 1.5 < 0.85 · 2.0.
        assert_eq!(summary(Clock::Wall, times([2.0, 1.5, 1.9, 1.8, 2.0])), Duration::from_nanos(3));
        // In none of them both ran all of the time: 1.2 ≥ 0.85 · 1.3.
        assert_eq!(summary(Clock::Wall, times([1.3, 1.2, 1.0, 1.1, 1.3])), Duration::from_nanos(1));
    }

    #[test]
    fn a_failing_pass_ends_the_race() {
        let mut runners = [runner(Clock::Thread, |(): &mut ()| Err(KernelError::Bits { found: 9 }))];
        assert_eq!(race(&mut (), &mut runners, RULES, || ()), Err(KernelError::Bits { found: 9 }));
    }
}
