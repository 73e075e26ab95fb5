//! What the models of flash, of compressed memory and of reclaim say of transfers and of windows of a recording: the same code
//! that charges a simulated phone.

use haversack_devices::device::{ClusterClass, Device};
use haversack_devices::processor::{CoreSelection, Frequency};
use haversack_devices::storage::{Direction, FlashQueue, Request, ScalarSpeed};
use haversack_devices::system::PageCosts;
use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::{load, load_system};
use haversack_memory::phone::PAGE;
use serde_json::{Map, Value, json};

use super::answer::Found;
use crate::measured_set::{Data, Target, Transfers, Window};

/// The system whose kernel works on pages.
const SYSTEM: &str = "android";
/// Transfers of each thread; of deep queues, as many times their depth.
const TRANSFERS: u64 = 256;

/// What `transfers` come to.
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

/// Each thread issues as many transfers as its depth allows, past the page cache, until all have ended.
fn flash(device: &Device, transfers: &Transfers) -> Found {
    let flash = device.flash().ok_or_else(|| format!("{} has no flash", device.id))?;
    let speed = speeds(device)?[0];
    let driver = flash.driver(speed).in_place();
    let mut queue = FlashQueue::new(flash.clone());
    let request = |bytes, depth| Request { direction: transfers.direction, bytes, command: transfers.block, depth };
    if transfers.behind_cache {
        let full = Bytes(flash.write_cache().0 + (1 << 30));
        let _span = queue.write(Nanos::ZERO, full, Bytes(1 << 20), u32::MAX, driver);
    }
    let (start, block) = (queue.clock(), transfers.block.0);
    if transfers.depth > 1 {
        let depth = u32::try_from(transfers.depth).unwrap_or(u32::MAX);
        let each = Bytes(block.saturating_mul(TRANSFERS).saturating_mul(transfers.depth));
        for _ in 0..transfers.threads {
            queue.submit(start, request(each, depth), driver);
        }
        let mut end = start;
        while let Some(done) = queue.advance(Nanos::MAX) {
            end = done.time;
        }
        let bytes = each.as_f64() * transfers.threads as f64;
        return Ok(figures([("bandwidth_bytes_per_s", bytes / (end - start).seconds())]));
    }
    let one = request(transfers.block, 1);
    let mut begun: Vec<_> = (0..transfers.threads).map(|_| (queue.submit(start, one, driver), start)).collect();
    let (mut latencies, mut left, mut end) = (Vec::new(), transfers.threads * (TRANSFERS - 1), start);
    while let Some(done) = queue.advance(Nanos::MAX) {
        let Some(place) = begun.iter().position(|(id, _)| *id == done.request) else { continue };
        let (_, since) = begun.swap_remove(place);
        latencies.push(done.time - since);
        end = done.time;
        if left > 0 {
            left -= 1;
            begun.push((queue.submit(end, one, driver), end));
        }
    }
    latencies.sort_unstable();
    let seconds: Vec<f64> = latencies.iter().map(|latency| latency.seconds()).collect();
    // The driver's part is submission's.
    let last = latencies[(latencies.len() * 99).div_ceil(100) - 1].saturating_sub(driver.time(transfers.block));
    Ok(figures([
        ("bandwidth_bytes_per_s", block as f64 * seconds.len() as f64 / (end - start).seconds()),
        ("latency_mean_s", seconds.iter().sum::<f64>() / seconds.len() as f64),
        ("completion_p99_s", last.seconds()),
    ]))
}

/// The mean latency of compressed memory, whose work is that of the cores that ask, the fastest first.
fn compressed(device: &Device, transfers: &Transfers) -> Result<f64, String> {
    let system = load_system(SYSTEM).map_err(|error| error.to_string())?;
    let speeds = speeds(device)?;
    let pages = transfers.block.0.div_ceil(PAGE);
    let each = |costs: PageCosts| {
        let page = match (transfers.direction, transfers.data) {
            (Direction::Write, _) => costs.compress,
            (Direction::Read, Data::Apps) => costs.decompress,
            // It is copied as it is.
            (Direction::Read, Data::Incompressible) => costs.zero,
        };
        (costs.submit + page * pages).seconds()
    };
    let asking = (0..transfers.threads as usize).map(|thread| each(system.page_costs(speeds[thread % speeds.len()])));
    Ok(asking.sum::<f64>() / transfers.threads as f64)
}

/// How fast each core runs scalar code, the fastest first; at least one.
fn speeds(device: &Device) -> Result<Vec<ScalarSpeed>, String> {
    let unknown = || format!("the CoreMark of the cores of {} is not known", device.id);
    let cpu = device.cpu().ok_or_else(unknown)?;
    let mut speeds = Vec::new();
    for class in [ClusterClass::Big, ClusterClass::Middle, ClusterClass::Little] {
        // `big` goes on into other classes.
        let of_class = device.constants.cpu.iter().filter(|cluster| cluster.class == class);
        let count: f64 = of_class.map(|cluster| cluster.cores.value.0).sum();
        let one = cpu.choose(CoreSelection::Some { class, count: 1 }, Frequency::Highest).ok();
        let speed = one.filter(|_| count > 0.0).and_then(|core| ScalarSpeed::of(&core));
        speeds.extend(speed.into_iter().flat_map(|speed| std::iter::repeat_n(speed, count as usize)));
    }
    if speeds.is_empty() { Err(unknown()) } else { Ok(speeds) }
}

/// The time in which at least one task waits for memory in `window`: pages that come back, from compressed memory and from flash,
/// and pages that tasks reclaim for themselves; waits that begin at random overlap.
pub(super) fn window(window: &Window) -> Found {
    let device = load(&window.device).map_err(|error| error.to_string())?;
    let system = load_system(SYSTEM).map_err(|error| error.to_string())?;
    let costs = system.page_costs(speeds(&device)?[0]);
    let flash = device.flash().ok_or_else(|| format!("{} has no flash", device.id))?;
    let run = Bytes(PAGE * system.swap_read_ahead().max(1));
    let read = flash.alone(Direction::Read, run).seconds() / (run.0 / PAGE) as f64;
    let pages = [
        (window.swap_ins, (costs.fault + costs.decompress).seconds()),
        (window.other_refaults.max(0.0), costs.fault.seconds() + read),
        (window.direct_scans, costs.scan.seconds()),
        (window.direct_steals, (costs.unmap + costs.compress).seconds()),
    ];
    let waits: f64 = pages.iter().map(|(count, each)| count * each).sum();
    let some = window.duration * (1.0 - (-waits / window.duration).exp());
    Ok(figures([("some_s", some)]))
}
