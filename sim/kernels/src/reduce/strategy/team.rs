//! Threads that take consecutive shares of the blocks.

use std::ops::Range;
use std::thread;

/// Runs `work` on one consecutive share of `blocks` for each of `threads` threads, the caller among them, and
/// returns their results in the order of the shares. Never more threads than blocks; one share, perhaps empty, at
/// least.
pub(super) fn shares<R: Send>(blocks: usize, threads: usize, work: impl Fn(Range<usize>) -> R + Sync) -> Vec<R> {
    let threads = threads.min(blocks).max(1);
    let work = &work;
    // As even as whole blocks allow: thread t begins where its fellows have had t / threads of them.
    let share = move |t: usize| blocks / threads * t + (blocks % threads).min(t);
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map(|t| {
                let range = share(t)..share(t + 1);
                let run = range.clone();
                (range, thread::Builder::new().spawn_scoped(scope, move || work(run)))
            })
            .collect();
        let mut results = Vec::with_capacity(threads);
        results.push(work(share(0)..share(1)));
        for (range, other) in others {
            results.push(match other {
                Ok(thread) => thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)),
                // The system has no thread left to give: the caller does that share too.
                Err(_) => work(range),
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
        assert_eq!(shares(0, 3, |range| range), [0..0]);
    }
}
