//! Training on a phone in use, worked out by hand.

mod actors;
mod budget;
mod kills;
mod memory;
mod timeline;

use haversack_devices::units::Nanos;
use haversack_training::phone::Phone;
use haversack_training::{Job, Record, RunError, ThreadStates, simulate};
use haversack_workloads::TrainingGraph;

use crate::common::job;
use crate::support::phones::{START, app, ends, ms, phone};
use crate::support::{BATCH, Script, check_sums, phone_cpu, with_storage};

pub(crate) fn on<'a>(phone: &'a Phone, graph: &'a TrainingGraph, iterations: u32) -> Job<'a> {
    Job { phone: Some(phone), iterations, ..job(graph, BATCH) }
}

/// Checks the invariants of every run on a phone.
pub(crate) fn check(record: &Record, place: &str) {
    check_sums(record, place);
    let phone = record.phone.as_ref().unwrap();
    assert_eq!(Some(&phone.iteration.time), record.iterations.last(), "{place}: the last iteration");
    assert_eq!(phone.run.time, record.iterations.iter().copied().sum(), "{place}: all iterations");
    for span in [phone.iteration, phone.run] {
        let ThreadStates { running, sleeping, runnable } = span.states;
        assert_eq!(running + sleeping + runnable, span.time, "{place}: states");
        assert!(span.used_mean <= span.used_peak && span.used_peak <= phone.managed, "{place}: used");
        let most = span.unavailable_peak;
        assert!(span.unavailable_mean <= most && most <= phone.managed, "{place}: unavailable");
    }
    // From the third iteration on the record contains means.
    let number = record.iterations.len();
    if number <= 2 && phone.kills.iter().all(|kill| kill.iteration as usize + 1 < number) {
        assert_eq!(phone.iteration.states.sleeping, record.breakdown.refault, "{place}: asleep");
        assert_eq!(phone.iteration.states.runnable, record.breakdown.runnable, "{place}: runnable");
    }
}

pub(crate) fn run(phone: &Phone, graph: &TrainingGraph, iterations: u32) -> Result<Record, RunError> {
    simulate(&phone_cpu(), &on(phone, graph, iterations), &mut Script::default())
}

/// The time of a fault on a page on flash: on the core, asleep and waiting for the core: 0.7 + 1.5 and the driver's 1,
/// 100 and 10 µs.
pub(crate) const FROM_FLASH: [Nanos; 3] = [Nanos(3_200), Nanos(100_000), Nanos(10_000)];

/// Checks that the thread slept, and waited for its core, for `pages` that were read one by one, with little delay by
/// other reads and earlier writes on flash.
pub(crate) fn asleep(states: ThreadStates, pages: u64, place: &str) {
    for (took, each) in [(states.sleeping, FROM_FLASH[1]), (states.runnable, FROM_FLASH[2])] {
        let alone = each * pages;
        assert!(took >= alone && took.0 <= alone.0 + alone.0 / 500, "{place}: {took}, alone {alone}");
    }
}

/// A phone whose flash works on everything simultaneously and whose driver takes no time except for copying a page: a
/// page is read in 1 + 100 µs, whatever the load.
pub(crate) fn with_even_flash(ram: u64) -> Phone {
    let machine = with_storage(&[
        ("storage.sequential_write", 1e6),
        ("storage.sequential_read", 1e6),
        ("storage.random_write", 1e6),
        ("storage.random_read", 1e6),
        ("storage.datasheet_read", 1e6),
        ("storage.datasheet_write", 1e6),
        ("storage.latency_read", 100.0),
    ]);
    Phone { flash: machine.device.flash().unwrap(), ..phone(ram, 64) }
}

/// A phone of 48 MiB without swap on which a game of 26 MiB is in front from each of `starts` for 100 ms: the trainer,
/// which has 25 MiB and the larger score, is killed.
pub(crate) fn with_games(starts: &[Nanos]) -> Phone {
    let mut phone = phone(48, 0);
    phone.apps = starts.iter().flat_map(|&at| [app(at, "game", 0, 26), ends(at + ms(100), "game")]).collect();
    phone
}

/// Starting again: the process, and w of 4 MiB in 64 commands of 64 KiB, of which flash works on 31 at once. Each takes
/// 32.768 us of the device and 112 + 61,440 / 2,100 = 141.26 us alone, a share of 0.232: 31 keep 1 − 0.768³¹ = 0.9997
/// of it busy for 1,016.1 us, twice; the two that are left 1 − 0.768² = 0.41 for 159.8 us.
pub(crate) const AGAIN: Nanos = Nanos(START.0 + 2_191_977);
