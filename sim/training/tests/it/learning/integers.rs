//! Integer training by the executor.

use haversack_devices::{CoreSelection, Frequency, load, load_stack};
use haversack_numerics::memory::Contents;
use haversack_numerics::optimiser::Rule;
use haversack_numerics::state::State;
use haversack_policies::{IterationPlan, Policy, PolicyError, Schedule, Setting};
use haversack_training::{Job, Machine, Observe, Record, Trains, simulate};
use haversack_workloads::TensorId;
use haversack_workloads::autograd::Optimiser;

use super::OBSERVED;
use super::classroom::Classroom;
use crate::common::policy;

fn machine(stack: &str, trains: Trains, cores: &str) -> Machine {
    let cores: Option<CoreSelection> = Some(cores.parse().unwrap());
    Machine::new(load("xiaomi-11-pro").unwrap(), load_stack(stack).unwrap(), trains, cores, Frequency::Highest).unwrap()
}

fn cpu() -> Machine {
    machine("mnn", Trains::Cpu, "big:4")
}

fn dsp() -> Machine {
    machine("mandheling", Trains::CpuAndDsp, "big:2")
}

fn codes(state: &State) -> Vec<(u32, Vec<i8>, f32)> {
    let of = |(tensor, contents): &(TensorId, Contents)| match contents {
        Contents::Eight(held) => (*tensor, held.codes.to_vec(), held.step),
        other => panic!("{other:?} is not held in eight bits"),
    };
    state.tensors().iter().map(of).collect()
}

#[test]
fn the_executor_computes_what_a_plain_loop_does_to_the_bit() {
    for model in ["lenet5", "resnet8-cifar"] {
        let class = Classroom::in_integers(model, 8);
        let job = Job { iterations: 3, ..Job::plain(&class.graph, 8) };
        let (plain, ended) = class.plain_to(3);
        let (losses, record) = class.train(&cpu(), &job, policy("mnn-int8").as_mut(), 3).unwrap();
        assert_eq!(losses, plain, "{model}");
        let state = class.train_to(&cpu(), &job, policy("mnn-int8").as_mut(), 3);
        assert_eq!(codes(&state), codes(&ended), "{model}");
        // The same events as without data.
        let shapes = simulate(&cpu(), &job, policy("mnn-int8").as_mut()).unwrap();
        assert_eq!((&record.iterations, record.peak_memory), (&shapes.iterations, shapes.peak_memory), "{model}");
    }
}

/// The optimisers that NITI supports.
const OPTIMISERS: [Optimiser; 2] = [Optimiser::Sgd, Optimiser::Momentum];

fn class_of(optimiser: Optimiser, model: &str, batch: u64) -> Classroom {
    Classroom::by_algorithm("niti", Rule { optimiser, rate: 0.02, decay: 0.0 }, model, batch)
}

#[test]
fn integers_allocate_the_same_bytes_at_the_same_events_with_data_and_without() {
    for optimiser in OPTIMISERS {
        let class = class_of(optimiser, "lenet5", 8);
        let observe = Observe { peak: true, ..OBSERVED };
        let job = Job { iterations: 3, observe, ..Job::plain(&class.graph, 8) };
        let (plain, _) = class.plain_to(3);
        for (id, machine) in [("mnn-int8", cpu()), ("mandheling", dsp())] {
            let mut factors = Vec::new();
            let mut losses = Vec::new();
            let learned = class.train_seen(&machine, &job, policy(id).as_mut(), 3, |record| {
                factors.push(record.factors.clone());
                losses.extend(record.loss.map(|loss| loss.mean));
            });
            let learned = learned.unwrap();
            // The first batches compute every scale: results equal those of a plain loop.
            assert_eq!(losses, plain, "{id} by {optimiser:?}");
            let told = simulate(&machine, &Job { factors: &factors, ..job.clone() }, policy(id).as_mut()).unwrap();
            assert_eq!(told.iterations, learned.iterations, "{id} by {optimiser:?}");
            let events = |record: &Record| format!("{:?} {:?} {:?}", record.timeline, record.peak, record.peak_memory);
            assert_eq!(events(&told), events(&learned), "{id} by {optimiser:?}");
        }
    }
}

#[test]
fn buffers_of_integers_take_what_the_simulator_says_within_a_tenth() {
    // With a state and without.
    for optimiser in OPTIMISERS {
        let class = class_of(optimiser, "lenet5", 128);
        let job = Job::plain(&class.graph, 128);
        for (id, machine) in [("mnn-int8", cpu()), ("mandheling", dsp())] {
            let (_, record, real) = class.train_counted(&machine, &job, policy(id).as_mut(), 1).unwrap();
            let said = record.peak_memory.0 as f64;
            assert!((real as f64 / said - 1.0).abs() < 0.1, "{id} by {optimiser:?}: {real} bytes for {said}");
        }
    }
}

#[test]
fn rescaling_in_every_batch_is_the_same_wherever_it_runs() {
    let class = Classroom::in_integers("lenet5", 8);
    let job = Job { iterations: 3, ..Job::plain(&class.graph, 8) };
    let set = [("rescaling".to_owned(), "dynamic".to_owned())];
    let mut dynamic = haversack_policies::registry::build("mandheling", &set).unwrap();
    let (losses, _) = class.train(&dsp(), &job, dynamic.as_mut(), 3).unwrap();
    assert_eq!(losses, class.plain(3));
}

/// Keeps every scale factor from the second iteration on.
struct Keeps(Vec<TensorId>, bool);

impl Policy for Keeps {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        self.0 = setting.graph.nodes.iter().filter_map(|node| node.rescales).collect();
        Ok(Schedule::plain(setting.batch))
    }

    fn begin_iteration(&mut self, plan: &mut IterationPlan) -> Result<(), PolicyError> {
        if std::mem::replace(&mut self.1, true) {
            self.0.iter().for_each(|&tensor| plan.keep_scale(tensor));
        }
        Ok(())
    }
}

#[test]
fn a_scale_that_a_policy_keeps_is_the_one_that_products_use() {
    let class = Classroom::in_integers("lenet5", 8);
    let job = Job { iterations: 4, ..Job::plain(&class.graph, 8) };
    let factors = |policy: &mut dyn Policy| {
        let mut seen = Vec::new();
        let end = class.train_seen(&cpu(), &job, policy, 4, |record: &Record| seen.push(record.factors.clone()));
        (seen, end.unwrap())
    };
    let (kept, record) = factors(&mut Keeps(Vec::new(), false));
    let (anew, whole) = factors(policy("mnn-int8").as_mut());
    // Before the first iteration there are none; the first computes them, and then they stay.
    assert!(kept[0].iter().all(Option::is_none) && kept[1].iter().any(Option::is_some));
    assert!(kept[1] == kept[2] && kept[2] == kept[3]);
    assert!(anew[1] == kept[1] && anew[2] != anew[3]);
    // Scales that are not recomputed take no time.
    assert!(record.iterations[3] < whole.iterations[3] && record.iterations[0] == whole.iterations[0]);
}

#[test]
fn changes_that_data_show_decide_when_scales_are_taken_anew() {
    let class = Classroom::in_integers("lenet5", 8);
    let job = Job { iterations: 40, observe: OBSERVED, ..Job::plain(&class.graph, 8) };
    let mut factors = Vec::new();
    let learned = class.train_seen(&dsp(), &job, policy("mandheling").as_mut(), 40, |record| {
        factors.push(record.factors.clone());
    });
    let learned = learned.unwrap();
    // The first 16 batches, the length of the history, recompute all scales; then unchanging ones are left alone.
    let (first, last) = (learned.iterations[15], learned.iterations[39]);
    assert!(last < first, "{last} after {first}");
    // Given the factors, a run without data repeats the events.
    let told = simulate(&dsp(), &Job { factors: &factors, ..job.clone() }, policy("mandheling").as_mut()).unwrap();
    assert_eq!(told.iterations, learned.iterations);
    assert_eq!(format!("{:?}", told.timeline), format!("{:?}", learned.timeline));
    let drawn = simulate(&dsp(), &job, policy("mandheling").as_mut()).unwrap();
    assert_ne!(drawn.iterations, learned.iterations);
}
