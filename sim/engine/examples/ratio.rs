//! Prints the speed of the event queue as a share of a plain loop's, and the memory per event.
//!
//! Both loops do the same work with the same random numbers, alternating within each round. Comparing their CPU times
//! makes other work on the machine count little. Linux only: CPU time and resident memory are read from `/proc`.
//!
//! ```text
//! cargo run --release -p haversack-engine --example ratio [ROUNDS]
//! ```

#[path = "../benches/loops/draw.rs"]
mod draw;
#[path = "../benches/loops/link.rs"]
mod link;
#[path = "../benches/loops/ours.rs"]
mod ours;
#[path = "../benches/loops/plain.rs"]
mod plain;

use std::error::Error;
use std::hint::black_box;

use haversack_devices::units::Nanos;
use haversack_engine::EventQueue;

const EVENTS: u64 = 5_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let rounds = std::env::args().nth(1).map_or(Ok(11), |rounds| rounds.parse())?;
    compare("M/M/1", rounds, || plain::mm1(EVENTS), || ours::mm1(EVENTS))?;
    for (in_flight, count) in [(1, EVENTS), (100, EVENTS)] {
        let (nanos, _) = cpu_time(|| plain::entities(in_flight as u32, count))?;
        println!("bare heap, {in_flight} pending: {:.1} ns an event", nanos / count as f64);
        let (nanos, _) = cpu_time(|| link::completions(in_flight, count))?;
        println!("shared bandwidth, {in_flight} in flight: {:.1} ns a completion", nanos / count as f64);
        let (nanos, _) = cpu_time(|| link::capped_completions(in_flight, count))?;
        println!("shared bandwidth, {in_flight} in flight, random caps: {:.1} ns a completion", nanos / count as f64);
    }
    for pending in [1_000, 10_000, 100_000, 1_000_000, 10_000_000] {
        let name = format!("hold, {pending} pending");
        compare(&name, rounds, || plain::entities(pending, EVENTS), || ours::entities(pending, EVENTS))?;
    }
    memory()
}

fn compare(name: &str, rounds: usize, plain: impl Fn() -> u64, ours: impl Fn() -> u64) -> Result<(), Box<dyn Error>> {
    let mut ratios = Vec::new();
    let (mut fastest_plain, mut fastest_ours) = (f64::MAX, f64::MAX);
    for _ in 0..rounds {
        let (plain_time, plain_digest) = cpu_time(&plain)?;
        let (our_time, our_digest) = cpu_time(&ours)?;
        if plain_digest != our_digest {
            return Err(format!("{name}: the loops disagree").into());
        }
        ratios.push(plain_time / our_time);
        fastest_plain = fastest_plain.min(plain_time);
        fastest_ours = fastest_ours.min(our_time);
    }
    ratios.sort_by(f64::total_cmp);
    let (Some(least), Some(median), Some(most)) = (ratios.first(), ratios.get(rounds / 2), ratios.last()) else {
        return Err("at least one round is needed".into());
    };
    println!(
        "{name}: {median:.2} of the plain loop's speed ({least:.2} to {most:.2} in {rounds} rounds); at best {:.1} ns \
         an event, plain {:.1}",
        fastest_ours / EVENTS as f64,
        fastest_plain / EVENTS as f64,
    );
    Ok(())
}

fn memory() -> Result<(), Box<dyn Error>> {
    println!("a pending event of 8 bytes: {} bytes", EventQueue::<u64>::BYTES_PER_EVENT);
    let before = resident()?;
    let mut queue = EventQueue::new();
    for event in 0..1 << 20 {
        queue.schedule_in(Nanos(event * 7_919 % 1_000_003), event);
    }
    println!("2^20 pending: {:.1} resident bytes an event", (resident()? - before) / (1 << 20) as f64);
    drop(queue);
    let before = resident()?;
    let (warm, end) = ours::cancels(1_000, EVENTS);
    println!(
        "5 million schedules and cancels beside 1,000 pending: {warm} bytes allocated after 50,000, {end} at the end; \
         resident {:.2} MB before, {:.2} MB after",
        before * 1e-6,
        resident()? * 1e-6
    );
    Ok(())
}

fn cpu_time(run: impl FnOnce() -> u64) -> Result<(f64, u64), Box<dyn Error>> {
    let start = thread_nanos()?;
    let digest = black_box(run());
    Ok((thread_nanos()? - start, digest))
}

fn thread_nanos() -> Result<f64, Box<dyn Error>> {
    // The kernel updates the counter when the thread yields.
    std::thread::yield_now();
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(statistics.split_whitespace().next().ok_or("no CPU time in schedstat")?.parse()?)
}

fn resident() -> Result<f64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS in status")?;
    Ok(line.split_whitespace().nth(1).ok_or("no VmRSS in status")?.parse::<f64>()? * 1024.0)
}
