//! `daf` under budgets: activations, memory, walls, pages and steps.

use haversack_devices::processor::Frequency;
use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::{load, load_stack};
use haversack_policies::{Policy, PolicyError, registry};
use haversack_testing::eager_on_cuda as eager;
use haversack_training::{
    AllocatorKind, Budgets, Job, Machine, Observe, Record, RunError, Span, SpanKind, Trains, Wall, least_memory,
    simulate,
};
use haversack_workloads::{Phase, TrainingGraph};

use crate::common::{job, share};

/// The Xavier with kernels one after the other, each after its launch: the host launches nothing ahead.
fn jetson() -> Machine {
    let (device, mut stack) = (load("jetson-agx-xavier").unwrap(), load_stack("pytorch-cuda").unwrap());
    stack.constants.gpu.as_mut().unwrap().library = None;
    Machine::new(device, stack, Trains::Either, None, Frequency::default()).unwrap()
}

fn build(set: &[(&str, &str)]) -> Box<dyn Policy> {
    let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    registry::build("daf", &set).unwrap()
}

fn under(graph: &TrainingGraph, batch: u64, budgets: Budgets) -> Job<'_> {
    Job { budgets, observe: Observe::default(), ..job(graph, batch) }
}

fn activations(bytes: Bytes) -> Budgets {
    Budgets { activations: Some(bytes), ..Budgets::default() }
}

fn memory(bytes: Bytes) -> Budgets {
    Budgets { memory: Some(bytes), ..Budgets::default() }
}

fn saved(graph: &TrainingGraph, batch: u64) -> Bytes {
    Bytes(graph.saved().iter().map(|&tensor| graph.tensor(tensor).bytes.at(batch)).sum())
}

fn check(record: &Record, place: &str) {
    assert_eq!(record.breakdown.total(), record.iteration, "{place}: breakdown");
    assert_eq!(record.forward + record.backward + record.update, record.iteration, "{place}: phases");
    assert_eq!(record.recomputed, 0, "{place}");
}

/// The spans of the graph's nodes, without those of packing and the like between them.
fn scheduled(record: &Record) -> Vec<Span> {
    let spans = &record.timeline.as_ref().unwrap().spans;
    spans.iter().filter(|span| span.kind == SpanKind::Scheduled).copied().collect()
}

/// Small pages and steps, which lose little.
const FINE: [(&str, &str); 2] = [("page_kib", "1"), ("step_mb", "1")];

#[test]
fn saved_tensors_stay_within_their_budget() {
    let machine = jetson();
    for model in ["resnet18-cifar", "roberta-base-lora"] {
        let graph = eager(model);
        let whole = saved(&graph, 2);
        for packing in ["gpu", "cpu", "unified"] {
            let mut last = (Bytes::ZERO, u64::MAX);
            for percent in [5, 10, 30, 60, 101] {
                let budget = share(whole, percent);
                let place = format!("{model} {packing} {percent} %");
                let set: Vec<_> = [("packing", packing)].into_iter().chain(FINE).collect();
                let record = simulate(&machine, &under(&graph, 2, activations(budget)), build(&set).as_mut())
                    .unwrap_or_else(|error| panic!("{place}: {error}"));
                check(&record, &place);
                assert!(record.peak_saved <= budget, "{place}: {} of {budget}", record.peak_saved);
                let arena = record.arena.map_or(Bytes::ZERO, |arena| arena.reserved);
                assert!(arena <= budget, "{place}: {arena} of {budget}");
                // A larger budget is used, and gives up fewer gradients.
                assert!(record.peak_saved > last.0 && record.given_up <= last.1, "{place}");
                assert!(record.peak_saved >= share(budget, 50), "{place}: {} of {budget}", record.peak_saved);
                last = (record.peak_saved, record.given_up);
            }
            assert_eq!(last, (whole, 0), "{model} {packing}");
        }
    }
}

#[test]
fn the_least_activation_budget_works() {
    let machine = jetson();
    let graph = eager("lenet5");
    // So small that the error prints single bytes.
    let error = simulate(&machine, &under(&graph, 1, activations(Bytes(1_100))), build(&[("page_kib", "1")]).as_mut());
    let Err(RunError::Policy(PolicyError::Budget { least, .. })) = error else { panic!("{error:?}") };
    let least: u64 = least.strip_suffix(" B").unwrap().parse().unwrap();
    let run =
        |bytes| simulate(&machine, &under(&graph, 1, activations(Bytes(bytes))), build(&[("page_kib", "1")]).as_mut());
    let record = run(least).unwrap();
    assert!(record.peak_saved <= Bytes(least));
    assert!(matches!(run(least - 1), Err(RunError::Policy(PolicyError::Budget { .. }))));
}

#[test]
fn all_that_is_held_stays_within_a_memory_budget() {
    let machine = jetson();
    let graph = eager("resnet18-cifar");
    let free =
        simulate(&machine, &under(&graph, 32, Budgets::default()), registry::build("original", &[]).unwrap().as_mut())
            .unwrap();
    for set in [&FINE[..], &[("page_kib", "4"), ("step_mb", "8")], &[]] {
        for packing in ["gpu", "unified", "shared", "cpu"] {
            let mut last = Bytes::ZERO;
            for percent in 55..=100 {
                let budget = share(free.peak_memory, percent);
                let place = format!("{set:?} {packing} {percent} %");
                let set: Vec<_> = set.iter().copied().chain([("packing", packing), ("least_bits", "1")]).collect();
                let record = simulate(&machine, &under(&graph, 32, memory(budget)), build(&set).as_mut())
                    .unwrap_or_else(|error| panic!("{place}: {error}"));
                check(&record, &place);
                assert!(record.reserved <= budget, "{place}: {} of {budget}", record.reserved);
                assert!(record.peak_memory <= budget, "{place}: {} of {budget}", record.peak_memory);
                // One bit is the least that was allowed, and enough.
                assert_eq!(record.given_up, 0, "{place}");
                // A larger budget leaves more bits.
                assert!(record.peak_saved >= last, "{place}: {} after {last}", record.peak_saved);
                last = record.peak_saved;
            }
        }
    }
}

#[test]
fn the_least_memory_of_daf_is_found_and_below_that_of_the_original() {
    let machine = jetson();
    let graph = eager("resnet18-cifar");
    let job = under(&graph, 8, Budgets::default());
    let least = |id: &'static str, set: &[(String, String)]| least_memory(&machine, &job, || registry::build(id, set));
    let original = least("original", &[]).unwrap();
    let fine: Vec<_> = FINE.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let daf = least("daf", &fine).unwrap();
    assert!(daf < original, "{daf} {original}");
    let record = simulate(&machine, &under(&graph, 8, memory(daf)), build(&FINE).as_mut()).unwrap();
    assert!(record.reserved <= daf);
}

#[test]
fn an_arena_grows_in_what_a_caching_allocator_leaves() {
    let machine = jetson();
    for (model, batch) in [("lenet5", 8), ("resnet18-cifar", 32), ("mobilenetv2", 8)] {
        let graph = eager(model);
        let job = |budgets| Job { allocator: AllocatorKind::Caching, iterations: 2, ..under(&graph, batch, budgets) };
        let free = simulate(&machine, &job(Budgets::default()), registry::build("original", &[]).unwrap().as_mut());
        let free = free.unwrap().reserved;
        let mut ran = 0;
        for percent in (40..=110).step_by(5) {
            let budget = share(free, percent);
            let Ok(record) = simulate(&machine, &job(memory(budget)), build(&[]).as_mut()) else { continue };
            assert!(record.reserved <= budget, "{model} {percent} %: {} of {budget}", record.reserved);
            ran += 1;
        }
        assert!(ran > 1, "{model}: {ran}");
    }
}

#[test]
fn a_budget_of_less_than_a_page_is_a_typed_error() {
    let machine = jetson();
    let graph = eager("lenet5");
    for bytes in [0, 1, 16_383] {
        for iterations in [1, 2] {
            let job = Job { iterations, ..under(&graph, 4, activations(Bytes(bytes))) };
            let error = simulate(&machine, &job, build(&[]).as_mut()).unwrap_err();
            let typed =
                matches!(error, RunError::Policy(PolicyError::Budget { policy: "daf", .. }) | RunError::Arena(_));
            assert!(typed, "{bytes}: {error}");
            let error = simulate(&machine, &under(&graph, 4, memory(Bytes(bytes))), build(&[]).as_mut()).unwrap_err();
            assert!(matches!(error, RunError::Policy(_) | RunError::OutOfMemory { .. }), "{bytes}: {error}");
        }
    }
}

#[test]
fn a_step_larger_than_the_budget_is_cut_to_it() {
    let machine = jetson();
    let graph = eager("resnet18-cifar");
    let budget = share(saved(&graph, 4), 20);
    let run = |step: &str| {
        let set = [("step_mb", step), ("page_kib", "16")];
        simulate(&machine, &under(&graph, 4, activations(budget)), build(&set).as_mut()).unwrap()
    };
    // One block of all the whole pages that the budget has room for, whatever the step.
    let (large, larger) = (run("100"), run("400"));
    assert_eq!(large.arena.unwrap().reserved, Bytes(budget.0 / 16_384 * 16_384));
    assert_eq!(large.breakdown, larger.breakdown);
    assert_eq!(large.breakdown.paging, machine_call(&machine));
    // Steps of a megabyte: 61 pages each, as many calls as it takes.
    let small = run("1");
    let reserved = small.arena.unwrap().reserved.0;
    let calls = reserved.div_ceil(61 * 16_384);
    assert_eq!(small.breakdown.paging, Nanos(calls * machine_call(&machine).0));
    assert_eq!(small.peak_saved, large.peak_saved);
}

/// The time of a system call for memory.
fn machine_call(machine: &Machine) -> Nanos {
    machine.stack.gpu().unwrap().system_allocation.value
}

/// The start of the first node of `phase` after `share` of its time.
fn within_phase(record: &Record, graph: &TrainingGraph, phase: Phase, percent: u64) -> Nanos {
    let spans = scheduled(record);
    let of: Vec<_> = spans.iter().filter(|span| graph.nodes[span.node as usize].phase == phase).collect();
    of[of.len() * percent as usize / 100].start
}

#[test]
fn a_wall_in_forward_makes_the_arena_smaller_step_by_step() {
    let machine = jetson();
    let graph = eager("resnet20-cifar");
    for bits in ["8", "32"] {
        let set = [("bits", bits), ("page_kib", "4"), ("step_mb", "1"), ("packing", "gpu")];
        let free = simulate(&machine, &job(&graph, 32), build(&set).as_mut()).unwrap();
        let at = within_phase(&free, &graph, Phase::Forward, 80);
        let spans = scheduled(&free);
        let then = spans.iter().find(|span| span.start >= at).unwrap().memory;
        // A quarter of the saved tensors' bytes then has to go, and new tensors have to find room.
        let wall = Wall { at, memory: Bytes(then.0 - share(free.peak_saved, 25).0) };
        let walled = |iterations| {
            let budgets = Budgets { walls: vec![wall], ..Budgets::default() };
            let job = Job { budgets, iterations, ..job(&graph, 32) };
            simulate(&machine, &job, build(&set).as_mut())
        };
        let record = walled(1).unwrap_or_else(|error| panic!("{bits} bits: {error}"));
        check(&record, bits);
        let spans = scheduled(&record);
        // Everything before the wall is as it was, and the budget is kept once the operator that ran then has ended.
        assert!(spans.iter().filter(|span| span.start > wall.at).all(|span| span.memory <= wall.memory), "{bits} bits");
        assert!(spans.iter().any(|span| span.memory > wall.memory), "{bits} bits");
        assert!(record.peak_saved < free.peak_saved, "{bits} bits: {} {}", record.peak_saved, free.peak_saved);
        if bits == "8" {
            // Requantising copies, and blocks are given back.
            assert!(record.breakdown.packing > Nanos::ZERO);
            assert!(record.breakdown.paging > free.breakdown.paging);
        }
        // The second time the arena exists from the start, so the wall comes a few nodes later.
        let again = walled(2).unwrap_or_else(|error| panic!("{bits} bits, twice: {error}"));
        let spans = scheduled(&again);
        assert!(spans.iter().filter(|span| span.start > wall.at).all(|span| span.memory <= wall.memory), "{bits} bits");
    }
}

#[test]
fn a_wall_in_backward_is_respected() {
    let machine = jetson();
    let graph = eager("resnet20-cifar");
    let set = [("bits", "8"), ("page_kib", "4"), ("step_mb", "1")];
    let free = simulate(&machine, &job(&graph, 32), build(&set).as_mut()).unwrap();
    let at = within_phase(&free, &graph, Phase::Backward, 30);
    let spans = scheduled(&free);
    let after = spans.iter().filter(|span| span.start >= at).map(|span| span.memory).max().unwrap();
    let wall = Wall { at, memory: Bytes(after.0 - share(free.peak_saved, 15).0) };
    let walled = |iterations| {
        let job = Job { budgets: Budgets { walls: vec![wall], ..Budgets::default() }, iterations, ..job(&graph, 32) };
        simulate(&machine, &job, build(&set).as_mut()).unwrap()
    };
    let record = walled(1);
    check(&record, "backward");
    // Forward is over when the wall comes, and walls apply to their iteration only: the next forward saves as much.
    assert_eq!(record.peak_saved, free.peak_saved);
    assert_eq!(walled(2).peak_saved, free.peak_saved);
    let spans = scheduled(&record);
    assert!(spans.iter().filter(|span| span.start > wall.at).all(|span| span.memory <= wall.memory));
}

#[test]
fn a_cut_of_the_activation_budget_is_respected_within_the_iteration() {
    let machine = jetson();
    let graph = eager("resnet20-cifar");
    let whole = saved(&graph, 32);
    let set = [("page_kib", "4"), ("step_mb", "1"), ("packing", "gpu")];
    let budgets = activations(share(whole, 40));
    let free = simulate(&machine, &Job { budgets: budgets.clone(), ..job(&graph, 32) }, build(&set).as_mut()).unwrap();
    let at = within_phase(&free, &graph, Phase::Forward, 90);
    let cut = share(whole, 20);
    let run = |iterations| {
        let activation_walls = vec![Wall { at, memory: cut }];
        let job = Job { budgets: Budgets { activation_walls, ..budgets.clone() }, iterations, ..job(&graph, 32) };
        simulate(&machine, &job, build(&set).as_mut()).unwrap()
    };
    let record = run(1);
    check(&record, "cut");
    let after = record.saved_after_cut.expect("the cut took hold");
    assert!(after <= cut && after >= share(cut, 50), "{after} of {cut}");
    assert!(record.peak_saved > cut && free.saved_after_cut.is_none());
    // The next iteration begins with the whole budget.
    let again = run(2);
    assert!(again.peak_saved > cut && again.saved_after_cut.unwrap() <= cut);
}

#[test]
fn gradients_that_are_given_up_are_neither_computed_nor_unpacked_for() {
    let machine = jetson();
    let graph = eager("resnet18-cifar");
    let budget = activations(share(saved(&graph, 4), 5));
    for packing in ["gpu", "cpu", "shared", "unified"] {
        let set: Vec<_> = [("packing", packing)].into_iter().chain(FINE).collect();
        let job = Job { budgets: budget.clone(), ..job(&graph, 4) };
        let record = simulate(&machine, &job, build(&set).as_mut()).unwrap();
        assert!(record.given_up > 0, "{packing}");
        let spans = scheduled(&record);
        let updates = spans.iter().filter(|span| graph.nodes[span.node as usize].phase == Phase::Update).count() as u64;
        let all = graph.nodes.iter().filter(|node| node.phase == Phase::Update).count() as u64;
        assert_eq!(updates, all - record.given_up, "{packing}");
        check(&record, packing);
        if packing == "cpu" {
            // The largest map in flight is one that is read: given-up maps are never unpacked.
            let skipped: Vec<_> = graph.nodes.iter().filter(|node| node.name.ends_with("weight_gradient")).collect();
            let ran = |id: usize| spans.iter().any(|span| span.node as usize == id);
            let read: Bytes = graph
                .nodes
                .iter()
                .enumerate()
                .filter(|(id, node)| node.phase == Phase::Backward && ran(*id))
                .flat_map(|(_, node)| &node.saved)
                .map(|saved| Bytes(graph.tensor(saved.tensor).bytes.at(4)))
                .max()
                .unwrap();
            assert!(!skipped.is_empty() && record.peak_staging <= read);
        }
    }
}
