//! Small phones with round constants.

use haversack_devices::storage::Driver;
use haversack_devices::units::{Bytes, Factor, Fraction, Nanos};
use haversack_memory::phone::lmkd::Lmkd;
use haversack_memory::phone::{Backing, Costs, PageMix, Settings, Watermarks};
use haversack_training::phone::{AppChange, AppState, HeldByOthers, OtherMemory, Phone, SystemMemory, Trainer};
use haversack_workloads::{Phase, Role, TrainingGraph};

use super::{graph, node, phone_cpu, tensor};

/// A mebibyte.
pub(crate) const MIB: u64 = 1 << 20;
/// A page.
pub(crate) const PAGE: u64 = 4096;
/// The time of the first touch of a page: the fault, and zeroing it.
pub(crate) const FIRST: Nanos = Nanos(1_200);
/// A driver whose only cost is the copy of a page.
const DRIVER: Driver = Driver { command: Nanos::ZERO, page: Nanos(1_000), handover: Nanos::ZERO };
/// The time in which a process starts.
pub(crate) const START: Nanos = Nanos(500_000_000);

pub(crate) const fn ms(ms: u64) -> Nanos {
    Nanos(ms * 1_000_000)
}

/// `ram` MiB, of which one and two more are the reserves, and `swap` MiB on flash, without apps.
pub(crate) fn phone(ram: u64, swap: u64) -> Phone {
    let marks = Watermarks { min: Bytes(MIB), low: Bytes(2 * MIB), high: Bytes(3 * MIB) };
    let costs = Costs {
        fault: Nanos(700),
        zero: Nanos(500),
        scan: Nanos(250),
        walk: Nanos(20),
        unmap: Nanos(1_000),
        compress: Nanos(10_000),
        decompress: Nanos(3_500),
        copy: Nanos(500),
        submit: Nanos(1_500),
        wake_up: Nanos(10_000),
    };
    Phone {
        memory: Settings { swap: Bytes(swap * MIB), ..Settings::new(Bytes(ram * MIB), marks) },
        training: costs,
        // Apps start in no time.
        front: Costs::default(),
        cores: 1,
        kswapd: costs,
        kswapd_shares: false,
        flash: phone_cpu().device.flash().unwrap(),
        driver: DRIVER,
        faulting: DRIVER,
        background: Vec::new(),
        foreground: Vec::new(),
        own: Vec::new(),
        trainer: Trainer { adj: 200, pages: PageMix::all(Factor(1.3)), start: START },
        app_pages: PageMix::all(Factor(2.5)),
        apps: Vec::new(),
        others: OtherMemory::default(),
        cached: Vec::new(),
        phase: Nanos::ZERO,
    }
}

/// lmkd as AOSP sets it on a phone of 8 GB, on phones of one zone without contiguous memory.
pub(crate) fn aosp() -> Lmkd {
    let (system, device) = (haversack_devices::load_system("android"), haversack_devices::load("galaxy-s22"));
    let lmkd = Lmkd::new(&system.unwrap(), &device.unwrap());
    Lmkd { protection: Bytes::ZERO, contiguous: Bytes::ZERO, ..lmkd }
}

/// Memory of the system that stays in memory, in MiB.
pub(crate) fn pinned(mib: u64) -> SystemMemory {
    SystemMemory { bytes: Bytes(mib * MIB), backing: Backing::Pinned, hot: Fraction(0.0) }
}

/// From `at` on an app has `mib` MiB, and touches them all; with a score of zero or less every second.
pub(crate) fn app(at: Nanos, name: &str, adj: i32, mib: u64) -> AppChange {
    let state = AppState { adj, anonymous: Bytes(mib * MIB), file: Bytes::ZERO, touched: Fraction(1.0) };
    AppChange { at, app: name.to_owned(), state: Some(state) }
}

/// An app ends.
pub(crate) fn ends(at: Nanos, name: &str) -> AppChange {
    AppChange { at, app: name.to_owned(), state: None }
}

/// One layer, in MiB: samples 1, a weight 4, x 8, y 12, a gradient 1 and the weight's 4. Forward takes 11.04 ms,
/// backward 6.04 ms and the update 0.12 ms. y and all before it are the most at a time: 25 MiB.
pub(crate) fn layer() -> TrainingGraph {
    graph(
        vec![
            tensor("input", MIB, Role::Input),
            tensor("w", 4 * MIB, Role::Parameter { trainable: true }),
            tensor("x", 8 * MIB, Role::Activation),
            tensor("y", 12 * MIB, Role::Activation),
            tensor("g", MIB, Role::Gradient),
            tensor("dw", 4 * MIB, Role::ParameterGradient),
        ],
        vec![
            node("make", Phase::Forward, &[0, 1], &[2], 1_000),
            node("rest", Phase::Forward, &[0], &[3], 10_000),
            node("first", Phase::Backward, &[], &[4], 5_000),
            node("gradient", Phase::Backward, &[4, 2], &[5], 1_000),
            node("update", Phase::Update, &[1, 5], &[1], 100),
        ],
    )
}

/// The peak memory of [`layer`].
pub(crate) const PEAK: u64 = 25 * MIB;
/// Its time.
pub(crate) const ITERATION: Nanos = Nanos(17_200_000);

/// A recording: others, system and apps together, use a number of MiB from each time on, and actively the share `hot`
/// of it.
pub(crate) fn recorded(series: &[(Nanos, u64)], hot: f64) -> OtherMemory {
    let held = |&(at, mib): &(Nanos, u64)| HeldByOthers { at, bytes: Bytes(mib * MIB) };
    OtherMemory { series: series.iter().map(held).collect(), hot: Fraction(hot) }
}
