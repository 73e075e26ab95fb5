//! Runs that carry data: results do not depend on how tensors are stored, except for the precision lost by storing
//! them.

mod classroom;
mod integers;
mod statistics;

use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::{Frequency, load, load_stack};
use haversack_policies::policy::ComputingBudget;
use haversack_policies::registry;
use haversack_policies::{
    Form, Holding, IterationPlan, MemoryView, Policy, PolicyError, Relief, Schedule, Setting, Want,
};
use haversack_training::{Budgets, GivesBack, Job, Machine, Observe, Record, RunError, Trains, simulate};
use haversack_workloads::{Phase, Role, TensorId};

use self::classroom::Classroom;
use crate::common::{on, policy};
use crate::support::phone_cpu;
use crate::support::phones::{self, MIB, app, ends, ms};

const OBSERVED: Observe = Observe { timeline: true, phone: false, peak: false, operators: false, stored: false };

fn cpu() -> Machine {
    on("server-core", "pytorch-cpu")
}

/// A machine on which DAF's packing shares work between processors.
fn gpu() -> Machine {
    on("jetson-agx-xavier", "pytorch-cuda")
}

/// The losses of three updates under a policy, after checking that a run without data has the same events.
fn losses(class: &Classroom, machine: &Machine, id: &str, budgets: Budgets) -> (Vec<f64>, Record) {
    let job = Job { budgets, iterations: 3, ..Job::plain(&class.graph, 8) };
    let (losses, record) = class.train(machine, &job, policy(id).as_mut(), 3).unwrap();
    let shapes = simulate(machine, &job, policy(id).as_mut()).unwrap();
    assert_eq!((&record.iterations, record.peak_memory), (&shapes.iterations, shapes.peak_memory), "{id}");
    (losses, record)
}

/// Memory of `original`, less `percent` of the growth above weights and samples.
fn less(class: &Classroom, percent: u64) -> Budgets {
    let whole = simulate(&cpu(), &Job::plain(&class.graph, 8), policy("original").as_mut()).unwrap();
    let memory = Bytes(whole.peak_memory.0 - whole.peak_growth.0 * percent / 100);
    Budgets { memory: Some(memory), ..Budgets::default() }
}

#[test]
fn original_computes_what_a_plain_loop_does_to_the_bit() {
    for model in ["lenet5", "resnet8-cifar"] {
        let class = Classroom::new(model, 8);
        let (losses, _) = losses(&class, &cpu(), "original", Budgets::default());
        assert_eq!(losses, class.plain(3), "{model}");
        assert!(losses[2] < losses[0], "{model}: {losses:?}");
    }
}

#[test]
fn what_is_computed_again_is_the_same_to_the_bit() {
    let class = Classroom::new("resnet8-cifar", 8);
    let plain = class.plain(3);
    // The first drops even if memory is not short.
    for (id, percent) in [("sgc", 0), ("dgc", 12), ("dtr", 12)] {
        let (losses, record) = losses(&class, &cpu(), id, less(&class, percent));
        assert!(record.recomputed > 0, "{id}");
        assert_eq!(losses, plain, "{id}");
    }
}

#[test]
fn running_averages_move_once_however_often_a_normalisation_is_computed() {
    let class = Classroom::new("resnet8-cifar", 8);
    let (_, plain) = class.plain_to(2);
    let ended = class.train_to(&cpu(), &Job::plain(&class.graph, 8), policy("sgc").as_mut(), 2);
    let mut seen = 0;
    for (id, tensor) in (0..).zip(&class.graph.tensors).filter(|(_, tensor)| tensor.role == Role::Buffer) {
        assert_eq!(plain.values(id), ended.values(id), "{}", tensor.name);
        seen += 1;
    }
    // Nine normalisations, two of them on a shortcut, have a mean and a variance each.
    assert_eq!(seen, 18);
}

#[test]
fn micro_batches_add_up_to_the_gradient_of_the_mini_batch() {
    // Without normalisation the mean over a mini-batch is that over its parts, but for the order of additions.
    let class = Classroom::new("lenet5", 8);
    let plain = class.plain(3);
    for id in ["sga", "dga"] {
        let (losses, record) = losses(&class, &cpu(), id, less(&class, 30));
        assert!(record.micro_batches.len() > 1, "{id}: {:?}", record.micro_batches);
        for (found, plain) in losses.iter().zip(&plain) {
            assert!((found - plain).abs() < 1e-4 * plain, "{id}: {losses:?} for {plain:?}");
        }
    }
}

#[test]
fn fewer_bits_change_what_is_learned_a_little_and_no_event() {
    let class = Classroom::new("resnet8-cifar", 8);
    let plain = class.plain(3);
    for id in ["actnn", "gact", "daf"] {
        let (losses, _) = losses(&class, &gpu(), id, Budgets::default());
        // The first forward pass reads nothing that was stored.
        assert_eq!(losses[0], plain[0], "{id}");
        let off = (losses[2] - plain[2]).abs() / plain[2];
        assert!(off > 0.0 && off < 0.2, "{id}: {losses:?} for {plain:?}");
    }
}

/// Checks that the simulated size of an iteration's buffers is right within a tenth. The memory budget is `original`'s
/// peak less `memory_less` percent of its growth; the time budget is `time_left` percent of its time.
fn buffers_agree(class: &Classroom, machine: &Machine, id: &str, memory_less: u64, time_left: u64) {
    let whole = Job::plain(&class.graph, 128);
    let all = simulate(machine, &whole, policy("original").as_mut()).unwrap();
    let memory = Bytes(all.peak_memory.0 - all.peak_growth.0 * memory_less / 100);
    let budgets = Budgets {
        memory: (memory_less > 0).then_some(memory),
        time: (time_left < 100).then_some(Nanos(all.iterations[0].0 * time_left / 100)),
        ..Budgets::default()
    };
    let job = Job { budgets, ..whole };
    let (_, record, real) = class.train_counted(machine, &job, policy(id).as_mut(), 1).unwrap();
    let said = record.peak_memory.0 as f64;
    assert!((real as f64 / said - 1.0).abs() < 0.1, "{id}: {real} bytes for {said}");
    assert!(memory_less == 0 || record.peak_memory <= memory, "{id}: {said} bytes for {memory:?}");
}

#[test]
fn a_plain_loop_learns_from_what_a_store_gives_back_what_the_executor_does() {
    let class = Classroom::new("resnet8-cifar", 8);
    let observe = Observe { stored: true, ..Observe::default() };
    // DAF's bits for all, rounded to the nearest; the codec for tensors that do not fit three tenths less memory.
    let codec = [("recomputation".to_owned(), "off".to_owned())];
    for (machine, id, set, percent) in
        [(cpu(), "daf", &codec[..0], 0), (phone("mnn-2-eager"), "fedhybrid", &codec[..], 30)]
    {
        let policy = |id: &str| registry::build(id, if id == "original" { &[] } else { set }).unwrap();
        let whole = simulate(&machine, &Job::plain(&class.graph, 8), policy("original").as_mut()).unwrap();
        let memory = Bytes(whole.peak_memory.0 - whole.peak_growth.0 * percent / 100);
        let budgets = Budgets { memory: (percent > 0).then_some(memory), ..Budgets::default() };
        let job = Job { budgets, observe, ..Job::plain(&class.graph, 8) };
        let stored = simulate(&machine, &job, policy(id).as_mut()).unwrap().stored.unwrap();
        let store = GivesBack::of(stored).unwrap_or_else(|| panic!("{id}: all comes back as it was"));
        // The second loss is that of weights learned from restored values; bits of later updates follow importances.
        let (losses, _) = class.train(&machine, &job, policy(id).as_mut(), 2).unwrap();
        assert_eq!(class.plain_from(&store, 2), losses, "{id}");
        assert_ne!(class.plain(2), losses, "{id}");
    }
}

#[test]
fn what_comes_back_as_it_was_is_no_store() {
    let class = Classroom::new("lenet5", 8);
    let job = Job { observe: Observe { stored: true, ..Observe::default() }, ..Job::plain(&class.graph, 8) };
    let stored = simulate(&cpu(), &job, policy("original").as_mut()).unwrap().stored.unwrap();
    assert!(stored.tensors.is_empty() && GivesBack::of(stored).is_none());
    // Nothing is recorded unless requested.
    assert_eq!(simulate(&cpu(), &Job::plain(&class.graph, 8), policy("original").as_mut()).unwrap().stored, None);
}

#[test]
fn buffers_take_what_the_simulator_says_within_a_tenth() {
    let class = Classroom::new("resnet8-cifar", 128);
    for id in ["original", "sgc", "actnn", "gact", "daf", "fixed8"] {
        buffers_agree(&class, &cpu(), id, 0, 100);
    }
    for id in ["sga", "dgc", "dga", "sage", "dtr"] {
        buffers_agree(&class, &cpu(), id, 30, 100);
    }
    buffers_agree(&class, &cpu(), "elastictrainer", 0, 60);
    for id in ["melon", "capuchin", "fedhybrid"] {
        buffers_agree(&class, &phone("mnn-2-eager"), id, 30, 100);
    }
}

/// A phone's cores under a stack, with flash, and a codec if the stack has one.
fn phone(stack: &str) -> Machine {
    let (device, stack) = (load("galaxy-s10").unwrap(), load_stack(stack).unwrap());
    Machine::new(device, stack, Trains::Cpu, None, Frequency::default()).unwrap()
}

#[test]
fn a_process_that_was_ended_goes_on_from_the_update_before() {
    let class = Classroom::new("resnet8-cifar", 8);
    let plain = class.plain(3);
    let alone = Job { iterations: 2, ..Job::plain(&class.graph, 8) };
    let machine = phone_cpu();
    for (id, budget) in [("original", 100), ("sga", 60)] {
        // A game that leaves the trainer no room comes in the middle of the second iteration, and ends while another
        // process starts.
        let simulated = simulate(&machine, &alone, policy("original").as_mut()).unwrap();
        let memory = Bytes(simulated.peak_memory.0 * budget / 100);
        let alone = Job { budgets: Budgets { memory: Some(memory), ..Budgets::default() }, ..alone.clone() };
        let [first, second] = simulate(&machine, &alone, policy(id).as_mut()).unwrap().iterations[..] else { panic!() };
        let ram = 4 + memory.0.div_ceil(MIB);
        let mut phone = phones::phone(ram, 0);
        let at = first + Nanos(second.0 / 2);
        phone.apps = vec![app(at, "game", 0, ram - 4), ends(at + ms(100), "game")];
        let job = Job { phone: Some(&phone), ..alone };
        let (losses, record) = class.train(&machine, &job, policy(id).as_mut(), 3).unwrap();
        let kills = record.phone.as_ref().map(|phone| phone.kills.len());
        assert_eq!(kills, Some(1), "{id}");
        let parts = class.train(&machine, &Job { phone: None, ..job.clone() }, policy(id).as_mut(), 3).unwrap().0;
        assert_eq!(losses, parts, "{id}");
        assert!(id != "original" || losses == plain);
    }
}

/// Stores every saved tensor that it can in one form.
struct PutsAway(Holding);

impl Policy for PutsAway {
    fn hold(&mut self, tensor: TensorId, memory: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        Ok(if memory.candidates.contains(tensor) { self.0 } else { Holding::Keep })
    }
}

#[test]
fn what_was_on_flash_comes_back_to_the_bit() {
    let class = Classroom::new("lenet5", 8);
    let job = Job { iterations: 3, ..Job::plain(&class.graph, 8) };
    let machine = phone("mnn");
    let (losses, record) = class.train(&machine, &job, &mut PutsAway(Holding::Swap), 3).unwrap();
    assert!(record.breakdown.swapping > Nanos::ZERO);
    assert_eq!(losses, class.plain(3));
}

#[test]
fn what_was_compressed_comes_back_within_its_bound() {
    let class = Classroom::new("lenet5", 8);
    let job = Job { iterations: 3, ..Job::plain(&class.graph, 8) };
    let (losses, record) = class.train(&phone("mnn-2"), &job, &mut PutsAway(Holding::Compress), 3).unwrap();
    assert!(record.breakdown.compression > Nanos::ZERO);
    let plain = class.plain(3);
    assert_eq!(losses[0], plain[0]);
    let off = (losses[2] - plain[2]).abs() / plain[2];
    assert!(off > 0.0 && off < 0.05, "{losses:?} for {plain:?}");
}

/// Continues with fewer samples once backward has written a gradient of a weight.
struct StartsAgain {
    done: bool,
    parts: u64,
}

impl Policy for StartsAgain {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        Ok(Schedule {
            computing_budget: Some(ComputingBudget::Percent(1)),
            ..Schedule::plain(setting.batch / self.parts)
        })
    }

    fn begin_iteration(&mut self, _plan: &mut IterationPlan) -> Result<(), PolicyError> {
        self.done = false;
        Ok(())
    }

    fn relieve(&mut self, _want: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        let written = |id: usize| memory.graph.tensors[id].role == Role::ParameterGradient;
        let any = (0..memory.tensors.len()).any(|id| written(id) && memory.tensors[id].form == Form::Whole);
        // In the last part: earlier ones have added to the same gradients.
        let last = memory.phase == Phase::Backward && any && !std::mem::replace(&mut self.done, true);
        Ok(if last { vec![Relief::ShrinkMicroBatch(memory.micro_batch / 2)] } else { Vec::new() })
    }
}

#[test]
fn a_part_that_starts_again_has_added_nothing_to_gradients() {
    let class = Classroom::new("lenet5", 8);
    let plain = class.plain(3);
    for parts in [1, 2] {
        // A hundredth of the budget less weights is below the use after any operator: the policy is always called.
        let budgets = Budgets { memory: Some(Bytes(10 << 20)), ..Budgets::default() };
        let job = Job { budgets, iterations: 3, ..Job::plain(&class.graph, 8) };
        let mut policy = StartsAgain { done: false, parts };
        let (losses, record) = class.train(&cpu(), &job, &mut policy, 3).unwrap();
        assert!(record.breakdown.discarded > Nanos::ZERO, "{parts}");
        for (found, plain) in losses.iter().zip(&plain) {
            assert!((found - plain).abs() < 1e-4 * plain, "{parts}: {losses:?} for {plain:?}");
        }
    }
}

#[test]
fn a_value_that_is_not_finite_ends_the_run_and_names_its_layer() {
    // The first update makes weights so large that no product is finite.
    let class = Classroom::new("lenet5", 8).learning_at(1e30);
    for id in ["original", "actnn"] {
        let job = Job { iterations: 3, ..Job::plain(&class.graph, 8) };
        let failed = class.train(&gpu(), &job, policy(id).as_mut(), 3).unwrap_err();
        let RunError::Diverged { update, layer } = &failed else { panic!("{id}: {failed}") };
        assert!(*update > 0, "{id}: {failed}");
        assert!(class.graph.nodes.iter().any(|node| node.name == *layer), "{id}: {failed}");
    }
}

#[test]
fn a_run_without_data_that_is_told_what_was_measured_repeats_its_events() {
    let class = Classroom::new("resnet8-cifar", 8);
    // Two fifths of the size of all saved tensors: bits are distributed by importance, measured from data.
    let whole = class.graph.saved().into_iter().map(|tensor| class.graph.tensor(tensor).bytes.at(8)).sum::<u64>();
    let budgets = Budgets { activations: Some(Bytes(whole * 2 / 5)), ..Budgets::default() };
    let job = Job { budgets, iterations: 3, observe: OBSERVED, ..Job::plain(&class.graph, 8) };
    let mut measured = Vec::new();
    let learned =
        class.train_seen(&gpu(), &job, policy("daf").as_mut(), 3, |record| measured.push(record.measured.clone()));
    let learned = learned.unwrap();
    assert!(measured[0].is_empty() && measured[1] != measured[2] && measured[2].iter().any(|&worth| worth > 0.0));

    let told = simulate(&gpu(), &Job { measured: &measured, ..job.clone() }, policy("daf").as_mut()).unwrap();
    let prior = simulate(&gpu(), &job, policy("daf").as_mut()).unwrap();
    let events = |record: &Record| format!("{:?}", record.timeline);
    assert_eq!(events(&told), events(&learned));
    // Without it the policy uses its prior, and gives bits to others.
    assert_ne!(events(&prior), events(&learned));
}
