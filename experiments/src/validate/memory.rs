//! Answers of the models of flash, of compressed memory and of reclaim about transfers and windows of a recording, from
//! the same code that simulates a phone.

use std::collections::VecDeque;

use haversack_devices::{
    Bytes, ClusterClass, CoreSelection, Device, Direction, Driver, Flash, FlashQueue, Fraction, Frequency, Nanos,
    PageCosts, Request, ScalarSpeed, Schedutil, System, load, load_system,
};
use haversack_memory::phone::{PAGE, Settings, Waits};
use serde_json::{Map, Value, json};

use super::answer::Found;
use crate::measured_set::{Data, Target, Transfers, Window};

/// The system whose kernel handles pages.
const SYSTEM: &str = "android";
/// Transfers per thread; for deep queues, multiplied by the depth.
const TRANSFERS: u64 = 256;
/// The number of iterations after which the clocks have settled.
const SETTLED: usize = 16;

/// The figures of `transfers`.
pub(super) fn transfers(transfers: &Transfers) -> Found {
    let device = load(&transfers.device).map_err(|error| error.to_string())?;
    match transfers.target {
        Target::Flash => flash(&device, transfers),
        Target::Zram => Ok(figures([("latency_mean_s", compressed(&device, transfers)?)])),
    }
}

fn figures<const N: usize>(found: [(&str, f64); N]) -> Map<String, Value> {
    found.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
}

/// The results of transfers by some threads.
struct Transferred {
    /// The latency of each transfer, at depth one.
    latencies: Vec<Nanos>,
    /// The total time.
    span: Nanos,
    bytes: f64,
}

/// Each thread issues as many transfers as its depth allows, bypassing the page cache, until all have ended. Threads
/// that sleep between requests let the clocks sink, at most to their level while tasks wait.
fn flash(device: &Device, transfers: &Transfers) -> Found {
    let flash = device.flash().ok_or_else(|| format!("{} has no flash", device.id))?;
    let system = load_system(SYSTEM).map_err(|error| error.to_string())?;
    let fastest = speeds(device)?[0];
    let clocks = &system.constants.clocks;
    let (mut share, mut driver) = (Fraction(1.0), system.driver(fastest).in_place());
    let mut found = transfer(&flash, transfers, driver, &system);
    for _ in 0..SETTLED {
        let commands = found.bytes / transfers.block.as_f64();
        let load = commands * driver.time(transfers.block).seconds() / found.span.seconds() * share.0;
        // Halfway each time, so that it converges.
        share = Fraction((share.0 + Schedutil::wanted(Fraction(load)).0.max(clocks.waiting.value.0)) / 2.0);
        driver = system.driver(fastest.at(share)).in_place();
        found = transfer(&flash, transfers, driver, &system);
    }
    let bandwidth = ("bandwidth_bytes_per_s", found.bytes / found.span.seconds());
    found.latencies.sort_unstable();
    // The driver's time belongs to submission.
    let Some(last) = found.latencies.get((found.latencies.len() * 99).div_ceil(100).wrapping_sub(1)) else {
        return Ok(figures([bandwidth]));
    };
    let mean = found.latencies.iter().map(|latency| latency.seconds()).sum::<f64>() / found.latencies.len() as f64;
    let completion = last.saturating_sub(driver.time(transfers.block)).seconds();
    Ok(figures([bandwidth, ("latency_mean_s", mean), ("completion_p99_s", completion)]))
}

fn transfer(flash: &Flash, transfers: &Transfers, driver: Driver, system: &System) -> Transferred {
    let mut queue = FlashQueue::new(flash.clone());
    let request = |bytes, depth| Request { direction: transfers.direction, bytes, command: transfers.block, depth };
    if transfers.behind_cache {
        let full = Bytes(flash.write_cache().0 + (1 << 30));
        let _span = queue.write(Nanos::ZERO, full, Bytes(1 << 20), u32::MAX, driver);
    }
    let (start, block) = (queue.clock(), transfers.block.0);
    let (mut latencies, mut end) = (Vec::new(), start);
    if transfers.depth > 1 {
        let depth = u32::try_from(transfers.depth).unwrap_or(u32::MAX);
        let each = Bytes(block.saturating_mul(TRANSFERS).saturating_mul(transfers.depth));
        for _ in 0..transfers.threads {
            queue.submit(start, request(each, depth), driver);
        }
        while let Some(done) = queue.advance(Nanos::MAX) {
            end = done.time;
        }
        return Transferred { latencies, span: end - start, bytes: each.as_f64() * transfers.threads as f64 };
    }
    let (one, wake_up) = (request(transfers.block, 1), system.constants.costs.wake_up.value);
    let mut begun: Vec<_> = (0..transfers.threads).map(|_| (queue.submit(start, one, driver), start)).collect();
    // The times at which threads are awake again.
    let mut awake: VecDeque<Nanos> = VecDeque::new();
    let mut left = transfers.threads * (TRANSFERS - 1);
    loop {
        let next = awake.front().copied().unwrap_or(Nanos::MAX);
        if let Some(done) = queue.advance(next) {
            let Some(place) = begun.iter().position(|(id, _)| *id == done.request) else { continue };
            let (_, since) = begun.swap_remove(place);
            end = done.time + wake_up;
            latencies.push(end - since);
            awake.push_back(end);
        } else if awake.pop_front().is_none() {
            let bytes = (block * latencies.len() as u64) as f64;
            return Transferred { latencies, span: end - start, bytes };
        } else if left > 0 {
            left -= 1;
            begun.push((queue.submit(next, one, driver), next));
        }
    }
}

/// The mean latency of compressed memory, whose work is done by the requesting cores, the fastest first.
fn compressed(device: &Device, transfers: &Transfers) -> Result<f64, String> {
    let system = load_system(SYSTEM).map_err(|error| error.to_string())?;
    let speeds = speeds(device)?;
    let pages = transfers.block.0.div_ceil(PAGE);
    let each = |costs: PageCosts| {
        let page = match (transfers.direction, transfers.data) {
            (Direction::Write, _) => costs.compress,
            (Direction::Read, Data::Apps) => costs.decompress,
            (Direction::Read, Data::Incompressible) => costs.copy,
        };
        (costs.submit + page * pages).seconds()
    };
    let asking = (0..transfers.threads as usize).map(|thread| each(system.page_costs(speeds[thread % speeds.len()])));
    Ok(asking.sum::<f64>() / transfers.threads as f64)
}

/// The speed of scalar code on each core, the fastest first; at least one.
fn speeds(device: &Device) -> Result<Vec<ScalarSpeed>, String> {
    let unknown = || format!("the CoreMark of the cores of {} is not known", device.id);
    let cpu = device.cpu().ok_or_else(unknown)?;
    let mut speeds = Vec::new();
    for class in [ClusterClass::Big, ClusterClass::Middle, ClusterClass::Little] {
        // `big` may extend into other classes.
        let of_class = device.constants.cpu.iter().filter(|cluster| cluster.class == class);
        let count: f64 = of_class.map(|cluster| cluster.cores.value.0).sum();
        let one = cpu.choose(CoreSelection::Some { class, count: 1 }, Frequency::Highest).ok();
        let speed = one.filter(|_| count > 0.0).and_then(|core| ScalarSpeed::of(&core));
        speeds.extend(speed.into_iter().flat_map(|speed| std::iter::repeat_n(speed, count as usize)));
    }
    if speeds.is_empty() { Err(unknown()) } else { Ok(speeds) }
}

/// The pressure-stall times in `window`: while at least one task waits for memory, and while all tasks with work do.
pub(super) fn window(window: &Window) -> Found {
    let device = load(&window.device).map_err(|error| error.to_string())?;
    let system = load_system(SYSTEM).map_err(|error| error.to_string())?;
    let (fastest, clocks) = (speeds(&device)?[0], &system.constants.clocks);
    let flash = device.flash().ok_or_else(|| format!("{} has no flash", device.id))?;
    let settings = Settings::of(&system, &device);
    let slow = fastest.at(clocks.waiting.value);
    let costs = system.page_costs(slow);
    let (ahead, driver) = (settings.file_read_ahead, system.driver(slow));
    let one = flash.alone(Direction::Read, ahead) + driver.time(ahead) + costs.wake_up;
    let waits = Waits {
        costs,
        read: one.times(PAGE as f64 / ahead.as_f64()) + costs.fault + costs.submit,
        pages: system.app_pages(),
        direct: settings.direct,
    };
    let span = Nanos::from_seconds(window.duration);
    let [some, full] = settings.spread.over(span, waits.total(&window.counted));
    Ok(figures([("some_s", some.0 * window.duration), ("full_s", full.0 * window.duration)]))
}
