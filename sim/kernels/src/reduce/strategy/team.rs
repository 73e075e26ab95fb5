//! Threads that take consecutive shares of the blocks.

use std::ops::Range;
use std::thread;

/// Runs `work` on one consecutive share of `blocks` for each of `threads` threads, the caller among them, and
/// returns their results in the order of the shares. Never more threads than blocks; one share, perhaps empty, at
/// least.
///
/// The fellows are workers of rayon's pool, which sleep between calls and wake in a fraction of the time that a new
/// thread takes to start. A team that is larger than the pool gets threads of its own.
pub(super) fn shares<R: Send>(blocks: usize, threads: usize, work: impl Fn(Range<usize>) -> R + Sync) -> Vec<R> {
    let threads = threads.min(blocks).max(1);
    // As even as whole blocks allow: thread t begins where its fellows have had t / threads of them.
    let start = |t: usize| blocks / threads * t + (blocks % threads).min(t);
    let share = |t: usize| work(start(t)..start(t + 1));
    if threads == 1 {
        return vec![share(0)];
    }
    // The caller is one of the pool's workers itself where a reduction runs within a parallel loop.
    let workers = rayon::current_num_threads() - usize::from(rayon::current_thread_index().is_some());
    if threads - 1 <= workers { pooled(threads, share) } else { started(threads, share) }
}

/// The shares by the caller and workers of the pool.
fn pooled<R: Send>(threads: usize, share: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let mut results: Vec<Option<R>> = (0..threads).map(|_| None).collect();
    let share = &share;
    rayon::in_place_scope(|scope| {
        let mut places = results.iter_mut().enumerate();
        let own = places.next();
        for (t, place) in places {
            scope.spawn(move |_| *place = Some(share(t)));
        }
        if let Some((t, place)) = own {
            *place = Some(share(t));
        }
    });
    // The scope ends when every place is taken, and a panic goes through it.
    results.into_iter().flatten().collect()
}

/// The shares by the caller and threads that are started for them.
fn started<R: Send>(threads: usize, share: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let share = &share;
    thread::scope(|scope| {
        let fellows: Vec<_> =
            (1..threads).map(|t| (t, thread::Builder::new().spawn_scoped(scope, move || share(t)))).collect();
        let mut results = Vec::with_capacity(threads);
        results.push(share(0));
        for (t, fellow) in fellows {
            results.push(match fellow {
                Ok(thread) => thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)),
                // The system has no thread left to give: the caller does that share too.
                Err(_) => share(t),
            });
        }
        results
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_the_blocks_in_order_and_evenly() {
        // 10 blocks on 4 threads: 3 + 3 + 2 + 2.
        assert_eq!(shares(10, 4, |range| range), [0..3, 3..6, 6..8, 8..10]);
        // Two blocks keep at most two threads busy; none still make one, empty, share.
        assert_eq!(shares(2, 9, |range| range), [0..1, 1..2]);
        assert_eq!(shares(0, 3, |range| (range.start, range.end)), [(0, 0)]);
    }

    #[test]
    fn the_pool_and_started_threads_answer_alike() {
        // Every share squares its number.
        let squares = [0, 1, 4, 9, 16, 25, 36];
        assert_eq!((pooled(7, |t| t * t), started(7, |t| t * t)), (squares.to_vec(), squares.to_vec()));
    }

    #[test]
    fn a_team_within_the_pool_finishes_though_every_worker_waits_for_one() {
        let teams = 4 * rayon::current_num_threads();
        let sums = pooled(teams, |_| shares(100, 2, |range| range.sum::<usize>()).into_iter().sum::<usize>());
        // 0 + … + 99.
        assert_eq!(sums, vec![4950; teams]);
    }
}
