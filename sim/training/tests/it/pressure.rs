//! Budgets, walls and illegal answers: behaviour when memory is short.

use haversack_devices::units::{Bytes, Nanos};
use haversack_policies::registry;
use haversack_policies::{Holding, MemoryView, Policy, PolicyError, Relief, Schedule, Setting, Want};
use haversack_testing::{eager, lowered};
use haversack_training::{
    AllocatorKind, Budgets, Job, Record, RunError, SpanKind, Wall, least_memory, least_that_works, simulate,
};
use haversack_workloads::lowering::Variant;
use haversack_workloads::{Phase, Role, TensorId, TrainingGraph};

use crate::common::{job, machine, policy, run, share, within};

fn unbounded(graph: &TrainingGraph, batch: u64) -> Record {
    run(&job(graph, batch), "original").unwrap()
}

fn with_walls(graph: &TrainingGraph, batch: u64, walls: Vec<Wall>) -> Job<'_> {
    Job { budgets: Budgets { walls, ..Budgets::default() }, ..job(graph, batch) }
}

/// The first span of `phase` in which `memory` is resident, from a record with a whole timeline.
fn span_with(record: &Record, graph: &TrainingGraph, phase: Phase, memory: Bytes) -> haversack_training::Span {
    let spans = &record.timeline.as_ref().unwrap().spans;
    *spans.iter().find(|span| graph.nodes[span.node as usize].phase == phase && span.memory >= memory).unwrap()
}

#[test]
fn a_wall_in_forward_truncates_the_micro_batch() {
    let graph = lowered("resnet50", Variant::Reduced);
    let free = unbounded(&graph, 32);
    // At 20 / 32 = 62.5 % of the peak no more than 20 samples fit, and 21 do from 21 / 32 = 65.6 % on; weights, which
    // do not shrink, and the gradients of the first part move the edges, so the wall is searched.
    let at = span_with(&free, &graph, Phase::Forward, share(free.peak_memory, 40)).start;
    let found = (50..90).find_map(|percent| {
        let wall = Wall { at, memory: share(free.peak_memory, percent) };
        let job = with_walls(&graph, 32, vec![wall]);
        run(&job, "dga").ok().filter(|record| record.micro_batches == [20, 12]).map(|record| (wall, record))
    });
    let (wall, record) = found.expect("some wall leaves 20 samples");
    let spans = &record.timeline.as_ref().unwrap().spans;
    // Forward is not begun again: each forward node runs once a part, first on 32 samples, then on 20, then on 12.
    let of = |node: u32| spans.iter().filter(|span| span.node == node).map(|span| span.micro_batch).collect::<Vec<_>>();
    assert_eq!(of(0), [32, 12]);
    let last_forward = graph.nodes.iter().filter(|node| node.phase == Phase::Forward).count() as u32 - 1;
    assert_eq!(of(last_forward), [20, 12]);
    assert_eq!(
        spans.len(),
        2 * graph.nodes.iter().filter(|n| n.phase != Phase::Update).count()
            + graph.nodes.iter().filter(|n| n.phase == Phase::Update).count()
    );
    // Memory grows on after the wall, so samples go a few at a time: of what ran on m samples (m − 20) / m is lost in
    // the end, however many steps that took. Each step rounds each part of the breakdown down.
    let first = spans.iter().take_while(|span| span.micro_batch >= 20);
    let lost: f64 = first.map(|span| span.duration.0 as f64 * (1.0 - 20.0 / span.micro_batch as f64)).sum();
    assert!(lost > 0.0 && (record.breakdown.discarded.0 as f64 - lost).abs() < 12.0 * 10.0, "{lost}");
    assert_eq!(record.breakdown.total(), record.iteration);
    // The budget is kept from the end of the operator that was running.
    assert!(spans.iter().filter(|span| span.start > wall.at).all(|span| span.memory <= wall.memory));
}

#[test]
fn a_wall_in_backward_starts_the_part_again() {
    let graph = lowered("resnet18-cifar", Variant::Reduced);
    let free = unbounded(&graph, 16);
    let backward = span_with(&free, &graph, Phase::Backward, share(free.peak_memory, 90));
    let wall = Wall { at: backward.start + Nanos(1), memory: share(free.peak_memory, 75) };
    let job = with_walls(&graph, 16, vec![wall]);
    let record = run(&job, "dga").unwrap();
    let first = record.micro_batches[0];
    assert!(first < 16 && record.micro_batches.iter().sum::<u64>() == 16, "{:?}", record.micro_batches);
    let spans = &record.timeline.as_ref().unwrap().spans;
    // Every attempt begins with the first node; those that do not reach the last one before the update are lost.
    let end = graph.nodes.iter().filter(|node| node.phase != Phase::Update).count() as u32 - 1;
    let attempts: Vec<_> = spans.chunk_by(|_, next| next.node != 0).collect();
    let ended = |attempt: &&&[haversack_training::Span]| attempt.iter().any(|span| span.node == end);
    let sizes: Vec<u64> =
        attempts.iter().filter(ended).filter_map(|attempt| attempt.last()).map(|span| span.micro_batch).collect();
    assert_eq!(sizes, record.micro_batches);
    assert_eq!(attempts[0][0].micro_batch, 16);
    let lost: u64 = attempts
        .iter()
        .filter(|attempt| !ended(attempt))
        .flat_map(|attempt| *attempt)
        .map(|span| span.duration.0)
        .sum();
    // Finished attempts lose time only by shrinking in forward.
    let shrunk = attempts.iter().filter(ended).flat_map(|attempt| {
        let end = attempt[attempt.len() - 1].micro_batch as f64;
        attempt.iter().map(move |span| span.duration.0 as f64 * (1.0 - end / span.micro_batch as f64))
    });
    let shrunk: f64 = shrunk.sum();
    assert!(
        lost > 0 && (record.breakdown.discarded.0 as f64 - lost as f64 - shrunk).abs() < 100.0,
        "{lost} + {shrunk}"
    );
    assert_eq!(record.breakdown.total(), record.iteration);
    assert_eq!(record.forward + record.backward + record.update, record.iteration);
}

#[test]
fn the_growth_is_measured_from_before_the_first_forward() {
    let graph = lowered("resnet18-cifar", Variant::Reduced);
    let free = unbounded(&graph, 16);
    let backward = span_with(&free, &graph, Phase::Backward, share(free.peak_memory, 90));
    let wall = Wall { at: backward.start + Nanos(1), memory: share(free.peak_memory, 75) };
    let record = run(&with_walls(&graph, 16, vec![wall]), "dga").unwrap();
    // Before forward, weights, buffers and the samples are in memory, however often the part is started again.
    let state = graph.bytes_of(|role| role.is_state()).at(16);
    let samples = graph.bytes_of(|role| matches!(role, Role::Input | Role::Target)).at(16);
    assert!(
        record.peak_growth.0 >= record.peak_memory.0 - state - samples,
        "{} of {}",
        record.peak_growth,
        record.peak_memory
    );
}

#[test]
fn a_wall_takes_hold_when_the_running_operator_ends() {
    let graph = lowered("mobilenetv2", Variant::Reduced);
    let free = unbounded(&graph, 16);
    let memory = share(free.peak_memory, 60);
    let running = span_with(&free, &graph, Phase::Forward, share(free.peak_memory, 70));
    for into in [1, running.duration.0 / 2, running.duration.0 - 1] {
        let wall = Wall { at: running.start + Nanos(into), memory };
        let record = run(&with_walls(&graph, 16, vec![wall]), "dgc").unwrap();
        let spans = &record.timeline.as_ref().unwrap().spans;
        let index = spans.iter().position(|span| span.start == running.start).unwrap();
        // The operator itself ran to its end with its memory.
        assert_eq!((spans[index].node, spans[index].duration), (running.node, running.duration));
        assert!(spans[index].memory > memory);
        assert!(
            spans[index + 1..].iter().all(|span| span.memory <= memory && span.budget == Some(memory)),
            "{into} ns in"
        );
        assert!(spans[..index].iter().all(|span| span.budget.is_none()));
    }
}

#[test]
fn a_wall_that_only_the_update_meets_is_out_of_memory() {
    let graph = eager("resnet18-cifar");
    let free = unbounded(&graph, 8);
    let update = span_with(&free, &graph, Phase::Update, Bytes::ZERO);
    // Weights and their gradients are all that is left, and no policy can drop those.
    let wall = Wall { at: update.start, memory: share(update.memory, 90) };
    for id in ["original", "dgc", "dga", "sage"] {
        let error = run(&with_walls(&graph, 8, vec![wall]), id).unwrap_err();
        assert!(matches!(error, RunError::OutOfMemory { .. }), "{id}: {error}");
    }
}

#[test]
fn a_wall_holds_in_its_own_iteration_only() {
    let graph = lowered("lenet5", Variant::Reduced);
    let free = unbounded(&graph, 8);
    // A wall after the end of the iteration never takes effect, however many iterations follow.
    let wall = Wall { at: Nanos(free.iteration.0 * 3 / 2), memory: Bytes(1) };
    let job = Job { iterations: 3, ..with_walls(&graph, 8, vec![wall]) };
    let record = run(&job, "original").unwrap();
    assert_eq!(record.iteration, free.iteration);
}

#[test]
fn what_cannot_be_freed_is_out_of_memory_with_its_shortfall() {
    let graph = lowered("resnet18-cifar", Variant::Reduced);
    let free = unbounded(&graph, 8);
    let budget = Bytes(free.peak_memory.0 - 1000);
    let error = run(&within(&graph, 8, budget), "original").unwrap_err();
    // The first tensor that does not fit lacks between one byte and its own size.
    let largest = graph.tensors.iter().map(|tensor| tensor.bytes.at(8)).max().unwrap();
    let RunError::OutOfMemory { shortfall, budget: named, node } = &error else { panic!("{error}") };
    assert!((1..=largest).contains(&shortfall.0) && *named == budget && !node.is_empty());
    assert!(error.is_infeasible());
    // Weights that do not fit fail before the first node.
    let weights = graph.bytes_of(|role| role.is_state()).at(8);
    let error = run(&within(&graph, 8, Bytes(weights - 1)), "sage").unwrap_err();
    assert!(matches!(error, RunError::OutOfMemory { shortfall: Bytes(1), .. }), "{error}");
}

#[test]
fn a_batch_of_nothing_is_refused() {
    let graph = lowered("lenet5", Variant::Reduced);
    assert_eq!(run(&job(&graph, 0), "original").unwrap_err(), RunError::EmptyBatch);
}

/// Answers the first shortage with scripted reliefs.
struct Answers(Vec<Relief>);

impl Policy for Answers {
    fn relieve(&mut self, _: Want, _: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        Ok(std::mem::take(&mut self.0))
    }
}

/// Drops a tensor that is in use: the samples' own tensors are not candidates, nor are a kernel's inputs.
struct DropsLocked;

impl Policy for DropsLocked {
    fn relieve(&mut self, _: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        let locked = (0u32..).zip(memory.tensors).find(|(id, t)| {
            t.form.is_whole() && memory.graph.tensor(*id).role == Role::Activation && !memory.candidates.contains(*id)
        });
        Ok(locked.map(|(id, _)| Relief::Rematerialise(id)).into_iter().collect())
    }
}

#[test]
fn illegal_answers_are_errors_of_the_run() {
    let graph = lowered("resnet18-cifar", Variant::Reduced);
    let budget = share(unbounded(&graph, 8).peak_memory, 90);
    let weight =
        (0u32..).zip(&graph.tensors).find(|(_, tensor)| matches!(tensor.role, Role::Parameter { .. })).unwrap().0;
    let last = graph.nodes.iter().rev().find(|node| node.phase == Phase::Forward).unwrap().outputs[0];
    let answers = [
        (vec![Relief::ShrinkMicroBatch(0)], "shrink the micro-batch of 8 to 0"),
        (vec![Relief::ShrinkMicroBatch(8)], "shrink the micro-batch of 8 to 8"),
        (vec![Relief::ShrinkMicroBatch(9)], "shrink the micro-batch of 8 to 9"),
        (vec![Relief::Rematerialise(weight)], "drop conv1"),
        (vec![Relief::Rematerialise(last)], "drop loss"),
        (vec![Relief::Rematerialise(u32::MAX)], "drop ?"),
    ];
    for (answer, action) in answers {
        let error = simulate(&machine(), &within(&graph, 8, budget), &mut Answers(answer.clone())).unwrap_err();
        assert!(matches!(error, RunError::IllegalAction { .. }), "{answer:?}: {error}");
        assert!(error.to_string().contains(action), "{answer:?}: {error}");
        assert!(!error.is_infeasible());
    }
    let error = simulate(&machine(), &within(&graph, 8, budget), &mut DropsLocked).unwrap_err();
    assert!(matches!(error, RunError::IllegalAction { .. }), "{error}");
    // The same tensor twice: the second time it is gone.
    struct Twice;
    impl Policy for Twice {
        fn relieve(&mut self, _: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
            Ok(memory.candidates.iter().take(1).flat_map(|id| [Relief::Rematerialise(id); 2]).collect())
        }
    }
    let error = simulate(&machine(), &within(&graph, 8, budget), &mut Twice).unwrap_err();
    assert!(matches!(error, RunError::IllegalAction { .. }), "{error}");
}

/// Fails after a number of calls.
struct Fails(u32);

impl Policy for Fails {
    fn hold(&mut self, _: TensorId, _: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        self.0 = self.0.checked_sub(1).ok_or_else(|| PolicyError::Failed("out of ideas".to_owned()))?;
        Ok(Holding::Keep)
    }
}

#[test]
fn a_policy_that_can_decide_nothing_any_more_ends_the_run() {
    let graph = eager("lenet5");
    let job = job(&graph, 8);
    let expected = RunError::Policy(PolicyError::Failed("out of ideas".to_owned()));
    // At its first call, and at its fourth.
    assert_eq!(simulate(&machine(), &job, &mut Fails(0)).unwrap_err(), expected);
    assert_eq!(simulate(&machine(), &job, &mut Fails(3)).unwrap_err(), expected);
    assert!(simulate(&machine(), &job, &mut Fails(u32::MAX)).is_ok());
    assert!(!expected.is_infeasible() && expected.to_string() == "the policy failed: out of ideas");
}

/// Begins with a fixed number of samples, whatever the batch.
struct Begins(u64);

impl Policy for Begins {
    fn prepare(&mut self, _: &Setting<'_>) -> Result<Schedule, PolicyError> {
        Ok(Schedule::plain(self.0))
    }
}

#[test]
fn a_first_micro_batch_divides_the_batch() {
    let graph = lowered("lenet5", Variant::Reduced);
    // 10 = 4 + 4 + 2.
    let record = simulate(&machine(), &job(&graph, 10), &mut Begins(4)).unwrap();
    assert_eq!(record.micro_batches, [4, 4, 2]);
}

#[test]
fn half_the_memory_is_never_faster() {
    for (graph, batch) in [
        (lowered("resnet18-cifar", Variant::Reduced), 32),
        (eager("lenet5"), 64),
        (lowered("mobilenetv2", Variant::Reduced), 8),
    ] {
        for id in ["dgc", "dga", "sage"] {
            let peak = unbounded(&graph, batch).peak_memory;
            // The third iteration knows its micro-batch; the first one's search for it is shorter where little fits.
            let steady = |job: Job<'_>| run(&Job { iterations: 3, ..job }, id);
            let rate = |percent| {
                steady(within(&graph, batch, share(peak, percent))).ok().map(|record| record.samples_per_second())
            };
            for percent in [100, 90, 80, 70, 60, 50] {
                let (Some(whole), Some(half)) = (rate(percent), rate(percent / 2)) else { continue };
                // Greedy choices may win a little by dropping something else.
                assert!(
                    half <= whole * 1.02,
                    "{} {id}: {half} samples/s at {} % and {whole} at {percent} %",
                    graph.name,
                    percent / 2
                );
            }
        }
    }
}

#[test]
fn checkpointing_runs_the_same_nodes_and_some_again() {
    let graph = lowered("resnet50", Variant::Reduced);
    let free = unbounded(&graph, 8);
    let record = run(&within(&graph, 8, share(free.peak_memory, 60)), "dgc").unwrap();
    let scheduled = |record: &Record| -> Vec<(u32, Nanos)> {
        let spans = &record.timeline.as_ref().unwrap().spans;
        spans.iter().filter(|span| span.kind == SpanKind::Scheduled).map(|span| (span.node, span.duration)).collect()
    };
    assert_eq!(scheduled(&record), scheduled(&free));
    assert!(record.recomputed > 0);
    // The samples do not change, so only recomputation is added.
    assert_eq!(record.iteration.0 - free.iteration.0, record.breakdown.recompute.0);
    assert_eq!(record.micro_batches, [8]);
}

#[test]
fn the_least_memory_works_and_a_little_less_does_not() {
    for (graph, batch) in [
        (lowered("resnet18-cifar", Variant::Reduced), 16),
        (lowered("lenet5", Variant::Reduced), 32),
        (eager("bert-small-s64"), 8),
        (eager("mobilenetv2"), 8),
    ] {
        for id in ["original", "sgc", "sga", "dgc", "dga", "sage"] {
            let free = run(&job(&graph, batch), id).unwrap();
            let least = least_memory(&machine(), &job(&graph, batch), || registry::build(id, &[])).unwrap();
            let place = format!("{} {id}: {least}", graph.name);
            assert!(least <= free.peak_memory, "{place}");
            assert!(run(&within(&graph, batch, least), id).is_ok(), "{place} does not work");
            let less = Bytes((least.0 as f64 * 0.998) as u64);
            assert!(run(&within(&graph, batch, less), id).is_err(), "{place}: {less} works too");
            if id == "original" {
                // Nothing can give way: it is the peak, to the thousandth of the search.
                assert!(least.as_f64() >= free.peak_memory.as_f64() * 0.999, "{place}");
            }
        }
    }
}

#[test]
fn the_least_memory_works_for_all_iterations_whatever_gaps_they_leave_and_a_hundredth_less_does_not() {
    for (graph, batch) in [(eager("squeezenet1-1"), 8), (eager("bert-small-s64"), 32)] {
        for id in ["original", "sgc", "dgc", "sage", "dtr"] {
            for iterations in [1, 2, 7] {
                let job = Job { allocator: AllocatorKind::Caching, iterations, ..Job::plain(&graph, batch) };
                let tried = |memory: Bytes| {
                    let budgets = Budgets { memory: Some(memory), ..Budgets::default() };
                    run(&Job { budgets, ..job.clone() }, id)
                };
                let least = least_memory(&machine(), &job, || registry::build(id, &[])).unwrap();
                let place = format!("{} {id}, {iterations} iterations: {least}", graph.name);
                assert!(tried(least).is_ok_and(|record| record.reserved <= least), "{place} does not work");
                let less = Bytes(least.0 - least.0.div_ceil(100));
                assert!(tried(less).is_err(), "{place}: {less} works too");
            }
        }
    }
}

#[test]
fn a_budget_is_searched_below_and_above_where_the_search_begins_in_few_tries() {
    // A budget that works in one iteration, and in all.
    let works = |budget: u64, iterations: u32| match iterations {
        1 => budget >= 700,
        _ => budget >= 1250,
    };
    let found = |start: u64, iterations: u32| {
        let mut tries = 0;
        let least = least_that_works(Bytes(start), iterations, |budget, iterations| {
            tries += 1;
            let short = RunError::OutOfMemory { node: String::new(), shortfall: Bytes(1), budget };
            if works(budget.0, iterations) { Ok(()) } else { Err(short) }
        });
        (least.map(|least| least.0).ok(), tries)
    };
    assert_eq!(found(1000, 1), (Some(700), 11));
    let (above, tries) = found(1000, 9);
    assert!(above.is_some_and(|above| (1250..=1251).contains(&above)) && tries < 40, "{above:?} {tries}");
    assert_eq!(found(3, 9).0, None, "a hundred times as much does not work either");
}

#[test]
fn the_caching_allocator_reserves_what_it_allocates_and_more() {
    let graph = eager("resnet18-cifar");
    for id in ["original", "dgc", "dga", "sage"] {
        let free = run(&Job { allocator: AllocatorKind::Caching, ..job(&graph, 16) }, id).unwrap();
        let exact = run(&job(&graph, 16), id).unwrap();
        assert!(free.reserved >= free.peak_memory && free.peak_memory >= exact.peak_memory, "{id}");
        // Segments come in steps of 2 MiB.
        assert_eq!(free.reserved.0 % (2 << 20), 0, "{id}");
        assert_eq!(exact.reserved, exact.peak_memory, "{id}");
    }
    // Reserved memory stays within the budget if tensors are dropped.
    caching_within_budgets(&graph, &["original", "dgc", "dtr"]);
}

fn caching_within_budgets(graph: &TrainingGraph, policies: &[&str]) {
    let caching = |job: Job<'_>, id: &str| run(&Job { allocator: AllocatorKind::Caching, ..job }, id);
    for id in policies {
        let free = caching(job(graph, 16), id).unwrap();
        for percent in [100, 95, 85, 75, 65] {
            let budget = share(free.reserved, percent);
            match caching(within(graph, 16, budget), id) {
                Ok(record) => {
                    let place = format!("{id} {percent} %: {} {} {budget}", record.peak_memory, record.reserved);
                    assert!(record.peak_memory <= record.reserved && record.reserved <= budget, "{place}");
                }
                Err(error) => assert!(error.is_infeasible() && percent < 100, "{id} {percent} %: {error}"),
            }
        }
    }
}

#[test]
fn the_caching_allocator_stays_within_its_budget_when_the_micro_batch_shrinks() {
    caching_within_budgets(&eager("resnet18-cifar"), &["dga", "sage"]);
}

#[test]
fn a_budget_of_saved_tensors_leaves_the_rest_alone() {
    let graph = lowered("resnet18-cifar", Variant::Reduced);
    let all: u64 = graph.saved().into_iter().map(|tensor| graph.tensor(tensor).bytes.at(16)).sum();
    let of = |activations: u64, id: &str| {
        let budgets = Budgets { activations: Some(Bytes(activations)), ..Budgets::default() };
        run(&Job { budgets, ..job(&graph, 16) }, id)
    };
    // With all of it nothing is dropped, with a byte less something is.
    assert_eq!(of(all, "dgc").unwrap().recomputed, 0);
    assert!(matches!(of(all - 1, "original").unwrap_err(), RunError::OutOfMemory { .. }));
    let free = run(&job(&graph, 16), "original").unwrap();
    for id in ["dgc", "dga", "sage"] {
        let half = of(all / 2, id).unwrap();
        // Weights and gradients are not saved tensors and do not count: the peak falls at most by the other half.
        assert!(half.peak_memory < free.peak_memory, "{id}");
        assert!(half.peak_memory.0 + all / 2 > graph.bytes_of(|role| role.is_state()).at(16), "{id}");
        match id {
            "dgc" => assert!(half.recomputed > 0),
            _ => assert!(half.micro_batches.len() > 1, "{id}: {:?}", half.micro_batches),
        }
    }
}

#[test]
fn a_second_iteration_does_not_pay_for_finding_the_micro_batch() {
    let graph = lowered("resnet18-cifar", Variant::Reduced);
    let budget = share(unbounded(&graph, 32).peak_memory, 70);
    let first = run(&within(&graph, 32, budget), "dga").unwrap();
    let second =
        simulate(&machine(), &Job { iterations: 2, ..within(&graph, 32, budget) }, policy("dga").as_mut()).unwrap();
    assert!(first.breakdown.discarded > Nanos::ZERO && second.breakdown.discarded == Nanos::ZERO);
    assert!(second.iteration < first.iteration);
    // The second iteration begins with the micro-batch that the first one ended with.
    let found = first.micro_batches[..first.micro_batches.len() - 1].iter().min();
    assert_eq!(second.micro_batches.first(), found);
}

#[test]
fn a_computing_budget_is_kept_after_every_operator() {
    let graph = lowered("resnet50", Variant::Reduced);
    let free = unbounded(&graph, 8);
    let state = Bytes(graph.bytes_of(Role::is_state).at(8));
    let job = within(&graph, 8, free.peak_memory);
    let melon = |percent: &str| {
        let mut policy = registry::build("melon", &[("computing_budget".to_owned(), percent.to_owned())]).unwrap();
        simulate(&machine(), &job, policy.as_mut()).unwrap()
    };
    // All memory that training needs is available, so without a computing budget nothing is computed again.
    assert_eq!(melon("100").recomputed, 0);
    let [half, third] = ["50", "33"].map(melon);
    assert!(0 < half.recomputed && half.recomputed < third.recomputed, "{} {}", half.recomputed, third.recomputed);
    // After an operator, half of the memory less the state is in use, plus its outputs while an operator runs: here
    // never more than an eighth.
    let beside = free.peak_memory - state;
    assert!(half.peak_memory > state + share(beside, 50), "{}", half.peak_memory);
    assert!(half.peak_memory < state + share(beside, 63), "{}", half.peak_memory);
    assert_eq!(half.micro_batches, [8]);
}

#[test]
fn a_trace_goes_on_from_iteration_to_iteration() {
    let graph = lowered("mobilenetv2", Variant::Reduced);
    let free = unbounded(&graph, 16);
    let (half, whole) = (share(free.peak_memory, 60), Bytes(2 * free.peak_memory.0));
    // In the middle of the third iteration memory shrinks; as long as four iterations take later it is enough again.
    let falls = Nanos(free.iteration.0 * 5 / 2);
    let rises = falls + free.iteration * 4;
    let traced = [(Nanos::ZERO, whole), (falls, half), (rises, whole)];
    let traced = traced.map(|(at, memory)| Wall { at, memory }).to_vec();
    let number = 4 + (rises.0 / free.iteration.0) as u32;
    let job = Job { iterations: number, budgets: Budgets { traced, ..Budgets::default() }, ..job(&graph, 16) };
    let record = run(&job, "dgc").unwrap();
    assert_eq!(record.iterations[..2], [free.iteration; 2]);
    // A batch of 16 does not fit whole: from the third iteration until the budget rises all take longer.
    let mut start = Nanos::ZERO;
    for (place, took) in record.iterations.iter().enumerate() {
        let end = start + *took;
        if end <= falls || start >= rises {
            assert_eq!(*took, free.iteration, "iteration {place}");
        } else if start >= falls && end <= rises {
            assert!(*took > free.iteration, "iteration {place}: {took}");
        }
        start = end;
    }
    assert!(record.iterations[3] > free.iteration && record.iterations.last() == Some(&free.iteration));
    let later = record.iterations[1..].iter().map(|took| took.0).sum::<u64>() / u64::from(number - 1);
    assert_eq!(record.iteration, Nanos(later));
    assert_eq!(record.ended, start);
}
