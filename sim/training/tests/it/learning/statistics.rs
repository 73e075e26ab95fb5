//! A mini-batch in parts, normalised by its own statistics.

use haversack_policies::{Policy, registry};
use haversack_training::{Job, RunError, simulate};
use haversack_workloads::Role;

use super::classroom::Classroom;
use super::{cpu, less};

fn halves(statistics: &str) -> Box<dyn Policy> {
    registry::build("sga", &[("batch_norm".to_owned(), statistics.to_owned())]).unwrap()
}

#[test]
fn parts_normalised_by_the_whole_mini_batch_lose_what_it_loses() {
    let class = Classroom::new("resnet8-cifar", 8);
    let (plain, state) = class.plain_to(1);
    let job = Job::plain(&class.graph, 8);
    let (own, _) = class.train(&cpu(), &job, halves("part").as_mut(), 1).unwrap();
    let (whole, record) = class.train(&cpu(), &job, halves("whole").as_mut(), 1).unwrap();
    assert_eq!(record.micro_batches, [4, 4]);
    // But for the order of additions; halves with separate statistics are off by a few parts in ten thousand.
    assert!((whole[0] - plain[0]).abs() < 1e-5 * plain[0], "{whole:?} for {plain:?}");
    assert!((own[0] - plain[0]).abs() > 1e-4 * plain[0], "{own:?} for {plain:?}");
    // Running averages move once, by the whole's statistics.
    let ended = class.train_to(&cpu(), &job, halves("whole").as_mut(), 1);
    for (id, tensor) in (0..).zip(&class.graph.tensors).filter(|(_, tensor)| tensor.role == Role::Buffer) {
        assert_eq!(ended.values(id), state.values(id), "{}", tensor.name);
    }
}

#[test]
fn a_pass_for_statistics_takes_time_and_nothing_of_it_stays() {
    let class = Classroom::new("resnet8-cifar", 32);
    let job = Job { iterations: 2, ..Job::plain(&class.graph, 32) };
    let own = simulate(&cpu(), &job, halves("part").as_mut()).unwrap();
    let whole = simulate(&cpu(), &job, halves("whole").as_mut()).unwrap();
    let longer = whole.iteration.seconds() / own.iteration.seconds();
    // Forward is about a third of an iteration, at full batches rather less of its time than in halves.
    assert!(longer > 1.15 && longer < 1.4, "{longer}");
    assert_eq!(whole.iterations[0], whole.iterations[1]);
    // Nothing is saved in the pass: it needs less than the parts, and the statistics themselves are small.
    let more = whole.peak_memory.0 - own.peak_memory.0;
    assert!(more > 0 && more < own.peak_memory.0 / 100, "{more} of {}", own.peak_memory);
    let (_, record) = class.train(&cpu(), &job, halves("whole").as_mut(), 2).unwrap();
    assert_eq!((record.iterations, record.peak_memory), (whole.iterations, whole.peak_memory));
}

#[test]
fn a_budget_that_the_pass_does_not_fit_is_an_error_that_says_so() {
    let class = Classroom::new("resnet8-cifar", 8);
    let set = [("batch_norm".to_owned(), "whole".to_owned())];
    let mut policy = registry::build("dga", &set).unwrap();
    let job = Job { budgets: less(&class, 95), ..Job::plain(&class.graph, 8) };
    let error = simulate(&cpu(), &job, policy.as_mut()).unwrap_err();
    let RunError::OutOfMemory { node, .. } = &error else { panic!("{error}") };
    assert!(node.ends_with(", for the statistics of the whole mini-batch"), "{node}");
    assert!(error.is_infeasible());
}
