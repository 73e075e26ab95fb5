//! Training on a phone in use: what its memory takes of the time, worked out by hand, and what a kill leaves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod support;

use common::job;
use haversack_devices::units::{Bytes, Count, Nanos};
use haversack_memory::phone::KillReason;
use haversack_policies::Holding;
use haversack_training::phone::Phone;
use haversack_training::{Job, Record, RunError, ThreadStates, TrainerKill, simulate};
use haversack_workloads::{Phase, Role, TrainingGraph};
use support::phones::{FIRST, ITERATION, MIB, PAGE, PEAK, START, app, ends, layer, ms, phone};
use support::{BATCH, Script, check_sums, for_its_shape, near, node, phone_cpu, tensor, with_storage};

fn on<'a>(phone: &'a Phone, graph: &'a TrainingGraph, iterations: u32) -> Job<'a> {
    Job { phone: Some(phone), iterations, ..job(graph, BATCH) }
}

/// What holds of every run on a phone.
fn check(record: &Record, place: &str) {
    check_sums(record, place);
    let phone = record.phone.as_ref().unwrap();
    assert_eq!(phone.iteration.time, record.iteration, "{place}: the last iteration");
    assert_eq!(phone.run.time, record.iterations.iter().copied().sum(), "{place}: all iterations");
    for span in [phone.iteration, phone.run] {
        let ThreadStates { running, sleeping, runnable } = span.states;
        assert_eq!(running + sleeping + runnable, span.time, "{place}: states");
        assert!(span.used_mean <= span.used_peak && span.used_peak <= phone.managed, "{place}: used");
    }
    if phone.kills.iter().all(|kill| kill.iteration as usize + 1 < record.iterations.len()) {
        assert_eq!(phone.iteration.states.sleeping, record.breakdown.refault, "{place}: asleep");
        assert_eq!(phone.iteration.states.runnable, record.breakdown.runnable, "{place}: runnable");
    }
}

fn run(phone: &Phone, graph: &TrainingGraph, iterations: u32) -> Result<Record, RunError> {
    simulate(&phone_cpu(), &on(phone, graph, iterations), &mut Script::default())
}

#[test]
fn with_memory_to_spare_only_the_first_touches_cost() {
    let (phone, graph) = (phone(64, 0), layer());
    let without = simulate(&phone_cpu(), &job(&graph, BATCH), &mut Script::default()).unwrap();
    near(without.iteration, ITERATION.0, "without");
    assert_eq!(without.peak_memory, Bytes(PEAK));
    let first = run(&phone, &graph, 1).unwrap();
    check(&first, "first");
    // Every page that tensors ever had at a time is touched for the first time once: 6,400 of them.
    let touches = FIRST * (PEAK / PAGE);
    assert_eq!(first.iteration, without.iteration + touches);
    assert_eq!(first.breakdown.reclaim, touches);
    assert_eq!(first.phone.unwrap().iteration.counters.pgfault, PEAK / PAGE);
    for iterations in [2, 3] {
        let later = run(&phone, &graph, iterations).unwrap();
        check(&later, "later");
        assert_eq!((later.iteration, later.breakdown), (without.iteration, without.breakdown.clone()));
        // What tensors give back stays with the process: as much is in use at all times.
        let seen = later.phone.unwrap();
        assert_eq!((seen.iteration.used_mean, seen.iteration.used_peak), (Bytes(PEAK), Bytes(PEAK)));
        assert_eq!((seen.iteration.counters.pgfault, seen.run.counters.pgfault), (0, PEAK / PAGE));
        assert_eq!((seen.managed, seen.apps_killed, seen.kills.len()), (phone.memory.ram, 0, 0));
    }
}

/// A phone whose flash works on everything at once and whose driver takes no time but for a page's: a page is read in
/// 1 + 100 µs, whatever else there is.
fn with_even_flash(ram: u64) -> Phone {
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

/// What a fault on a page on flash takes of the core, asleep and waiting for the core: 0.7 + 1.5, 1 + 100 and 10 µs.
const FROM_FLASH: [Nanos; 3] = [Nanos(2_200), Nanos(101_000), Nanos(10_000)];

#[test]
fn what_is_evicted_is_read_again_page_by_page() {
    let graph = layer();
    for ram in [27, 24, 20, 16] {
        let phone = with_even_flash(ram);
        for iterations in [1, 3] {
            let place = format!("{ram} MiB, {iterations}");
            let record = run(&phone, &graph, iterations).unwrap();
            check(&record, &place);
            let seen = record.phone.as_ref().unwrap().iteration;
            let read = seen.read_from_flash();
            // 25 MiB and the two of `low` fit in 27.
            assert_eq!((read > 0, seen.evicted() > 0), (ram < 27, ram < 27), "{place}");
            assert_eq!((seen.refaults(), seen.counters.pgmajfault), (read, read), "{place}");
            // Asleep for as long as flash reads, one page at a time.
            assert_eq!(seen.states.sleeping, FROM_FLASH[1] * read, "{place}");
            assert_eq!(seen.states.runnable, FROM_FLASH[2] * read, "{place}");
            // New pages in the first iteration; kswapd's work beside costs nothing, the thread's own does.
            let new = if iterations == 1 { FIRST * (PEAK / PAGE) } else { Nanos::ZERO };
            let faults = FROM_FLASH[0] * read + new;
            let reclaimed = seen.counters.pgscan_direct > 0;
            let reclaim = record.breakdown.reclaim;
            assert!(if reclaimed { reclaim > faults } else { reclaim == faults }, "{place}: {reclaim} {faults}");
            assert_eq!(record.iteration, ITERATION + reclaim + seen.states.sleeping + seen.states.runnable, "{place}");
        }
    }
}

#[test]
fn what_is_in_zram_is_decompressed_by_the_thread() {
    let graph = layer();
    let mut phone = phone(24, 0);
    phone.memory.zram = Bytes(64 << 20);
    // kswapd keeps up with 4.2 µs a page.
    phone.kswapd.compress = Nanos(1_000);
    phone.trainer.ratio = Count(4.0);
    let record = run(&phone, &graph, 3).unwrap();
    check(&record, "zram");
    let seen = record.phone.as_ref().unwrap().iteration;
    let refaults = seen.refaults();
    assert!(refaults > 0 && seen.read_from_flash() == 0 && seen.counters.pgscan_direct == 0, "{seen:?}");
    // The fault of 0.7 and decompression of 3.5 µs, on the core.
    assert_eq!(record.iteration, ITERATION + Nanos(4_200) * refaults);
    assert_eq!(seen.states.running, record.iteration);
}

#[test]
fn a_shape_alone_reads_no_page() {
    // x of 8 MiB is made, then 12 MiB of y, then three times 8 MiB come and go in backward, and x is needed at the end. With
    // 24 MiB x is on flash by then, all of it but for what is in the way of the last to go.
    let mut values = layer();
    for at in 0..3 {
        let temporary = values.tensors.len() as u32;
        values.tensors.push(tensor("temporary", 12 << 20, Role::Gradient));
        values.nodes.insert(3 + at, node("large", Phase::Backward, &[], &[temporary], 1_000));
    }
    let mut shape = values.clone();
    shape.nodes[6] = for_its_shape(shape.nodes[6].clone(), 2);
    let [values, shape] = [values, shape].map(|graph| {
        let record = run(&with_even_flash(16), &graph, 1).unwrap();
        check(&record, "shape");
        let seen = record.phone.unwrap().iteration;
        (seen.counters.pgmajfault, record.iteration)
    });
    // x has 2,048 pages, and each that is read takes 113.2 µs.
    let spared = values.0 - shape.0;
    assert!((1_500..=2_048).contains(&spared), "{values:?} {shape:?}");
    assert!(values.1 >= shape.1 + FROM_FLASH.into_iter().sum::<Nanos>() * spared, "{values:?} {shape:?}");
}

#[test]
fn an_app_in_front_takes_memory_and_lives() {
    let graph = layer();
    let without = run(&phone(48, 64), &graph, 8).unwrap();
    let mut phone = phone(48, 64);
    // 25 and 26 MiB are more than there are; from 5 s on there is room again.
    phone.apps = vec![app(ms(60), "game", 0, 26), ends(ms(5_000), "game")];
    let record = run(&phone, &graph, 8).unwrap();
    check(&record, "game");
    let seen = record.phone.unwrap();
    assert_eq!((seen.apps_killed, seen.kills.len()), (0, 0));
    // 24.88 and twice 17.2 ms pass before it comes.
    assert_eq!(record.iterations[..3], without.iterations[..3]);
    assert!(record.iterations[3] > without.iterations[3] * 2, "{:?}", record.iterations);
    // Pages are evicted, and what the app and training hold is at most what there is, and nearly all of it.
    assert!(seen.run.evicted() > 0 && seen.run.used_peak > Bytes(45 << 20), "{:?}", seen.run);
    // When it has gone, what was evicted is read once more, and then all is as before.
    let later = run(&phone, &graph, 400).unwrap();
    assert!(later.iterations.iter().copied().sum::<Nanos>() > ms(6_000));
    assert_eq!(later.iteration, ITERATION);
}

#[test]
fn apps_in_the_background_die_first() {
    let graph = layer();
    let mut phone = phone(48, 0);
    // 25 and 16 MiB have room beside each other, not beside 12 more.
    phone.apps = vec![app(Nanos::ZERO, "mail", 900, 12), app(ms(30), "game", 0, 16)];
    let record = run(&phone, &graph, 6).unwrap();
    check(&record, "mail");
    let seen = record.phone.unwrap();
    assert_eq!((seen.apps_killed, seen.kills.len(), seen.run.counters.oom_kill), (1, 0, 1));
    assert_eq!(record.iteration, ITERATION);
    // One that is launched again has to be killed again.
    phone.apps.extend([app(ms(60), "mail", 900, 12), app(ms(90), "chat", 0, 1)]);
    let again = run(&phone, &graph, 12).unwrap();
    assert!(again.phone.unwrap().apps_killed >= 2);
}

#[test]
fn an_app_in_front_may_be_ended_before_a_trainer_that_may_not() {
    let graph = layer();
    let mut phone = phone(48, 0);
    phone.trainer.adj = -100;
    // It is ended as it grows; a second later, what is in front is touched.
    phone.apps = vec![app(ms(30), "game", 0, 40)];
    let record = run(&phone, &graph, 100).unwrap();
    check(&record, "game");
    assert!(record.iterations.iter().copied().sum::<Nanos>() > ms(1_500));
    let seen = record.phone.unwrap();
    assert_eq!((seen.apps_killed, seen.kills.len()), (1, 0));
    assert_eq!(record.iteration, ITERATION);
}

/// A phone of 48 MiB without swap on which a game of 26 MiB is in front from each of `starts` for 100 ms: the trainer,
/// which holds 25 MiB and has the larger score, is ended.
fn with_games(starts: &[Nanos]) -> Phone {
    let mut phone = phone(48, 0);
    phone.apps = starts.iter().flat_map(|&at| [app(at, "game", 0, 26), ends(at + ms(100), "game")]).collect();
    phone
}

/// Starting again: the process, and w of 4 MiB at 2 GB/s.
const AGAIN: Nanos = Nanos(START.0 + 2_097_152);

#[test]
fn a_killed_trainer_starts_its_iteration_again_and_keeps_those_before() {
    let graph = layer();
    let (first, phone) = (run(&phone(48, 0), &graph, 1).unwrap(), with_games(&[ms(30)]));
    for iterations in [2, 5] {
        let record = run(&phone, &graph, iterations).unwrap();
        check(&record, "killed");
        // 24.88 ms, and 5.12 ms into the next iteration the game comes, in `rest`. When that has ended after 1.02 and
        // 10.02 ms the process is gone. A new one begins with first touches, as the first did.
        let lost = Nanos(11_040_000) + AGAIN;
        let mut expected = vec![first.iteration, lost + first.iteration];
        expected.resize(iterations as usize, ITERATION);
        assert_eq!(record.iterations, expected);
        let seen = record.phone.as_ref().unwrap();
        let [TrainerKill { iteration: 1, kill, lost: found, until }] = &seen.kills[..] else { panic!("{seen:?}") };
        assert_eq!((*found, *until), (lost, first.iteration + lost));
        assert_eq!((kill.reason, kill.name.as_str(), kill.adj), (KillReason::OutOfMemory, "trainer", 200));
        assert!(kill.at > ms(30) && kill.freed == Bytes(PEAK), "{kill:?}");
        assert_eq!((seen.apps_killed, seen.run.counters.oom_kill), (0, 1));
    }
    // What was lost is discarded, the rest is as in the first iteration of a process.
    let record = run(&phone, &graph, 2).unwrap();
    let lost = record.phone.as_ref().unwrap().kills[0].lost;
    let mut expected = first.breakdown.clone();
    expected.discarded = lost;
    assert_eq!(record.breakdown, expected);
    assert_eq!((record.micro_batches.as_slice(), record.peak_memory), (&[BATCH][..], first.peak_memory));
    // Forward is all that was lost, and the new one's forward; the rest happened once.
    assert_eq!((record.forward, record.backward), (first.forward + lost, first.backward));
}

#[test]
fn time_until_a_kill_in_a_fault_is_lost_too() {
    // 32 MiB less 1 in reserve less 10 of a service's: the process touches 13 MiB for `make`, which then takes 1.02 ms, and
    // 8 of the 12 MiB of y. There is nothing to reclaim.
    let graph = layer();
    let mut phone = phone(32, 0);
    phone.apps = vec![app(Nanos::ZERO, "service", -100, 10), ends(ms(100), "service")];
    let record = run(&phone, &graph, 2).unwrap();
    check(&record, "in a fault");
    let seen = record.phone.unwrap();
    let [kill] = &seen.kills[..] else { panic!("{seen:?}") };
    let touched = FIRST * (21 * MIB / PAGE);
    assert_eq!(kill.lost, touched + Nanos(1_020_000) + AGAIN);
    assert_eq!(record.iterations, [kill.lost + ITERATION + FIRST * (PEAK / PAGE), ITERATION]);
}

#[test]
fn five_kills_in_an_iteration_are_borne_and_six_are_not() {
    let graph = layer();
    // A game comes 10 ms after each start, when 13 MiB have been touched in 3.99 ms, `make` has run for 1.02 and y is
    // touched for 3.69 ms; `rest` ends 10.02 ms later.
    let attempt = FIRST * (PEAK / PAGE) + Nanos(11_040_000) + AGAIN;
    let starts: Vec<Nanos> = (0..6).map(|kill| attempt * kill + ms(10)).collect();
    let record = run(&with_games(&starts[..5]), &graph, 2).unwrap();
    check(&record, "five");
    let seen = record.phone.unwrap();
    assert_eq!(seen.kills.iter().map(|kill| kill.lost).collect::<Vec<_>>(), [attempt; 5]);
    assert!(seen.kills.iter().all(|kill| kill.iteration == 0));
    assert_eq!(record.iterations[0], attempt * 5 + ITERATION + FIRST * (PEAK / PAGE));
    let error = run(&with_games(&starts), &graph, 2).unwrap_err();
    let RunError::Killed { iteration: 0, times: 6, kill } = &error else { panic!("{error}") };
    assert_eq!(kill.name, "trainer");
    // As many in two iterations are.
    let mut spread = starts[..5].to_vec();
    spread.push(record.iterations[0] + ms(5));
    let record = run(&with_games(&spread), &graph, 3).unwrap();
    let of: Vec<u32> = record.phone.unwrap().kills.iter().map(|kill| kill.iteration).collect();
    assert_eq!(of, [0, 0, 0, 0, 0, 1]);
}

#[test]
fn transfers_in_flight_die_with_the_process() {
    let graph = layer();
    let holds = [(2, Holding::Swap)];
    let once = |phone: &Phone, iterations| {
        let record = simulate(&phone_cpu(), &on(phone, &graph, iterations), &mut Script::holding(&holds)).unwrap();
        check(&record, "in flight");
        record
    };
    let (free, fresh) = (phone(48, 0), once(&phone(48, 0), 1));
    let usual = once(&free, 2);
    // x is being written from 1.02 to 9.4 ms of the second iteration, and read from 11.04 to 15.2 ms. Kills are seen when
    // `rest` and `first` begin, with the transfer under way.
    for (into, lost) in [(500_000, 1_020_000), (5_000_000, 11_040_000)] {
        let phone = with_games(&[fresh.iteration + Nanos(into)]);
        let record = once(&phone, 4);
        let lost = Nanos(lost) + AGAIN;
        assert_eq!(record.phone.as_ref().unwrap().kills[0].lost, lost, "{into}");
        let expected = [fresh.iteration, lost + fresh.iteration, usual.iteration, usual.iteration];
        assert_eq!(record.iterations, expected, "{into}");
        assert_eq!(record.peak_memory, usual.peak_memory);
    }
}
