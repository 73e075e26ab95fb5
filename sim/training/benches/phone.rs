//! Cost of simulating a phone under pressure: MobileNetV2 with a batch of 32 on a Galaxy S22 in use, which does not fit
//! its memory, at extents of 64 KiB. `cargo bench -p haversack-training --bench phone [-- ITERATIONS]`.
//!
//! Reports CPU time per 262 simulated seconds, and the time of each iteration.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use haversack_devices::processor::{CoreSelection, CpuCores, Frequency};
use haversack_devices::units::{Bytes, Fraction, Nanos};
use haversack_devices::{ScalarSpeed, load, load_stack, load_system};
use haversack_memory::phone::{Backing, Settings};
use haversack_policies::registry;
use haversack_training::phone::{AppState, OtherMemory, Phone, SystemMemory, Trainer};
use haversack_training::{Job, Machine, Trains, simulate};
use haversack_workloads::express::{Version, express};
use haversack_workloads::models;
use haversack_workloads::training_graph::Optimiser;

const BATCH: u64 = 32;
/// A clock tick of `/proc`, in seconds.
const TICK: f64 = 0.01;
/// CPU time is reported per this number of simulated seconds.
const SPAN: f64 = 262.0;

/// The CPU time of this process so far, in seconds (proc(5): user and system time, after the name in brackets).
fn cpu_time() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("a Linux with /proc");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().skip(1).collect();
    let ticks: f64 = fields[10..12].iter().map(|field| field.parse::<f64>().unwrap()).sum();
    ticks * TICK
}

/// The phone as it comes, idle but for the trainer, which was started over adb.
fn phone() -> Phone {
    let (device, system) = (load("galaxy-s22").unwrap(), load_system("android-testbed").unwrap());
    let cpu = device.cpu().unwrap();
    let cores = |cores| cpu.choose(cores, Frequency::Highest).unwrap();
    let speed = |cores: &CpuCores| ScalarSpeed::of(cores).unwrap();
    let all = cores(CoreSelection::All);
    let training = speed(&cores("big:4".parse().unwrap()));
    let waiting = system.page_costs(speed(&all).at(system.constants.clocks.waiting.value));
    let (flash, resident, scores) = (device.flash().unwrap(), system.resident(&device), &system.constants.scores);
    let part = |bytes, backing, hot| SystemMemory { bytes, backing, hot };
    let (anonymous, number) = resident.cached;
    let cached = AppState { adj: scores.cached.value.0, anonymous, file: Bytes::ZERO, touched: Fraction(1.0) };
    Phone {
        memory: Settings::of(&system, &device),
        training: system.page_costs(training),
        front: waiting,
        cores: all.cores().len() as u32,
        kswapd: waiting,
        kswapd_shares: false,
        driver: system.driver(training),
        faulting: system.driver(training.at(system.constants.clocks.waiting.value)),
        flash,
        background: system.background(1),
        foreground: system.foreground().into_iter().collect(),
        own: vec![
            part(resident.cache, Backing::File, Fraction(0.0)),
            part(resident.kernel, Backing::Pinned, Fraction(0.0)),
            part(resident.file, Backing::Code, resident.hot),
            part(resident.anonymous, Backing::Anonymous(system.app_pages()), resident.hot),
        ],
        trainer: Trainer {
            adj: scores.native.value.0,
            pages: system.trainer_pages(),
            start: system.constants.trainer.start.value,
        },
        app_pages: system.app_pages(),
        apps: Vec::new(),
        cached: vec![cached; number as usize],
        others: OtherMemory::default(),
        phase: Nanos(500_000_000),
    }
}

fn main() {
    let iterations = std::env::args().filter_map(|word| word.parse().ok()).next().unwrap_or(6);
    let graph = express(&models::build("mobilenetv2", None).unwrap(), Optimiser::Sgd, Version::V2).unwrap();
    let cores = Some("big:4".parse().unwrap());
    let (device, stack) = (load("galaxy-s22").unwrap(), load_stack("mnn-2").unwrap());
    let machine = Machine::new(device, stack, Trains::Cpu, cores, Frequency::Highest).unwrap();
    let phone = phone();
    let job = Job { phone: Some(&phone), iterations, ..Job::plain(&graph, BATCH) };
    let begun = cpu_time();
    let record = simulate(&machine, &job, registry::build("original", &[]).unwrap().as_mut()).unwrap();
    let (took, simulated) = (cpu_time() - begun, record.iterations.iter().copied().sum::<Nanos>().seconds());
    println!("{took:.2} s of CPU time for {simulated:.3} s, {:.3} for {SPAN}", took / simulated * SPAN);
    println!("{:?}", record.iterations);
}
