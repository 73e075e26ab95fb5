//! Medians of the thread's CPU time over interleaved rounds.

/// One method of a table: does its work once and returns the number of units (events, iterations).
pub(crate) type Method<'a> = Box<dyn FnMut() -> usize + 'a>;

/// Median nanoseconds per unit of each method, in rounds of shuffled order after a warm-up round.
pub(crate) fn race<const N: usize>(rounds: usize, mut methods: [Method<'_>; N]) -> [f64; N] {
    let mut random = Random(42);
    let mut times = [const { Vec::new() }; N];
    for round in 0..=rounds {
        let mut turns: Vec<_> = (0..N).collect();
        for i in (1..N).rev() {
            turns.swap(i, random.below(i + 1));
        }
        for turn in turns {
            let start = cpu_time();
            let units = methods[turn]();
            let time = cpu_time() - start;
            if round > 0 {
                times[turn].push(time / units as f64);
            }
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}

/// CPU time of this thread, in nanoseconds.
fn cpu_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of this frame, which the call fills.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }
}
