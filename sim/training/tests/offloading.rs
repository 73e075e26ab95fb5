//! The DSP beside the CPU: what crosses, what is prepared, what it draws, and how hot it gets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use haversack_devices::units::{Bytes, Celsius, Nanos};
use haversack_devices::work::Precision;
use haversack_devices::{CoreSelection, Frequency, load, load_stack};
use haversack_policies::registry;
use haversack_training::{Job, Machine, Observe, Record, RunError, Trains, simulate};
use haversack_workloads::autograd::{EagerRules, Optimiser, differentiate};
use haversack_workloads::{TrainingGraph, mixed, models};

use common::job;

fn integers(model: &str) -> TrainingGraph {
    let network = models::build(model, None).unwrap();
    mixed::rewrite(&network, mixed::algorithm("niti").unwrap(), Optimiser::Sgd).unwrap()
}

fn machine(device: &str, stack: &str, trains: Trains, frequency: Frequency) -> Machine {
    let cores: Option<CoreSelection> = (trains != Trains::Gpu).then(|| "big:2".parse().unwrap());
    Machine::new(load(device).unwrap(), load_stack(stack).unwrap(), trains, cores, frequency).unwrap()
}

fn run(machine: &Machine, job: &Job<'_>, policy: &str, set: &[(&str, &str)]) -> Result<Record, RunError> {
    let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    simulate(machine, job, registry::build(policy, &set).unwrap().as_mut())
}

#[test]
fn the_timelines_power_integrates_to_the_joules_of_the_record() {
    let graph = integers("vgg11-cifar");
    let observe = Observe { timeline: true, ..Observe::default() };
    let cases = [
        ("xiaomi-10", "mandheling", Trains::CpuAndDsp, "mandheling"),
        ("xiaomi-11-pro", "mnn", Trains::Cpu, "mnn-int8"),
        ("xiaomi-11-pro", "mnn", Trains::Gpu, "mnn-fp32-gpu"),
    ];
    for (device, stack, trains, policy) in cases {
        let machine = machine(device, stack, trains, Frequency::Highest);
        let record = run(&machine, &Job { observe, iterations: 2, ..job(&graph, 8) }, policy, &[]).unwrap();
        let integrated = record.timeline.as_ref().unwrap().energy(record.iteration);
        assert!(record.energy.0 > 0.0, "{policy}");
        assert!((integrated.0 / record.energy.0 - 1.0).abs() < 1e-6, "{policy}: {integrated} of {}", record.energy);
        assert_eq!(record.breakdown.total(), record.iteration, "{policy}");
    }
}

#[test]
fn subgraphs_are_prepared_once_where_they_are_used_again() {
    let graph = integers("vgg11-cifar");
    let machine = machine("xiaomi-10", "mandheling", Trains::CpuAndDsp, Frequency::Highest);
    let preparation = |iterations: u32, reuse: &str| {
        let set = [("reuse", reuse), ("rescaling", "adaptive")];
        let job = Job { iterations, ..job(&graph, 8) };
        run(&machine, &job, "mandheling", &set).unwrap().breakdown.preparation
    };
    // The first batch prepares every subgraph, each for the stack's 102.8 ms; later ones none.
    let each = machine.dsp.as_ref().unwrap().stack.preparation.value;
    let first = preparation(1, "on");
    assert!(first >= each && first.0 % each.0 == 0, "{first}");
    assert_eq!(preparation(3, "on"), Nanos::ZERO);
    assert!(preparation(3, "off") >= each);
}

#[test]
fn rescaling_in_every_batch_crosses_more_than_rescaling_now_and_then() {
    let graph = integers("vgg11-cifar");
    let machine = machine("xiaomi-10", "mandheling", Trains::CpuAndDsp, Frequency::Highest);
    let crossing = |rescaling: &str| {
        let job = Job { iterations: 2, ..job(&graph, 8) };
        run(&machine, &job, "mandheling", &[("rescaling", rescaling)]).unwrap().breakdown.crossing
    };
    let (dynamic, adaptive) = (crossing("dynamic"), crossing("adaptive"));
    // 8 convolutions forward, 7 input gradients and the linear layer's cross to the CPU and back, 0.55 ms a call.
    assert!(dynamic > Nanos(2 * 16 * 550_000), "{dynamic}");
    // Half of the scales and more wait for their turn.
    assert!(dynamic > adaptive + Nanos(8 * 2 * 550_000), "{dynamic} {adaptive}");
}

#[test]
fn parts_of_a_gradient_cost_themselves_and_their_sums() {
    let graph = integers("vgg11-cifar");
    let machine = machine("xiaomi-10", "mandheling", Trains::CpuAndDsp, Frequency::Highest);
    let gradients = || (0..graph.nodes.len()).filter(|&id| graph.nodes[id].name.ends_with("weight_gradient"));
    let id = gradients().max_by_key(|&id| graph.nodes[id].work.flops.at(1)).unwrap();
    let cost = |samples, split| machine.dsp_cost(&graph, id, samples, Precision::Fp32, split).unwrap();
    // Two parts of four: twice the part, and one sum of the two.
    let (part, two) = (cost(4, 0), cost(8, 4));
    let sum = two.alone() - part.alone() - part.alone();
    assert!(sum > Nanos::ZERO && sum < part.alone(), "{sum} beside {}", part.alone());
    // Three parts have two sums.
    assert_eq!(cost(12, 4).alone(), part.alone() * 3 + sum * 2);
    assert_eq!(cost(8, 8).alone(), cost(8, 0).alone());
}

#[test]
fn heat_follows_power_and_the_governor_follows_load() {
    let graph = integers("vgg11-cifar");
    let job = Job { iterations: 6, ambient: Some(Celsius(25.0)), ..job(&graph, 8) };
    let cpu = machine("xiaomi-10", "mnn", Trains::Cpu, Frequency::Governor);
    let busy = run(&cpu, &job, "mnn-int8", &[]).unwrap();
    assert_eq!(busy.heat.len(), 6);
    assert!(busy.heat.windows(2).all(|pair| pair[0].die.0 < pair[1].die.0 && pair[0].at < pair[1].at));
    // Cores that never wait stay at their highest frequency; those that wait for the DSP sink.
    let highest = busy.heat[0].frequency.0;
    assert!(busy.heat.iter().all(|point| point.frequency.0 == highest));
    let dsp = machine("xiaomi-10", "mandheling", Trains::CpuAndDsp, Frequency::Governor);
    let waiting = run(&dsp, &Job { batch: 64, ..job.clone() }, "mandheling", &[]).unwrap();
    assert!(waiting.heat[5].frequency.0 < highest);
    let error = run(&cpu, &Job { ambient: Some(Celsius(95.0)), ..job.clone() }, "mnn-int8", &[]).unwrap_err();
    assert!(error.to_string().contains("does not start at 95.0 °C"), "{error}");
}

#[test]
fn a_gpu_addresses_its_share_of_the_memory() {
    let network = models::build("vgg19", None).unwrap();
    let graph = differentiate(&network, EagerRules::default()).unwrap();
    let gpu = machine("xiaomi-10", "mnn", Trains::Gpu, Frequency::Highest);
    // Half of 8 GiB.
    assert_eq!(gpu.addressable(), Some(Bytes(4 << 30)));
    let error = run(&gpu, &job(&graph, 64), "mnn-fp32-gpu", &[]).unwrap_err();
    assert!(matches!(error, RunError::OutOfMemory { budget: Bytes(budget), .. } if budget == 4 << 30), "{error}");
    assert_eq!(machine("xiaomi-10", "mnn", Trains::Cpu, Frequency::Highest).addressable(), None);
}

#[test]
fn mandheling_runs_mnns_operators_on_the_cpu() {
    let (own, mnn) = (load_stack("mandheling").unwrap(), load_stack("mnn").unwrap());
    let value = |stack: &haversack_devices::Stack, name: &str| {
        stack.entries().into_iter().find(|entry| entry.name == name).map(|entry| entry.value).unwrap()
    };
    for name in ["cpu.efficiency.convolution", "cpu.sweep_work", "cpu.product_traffic", "cpu.irregular_rate"] {
        assert_eq!(value(&own, name), value(&mnn, name), "{name}");
    }
}
