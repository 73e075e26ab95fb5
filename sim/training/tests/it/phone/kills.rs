//! The trainer is killed and starts again: which work is lost, and which stays.

use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::work::OperatorKind;
use haversack_memory::phone::KillReason;
use haversack_policies::Holding;
use haversack_testing::Draws;
use haversack_training::phone::{AppChange, Phone};
use haversack_training::{RunError, SpanKind, TrainerKill, simulate};
use haversack_workloads::{Extent, Phase};

use super::{AGAIN, check, on, run, with_even_flash, with_games};
use crate::common;
use crate::support::drawn::{self, Drawn};
use crate::support::phones::{FIRST, ITERATION, MIB, PAGE, PEAK, aosp, app, ends, layer, ms, phone, pinned};
use crate::support::{BATCH, Script, node, phone_cpu};

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
        assert!(kill.at >= ms(30) && kill.freed == Bytes(PEAK), "{kill:?}");
        assert_eq!((seen.apps_killed, seen.run.counters.oom_kill), (0, 1));
    }
    // It is seen in the update, too: after 17.08 ms. The part that had ended is done again.
    let record = run(&with_games(&[first.iteration + Nanos(16_500_000)]), &graph, 2).unwrap();
    check(&record, "in the update");
    assert_eq!(record.iterations[1], Nanos(17_080_000) + AGAIN + first.iteration);
    assert_eq!(record.micro_batches, [BATCH]);
    // The lost time is discarded, the rest is as in the first iteration of a process.
    let record = run(&phone, &graph, 2).unwrap();
    let lost = record.phone.as_ref().unwrap().kills[0].lost;
    let mut expected = first.breakdown.clone();
    expected.discarded = lost;
    assert_eq!(record.breakdown, expected);
    assert_eq!((record.micro_batches.as_slice(), record.peak_memory), (&[BATCH][..], first.peak_memory));
    // Only forward was lost, and is repeated by the new process; the rest happened once.
    assert_eq!((record.forward, record.backward), (first.forward + lost, first.backward));
}

#[test]
fn time_until_a_kill_in_a_fault_is_lost_too() {
    // 32 MiB less 1 in reserve less 10 of a service's: the process touches 13 MiB for `make`, which then takes 1.02 ms,
    // and 8 of the 12 MiB of y. There is nothing to reclaim.
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
    // If those 10 belong to the system permanently, it is killed again and again, at times counted from the run's
    // start.
    phone.apps.clear();
    phone.own = vec![pinned(10)];
    let error = run(&phone, &graph, 2).unwrap_err();
    let RunError::Killed { iteration: 0, times: 6, kill: sixth, .. } = error else { panic!("{error}") };
    assert_eq!(sixth.at, kill.lost * 6 - AGAIN);
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
    let RunError::Killed { iteration: 0, times: 6, kill, .. } = &error else { panic!("{error}") };
    assert_eq!(kill.name, "trainer");
    // The same number spread over two iterations is allowed.
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
    // x is being written from 1.02 to 9.4 ms of the second iteration, and read from 11.04 to 15.2 ms. Kills are noticed
    // when `rest` and `first` begin, during the transfer.
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

#[test]
fn the_daemon_ends_the_trainer_when_nothing_else_is_left() {
    let graph = layer();
    // A game comes for 0.9 s. Swap gets full and free memory low, for which processes that are not perceptible are
    // ended; or the thread sleeps 0.7 s of one, for which any is.
    for (ram, swap, game, adj, reason) in
        [(26, 7, 6, 300, KillReason::LowMemoryAndSwap), (24, 10, 5, 200, KillReason::NotResponding)]
    {
        let apps = vec![app(ms(100), "game", 0, game), ends(ms(1_000), "game")];
        let mut phone = Phone { apps, ..with_even_flash(ram) };
        phone.memory.lmkd = Some(aosp());
        phone.memory.swap = Bytes(swap * MIB);
        phone.trainer.adj = adj;
        let record = run(&phone, &graph, 10).unwrap();
        check(&record, reason.name());
        let seen = record.phone.unwrap();
        let first = &seen.kills[0];
        assert_eq!((first.kill.reason, first.kill.name.as_str(), seen.apps_killed), (reason, "trainer", 0));
        assert_eq!((record.iterations.len(), seen.run.counters.lmkd_kill > 0), (10, true));
        // The iteration in which it was killed takes the lost time plus a new process's time; those before are as they
        // were.
        let killed = first.iteration as usize;
        let record = run(&phone, &graph, first.iteration + 1).unwrap();
        check(&record, reason.name());
        let lost: Nanos = record.phone.as_ref().unwrap().kills.iter().map(|kill| kill.lost).sum();
        // Means of the iterations after the first; only the last one loses time.
        let after = (record.iterations.len() as u64 - 1).max(1);
        assert!(record.breakdown.discarded.0.abs_diff(lost.0 / after) <= 64, "{reason:?}");
        let last = *record.iterations.last().unwrap();
        assert!(lost >= AGAIN && last >= lost + ITERATION + FIRST * (PEAK / PAGE), "{reason:?}");
        let before = run(&phone, &graph, first.iteration).unwrap();
        assert_eq!((&record.iterations[..killed], before.phone.unwrap().kills.len()), (&before.iterations[..], 0));
    }
}

#[test]
fn a_transfer_that_died_does_not_touch_the_new_processs_tensor() {
    // `rest` takes 2 ms. A service leaves no room for y. A process starts immediately except for w's 2.1 ms: x, made
    // again, is being written from 7.11 ms after the scheduled start of `rest`. The earlier write would have ended by
    // 8.39 ms.
    let mut graph = layer();
    graph.nodes[1] = node("rest", Phase::Forward, &[0], &[3], 2_000);
    let mut phone = phone(48, 0);
    phone.trainer.start = Nanos::ZERO;
    phone.apps = vec![app(FIRST * (13 * MIB / PAGE), "service", -100, 34), ends(ms(8), "service")];
    let mut policy = Script::holding(&[(2, Holding::Swap)]);
    let record = simulate(&phone_cpu(), &on(&phone, &graph, 1), &mut policy).unwrap();
    check(&record, "written twice");
    assert_eq!(record.phone.as_ref().unwrap().kills.len(), 1);
    let spans = &record.timeline.as_ref().unwrap().spans;
    let rest = spans.iter().rfind(|span| span.node == 1 && span.kind == SpanKind::Scheduled).unwrap();
    assert_eq!(rest.memory, Bytes(PEAK), "x is in memory still");
}

#[test]
fn a_new_process_has_a_pool_of_its_own() {
    // All in one slab. A service that leaves only the last megabytes comes when `rest` runs, and leaves.
    let mut graph = layer();
    for tensor in &mut graph.tensors {
        tensor.bytes = Extent { fixed: tensor.bytes.fixed / 1000, per_sample: tensor.bytes.per_sample / 1000 };
    }
    let mut phone = phone(48, 0);
    let first = run(&phone, &graph, 1).unwrap();
    phone.apps = vec![app(ms(5), "service", -100, 47), ends(ms(105), "service")];
    let record = run(&phone, &graph, 2).unwrap();
    check(&record, "slab");
    let kill = &record.phone.as_ref().unwrap().kills[0];
    assert_eq!(record.iterations, [kill.lost + first.iteration, ITERATION]);
}

#[test]
fn what_a_killed_process_gave_up_is_forgotten() {
    let graph = layer();
    // x is given up with the weight's gradient once `make` has ended; a service that does not fit with 17 MiB more
    // comes in the second iteration, in `rest`.
    let mut phone = phone(48, 0);
    let run = |phone: &Phone| {
        let mut policy = Script::holding(&[(2, Holding::Skip)]);
        let record = simulate(&phone_cpu(), &on(phone, &graph, 2), &mut policy).unwrap();
        check(&record, "given up");
        (record.given_up, record.phone.unwrap().kills.len())
    };
    assert_eq!(run(&phone), (1, 0));
    phone.apps = vec![app(ms(30), "service", -100, 40), ends(ms(130), "service")];
    assert_eq!(run(&phone), (1, 1));
}

/// Apps that come, change and go; some are in front.
fn drawn_apps(draws: &mut Draws) -> Vec<AppChange> {
    let mut changes: Vec<AppChange> = (0..draws.below(8))
        .map(|_| {
            let (at, name) = (Nanos(draws.bits() % 30_000_000), ["chat", "game", "mail"][draws.below(3)]);
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
        phone.memory.lmkd = [None, Some(aosp())][draws.below(2)].clone();
        phone.trainer.start = ms(3);
        phone.own = vec![pinned(3)];
        phone.apps = drawn_apps(&mut draws);
        let run = || simulate(&phone_cpu(), &on(&phone, &graph, 4), &mut Drawn::new(seed));
        let record = match run() {
            Ok(record) => record,
            // Memory that is never freed leaves too little room, or an app comes again and again.
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
        // Kills are in order, each within its iteration, with the work lost since it began or since the kill before.
        let mut last = Nanos::ZERO;
        for kill in &seen.kills {
            let begun: Nanos = record.iterations[..kill.iteration as usize].iter().copied().sum();
            assert_eq!(kill.lost, kill.until - begun.max(last), "{place}");
            assert!(kill.until <= begun + record.iterations[kill.iteration as usize], "{place}");
            last = kill.until;
        }
        let of_last: Nanos = seen.kills.iter().filter(|kill| kill.iteration == 3).map(|kill| kill.lost).sum();
        // A third of it in the mean of the three iterations after the first.
        assert!(3 * record.breakdown.discarded.0 + 3 >= of_last.0, "{place}");
        assert_eq!(format!("{record:?}"), format!("{:?}", run().unwrap()), "{place}: twice");
    }
    assert!(worked > 100 && killed > 10 && evicted > 30, "{worked} {killed} {evicted}");
}

#[test]
fn a_killed_process_leaves_no_workspace() {
    // A GPU's libraries have their own memory; a product with Winograd's algorithm borrows more while it runs.
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
    // It comes in `make`, and is noticed when `rest` is about to run.
    let phone = with_games(&[FIRST * (13 * MIB / PAGE)]);
    assert_eq!((peak(&phone, 1), peak(&phone, 3)), ((usual, 1), (usual, 1)));
}
