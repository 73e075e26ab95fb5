//! `haversack calibrate host`: this machine as a device, its kernels as a stack, and real training steps on it predicted by
//! both.
//!
//! Two files are written: the device, and the stack of the kernels that `train` computes by. A rate of the stack is that
//! of a kind of operator, timed one by one in networks made for that ([`operators`]); then steps of other networks are timed as
//! a whole, and simulated by the two files as they were written. All of it takes turns, round by round, by the thread's own
//! clock, so that a machine that is slower for a while is so for both.

mod machine;
mod operators;
mod rates;
mod timing;

use std::num::NonZeroUsize;
use std::path::Path;

use haversack_devices::units::Nanos;
use haversack_devices::work::{OperatorKind, Work};
use haversack_devices::{ClusterClass, CoreSelection, Device, InstructionSet, Stack};
use haversack_kernels::Isa;
use haversack_reports::write_atomically;
use haversack_workloads::models;
use serde_json::{Value, json};

use self::machine::Machine;
use self::rates::{Rates, Timed};
use self::timing::Case;
use super::probe::writer::{DeviceFile, How, Section, cluster_of};
use super::probe::{self, Asked};
use crate::cache::Cache;
use crate::error::CommandError;
use crate::output::{Format, note, print, print_json};
use crate::progress::{Amount, Progress};
use crate::run::Plan;
use crate::scenario::Scenario;

/// How often everything is timed unless somebody says otherwise.
pub(super) const ROUNDS: &str = "15";

/// What is predicted: a network, by no operator of which anything was fitted.
const NETWORKS: [&str; 8] = [
    "logistic",
    "mlp",
    "lenet5",
    "resnet8-cifar",
    "mobilenetv2-slim",
    "vgg-small",
    "transformer1",
    "transformer2-lora",
];
/// Samples of a mini-batch.
const BATCHES: [u64; 2] = [16, 64];

/// Positions that the kernels of convolutions compute side by side.
const FRAME: u64 = haversack_kernels::simd::LANES as u64;

/// A step that was timed, and what was simulated of it.
struct Row {
    network: &'static str,
    batch: u64,
    measured: f64,
    simulated: f64,
}

impl Row {
    fn error(&self) -> f64 {
        self.simulated / self.measured - 1.0
    }
}

/// Measures, writes the two files, and prints how near steps are that were simulated by them.
///
/// # Errors
/// A name or a file that cannot be had, a base without a CPU, a kernel that fails.
pub(super) fn run(asked: &Asked<'_>, rounds: NonZeroUsize) -> Result<(), CommandError> {
    let path = probe::path_of(asked.name, asked.out)?;
    let stack_path = path.with_file_name(format!("{}-kernels.toml", stem(&path)));
    probe::check_free(&path, asked.overwrite)?;
    probe::check_free(&stack_path, asked.overwrite)?;
    let base = haversack_devices::load(asked.base.unwrap_or(own_base()))?;
    if base.constants.cpu.is_empty() {
        let message = format!("--base {}: no CPU is described there to take from what cannot be measured", base.id);
        return Err(CommandError::input(message));
    }
    if cfg!(debug_assertions) {
        note(&"this program was built without optimisation: build it with --release before believing a rate");
    }
    let isa = Isa::chosen().map_err(CommandError::input)?;
    let machine = Machine::measure(isa);
    let (timed, steps) = time(rounds)?;
    let rates = Rates::of(&timed, computed);
    let peak = rates.peak();
    write_stack(&stack_path, asked.name, &rates, &machine, peak)?;
    let file = device(asked.name, &base, &machine, peak, &stack_path);
    let head = [
        format!("{}: a device file written by haversack calibrate host.", asked.name),
        format!("What cannot be measured from within is taken from {} and counts as a guess.", base.id),
    ];
    probe::write(&path, &file.text(&head))?;
    let rows = simulate(&path, steps)?;
    report(asked, &path, &stack_path, &file, &rows)
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

const fn own_base() -> &'static str {
    if cfg!(target_arch = "aarch64") { "galaxy-s22" } else { "server-core" }
}

/// A network's name, its batch, and the seconds of a step.
type Step = (&'static str, u64, f64);

/// Times the operators of the bench and the steps of the networks in turn, on one thread.
fn time(rounds: NonZeroUsize) -> Result<(Vec<Timed>, Vec<Step>), CommandError> {
    let builder = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    builder.map_err(|error| CommandError::failed(format!("cannot start a thread: {error}")))?.install(|| {
        let mut benches = Vec::new();
        for bench in operators::all()? {
            for batch in operators::BATCHES {
                benches.push(Case::new(&bench.network, &bench.input, 2, batch)?);
            }
        }
        let mut networks = Vec::new();
        for id in NETWORKS {
            let (model, _) = models::named(id)?;
            let network = models::build(id, None)?;
            for batch in BATCHES {
                let case = Case::new(&network, model.sample.own(), model.classes.unwrap_or(2), batch)?;
                networks.push((id, batch, case));
            }
        }
        let all = rounds.get() as u64 * (benches.len() + networks.len()) as u64;
        let bar = Progress::new(Amount::Share("measured"), all, 0);
        for _ in 0..rounds.get() {
            // One of either kind after the other, so that both meet a machine that is slow for a while.
            let (mut operators, mut steps) = (benches.iter_mut(), networks.iter_mut().map(|(_, _, case)| case));
            loop {
                let [operator, step] = [operators.next(), steps.next()];
                if operator.is_none() && step.is_none() {
                    break;
                }
                bar.inc(u64::from(operator.is_some()) + u64::from(step.is_some()));
                operator.map_or(Ok(()), Case::watch)?;
                step.map_or(Ok(()), Case::step)?;
            }
        }
        bar.finish();
        let timed = benches.iter().flat_map(Case::operators).collect();
        Ok((timed, networks.iter().map(|(id, batch, case)| (*id, *batch, case.seconds())).collect()))
    })
}

/// How many times its arithmetic a convolution of ours computes, whose maps lie in frames.
fn computed(work: &Work) -> f64 {
    haversack_devices::processor::framed(work, FRAME)
}

/// Writes the stack of the kernels, over that of an eager framework.
fn write_stack(path: &Path, name: &str, rates: &Rates, machine: &Machine, peak: f64) -> Result<(), CommandError> {
    const SOURCE: &str = "haversack calibrate host";
    let measured = How::measured(SOURCE);
    let mut top = Section::new("");
    top.text("base", "pytorch-cpu");
    top.text("name", &format!("haversack's own kernels on {name}"));
    top.text("remark", "Rates of single operators, by one thread, at sizes of small networks.");
    let mut cpu = Section::new("[cpu]");
    cpu.set("operator_overhead", (rates.call * 1e6, "us"), &measured.noting("operators of next to nothing"));
    let frame = How::said(SOURCE).noting("lanes of the kernels' vectors");
    cpu.set("frame", (FRAME as f64, "count"), &frame);
    let fitted = How::fitted(SOURCE).noting("least squares over the times of single products, by operations and bytes");
    for (key, kind) in [("convolution_operands", OperatorKind::Convolution), ("gemm_operands", OperatorKind::Gemm)] {
        let rate = rates.of_kind(kind).operands;
        if rate.is_finite() {
            cpu.set(key, (rate / machine.clock, "B/cycle"), &fitted);
        }
    }
    let mut efficiency = Section::new("[cpu.efficiency]");
    for &kind in OperatorKind::ALL {
        let rate = rates.of_kind(kind).operations;
        if rate.is_finite() {
            let how = if kind.is_dense_product() { &fitted } else { &measured };
            efficiency.set(kind.name(), ((rate / peak).min(1.0), "fraction"), how);
        }
    }
    let head = [format!("{}: a software stack written by haversack calibrate host.", stem(path))];
    let file = DeviceFile { top, clusters: Vec::new(), others: vec![cpu, efficiency] };
    let text = file.text(&head);
    Stack::parse(&stem(path), &path.display().to_string(), &text)
        .map_err(|error| CommandError::failed(format!("what was measured makes no stack: {error}")))?;
    Ok(write_atomically(path, text.as_bytes())?)
}

/// The device's file.
fn device(name: &str, base: &Device, machine: &Machine, peak: f64, stack: &Path) -> DeviceFile {
    const SOURCE: &str = "haversack calibrate host";
    let (measured, kernel) = (How::measured(SOURCE), How::said(SOURCE).noting("as the kernel says"));
    let guessed = How::guessed(SOURCE);
    let mut file = DeviceFile::over(base);
    file.top.text("name", name);
    file.top.text("soc", &format!("{}, {}", std::env::consts::ARCH, std::env::consts::OS));
    file.top
        .text("default_stack", &stack.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()));
    let set = if cfg!(target_arch = "aarch64") { InstructionSet::Arm64 } else { InstructionSet::X86 };
    file.top.text("instruction_set", &set.to_string());
    file.top.drop("carve_outs");
    if let Some(bytes) = machine.memory {
        file.top.set("ram", (bytes / 1_048_576.0, "MiB"), &kernel);
    }
    let clock = machine.clock;
    let template = base.constants.cpu.iter().find(|cluster| cluster.class == ClusterClass::Big);
    if let Some(template) = template.or(base.constants.cpu.first()) {
        let mut cluster = cluster_of(base, template);
        cluster.text("class", "big");
        cluster.text("core", &format!("core of {name}"));
        cluster.set("cores", (machine.cores as f64, "count"), &kernel.noting("that this program may use"));
        let how = measured.noting("shifts and exclusive ors that wait for each other, taken to be a cycle each");
        cluster.set("frequency", (clock / 1e6, "MHz"), &how);
        cluster.set("frequency_lowest", (clock / 1e6, "MHz"), &guessed.noting("not known: taken to be the highest"));
        let ratio = |key: &str| cluster.value(key).unwrap_or(1.0) / cluster.value("fp32_rate").unwrap_or(1.0);
        let others = ["fp16_rate", "int8_rate"].map(|key| (key, ratio(key)));
        let how =
            How::fitted(SOURCE).noting("the fastest kind of operator: what vectors could do beyond was not measured");
        cluster.set("fp32_rate", (peak / clock, "FLOP/cycle"), &how);
        for (key, ratio) in others {
            let unit = if key == "int8_rate" { "OP/cycle" } else { "FLOP/cycle" };
            cluster.set(
                key,
                (peak / clock * ratio, unit),
                &How::guessed(&base.id).noting("not measured: as many times fp32 as there"),
            );
        }
        for (key, bytes) in ["l1", "l2"].into_iter().zip(machine.caches) {
            if let Some(bytes) = bytes {
                cluster.set(key, (bytes / 1024.0, "KiB"), &kernel);
            }
        }
        for (key, rate) in ["l1_rate", "l2_rate", "l3_rate"].into_iter().zip(machine.copies) {
            if let Some(rate) = rate {
                cluster.set(
                    key,
                    (rate / clock, "B/cycle"),
                    &measured.noting("copied, read and written bytes together"),
                );
            }
        }
        cluster.set("dram_bandwidth", (machine.memory_rate / 1e9, "GB/s"), &measured.noting("copied by one thread"));
        file.clusters.push(cluster);
    }
    if let Some(bytes) = machine.caches[2] {
        file.section_or_new("[cache]").set("l3", (bytes / 1024.0, "KiB"), &kernel);
    }
    let dram = file.section_or_new("[dram]");
    dram.text("technology", "as measured");
    let together = (machine.memory_rate_together / 1e9, "GB/s");
    dram.set("peak", together, &measured.noting("what all cores copied, not the interface's own peak"));
    dram.set("achievable", (1.0, "fraction"), &measured.noting("of what all cores copied"));
    file
}

/// Each step, simulated on one core by the files as they are.
fn simulate(path: &Path, steps: Vec<Step>) -> Result<Vec<Row>, CommandError> {
    let cache = Cache::new();
    let row = |(network, batch, seconds): Step| {
        let cores = Some(CoreSelection::Some { class: ClusterClass::Big, count: 1 });
        let scenario = Scenario { batch, cores, ..Scenario::new(path.display().to_string(), network) };
        let plan = Plan::new(&scenario, &cache)?;
        let record = plan.run().map_err(|error| plan.explain_failure(error, &cache))?;
        let [measured, simulated] = [seconds, Nanos::seconds(record.iteration)];
        Ok(Row { network, batch, measured, simulated })
    };
    steps.into_iter().map(row).collect()
}

fn report(asked: &Asked<'_>, path: &Path, stack: &Path, file: &DeviceFile, rows: &[Row]) -> Result<(), CommandError> {
    let errors: Vec<f64> = rows.iter().map(|row| row.error().abs()).collect();
    let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
    let worst = errors.iter().copied().fold(0.0, f64::max);
    let tally = file.tally();
    if asked.format == Format::Json {
        let rows: Vec<Value> = rows
            .iter()
            .map(|row| {
                json!({
                    "network": row.network, "batch": row.batch, "measured_s": row.measured,
                    "simulated_s": row.simulated, "error": row.error(),
                })
            })
            .collect();
        return print_json(&json!({
            "device": asked.name, "file": path, "stack_file": stack, "measured": tally.measured,
            "fitted": tally.fitted, "datasheet": tally.said, "estimated": tally.guessed, "rows": rows, "mean_error": mean, "worst_error": worst,
        }));
    }
    let mut text = format!("{:<18} {:>5} {:>12} {:>12} {:>8}\n", "network", "batch", "measured", "simulated", "error");
    for row in rows {
        let ms = |seconds: f64| format!("{:.3} ms", seconds * 1e3);
        text += &format!(
            "{:<18} {:>5} {:>12} {:>12} {:>+7.1}%\n",
            row.network,
            row.batch,
            ms(row.measured),
            ms(row.simulated),
            row.error() * 100.0
        );
    }
    let (path, stack) = (path.display(), stack.display());
    text += &format!("mean error {:.1}%, worst {:.1}%, a training step by one thread\n", mean * 100.0, worst * 100.0);
    text += &format!(
        "{path}: {} constants measured, {} fitted, {} said by the kernel, {} guessed; {stack}: the kernels\n\
         Next: haversack simulate --device {path} --model resnet8-cifar --batch 16 --cores big:1\n",
        tally.measured, tally.fitted, tally.said, tally.guessed
    );
    print(&text)
}
