//! What this machine is: cores, caches as the kernel says, and the speed of a core and of memory.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use haversack_bench::{core_clock, thread_time};
use haversack_kernels::{Isa, limit};

/// Rounds of which the fastest counts.
const ROUNDS: usize = 25;
/// How long each lasts at least.
const SHORTEST: Duration = Duration::from_millis(1);
/// Bytes of a set that no cache holds.
const LARGEST: usize = 64 << 20;

/// What is known of this machine.
pub(super) struct Machine {
    pub(super) cores: usize,
    /// Bytes of memory, if the kernel says so.
    pub(super) memory: Option<f64>,
    /// Hertz.
    pub(super) clock: f64,
    /// Bytes of the data caches of a core and what they share, if the kernel says so.
    pub(super) caches: [Option<f64>; 3],
    /// Bytes a second that are read and written in copies that each of them holds.
    pub(super) copies: [Option<f64>; 3],
    /// The same of a set that none holds, by one core.
    pub(super) memory_rate: f64,
    /// The same by all cores together.
    pub(super) memory_rate_together: f64,
}

impl Machine {
    /// Measures it. A level is at least as fast as the one behind it, which other programs may have hidden.
    pub(super) fn measure(isa: Isa) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let caches = [1, 2, 3].map(cache);
        let mut before = 0.0;
        let mut copies = caches.map(|size| {
            let size = size?;
            // Well within the level, and well above the one before.
            let set = (size * 0.5).max(2.0 * before).min(size * 0.75);
            before = size;
            (set >= 4096.0).then(|| copied(set as usize, isa))
        });
        let together = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..cores).map(|_| scope.spawn(|| copied_by_the_wall(LARGEST, isa))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).sum()
        });
        let memory_rate = copied(LARGEST, isa);
        let mut behind = memory_rate;
        for rate in copies.iter_mut().rev().flatten() {
            *rate = rate.max(behind);
            behind = *rate;
        }
        Self {
            cores,
            memory: memory(),
            clock: core_clock().0,
            caches,
            copies,
            memory_rate,
            memory_rate_together: f64::max(together, memory_rate),
        }
    }
}

/// The most of `work` that is done in a second of the thread's time.
fn fastest(mut work: impl FnMut() -> f64) -> f64 {
    let start = thread_time();
    work();
    // As often between two looks at the clock that these take no time.
    let once = thread_time().saturating_sub(start).as_secs_f64();
    let many = (SHORTEST.as_secs_f64() / once.max(1e-7)).clamp(1.0, 1e4) as usize;
    let mut best: f64 = 0.0;
    for _ in 0..ROUNDS {
        let start = thread_time();
        let done: f64 = (0..many).map(|_| work()).sum();
        let spent = thread_time().saturating_sub(start).as_secs_f64();
        best = best.max(done / spent.max(1e-9));
    }
    best
}

/// Bytes a second of copies within a set of `bytes`, half of which is read and half written.
fn copied(bytes: usize, isa: Isa) -> f64 {
    let (from, mut to) = halves(bytes);
    fastest(|| {
        limit::copy(black_box(&from), black_box(&mut to), false, isa);
        (size_of_val(&*from) * 2) as f64
    })
}

/// The same by the clock on the wall, for threads that copy together.
fn copied_by_the_wall(bytes: usize, isa: Isa) -> f64 {
    let (from, mut to) = halves(bytes);
    limit::copy(&from, &mut to, false, isa);
    let (start, mut done) = (Instant::now(), 0.0);
    while start.elapsed() < 40 * SHORTEST {
        limit::copy(black_box(&from), black_box(&mut to), false, isa);
        done += (size_of_val(&*from) * 2) as f64;
    }
    done / start.elapsed().as_secs_f64()
}

fn halves(bytes: usize) -> (Vec<f32>, Vec<f32>) {
    let elements = (bytes / 8).max(1024) / 16 * 16;
    (vec![0.5; elements], vec![0.25; elements])
}

/// The size of the data cache of this level, as Linux says it.
fn cache(level: u32) -> Option<f64> {
    let folder = Path::new("/sys/devices/system/cpu/cpu0/cache");
    let read = |index: u32, what: &str| fs::read_to_string(folder.join(format!("index{index}/{what}"))).ok();
    let is_data = |index: &u32| {
        read(*index, "level").is_some_and(|found| found.trim() == level.to_string())
            && read(*index, "type").is_some_and(|kind| kind.trim() != "Instruction")
    };
    let size = read((0..8).find(is_data)?, "size")?;
    let size = size.trim();
    let number: f64 = size.trim_end_matches(['K', 'M']).parse().ok()?;
    Some(number * if size.ends_with('M') { 1_048_576.0 } else { 1024.0 })
}

/// Bytes of memory, as Linux says it.
fn memory() -> Option<f64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<f64>().ok().map(|kilobytes| kilobytes * 1024.0)
}
