//! Time costs of memory: first touches, evicted pages, and apps.

use haversack_devices::storage::{Direction, Stream};
use haversack_devices::units::{Bytes, BytesPerSecond, Factor, Nanos};
use haversack_memory::phone::PageMix;
use haversack_policies::{Holding, Relief};
use haversack_training::phone::{AppChange, Phone};
use haversack_training::simulate;
use haversack_workloads::{Extent, Phase, Role};

use super::{FROM_FLASH, asleep, check, on, run, with_even_flash};
use crate::common::job;
use crate::support::phones::{FIRST, ITERATION, MIB, PAGE, PEAK, app, ends, layer, ms, phone, recorded};
use crate::support::{
    BATCH, Script, for_its_shape, graph, near, node, phone_cpu, spans, start_of, tensor, with_storage,
};

#[test]
fn with_memory_to_spare_only_the_first_touches_cost() {
    let (phone, graph) = (phone(64, 0), layer());
    let without = simulate(&phone_cpu(), &job(&graph, BATCH), &mut Script::default()).unwrap();
    near(without.iteration, ITERATION.0, "without");
    assert_eq!(without.peak_memory, Bytes(PEAK));
    let first = run(&phone, &graph, 1).unwrap();
    check(&first, "first");
    // Every page is touched for the first time once; tensors need at most 6,400 pages simultaneously.
    let touches = FIRST * (PEAK / PAGE);
    assert_eq!(first.iteration, without.iteration + touches);
    assert_eq!(first.breakdown.reclaim, touches);
    assert_eq!(first.phone.unwrap().iteration.counters.pgfault, PEAK / PAGE);
    // On a phone the stack's cost of fresh pages is replaced by the kernel's faults.
    let mut dear = phone_cpu().stack;
    dear.set("cpu.first_touch", 1e6).unwrap();
    let dear = phone_cpu().under(phone_cpu().device, dear).unwrap();
    let again = simulate(&dear, &on(&phone, &graph, 1), &mut Script::default()).unwrap();
    assert_eq!(again.iteration, first.iteration);
    assert!(simulate(&dear, &job(&graph, BATCH), &mut Script::default()).unwrap().iteration > without.iteration);
    for iterations in [2, 3] {
        let later = run(&phone, &graph, iterations).unwrap();
        check(&later, "later");
        assert_eq!((later.iteration, later.breakdown), (without.iteration, without.breakdown.clone()));
        // Memory freed by tensors stays with the process: its use is constant.
        let seen = later.phone.unwrap();
        assert_eq!((seen.iteration.used_mean, seen.iteration.used_peak), (Bytes(PEAK), Bytes(PEAK)));
        assert_eq!((seen.iteration.counters.pgfault, seen.run.counters.pgfault), (0, PEAK / PAGE));
        assert_eq!((seen.managed, seen.apps_killed, seen.kills.len()), (phone.memory.ram, 0, 0));
    }
}

#[test]
fn small_tensors_and_other_forms_lie_in_the_pool_too() {
    // A thousandth of all: no tensor fills an extent of 256 KiB, and all share a slab; or x compressed, next to the
    // rest.
    let mut small = layer();
    for tensor in &mut small.tensors {
        tensor.bytes = Extent { fixed: tensor.bytes.fixed / 1000, per_sample: tensor.bytes.per_sample / 1000 };
    }
    for (graph, holds) in [(small, vec![]), (layer(), vec![(2, Holding::Compress)])] {
        let without = simulate(&phone_cpu(), &job(&graph, BATCH), &mut Script::holding(&holds)).unwrap();
        let phone = phone(64, 0);
        let [first, later] = [1, 2].map(|iterations| {
            let record = simulate(&phone_cpu(), &on(&phone, &graph, iterations), &mut Script::holding(&holds)).unwrap();
            check(&record, "small");
            record
        });
        assert_eq!((later.iteration, later.breakdown.clone()), (without.iteration, without.breakdown.clone()));
        let (new, held) = (first.phone.unwrap().iteration.counters.pgfault, later.phone.unwrap().iteration.used_mean);
        assert_eq!(first.iteration, without.iteration + FIRST * new);
        // The largest memory needed simultaneously, rounded up to a page or to the pieces of each tensor. As a slab
        // grows, its last and only extent starts again.
        let peak = without.peak_memory.0;
        assert!((peak..peak + 2 * (256 << 10)).contains(&held.0), "{held} of {peak}");
        let most = if holds.is_empty() { 6 * held.0 } else { held.0 };
        assert!((held.0..=most).contains(&(new * PAGE)), "{new} pages for {held}");
    }
}

#[test]
fn what_is_evicted_is_read_again_page_by_page() {
    let graph = layer();
    for ram in [27, 24, 20, 16] {
        let phone = with_even_flash(ram);
        for iterations in [1, 2] {
            let place = format!("{ram} MiB, {iterations}");
            let record = run(&phone, &graph, iterations).unwrap();
            check(&record, &place);
            let seen = record.phone.as_ref().unwrap().iteration;
            let read = seen.read_from_flash();
            // 25 MiB and the two of `low` fit in 27.
            assert_eq!((read > 0, seen.evicted() > 0), (ram < 27, ram < 27), "{place}");
            assert_eq!((seen.refaults(), seen.counters.pgmajfault), (read, read), "{place}");
            // It sleeps as long as flash reads, one page at a time, nearly unshared.
            asleep(seen.states, read, &place);
            // New pages in the first iteration; kswapd's parallel work costs nothing, the thread's own does.
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
    phone.memory.zram = Bytes(64 * MIB);
    // kswapd keeps up with 4.2 µs a page.
    phone.kswapd.compress = Nanos(1_000);
    phone.trainer.pages = PageMix::all(Factor(4.0));
    let record = run(&phone, &graph, 3).unwrap();
    check(&record, "zram");
    let seen = record.phone.as_ref().unwrap().iteration;
    let refaults = seen.refaults();
    assert!(refaults > 0 && seen.read_from_flash() == 0 && seen.counters.pgscan_direct == 0, "{seen:?}");
    // The fault of 0.7 and decompression of 3.5 µs, on the core.
    assert_eq!(seen.time, ITERATION + Nanos(4_200) * refaults);
    assert_eq!(seen.states.running, seen.time);
}

#[test]
fn what_is_compressed_is_read_before_and_written_after() {
    // When z of 16 MiB needs room in 26 MiB, x is compressed after a part of it was evicted, and in backward after a
    // part of its compressed form was evicted.
    let mut graph = layer();
    graph.tensors.push(tensor("z", 16 * MIB, Role::Activation));
    graph.nodes.insert(2, node("more", Phase::Forward, &[0], &[6], 1_000));
    let phone = with_even_flash(16);
    let mut job = on(&phone, &graph, 1);
    job.budgets.memory = Some(Bytes(26 * MIB));
    let record = simulate(&phone_cpu(), &job, &mut Script::relieving(&[Relief::Compress(2)])).unwrap();
    check(&record, "compressed");
    let order: Vec<_> = spans(&record, &graph).into_iter().map(|(name, ..)| name).collect();
    let at: Vec<usize> = (0..order.len()).filter(|&at| order[at] == "Compression").collect();
    let [out, back] = at[..] else { panic!("{order:?}") };
    // Sleeping for x's pages after `rest`; for those of both forms after `first`.
    assert_eq!((order[out - 1].as_str(), order[back - 1].as_str()), ("Reclaim", "Reclaim"), "{order:?}");
    let last = |name: &str| order.iter().rposition(|other| other == name).unwrap();
    assert!(last("rest") < out - 1 && out < last("more") && last("first") < back - 1, "{order:?}");
}

#[test]
fn a_compressed_form_is_new_when_it_is_written() {
    // Less than an extent of 256 KiB lies in a slab, which was empty before.
    let (phone, mut graph) = (phone(64, 0), layer());
    graph.tensors[2] = tensor("x", 512 << 10, Role::Activation);
    let mut policy = Script::holding(&[(2, Holding::Compress)]);
    let record = simulate(&phone_cpu(), &on(&phone, &graph, 1), &mut policy).unwrap();
    assert!(policy.compressed[&2].bytes < Bytes(256 << 10));
    let order: Vec<_> = spans(&record, &graph).into_iter().map(|(name, ..)| name).collect();
    let at = order.iter().position(|name| name == "Compression").unwrap();
    assert_eq!(order[at - 1..at + 4], ["make", "Compression", "Reclaim", "Reclaim", "rest"]);
}

#[test]
fn memory_is_free_when_flash_has_written_it() {
    // Four times 8 MiB are made and kept for their shapes, and not read again. Of 33 MiB at most 15 are in memory when
    // `shapes` begins; 10 MB a second are written, one after the other.
    let mut tensors = vec![tensor("input", MIB, Role::Input), tensor("g", MIB, Role::Gradient)];
    let mut nodes = Vec::new();
    let mut shapes = node("shapes", Phase::Backward, &[2, 3, 4, 5], &[1], 1_000);
    for made in 2..6 {
        tensors.push(tensor("made", 8 * MIB, Role::Activation));
        nodes.push(node("make", Phase::Forward, &[0], &[made], 1_000));
        shapes = for_its_shape(shapes, made);
    }
    nodes.push(shapes);
    let graph = graph(tensors, nodes);
    let machine = with_storage(&[("storage.sequential_write", 10.0), ("storage.datasheet_write", 10.0)]);
    let phone = Phone { flash: machine.device.flash().unwrap(), ..phone(16, 64) };
    let record = run(&phone, &graph, 1).unwrap();
    check(&record, "slow flash");
    let begun = start_of(&record, &graph, "shapes").seconds();
    assert!(begun >= (18 * MIB) as f64 / 10e6, "{begun}");
    assert!(begun < 2.0 * (18 * MIB) as f64 / 10e6, "{begun}");
}

#[test]
fn a_shape_alone_reads_no_page() {
    // x of 8 MiB is made, then 12 MiB of y, then three times 8 MiB come and go in backward, and x is needed at the end.
    // With 24 MiB x is on flash by then, except for a part as large as what was evicted last.
    let mut values = layer();
    for at in 0..3 {
        let temporary = values.tensors.len() as u32;
        values.tensors.push(tensor("temporary", 12 * MIB, Role::Gradient));
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
    // 25 and 26 MiB exceed the memory; from 5 s on everything fits again.
    phone.apps = vec![app(ms(60), "game", 0, 26), ends(ms(5_000), "game")];
    let record = run(&phone, &graph, 8).unwrap();
    check(&record, "game");
    let seen = record.phone.unwrap();
    assert_eq!((seen.apps_killed, seen.kills.len()), (0, 0));
    // 24.88 and twice 17.2 ms pass before it comes.
    assert_eq!(record.iterations[..3], without.iterations[..3]);
    assert!(record.iterations[3] > without.iterations[3] * 2, "{:?}", record.iterations);
    // Pages are evicted, and the app and training together use at most the available memory, and nearly all of it.
    assert!(seen.run.evicted() > 0 && seen.run.used_peak > Bytes(45 * MIB), "{:?}", seen.run);
    // When it has gone, evicted pages are read once more, and then all is as before.
    let later = run(&phone, &graph, 400).unwrap();
    assert!(later.iterations.iter().copied().sum::<Nanos>() > ms(6_000));
    assert_eq!(later.iterations.last(), Some(&ITERATION));
}

#[test]
fn apps_in_the_background_die_first() {
    let graph = layer();
    let mut phone = phone(48, 0);
    // 25 and 16 MiB fit together, but not with 12 more.
    phone.apps = vec![app(Nanos::ZERO, "mail", 900, 12), app(ms(30), "game", 0, 16)];
    let record = run(&phone, &graph, 6).unwrap();
    check(&record, "mail");
    let seen = record.phone.unwrap();
    assert_eq!((seen.apps_killed, seen.kills.len(), seen.run.counters.oom_kill), (1, 0, 1));
    assert_eq!(record.iteration, ITERATION);
    // An app that has gone to the background since it came is still alive.
    let mut behind = phone.clone();
    behind.apps.insert(1, app(ms(20), "mail", 900, 12));
    behind.apps[0] = app(Nanos::ZERO, "mail", 0, 12);
    assert_eq!(run(&behind, &graph, 6).unwrap().phone.unwrap().apps_killed, 1);
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
    // It is killed as it grows; a second later, an app in front touches its pages.
    phone.apps = vec![app(ms(30), "game", 0, 40)];
    let record = run(&phone, &graph, 100).unwrap();
    check(&record, "game");
    assert!(record.iterations.iter().copied().sum::<Nanos>() > ms(1_500));
    let seen = record.phone.unwrap();
    assert_eq!((seen.apps_killed, seen.kills.len()), (1, 0));
    assert_eq!(record.iteration, ITERATION);
}

#[test]
fn apps_in_the_background_keep_flash_busy_while_they_live() {
    // A single page takes the flash 50 of its 100 µs, and writes next to nothing.
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
    // The sleep per page read in the last iteration.
    let asleep = |apps: Vec<AppChange>, iterations| {
        let phone = Phone { flash: flash.clone(), background: vec![reading], apps, ..phone(24, 12) };
        let record = run(&phone, &layer(), iterations).unwrap();
        check(&record, "background");
        let seen = record.phone.unwrap();
        assert!(seen.iteration.read_from_flash() > 1_000);
        (seen.iteration.states.sleeping.0 / seen.iteration.read_from_flash(), seen.apps_killed)
    };
    let mail = |adj| app(Nanos::ZERO, "mail", adj, 1);
    // 100 µs alone. Among commands that keep the device half busy, a command that needs half of it is slowed down by 1
    // ÷ 0.75, unless it finds the device free.
    assert!(asleep(Vec::new(), 3).0.abs_diff(100_000) < 100, "{:?}", asleep(Vec::new(), 3));
    let beside = asleep(vec![mail(899)], 3).0;
    assert!((120_000..200_000).contains(&beside), "{beside}");
    // In front it does not write, although its own pages count as read; nor cached, since it is frozen, nor when it has
    // ended.
    assert!(asleep(vec![mail(0)], 3).0 < 100_100);
    assert!(asleep(vec![mail(900)], 3).0.abs_diff(100_000) < 100);
    let ended = asleep(vec![mail(899), ends(ms(100), "mail")], 3);
    assert!(ended.0.abs_diff(100_000) < 100 && ended.1 == 0, "{ended:?}");
    // Nor when it was killed: 24 MiB and 12 on flash have no room for 25 and 14.
    let killed = asleep(vec![app(Nanos::ZERO, "mail", 899, 14)], 3);
    assert!(killed.0.abs_diff(100_000) < 100 && killed.1 == 1, "{killed:?}");
}

#[test]
fn the_app_in_front_reads_files_beside_its_faults() {
    // Pages keep the device half busy, as in the test above.
    let machine = with_storage(&[("storage.random_read", 4.096 / 50e-3), ("storage.latency_read", 100.0)]);
    let flash = machine.device.flash().unwrap();
    let reading = Stream { direction: Direction::Read, rate: BytesPerSecond(40e6), command: Bytes(PAGE), depth: 8 };
    let asleep = |adj, foreground: Vec<Stream>| {
        let apps = vec![app(Nanos::ZERO, "mail", adj, 1)];
        let phone = Phone { flash: flash.clone(), foreground, apps, ..phone(24, 12) };
        let record = run(&phone, &layer(), 3).unwrap();
        let seen = record.phone.unwrap();
        assert!(seen.iteration.read_from_flash() > 1_000);
        seen.iteration.states.sleeping.0 / seen.iteration.read_from_flash()
    };
    // With an empty queue a page takes 100 µs, with a stream of the app in front longer; apps in the background do not
    // read.
    let alone = asleep(0, Vec::new());
    let beside = asleep(0, vec![reading]);
    assert!(beside > alone + 15_000, "{beside} beside {alone}");
    assert_eq!(asleep(899, vec![reading]), asleep(899, Vec::new()));
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
fn what_a_recording_holds_takes_memory_on_the_clock_of_the_run() {
    let graph = layer();
    let without = run(&phone(48, 64), &graph, 8).unwrap();
    let mut phone = phone(48, 64);
    // 25 and 29 MiB exceed the memory, all of it in use; from 5 s on everything fits again.
    phone.others = recorded(&[(Nanos::ZERO, 4), (ms(60), 29), (ms(5_000), 4)], 1.0);
    let record = run(&phone, &graph, 8).unwrap();
    check(&record, "recording");
    // 24.88 and twice 17.2 ms pass before it grows.
    assert_eq!(record.iterations[..3], without.iterations[..3]);
    assert!(record.iterations[3] > without.iterations[3] * 2, "{:?}", record.iterations);
    let seen = record.phone.unwrap();
    assert!(seen.run.evicted() > 0 && seen.run.used_peak > Bytes(45 * MIB), "{:?}", seen.run);
    // The killer has nothing to end.
    assert_eq!((seen.apps_killed, seen.kills.len()), (0, 0));
    let later = run(&phone, &graph, 400).unwrap();
    assert!(later.ended > ms(6_000) && later.ended == later.iterations.iter().copied().sum());
    assert_eq!(later.iterations.last(), Some(&ITERATION));
}
