//! The DSP and the CPU: crossings, preparation, power and heat.

use haversack_devices::units::{Bytes, Celsius, Joules, Nanos};
use haversack_devices::work::{OperatorKind, Precision};
use haversack_devices::{CoreSelection, Frequency, load, load_stack};
use haversack_policies::policy::Offload;
use haversack_policies::{IterationPlan, Policy, PolicyError, Schedule, Setting, registry};
use haversack_training::{Budgets, Job, Machine, Observe, Record, RunError, SpanKind, Trains, simulate};
use haversack_workloads::autograd::{EagerRules, Optimiser, differentiate};
use haversack_workloads::training_graph::{Element, NodeWork, Tensor};
use haversack_workloads::{Extent, Phase, Role, TrainingGraph, mixed, models};

use crate::common::{job, share};

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
        ("xiaomi-10", "mandheling", Trains::CpuAndDsp, "mandheling", Frequency::Highest),
        ("xiaomi-10", "mandheling", Trains::CpuAndDsp, "mandheling", Frequency::Governor),
        ("xiaomi-11-pro", "mnn", Trains::Cpu, "mnn-int8", Frequency::Highest),
        ("xiaomi-11-pro", "mnn", Trains::Gpu, "mnn-fp32-gpu", Frequency::Highest),
    ];
    for (device, stack, trains, policy, frequency) in cases {
        let machine = machine(device, stack, trains, frequency);
        let record = run(&machine, &Job { observe, iterations: 2, ..job(&graph, 8) }, policy, &[]).unwrap();
        let steps = record.timeline.as_ref().unwrap().power();
        let ends = steps.iter().skip(1).map(|(time, _)| *time).chain([record.iteration]);
        let integrated: Joules = steps
            .iter()
            .zip(ends)
            .map(|((start, power), until)| *power * until.min(record.iteration).saturating_sub(*start))
            .sum();
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

/// A policy with another plan for the DSP.
struct Replanned<'a> {
    policy: Box<dyn Policy>,
    replan: &'a mut (dyn FnMut(&mut Offload) + Send),
}

impl Policy for Replanned<'_> {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let mut schedule = self.policy.prepare(setting)?;
        schedule.offload.as_mut().into_iter().for_each(&mut *self.replan);
        Ok(schedule)
    }

    fn begin_iteration(&mut self, plan: &mut IterationPlan) -> Result<(), PolicyError> {
        self.policy.begin_iteration(plan)
    }
}

#[test]
fn a_plan_is_no_worse_than_one_processor_alone_or_a_neighbouring_plan() {
    for (device, model, batch) in [
        ("xiaomi-10", "vgg16-cifar", 64),
        ("xiaomi-10", "lenet5", 32),
        ("xiaomi-10", "resnet18-cifar", 16),
        ("xiaomi-11-pro", "vgg11-cifar", 8),
        ("xiaomi-11-pro", "resnet34-cifar", 32),
    ] {
        let graph = integers(model);
        let machine = machine(device, "mandheling", Trains::CpuAndDsp, Frequency::Highest);
        let job = Job { iterations: 9, observe: Observe::default(), ..job(&graph, batch) };
        let takes = |replan: &mut (dyn FnMut(&mut Offload) + Send)| {
            let policy = registry::build("mandheling", &[]).unwrap();
            simulate(&machine, &job, &mut Replanned { policy, replan }).unwrap().iteration
        };
        let mut plan = Offload::default();
        let planned = takes(&mut |offload| plan = offload.clone());
        let on_dsp = |id: usize| machine.dsp_cost(&graph, id, batch, Precision::Fp32, 0).is_some();
        let moves = |id: &usize| graph.nodes[*id].work.launches > 0 && graph.nodes[*id].rescales.is_none();
        let mut others = vec![("the CPU alone".to_owned(), vec![false; graph.nodes.len()])];
        // Scales are recomputed on the CPU.
        let all = (0..graph.nodes.len()).map(|id| on_dsp(id) && graph.nodes[id].rescales.is_none());
        others.push(("all that the DSP has".to_owned(), all.collect()));
        // The first operator and the last of every run on the other side.
        let operators: Vec<usize> = (0..graph.nodes.len()).filter(moves).collect();
        for pair in operators.windows(2).filter(|pair| plan.on_dsp[pair[0]] != plan.on_dsp[pair[1]]) {
            for &id in pair.iter().filter(|&&id| on_dsp(id)) {
                let mut other = plan.on_dsp.clone();
                other[id] = !other[id];
                others.push((format!("{} on the other side", graph.nodes[id].name), other));
            }
        }
        for (name, on_dsp) in others {
            let other = takes(&mut |offload| offload.on_dsp.clone_from(&on_dsp));
            // A plan assumes the average turns of scales, which eight batches do not reach.
            assert!(
                planned.0 as f64 <= other.0 as f64 * 1.001,
                "{device}, {model}: {planned} as planned, {other} with {name}"
            );
        }
    }
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
    // The memory it needs can be computed nevertheless.
    let needed = run(&gpu.without_limit(), &job(&graph, 64), "mnn-fp32-gpu", &[]).unwrap();
    assert!(needed.peak_memory > Bytes(4 << 30), "{}", needed.peak_memory);
}

#[test]
fn mandheling_runs_mnns_products_on_the_cpu() {
    let (own, mnn) = (load_stack("mandheling").unwrap(), load_stack("mnn").unwrap());
    let value = |stack: &haversack_devices::Stack, name: &str| {
        stack.entries().into_iter().find(|entry| entry.name == name).map(|entry| entry.value).unwrap()
    };
    for name in ["cpu.efficiency.convolution", "cpu.efficiency.gemm"] {
        assert_eq!(value(&own, name), value(&mnn, name), "{name}");
    }
}

/// Runs and prepares its nodes as scripted.
struct Placed(Offload);

impl Policy for Placed {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        Ok(Schedule { offload: Some(self.0.clone()), ..Schedule::plain(setting.batch) })
    }
}

/// Nodes that read `inputs` and write one tensor of `bytes` each: tensor 0 is the samples, node n writes tensor n + 1.
fn chain(inputs: &[&[u32]], bytes: u64) -> TrainingGraph {
    let tensor =
        |name: &str, role| Tensor { element: Element::Whole, ..Tensor::new(name, Extent::per_sample(bytes), role) };
    let mut tensors = vec![tensor("samples", Role::Input)];
    tensors.extend(inputs.iter().map(|_| tensor("made", Role::Activation)));
    let work = NodeWork {
        flops: Extent::per_sample(bytes),
        dram: Extent::per_sample(2 * bytes),
        parallelism: Extent::per_sample(bytes),
        precision: Some(Precision::Int8),
        ..NodeWork::new(OperatorKind::ElementWise)
    };
    let node = |(id, inputs): (usize, &&[u32])| {
        haversack_testing::node(&format!("node {id}"), Phase::Forward, inputs, &[id as u32 + 1], work)
    };
    let nodes = inputs.iter().enumerate().map(node).collect();
    TrainingGraph { name: "chain".to_owned(), tensors, nodes }
}

fn place(graph: &TrainingGraph, on_dsp: &[u8], begins: &[usize], again: &[bool], iterations: u32) -> Record {
    place_at(Frequency::Highest, graph, on_dsp, begins, again, iterations)
}

fn place_at(
    frequency: Frequency,
    graph: &TrainingGraph,
    on_dsp: &[u8],
    begins: &[usize],
    again: &[bool],
    iterations: u32,
) -> Record {
    let machine = machine("xiaomi-10", "mandheling", Trains::CpuAndDsp, frequency);
    let mut policy = Placed(Offload {
        on_dsp: on_dsp.iter().map(|&on| on == 1).collect(),
        split: vec![0; on_dsp.len()],
        begins: (0..on_dsp.len()).map(|id| begins.contains(&id)).collect(),
        prepared_again: Some(again.to_vec()),
    });
    let record = simulate(&machine, &Job { iterations, ..job(graph, 8) }, &mut policy).unwrap();
    assert_eq!(record.breakdown.total(), record.iteration);
    record
}

#[test]
fn only_the_subgraphs_that_do_not_fit_are_prepared_again() {
    let machine = machine("xiaomi-10", "mandheling", Trains::CpuAndDsp, Frequency::Highest);
    let each = machine.dsp.as_ref().unwrap().stack.preparation.value;
    let graph = chain(&[&[0], &[1], &[2], &[3], &[4], &[5], &[6]], 1000);
    // Three subgraphs: nodes 1, 3 and 5 with 6.
    let prepared = |again: [bool; 3], iterations| {
        let record = place(&graph, &[0, 1, 0, 1, 0, 1, 1], &[1, 3, 5], &again, iterations);
        record.breakdown.preparation
    };
    for again in 0..8 {
        let again = [again & 1 > 0, again & 2 > 0, again & 4 > 0];
        let count = again.iter().filter(|&&again| again).count() as u64;
        // In the first iteration all are prepared; later those that are named, each when it begins.
        assert_eq!(prepared(again, 1), each * 3, "{again:?}");
        assert_eq!(prepared(again, 2), each * count, "{again:?}");
        assert_eq!(prepared(again, 3), each * count, "{again:?}");
    }
    // The spans identify it: the second of two subgraphs that are otherwise equal is after node 2.
    let record = place(&graph, &[0, 1, 0, 1, 0, 1, 1], &[1, 3, 5], &[false, true, false], 2);
    let spans = &record.timeline.as_ref().unwrap().spans;
    let prepares: Vec<u32> =
        spans.iter().filter(|span| span.kind == SpanKind::Preparation).map(|span| span.node).collect();
    assert_eq!(prepares, [3]);
}

#[test]
fn what_was_copied_is_on_both_sides() {
    let machine = machine("xiaomi-10", "mandheling", Trains::CpuAndDsp, Frequency::Highest);
    let bytes = 125_000;
    // The DSP reads node 0's output, made on the CPU, twice, in nodes 1 and 2; the CPU reads node 2's output twice, in
    // 3 and 4; node 5 reads both on the DSP, and node 6 reads node 0's output on the CPU.
    let graph = chain(&[&[0], &[1], &[1, 2], &[3], &[3, 4], &[1, 3], &[1]], bytes);
    let record = place(&graph, &[0, 1, 1, 0, 0, 1, 0], &[1, 5], &[true, true], 2);
    // Four changes of processors, two of them with a copy of a megabyte; the others find both sides up to date.
    let expected = machine.crossing(Bytes(8 * bytes)) * 2 + machine.crossing(Bytes::ZERO) * 2;
    assert_eq!(record.breakdown.crossing, expected);
    assert!(machine.crossing(Bytes(8 * bytes)) > machine.crossing(Bytes::ZERO));
}

#[test]
fn cores_that_waited_for_the_dsp_begin_slowly_and_rise_while_they_work() {
    // The DSP works long in nodes 0 to 5, and the CPU in node 6.
    let graph = chain(&[&[0], &[1], &[2], &[3], &[4], &[5], &[6]], 50_000_000);
    let work = |frequency| {
        let record = place_at(frequency, &graph, &[1, 1, 1, 1, 1, 1, 0], &[0], &[false], 2);
        let spans = record.timeline.unwrap().spans;
        // Including the crossing before it.
        let node = |id| spans.iter().filter(|span| span.node == id).map(|span| span.duration).sum::<Nanos>();
        (node(0), node(6))
    };
    let (on_dsp, highest) = work(Frequency::Highest);
    let ((_, governed), (_, lowest)) = (work(Frequency::Governor), work(Frequency::Lowest));
    // The DSP does not depend on the host's frequency, and takes longer than the kernel's averaging window.
    assert!(on_dsp > Nanos(32_000_000) && highest > Nanos(32_000_000), "{on_dsp} {highest}");
    assert!(highest < governed && governed < lowest, "{highest} {governed} {lowest}");
}

#[test]
fn heat_limits_the_frequency_that_load_asks_for() {
    let graph = integers("vgg11-cifar");
    let busy = |trip: f64| {
        let mut device = load("xiaomi-10").unwrap();
        device.set("thermal.trip", trip).unwrap();
        let stack = load_stack("mnn").unwrap();
        let cores = Some("big:2".parse().unwrap());
        let machine = Machine::new(device, stack, Trains::Cpu, cores, Frequency::Governor).unwrap();
        let job = Job { iterations: 8, ambient: Some(Celsius(25.0)), ..job(&graph, 64) };
        run(&machine, &job, "mnn-int8", &[]).unwrap()
    };
    let (free, limited) = (busy(80.0), busy(28.0));
    let highest = free.heat[0].frequency;
    assert!(free.heat.iter().all(|point| point.frequency == highest));
    // An operating point a second less from when the die is above 28 °C and gets hotter.
    let after = limited.heat.iter().position(|point| point.die.0 > 28.0).unwrap();
    let frequencies: Vec<f64> = limited.heat.iter().map(|point| point.frequency.0).collect();
    assert!(frequencies[..=after].iter().all(|&frequency| frequency == highest.0), "{frequencies:?}");
    assert!(frequencies[after + 1..].iter().all(|&frequency| frequency < highest.0), "{frequencies:?}");
    assert!(frequencies[7] < frequencies[after + 1] && limited.iteration > free.iteration, "{frequencies:?}");
    assert!(limited.heat[7].die.0 < free.heat[7].die.0);
}

#[test]
fn a_cpu_works_while_it_launches_and_a_gpu_does_not() {
    // Seven operators, each a millisecond longer: during the added time power is drawn by the CPU at work, or by a
    // waiting GPU and the rest of the chip.
    let graph = chain(&[&[0], &[1], &[2], &[3], &[4], &[5], &[6]], 1000);
    for trains in [Trains::Cpu, Trains::Gpu] {
        let energy = |overhead: f64| {
            let mut stack = load_stack("mnn").unwrap();
            let base = machine("xiaomi-11-pro", "mnn", trains, Frequency::Highest);
            let name = if trains == Trains::Cpu { "cpu.operator_overhead" } else { "gpu.operator_overhead" };
            stack.set(name, overhead).unwrap();
            let machine = base.under(base.device.clone(), stack).unwrap();
            let record = simulate(&machine, &job(&graph, 8), &mut Placed(Offload::default())).unwrap();
            (record.energy.0, record.iteration.seconds(), machine)
        };
        let ((less, short, machine), (more, long, _)) = (energy(1_000.0), energy(2_000.0));
        assert!((long - short - 7e-3).abs() < 1e-9, "{short} {long}");
        let power = machine.device.power(machine.cores(), &machine.stack);
        let at_work = if trains == Trains::Cpu {
            // One core works, and those that wait for it spin.
            let spinning = machine.stack.cpu().unwrap().spinning_power.as_ref().unwrap().value.0;
            let cores = machine.cores().unwrap().cores().len() as f64;
            power.cpu * ((1.0 + (cores - 1.0) * spinning) / cores) + power.gpu_idle
        } else {
            power.gpu_idle
        };
        let drawn = (at_work + power.rest).0 * 7e-3;
        assert!(((more - less) / drawn - 1.0).abs() < 1e-6, "{trains:?}: {} of {drawn} J", more - less);
    }
}

#[test]
fn with_relief_the_dsp_trains_within_less_memory() {
    let machine = machine("xiaomi-10", "mandheling", Trains::CpuAndDsp, Frequency::Highest);
    for (model, batch, budgets) in [("resnet18-cifar", 32, [100, 80]), ("mobilenetv2", 16, [70, 45])] {
        let graph = integers(model);
        let twice = Job { iterations: 2, ..job(&graph, batch) };
        let whole = run(&machine, &twice, "mandheling", &[]).unwrap();
        let mut before = whole.iteration;
        for percent in budgets {
            let budgets = Budgets { memory: Some(share(whole.peak_memory, percent)), ..Budgets::default() };
            let within = Job { budgets, ..twice.clone() };
            let shipped = run(&machine, &within, "mandheling", &[]);
            assert_eq!(shipped.is_ok(), percent == 100, "{model}: nothing gives way as it is shipped");
            let record = run(&machine, &within, "mandheling", &[("relief", "on")]).unwrap();
            assert!(record.iteration >= before.min(whole.iteration));
            before = record.iteration;
        }
    }
}
