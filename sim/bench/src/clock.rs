//! The two clocks: what a thread really computed, and what passed on the wall.

use std::hint::black_box;
use std::time::{Duration, Instant};

use haversack_devices::units::Hertz;

/// Which time a measurement counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// The calling thread's processor time, which other processes do not lengthen; the median of the rounds.
    Thread,
    /// The time on the wall, for what two threads do together; the best of the passes in which they did.
    Wall,
}

/// How long something took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Time {
    /// So long.
    pub(super) span: Duration,
    /// Processors that this process used meanwhile, on average; one, where only one thread counts.
    pub(super) processors: f64,
}

impl Time {
    /// Whether two threads were busy for nearly all of it.
    pub(super) fn is_together(&self) -> bool {
        self.processors >= 1.7
    }
}

impl Clock {
    /// How long `work` takes by this clock.
    pub(super) fn time<E>(self, work: impl FnOnce() -> Result<(), E>) -> Result<Time, E> {
        match self {
            Self::Thread => {
                let start = thread_time();
                work()?;
                Ok(Time { span: thread_time().saturating_sub(start), processors: 1.0 })
            }
            Self::Wall => {
                let (start, used) = (Instant::now(), process_time());
                work()?;
                let (span, used) = (start.elapsed(), process_time().saturating_sub(used));
                Ok(Time { span, processors: used.as_secs_f64() / span.as_secs_f64().max(1e-9) })
            }
        }
    }
}

/// The processor time that this thread has used, which other processes do not lengthen; the wall's where threads have no clock.
#[must_use]
#[cfg(unix)]
pub fn thread_time() -> Duration {
    system_time(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The processor time that all threads of this process have used.
#[cfg(unix)]
fn process_time() -> Duration {
    system_time(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// The frequency that this thread's core runs at: the fastest of several passes over steps each of which waits for the one
/// before, three shifts and three exclusive ors of integers, which are taken to be six cycles on every core.
pub fn core_clock() -> Hertz {
    const STEPS: u32 = 200_000;
    const CYCLES: f64 = 6.0;
    let pass = || {
        let start = thread_time();
        let mut x = black_box(1_u64);
        for _ in 0..STEPS {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        black_box(x);
        thread_time().saturating_sub(start).as_secs_f64()
    };
    let best = (0..20).map(|_| pass()).fold(f64::INFINITY, f64::min);
    Hertz(f64::from(STEPS) * CYCLES / best.max(1e-9))
}

/// A clock of the system; the wall's where it has no such clock.
#[cfg(unix)]
fn system_time(clock: libc::clockid_t) -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one `timespec`, and `now` is one.
    let status = unsafe { libc::clock_gettime(clock, &raw mut now) };
    if status != 0 {
        return wall_time();
    }
    Duration::from_secs(now.tv_sec.unsigned_abs()) + Duration::from_nanos(now.tv_nsec.unsigned_abs())
}

/// The time on the wall: threads have no clock here.
#[must_use]
#[cfg(not(unix))]
pub fn thread_time() -> Duration {
    wall_time()
}

#[cfg(not(unix))]
fn process_time() -> Duration {
    wall_time()
}

/// The wall's time since the first call: what there is where threads have no clock.
fn wall_time() -> Duration {
    use std::sync::OnceLock;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_is_no_processor_time() {
        let nap = || {
            std::thread::sleep(Duration::from_millis(20));
            Ok::<(), ()>(())
        };
        assert!(Clock::Wall.time(nap).unwrap().span >= Duration::from_millis(20));
        // A nap of 20 ms costs two system calls, thousands of times less on any machine.
        #[cfg(unix)]
        assert!(Clock::Thread.time(nap).unwrap().span < Duration::from_millis(10));
    }

    #[test]
    fn a_core_runs_at_a_frequency_that_cores_have() {
        let hertz = core_clock().0;
        assert!((1e8..1e10).contains(&hertz), "{hertz}");
    }

    #[test]
    fn a_failure_is_passed_on() {
        assert_eq!(Clock::Wall.time(|| Err("no")), Err("no"));
    }
}
