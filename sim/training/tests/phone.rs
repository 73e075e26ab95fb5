//! Training on a phone in use: what its memory takes of the time, worked out by hand, and what a kill leaves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod support;

use common::job;
use haversack_devices::storage::{Direction, Stream};
use haversack_devices::units::{Bytes, BytesPerSecond, Count, Nanos};
use haversack_devices::work::OperatorKind;
use haversack_memory::phone::KillReason;
use haversack_memory::phone::lmkd::Lmkd;
use haversack_policies::Holding;
use haversack_policies::budget::{Round, SwapKind};
use haversack_training::phone::{AppChange, Phone};
use haversack_training::{Job, Record, RunError, ThreadStates, TrainerKill, simulate};
use haversack_workloads::{Phase, Role, TrainingGraph};
use support::drawn::{self, Drawn};
use support::phones::{FIRST, ITERATION, MIB, PAGE, PEAK, START, app, ends, layer, ms, phone, pinned};
use support::rule::{Ruled, Seen};
use support::{BATCH, Draws, Script, check_sums, for_its_shape, near, node, phone_cpu, tensor, with_storage};

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

/// Seconds that a rule for the budget watches the phone before training.
const WATCHED: u64 = 120;

fn ruled(phone: &Phone, iterations: u32, budgets: &[Option<u64>]) -> (Result<Record, RunError>, Seen) {
    let graph = layer();
    let mut policy = Ruled::new(Script::default(), budgets);
    let record = simulate(&phone_cpu(), &on(phone, &graph, iterations), &mut policy);
    (record, policy.seen())
}

#[test]
fn a_rule_is_fed_once_a_second_and_decides_before_every_round() {
    let mut phone = phone(64, 0);
    phone.own = vec![pinned(10)];
    phone.apps = vec![app(Nanos::ZERO, "game", 0, 4), app(ms(60_000), "mail", 900, 5), ends(ms(130_000), "game")];
    let (record, seen) = ruled(&phone, 1_000, &[Some(30 * MIB), None, Some(40 * MIB)]);
    let record = record.unwrap();
    check(&record, "ruled");
    // An iteration is said to take what its operators take.
    near(seen.iteration, ITERATION.0, "an iteration");
    assert_eq!(record.planned, [Bytes(30 * MIB), Bytes(40 * MIB)]);
    // Two minutes before training begins, then as training goes: once a second, at the next operator's beginning.
    let times: Vec<Nanos> = seen.samples.iter().map(|sample| sample.0).collect();
    let watched: Vec<Nanos> = (0..WATCHED).map(|second| ms(second * 1_000)).collect();
    assert_eq!(times[..WATCHED as usize], watched);
    for pair in times.windows(2) {
        let apart = pair[1] - pair[0];
        assert!(apart >= ms(1_000) && apart < ms(1_000) + Nanos(10_020_000) + FIRST * (13 * MIB / PAGE), "{apart}");
    }
    let end = ms(WATCHED * 1_000) + record.iterations.iter().copied().sum();
    assert!(*times.last().unwrap() + ms(1_020) > end);
    // The first round begins after the sample at its begin. None was killed; new pages are no faults from anywhere.
    assert_eq!((seen.begun.len(), seen.begun[0]), (1_000, WATCHED as usize + 1));
    assert_eq!(seen.ended, [Round::default(); 1_000]);
    // 64 MiB less 10 pinned, 3 of the high watermark and the apps' 4 and 5; what the trainer holds counts as available.
    for (time, available, high, swap, adjustments) in seen.samples {
        let apps: &[i16] = match time.0 / 1_000_000_000 {
            0..60 => &[0],
            60..130 => &[0, 900],
            _ => &[900],
        };
        let taken: u64 = apps.iter().map(|&adj| if adj == 0 { 4 } else { 5 }).sum();
        assert_eq!((available, high), (Bytes((64 - 10 - 3 - taken) * MIB), Bytes(3 * MIB)), "{time}");
        assert_eq!((adjustments.as_slice(), swap), (apps, SwapKind::Flash), "{time}");
    }
}

#[test]
fn a_rules_budget_bounds_what_is_held() {
    let phone = phone(64, 0);
    // 25 MiB are enough, a byte less is not; the job's own budget counts where it is smaller.
    assert_eq!(ruled(&phone, 1, &[Some(PEAK)]).0.unwrap().peak_memory, Bytes(PEAK));
    assert_eq!(ruled(&phone, 2, &[Some(PEAK)]).0.unwrap().planned, [Bytes(PEAK)]);
    for (iterations, budgets) in [(1, vec![Some(PEAK - 1)]), (2, vec![Some(PEAK), Some(PEAK - 1)])] {
        let (result, seen) = ruled(&phone, iterations, &budgets);
        let error = result.unwrap_err();
        assert!(matches!(error, RunError::OutOfMemory { budget, .. } if budget == Bytes(PEAK - 1)), "{error}");
        assert_eq!(seen.begun.len(), iterations as usize);
    }
    let graph = layer();
    let mut smaller = on(&phone, &graph, 1);
    smaller.budgets.memory = Some(Bytes(PEAK - 2));
    let error = simulate(&phone_cpu(), &smaller, &mut Ruled::new(Script::default(), &[Some(PEAK)])).unwrap_err();
    assert!(matches!(error, RunError::OutOfMemory { budget, .. } if budget == Bytes(PEAK - 2)), "{error}");
}

#[test]
fn a_rule_is_asked_anew_after_a_kill() {
    let start = ms(WATCHED * 1_000);
    let phone = with_games(&[start + ms(30)]);
    let (record, seen) = ruled(&phone, 3, &[Some(30 * MIB), None, Some(28 * MIB), Some(26 * MIB)]);
    let record = record.unwrap();
    check(&record, "killed");
    assert_eq!(record.planned, [30, 28, 26].map(|mib| Bytes(mib * MIB)));
    assert_eq!(seen.begun.len(), 4);
    let rounds = [0, 1, 0].map(|kills| Round { kills, ..Round::default() });
    assert_eq!(seen.ended, rounds);
    // The same times as without a rule, two minutes later.
    assert_eq!(record.phone.as_ref().unwrap().kills[0].lost, Nanos(11_040_000) + AGAIN);
    let (result, _) = ruled(&phone, 3, &[Some(30 * MIB), None, Some(PEAK - 1)]);
    let error = result.unwrap_err();
    assert!(matches!(error, RunError::OutOfMemory { budget, .. } if budget == Bytes(PEAK - 1)), "{error}");
}

#[test]
fn a_kill_may_come_when_memory_is_measured() {
    // Samples fall on the beginnings of the first iteration and of `make`, `rest` and so on; the game comes when one is
    // due, in whichever operator that is.
    let start = ms(WATCHED * 1_000);
    for after in (0..60).map(|step| ms(970 + step * 2)) {
        let phone = with_games(&[start + after]);
        let (record, seen) = ruled(&phone, 80, &[]);
        let record = record.unwrap_or_else(|error| panic!("{after}: {error}"));
        check(&record, "measured");
        assert_eq!(record.phone.unwrap().kills.len(), 1);
        assert_eq!(seen.ended.iter().map(|round| round.kills).sum::<u64>(), 1);
    }
}

#[test]
fn a_rule_hears_of_the_trainers_faults_alone() {
    // A game of 6 MiB is in front, and half of both is on flash most of the time.
    let phone = Phone { apps: vec![app(Nanos::ZERO, "game", 0, 6)], ..with_even_flash(20) };
    let (record, seen) = ruled(&phone, 8, &[]);
    let span = record.unwrap().phone.unwrap().run;
    let faults: u64 = seen.ended.iter().map(|round| round.page_faults).sum();
    // A page at a time: as often as the thread slept for 101 µs.
    assert_eq!(span.states.sleeping, FROM_FLASH[1] * faults);
    assert!(faults > 1_000 && faults < span.counters.pgmajfault, "{faults} of {}", span.counters.pgmajfault);
    assert_eq!(seen.ended.len(), 8);
}

#[test]
fn a_rule_sees_no_app_that_is_dead() {
    let start = ms(WATCHED * 1_000);
    let mut phone = phone(48, 0);
    phone.apps = vec![app(Nanos::ZERO, "mail", 900, 12), app(start + ms(30), "game", 0, 16)];
    let (record, seen) = ruled(&phone, 100, &[]);
    assert_eq!(record.unwrap().phone.unwrap().apps_killed, 1);
    let last = seen.samples.last().unwrap();
    assert!(last.0 > start + ms(1_000));
    assert_eq!(last.4, [0]);
}

#[test]
fn apps_in_the_background_keep_flash_busy_while_they_live() {
    // A page alone takes the flash 50 of its 100 µs, and writes next to nothing.
    let machine = with_storage(&[
        ("storage.random_read", 4.096 / 50e-3),
        ("storage.sequential_write", 1e6),
        ("storage.datasheet_write", 1e6),
        ("storage.random_write", 1e6),
        ("storage.datasheet_read", 1e6),
        ("storage.latency_read", 100.0),
    ]);
    let flash = machine.device.flash().unwrap();
    let reading = Stream { direction: Direction::Read, rate: BytesPerSecond(40e6), command: Bytes(PAGE), depth: 8 };
    // Of every page read in the last iteration.
    let asleep = |apps: Vec<AppChange>, iterations| {
        let phone = Phone { flash: flash.clone(), background: vec![reading], apps, ..phone(24, 64) };
        let record = run(&phone, &layer(), iterations).unwrap();
        check(&record, "background");
        let seen = record.phone.unwrap();
        assert!(seen.iteration.read_from_flash() > 1_000);
        (seen.iteration.states.sleeping.0 / seen.iteration.read_from_flash(), seen.apps_killed)
    };
    let mail = |adj| app(Nanos::ZERO, "mail", adj, 1);
    // 101 µs alone. Beside commands that keep the device half busy one that wants half of it is slowed down by 1 ÷ 0.75, but
    // for those that find it free.
    assert!(asleep(Vec::new(), 3).0.abs_diff(101_000) < 100, "{:?}", asleep(Vec::new(), 3));
    let beside = asleep(vec![mail(900)], 3).0;
    assert!((120_000..200_000).contains(&beside), "{beside}");
    // In front it does not, although its own pages count among those that are read; nor when it has ended.
    assert!(asleep(vec![mail(0)], 3).0 < 101_100);
    assert!(asleep(vec![mail(900), ends(ms(100), "mail")], 3).0.abs_diff(101_000) < 100);
}

#[test]
fn results_converge_as_extents_shrink() {
    let graph = layer();
    let time = |kib: u64| {
        let mut phone = phone(20, 64);
        phone.memory.extent = Bytes(kib << 10);
        phone.apps = vec![app(ms(700), "game", 0, 2)];
        let record = run(&phone, &graph, 12).unwrap();
        check(&record, "extent");
        record.iterations.iter().copied().sum::<Nanos>().seconds()
    };
    let times = [1024, 512, 256, 128, 64].map(time);
    let least = times[4];
    assert!(times.iter().all(|time| (time / least - 1.0).abs() < 0.1), "{times:?}");
}

#[test]
fn the_daemon_ends_the_trainer_when_nothing_else_is_left() {
    let graph = layer();
    // A game comes for 0.9 s. Swap gets full and free memory low, for which processes that are not perceptible are ended; or
    // the thread sleeps 0.7 s of one, for which any is.
    for (ram, swap, game, adj, reason) in
        [(24, 9, 6, 300, KillReason::LowMemoryAndSwap), (26, 10, 8, 200, KillReason::NotResponding)]
    {
        let apps = vec![app(ms(100), "game", 0, game), ends(ms(1_000), "game")];
        let mut phone = Phone { apps, ..with_even_flash(ram) };
        phone.memory.lmkd = Some(Lmkd::high_end());
        phone.memory.swap = Bytes(swap * MIB);
        phone.trainer.adj = adj;
        let record = run(&phone, &graph, 10).unwrap();
        check(&record, reason.name());
        let seen = record.phone.unwrap();
        let first = &seen.kills[0];
        assert_eq!((first.kill.reason, first.kill.name.as_str(), seen.apps_killed), (reason, "trainer", 0));
        assert_eq!((record.iterations.len(), seen.run.counters.lmkd_kill > 0), (10, true));
        // The iteration in which it was ended takes what was lost and a new process's time; those before are as they were.
        let killed = first.iteration as usize;
        let record = run(&phone, &graph, first.iteration + 1).unwrap();
        check(&record, reason.name());
        let lost: Nanos = record.phone.as_ref().unwrap().kills.iter().map(|kill| kill.lost).sum();
        assert_eq!(record.breakdown.discarded, lost, "{reason:?}");
        assert!(lost >= AGAIN && record.iteration >= lost + ITERATION + FIRST * (PEAK / PAGE), "{reason:?}");
        let before = run(&phone, &graph, first.iteration).unwrap();
        assert_eq!((&record.iterations[..killed], before.phone.unwrap().kills.len()), (&before.iterations[..], 0));
    }
}

/// Apps that come, change and go; some are in front.
fn drawn_apps(draws: &mut Draws) -> Vec<AppChange> {
    let mut changes: Vec<AppChange> = (0..draws.below(8))
        .map(|_| {
            let (at, name) = (Nanos(draws.next() % 30_000_000), ["chat", "game", "mail"][draws.below(3)]);
            if draws.below(3) == 0 {
                return ends(at, name);
            }
            app(at, name, [0, 100, 900][draws.below(3)], 1 + draws.below(10) as u64)
        })
        .collect();
    changes.sort_by_key(|change| change.at);
    changes
}

#[test]
fn whatever_happens_on_the_phone_the_books_are_kept() {
    let (mut killed, mut evicted, mut worked) = (0, 0, 0);
    for seed in 0..120 {
        let mut draws = Draws(seed);
        let graph = drawn::network(&mut draws);
        let mut phone = phone(8 + draws.below(12) as u64, [0, 8, 64][draws.below(3)]);
        phone.memory.extent = Bytes([1 << 14, 1 << 16][draws.below(2)]);
        phone.memory.zram = Bytes([0, 8][draws.below(2)] * MIB);
        phone.memory.lmkd = [None, Some(Lmkd::high_end())][draws.below(2)].clone();
        phone.trainer.start = ms(3);
        phone.own = vec![pinned(3)];
        phone.apps = drawn_apps(&mut draws);
        let run = || simulate(&phone_cpu(), &on(&phone, &graph, 4), &mut Drawn::new(seed));
        let record = match run() {
            Ok(record) => record,
            // More than there is beside what is never ended, or what comes again and again.
            Err(RunError::Killed { times: 6, .. }) => continue,
            Err(error) => panic!("{seed}: {error}"),
        };
        worked += 1;
        let place = format!("{seed}");
        check(&record, &place);
        assert_eq!(record.iterations.len(), 4, "{place}");
        let seen = record.phone.as_ref().unwrap();
        killed += seen.kills.len();
        evicted += usize::from(seen.run.evicted() > 0);
        // Kills are told in order, each within its iteration, with what was lost since it began or since the one before.
        let mut last = Nanos::ZERO;
        for kill in &seen.kills {
            let begun: Nanos = record.iterations[..kill.iteration as usize].iter().copied().sum();
            assert_eq!(kill.lost, kill.until - begun.max(last), "{place}");
            assert!(kill.until <= begun + record.iterations[kill.iteration as usize], "{place}");
            last = kill.until;
        }
        let of_last: Nanos = seen.kills.iter().filter(|kill| kill.iteration == 3).map(|kill| kill.lost).sum();
        assert!(record.breakdown.discarded >= of_last, "{place}");
        assert_eq!(format!("{record:?}"), format!("{:?}", run().unwrap()), "{place}: twice");
    }
    assert!(worked > 100 && killed > 10 && evicted > 30, "{worked} {killed} {evicted}");
}

#[test]
#[ignore = "the executor leaks what a killed process had borrowed"]
fn a_killed_process_leaves_no_workspace() {
    // A GPU's libraries hold memory of their own; a product of Winograd's borrows more while it runs.
    let gpu = common::on("jetson-agx-xavier", "pytorch-cuda");
    let mut graph = layer();
    graph.nodes[1].work.winograd = true;
    graph.nodes[1].work.kind = OperatorKind::Convolution;
    let peak = |phone: &Phone, iterations| {
        let record = simulate(&gpu, &on(phone, &graph, iterations), &mut Script::default()).unwrap();
        (record.peak_memory, record.phone.unwrap().kills.len())
    };
    assert!(gpu.library_workspace() > Bytes::ZERO);
    let usual = peak(&phone(48, 0), 2).0;
    // It comes in `make`, and is seen when `rest` wants to run.
    let phone = with_games(&[FIRST * (13 * MIB / PAGE)]);
    assert_eq!((peak(&phone, 1), peak(&phone, 3)), ((usual, 1), (usual, 1)));
}
