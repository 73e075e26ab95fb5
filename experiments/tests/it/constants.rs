//! No constant is dead: if a constant of devices, software stacks or operating systems is changed by a tenth, a number
//! of one of a fixed list of runs changes, or the constant is listed with its future use.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::OnceLock;

use haversack::cache::Cache;
use haversack::run::{Plan, Results};
use haversack::scenario::{Holder, Scenario, World, moved};
use haversack_devices::processor::{CoreSelection, Frequency, ProcessorKind};
use haversack_devices::system::Compressor;
use haversack_devices::units::{Bytes, Flops, Fraction, Nanos};
use haversack_devices::work::{HostThread, OperatorKind, Precision, Product, ProductRole, Traffic, Work};
use haversack_devices::{ConstantEntry, ScalarSpeed, list, list_stacks, list_systems};
use haversack_devices::{load, load_stack, load_system};
use haversack_policies::planning::{Operations, Planner, Planning, Room};
use haversack_training::phone::{AppChange, AppState, Phone};
use haversack_training::{Machine, Trains};
use rayon::prelude::*;

/// The constants that no run uses yet, by file (`device`, `stack` or `system`) and name, with their future use. A name
/// that ends in `*` matches all names with this prefix; `cpu.*.l1` matches that field of every cluster.
const UNUSED: &[(&str, &str, &str)] = &[
    ("system", "killer.kill_timeout", "the wait after a kill, which the memory of a phone in use will have"),
    ("system", "killer.low", "the pressure level that kills nobody, likewise"),
    ("system", "killer.medium", "likewise"),
    (
        "system",
        "services.*",
        "what the budget predictor asks of the system, which FedHybrid's section 5.5 shows and no scenario",
    ),
    ("system", "scores.*", "names of adjustments that traces give as numbers, for apps by their state"),
    ("device", "battery", "shares of its charge, which Mandheling's figure 9 shows and no scenario"),
    ("device", "power.idle", "a phone that does nothing, which FedHybrid's figure 21 shows and no scenario"),
    ("device", "dram.power_idle", "part of that phone's power, alone"),
    ("device", "dsp.poll", "a DSP that is polled instead of woken"),
    ("device", "dsp.queue", "calls of the DSP that wait for each other"),
    ("device", "gpu.round_trip", "atomics that wait for their answer, by counts of kernels"),
    ("stack", "gpu.compile", "the compiling of kernels before the first batch, which Sage's section 3.2.3 shows alone"),
    ("stack", "allocation_rounding", "allocators that round, beside the caching one, which has its own rules"),
];

/// The constants that no run of the list reaches yet, a name a line.
const NOT_REACHED: &str = include_str!("constants_not_reached.txt");

/// The world of the files with these names.
fn world(device: &str, stack: &str, system: &str) -> World {
    let system = Some(load_system(system).unwrap());
    World { device: load(device).unwrap(), stack: load_stack(stack).unwrap(), system }
}

/// The results of a run in a world, as text.
type Numbers = Box<dyn Fn(World, &Cache) -> Option<String> + Sync>;

/// A run of the list: its name, the sections of constants that it is likely to depend on, and its numbers as text;
/// `None` if the device lacks what the run needs.
struct Run {
    name: &'static str,
    sections: &'static [&'static str],
    numbers: Numbers,
}

fn run(
    name: &'static str,
    sections: &'static [&'static str],
    numbers: impl Fn(World, &Cache) -> Option<String> + Sync + 'static,
) -> Run {
    Run { name, sections, numbers: Box::new(numbers) }
}

/// The keys that all scenarios of the list share.
const LENET: &str = "model = \"lenet5\"\nbatch = 8\niterations = 1\n";

/// The numbers of a scenario in `world`; `edit` changes the plan.
fn simulate(world: World, cache: &Cache, lines: &str, edit: impl Fn(&mut Plan)) -> Option<String> {
    let (device, stack, system) = (&world.device.id, &world.stack.id, &world.system.as_ref().unwrap().id);
    let lines = lines.replace("SYSTEM", &format!("system = \"{system}\""));
    let of_lenet = LENET.lines().filter(|line| !lines.contains(&line[..=line.find('=').unwrap()]));
    let defaults: String = of_lenet.map(|line| format!("{line}\n")).collect();
    let text = format!("device = \"{device}\"\nstack = \"{stack}\"\n{defaults}{lines}");
    let scenario = world.scenario(&Scenario::with(None, "run.toml", &text).unwrap());
    let mut plan = Plan::new(&scenario, cache).ok()?;
    edit(&mut plan);
    match plan.run() {
        Ok(record) => {
            let phone = record.phone.as_ref().map(|phone| (&phone.run, &phone.kills));
            Some(format!("{:?} {:?} {phone:?}", Results::new(&plan, &record), record.iterations))
        }
        Err(error) => Some(error.to_string()),
    }
}

fn plain(world: World, cache: &Cache, lines: &str) -> Option<String> {
    simulate(world, cache, lines, |_| ())
}

/// The world with kernels for a CPU: MNN's if its own stack has none.
fn with_cores(world: World) -> Option<World> {
    if world.stack.cpu().is_some() { Some(world) } else { Some(World { stack: load_stack("mnn-2").ok()?, ..world }) }
}

fn on_cores(world: World, cache: &Cache, lines: &str) -> Option<String> {
    plain(with_cores(world)?, cache, lines)
}

/// Whether the world's stack is `id`, or its variant with measured factors.
fn is(world: &World, id: &str) -> bool {
    world.stack.id.strip_suffix("-measured").unwrap_or(&world.stack.id) == id
}

/// The same under another stack than the world's, unless it is the stack whose constants are changed.
fn under(stack: &str, world: World, cache: &Cache, lines: &str) -> Option<String> {
    let stack = if is(&world, stack) { world.stack } else { load_stack(stack).ok()? };
    plain(World { stack, ..world }, cache, lines)
}

/// Copies, products and sums of all sizes from 4 KiB to 256 MiB, 5 % apart, so that every level of memory begins and
/// ends within a tenth of one.
fn works() -> Vec<Work> {
    let mut works = Vec::new();
    let mut bytes = 4096.0;
    while bytes < 256.0 * f64::from(1 << 20) {
        let size = Bytes(bytes as u64);
        let copy = Work {
            traffic: Traffic { dram: size, shared: Bytes::ZERO },
            working_set: size,
            parallelism: bytes / 4.0,
            ..Work::empty(OperatorKind::ElementWise, Precision::Fp32)
        };
        works.push(copy);
        works.push(Work { kind: OperatorKind::Layout, ..copy });
        bytes *= 1.05;
    }
    for &kind in OperatorKind::ALL {
        for precision in [Precision::Fp32, Precision::Fp16, Precision::Int8] {
            let product = Work {
                flops: Flops(1e9),
                parallelism: 1e5,
                working_set: Bytes(1 << 20),
                traffic: Traffic { dram: Bytes(1 << 20), shared: Bytes::ZERO },
                ..Work::empty(kind, precision)
            };
            works.push(product);
        }
    }
    // Winograd's tiles of many channels: more cores read them from L3 than it can serve simultaneously.
    let product = Product {
        role: ProductRole::Forward,
        inputs: 512,
        outputs: 512,
        input_size: [28, 28],
        output_size: [28, 28],
        taps: [3, 3],
        groups: 1,
        of_each_sample: false,
    };
    let tiles = Work { flops: Flops(1e9), parallelism: 1e5, ..Work::empty(OperatorKind::Convolution, Precision::Fp16) };
    works.push(Work { transforms: Flops(1e6), product: Some(product), ..tiles });
    let sum = Work::empty(OperatorKind::Reduction, Precision::Fp32);
    works.push(Work { barriers: 100, parallelism: 1e4, ..sum });
    works.push(Work { atomics: 1000, parallelism: 1e4, ..sum });
    works.push(Work { traffic: Traffic { dram: Bytes::ZERO, shared: Bytes(1 << 30) }, parallelism: 1e6, ..sum });
    works.push(Work { parallelism: 100.0, flops: Flops(1e6), ..sum });
    works
}

/// The cost of [`works`] on every class of cores and on the GPU, and the blocks that fit in a unit of the GPU.
fn sweep(world: World, _: &Cache) -> Option<String> {
    let World { device, stack, .. } = world;
    let mut text = String::new();
    let works = works();
    let classes: Vec<CoreSelection> =
        ["big:1", "middle:1", "little:1", "all"].into_iter().filter_map(|cores| cores.parse().ok()).collect();
    for cores in classes {
        for frequency in [Frequency::Highest, Frequency::Lowest] {
            let Ok(cpu) = device.processor(ProcessorKind::Cpu, &stack, cores, frequency) else { continue };
            works.iter().for_each(|work| write!(text, "{:?}", cpu.cost(work)).unwrap());
        }
    }
    if let Ok(gpu) = device.processor(ProcessorKind::Gpu, &stack, CoreSelection::All, Frequency::Highest) {
        works.iter().for_each(|work| write!(text, "{:?}", gpu.cost(work)).unwrap());
    }
    if let Some(gpu) = device.gpu() {
        let limits = gpu.limits();
        for threads in [32, 256, 1024] {
            for shared in [0, 4096, 16_384] {
                write!(text, "{} ", limits.blocks_per_unit(threads, Bytes(shared))).unwrap();
            }
        }
    }
    (!text.is_empty()).then_some(text)
}

/// The same on another stack with kernels for CPUs, with eight-bit products by widening.
fn sweep_under(stack: &str) -> impl Fn(World, &Cache) -> Option<String> {
    let stack = load_stack(stack).unwrap();
    move |world, cache| sweep(World { stack: stack.clone(), ..world }, cache)
}

/// Files of some sizes, read and written with apps in the background (FedHybrid's figure 4), and many small writes.
fn files(world: World, _: &Cache) -> Option<String> {
    let World { device, system: Some(system), .. } = world else { return None };
    let flash = device.flash()?;
    let cpu = device.cpu()?;
    let cores = cpu.choose(CoreSelection::All, Frequency::Highest).ok()?;
    let speed = ScalarSpeed::of(&cores)?;
    let mut text = String::new();
    for apps in [0, 3] {
        for size in [Bytes(64 << 10), Bytes(16 << 20), Bytes(16 << 30)] {
            write!(text, "{:?} ", system.read_file(&flash, size, speed, apps)).unwrap();
            write!(text, "{:?} ", system.write_file(&flash, size, speed, apps)).unwrap();
        }
    }
    Some(text)
}

/// Time of the housekeeping core for tables of two shapes.
fn tables(world: World, _: &Cache) -> Option<String> {
    let host = HostThread { span: Nanos(1_000_000_000), working: Nanos(10_000_000) };
    let time = |comparisons, moves| world.stack.table_time(&world.device, comparisons, moves, &host);
    Some(format!("{:?} {:?}", time(1_000_000, 1_000)?, time(1_000, 1_000_000)?))
}

/// A phone whose memory is short: its managed memory is `gib`, whatever the device has, and apps start and stop.
fn crowded(mut world: World, cache: &Cache, gib: f64, lines: &str) -> Option<String> {
    let usual = load(&world.device.id).ok()?.ram();
    let share = gib * f64::from(1 << 30) / usual.as_f64();
    world.device.constants.ram.value = Bytes((world.device.ram().as_f64() * share) as u64);
    let app = |at: u64, app: &str, adj: i32, mib: u64| AppChange {
        at: Nanos(at * 1_000_000),
        app: app.to_owned(),
        state: Some(AppState { adj, anonymous: Bytes(mib << 20), file: Bytes(mib << 19), touched: Fraction(0.7) }),
    };
    let apps = vec![
        app(0, "mail", 900, 200),
        app(1, "music", 200, 150),
        app(2, "camera", 0, 500),
        app(200, "camera", 700, 500),
        app(201, "game", 0, 700),
    ];
    simulate(with_cores(world)?, cache, &format!("SYSTEM\n{lines}"), |plan| {
        if let Some(phone) = plan.resolved.phone.as_deref() {
            let phone = Phone { apps: apps.clone(), ..phone.clone() };
            plan.resolved.phone = Some(phone.into());
        }
    })
}

/// The runs, cheap ones first.
fn runs() -> Vec<Run> {
    vec![
        run("a sweep of copies and products", &["cpu", "cache", "gpu", "dram"], sweep),
        run("the same on MNN's kernels", &["cpu", "cache"], sweep_under("mnn")),
        run("the same on TFLite's", &["cpu"], sweep_under("tflite")),
        run("files", &["storage", "files", "background"], files),
        run("training", &["gpu", "power", "dram"], |world, cache| plain(world, cache, "")),
        run("more weights than activations", &["gpu.library.adam"], |world, cache| {
            plain(world, cache, "optimizer = \"adam\"\nmodel = \"resnet18-cifar\"\nbatch = 1")
        }),
        run("training on big cores", &["cpu.0", "power"], |world, cache| on_cores(world, cache, "cores = \"big:1\"")),
        run("training on middle cores", &["cpu.1"], |world, cache| on_cores(world, cache, "cores = \"middle:1\"")),
        run("training on little cores", &["cpu"], |world, cache| on_cores(world, cache, "cores = \"little:1\"")),
        run("training on all cores", &["cpu"], |world, cache| on_cores(world, cache, "cores = \"all\"")),
        run("the lowest frequency", &["cpu", "dvfs"], |world, cache| {
            on_cores(world, cache, "cores = \"all\"\nfrequency = \"lowest\"")
        }),
        run("a governor in the heat", &["thermal", "dvfs", "cpu"], |world, cache| {
            on_cores(world, cache, "cores = \"all\"\nfrequency = \"governor\"\nambient_c = 45\niterations = 4")
        }),
        run("minutes in the heat", &["thermal", "dvfs", "battery", "power"], |world, cache| {
            let of_minutes = "model = \"resnet18-cifar\"\nbatch = 512\niterations = 12";
            on_cores(world, cache, &format!("cores = \"all\"\nfrequency = \"governor\"\nambient_c = 45\n{of_minutes}"))
        }),
        run("tables", &["housekeeping"], tables),
        run("more samples than memory holds", &["ram", "gpu.memory", "memory"], |world, cache| {
            plain(world, cache, "model = \"resnet50\"\nbatch = 65536")
        }),
        run("a residual network", &["gpu", "cpu"], |world, cache| {
            plain(world, cache, "model = \"resnet18-cifar\"\nbatch = 16")
        }),
        run("half precision", &["gpu"], |world, cache| plain(world, cache, "precision = \"fp16\"")),
        run("products on tensor cores", &["gpu"], |world, cache| {
            plain(world, cache, "precision = \"fp16\"\nmodel = \"resnet18-cifar\"\nbatch = 64")
        }),
        run("channels last", &["gpu"], |world, cache| {
            plain(
                world,
                cache,
                "precision = \"fp16\"\nmemory_format = \"channels-last\"\nmodel = \"mobilenetv2-slim\"\nbatch = 64",
            )
        }),
        run("inference on a core", &["cpu"], |world, cache| {
            plain(world, cache, "inference = true\nprecision = \"fp16\"\nmodel = \"resnet18-cifar\"\ncores = \"big:1\"")
        }),
        run("inference", &["gpu", "cpu"], |world, cache| {
            plain(
                world,
                cache,
                "inference = true\nprecision = \"fp16\"\nmodel = \"mobilenetv2-slim\"\nallocator = \"caching\"",
            )
        }),
        run("integers", &["gpu", "cpu"], |world, cache| plain(world, cache, "precision = \"int8\"")),
        run("Sage within 70 %", &["gpu"], |world, cache| {
            plain(world, cache, "policy = \"sage\"\nmemory_budget = \"70%\"")
        }),
        run("DAF within 50 %", &["gpu", "housekeeping"], |world, cache| {
            plain(world, cache, "policy = \"daf\"\nactivation_budget = \"50%\"")
        }),
        run("DAF's caching allocator", &["allocation"], |world, cache| {
            plain(world, cache, "policy = \"daf\"\nactivation_budget = \"50%\"\nallocator = \"caching\"")
        }),
        run("FedHybrid within 60 %", &["codec"], |world, cache| {
            plain(world, cache, "policy = \"fedhybrid\"\nmemory_budget = \"60%\"")
        }),
        run("FedHybrid with a larger network", &["codec"], |world, cache| {
            let network = "model = \"mobilenetv2\"\ninput = \"3x64x64\"\nbatch = 16";
            plain(world, cache, &format!("policy = \"fedhybrid\"\nmemory_budget = \"80%\"\n{network}"))
        }),
        run("FedHybrid with room for its codec", &["codec"], |world, cache| {
            let network = "model = \"mobilenetv2\"\ninput = \"3x64x64\"\nbatch = 16";
            plain(world, cache, &format!("policy = \"fedhybrid\"\nmemory_budget = \"55%\"\n{network}"))
        }),
        run("FedHybrid with tokens", &["codec"], |world, cache| {
            plain(
                world,
                cache,
                "policy = \"fedhybrid\"\nmemory_budget = \"75%\"\nmodel = \"transformer2-lora\"\nbatch = 16",
            )
        }),
        run("a new plan", &["planning"], |world, _| {
            let World { device, stack, .. } = with_cores(world)?;
            let machine = Machine::new(device, stack, Trains::Cpu, None, Frequency::Highest).ok()?;
            let operations = Operations { scores: 1_000_000, operators: 1_000_000 };
            let time = |planner| {
                let (room, treatments) = (Room::default(), None);
                let (sent, received) = (Bytes(1 << 20), Bytes(1 << 20));
                machine.planning_time(&Planning { planner, room, operations, sent, received, treatments })
            };
            Some(format!("{:?}", [Planner::Server, Planner::Phone].map(time)))
        }),
        run("MNN in integers", &["cpu"], |world, cache| under("mnn", world, cache, "policy = \"mnn-int8\"")),
        run("MNN on the GPU", &["gpu"], |world, cache| under("mnn", world, cache, "policy = \"mnn-fp32-gpu\"")),
        run("Mandheling", &["dsp", "cpu"], |world, cache| {
            under("mandheling", world, cache, "policy = \"mandheling\"\nmodel = \"resnet18-cifar\"\nbatch = 4")
        }),
        run("Mandheling with large layers", &["dsp"], |world, cache| {
            under(
                "mandheling",
                world,
                cache,
                "policy = \"mandheling\"\nmodel = \"resnet50\"\nbatch = 16\niterations = 20",
            )
        }),
        run("Mandheling on a later generation of the DSP", &["dsp"], |world, cache| {
            let world = is(&world, "mandheling").then_some(world)?;
            let world = World { device: load("xiaomi-11-pro").ok()?, ..world };
            plain(world, cache, "policy = \"mandheling\"\nmodel = \"resnet18-cifar\"\nbatch = 4")
        }),
        run("a network with dropout", &["dropout"], |world, cache| {
            plain(world, cache, "model = \"bert-small-s64\"\nbatch = 1")
        }),
        run("depthwise convolutions", &["gpu", "cpu"], |world, cache| {
            plain(world, cache, "model = \"mobilenetv2\"\ninput = \"3x32x32\"\nbatch = 2")
        }),
        run("a phone of 2.2 GiB", &["reclaim", "zram", "swap", "costs", "killer", "storage"], |world, cache| {
            crowded(world, cache, 2.2, "cores = \"big:1\"\nbatch = 512\niterations = 3")
        }),
        run("the same under zstd", &["zstd"], |mut world, cache| {
            world.system.as_mut()?.constants.zram.as_mut()?.algorithm = Compressor::Zstd;
            crowded(world, cache, 2.2, "cores = \"big:1\"\nbatch = 512\niterations = 3")
        }),
        run("a phone of little memory", &["killer"], |world, cache| {
            crowded(world, cache, 2.05, "cores = \"big:1\"\niterations = 3")
        }),
        run("a phone and a user", &["killer", "reclaim", "swap", "zram", "trainer"], |world, cache| {
            let apps = "apps = \"synthetic-0001@68400s+10min\"";
            on_cores(
                world,
                cache,
                &format!("SYSTEM\n{apps}\ncores = \"big:1\"\nmodel = \"resnet18-cifar\"\nbatch = 512"),
            )
        }),
        run(
            "a phone in use",
            &["reclaim", "zram", "swap", "costs", "killer", "resident", "trainer", "memory"],
            |world, cache| crowded(world, cache, 3.0, "cores = \"big:1\"\nbatch = 768\niterations = 3"),
        ),
        run("a trainer that is swapped", &["zram", "costs", "clocks"], |world, cache| {
            // Started over adb, it must not be killed.
            let lines =
                "cores = \"big:1\"\nmodel = \"resnet18-cifar\"\nbatch = 64\niterations = 2\ntrainer_adj = -1000";
            crowded(world, cache, 2.6, lines)
        }),
    ]
}

/// The value of a constant changed by a tenth, up and down. Zero has no tenth; it becomes one, ten,
/// a hundred and a thousand.
fn moves(entry: &ConstantEntry) -> Vec<f64> {
    moved(entry, 0.1).map_or_else(|| vec![1.0, 10.0, 100.0, 1000.0], Vec::from)
}

/// Whether `pattern` matches `name`: a `*` matches any characters.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name
            .strip_prefix(before)
            .is_some_and(|rest| (0..=rest.len()).any(|end| rest.get(end..).is_some_and(|rest| fits(after, rest)))),
    }
}

/// The files by kind and id, each with the world of its runs.
fn files_of_constants() -> Vec<(&'static str, &'static str, World)> {
    let home = |stack: &str| match stack {
        "pytorch-cuda" => "jetson-agx-xavier",
        "pytorch-cuda-1.6" => "jetson-agx-xavier",
        "mnn" => "xiaomi-mi9",
        "pytorch-cpu" => "server-core",
        "sage-opencl" => "galaxy-s10",
        "tflite" => "xiaomi-10",
        // Its fastest core has no CoreMark.
        "mandheling" | "mandheling-measured" | "ncnn" => "iqoo-neo3",
        _ => "galaxy-s22",
    };
    let mut files = Vec::new();
    for listing in list().unwrap() {
        let stack = load(listing.id).unwrap().constants.default_stack;
        files.push(("device", listing.id, world(listing.id, &stack, "android-testbed")));
    }
    for listing in list_stacks().unwrap() {
        files.push(("stack", listing.id, world(home(listing.id), listing.id, "android-testbed")));
    }
    for listing in list_systems().unwrap() {
        files.push(("system", listing.id, world("galaxy-s22", "mnn-2", listing.id)));
    }
    files
}

/// The names of the constants of `file`.
fn names(holder: Holder, world: &World) -> Vec<String> {
    let entries = world.entries().into_iter().filter(|(of, _)| *of == holder).map(|(_, entry)| entry.name);
    let curves = if holder == Holder::Device { world.device.constants.dvfs.len() } else { 0 };
    let of_curve = |curve| ["frequency", "power"].map(|field| format!("dvfs.{curve}.{field}"));
    entries.chain((0..curves).flat_map(of_curve)).collect()
}

/// The worlds in which only this constant is changed.
fn worlds(holder: Holder, world: &World, name: &str) -> Vec<World> {
    if let Some((_, entry)) = world.entries().into_iter().find(|(of, entry)| *of == holder && entry.name == name) {
        // A value that makes the file contradict itself is left out.
        return moves(&entry).into_iter().filter_map(|value| world.with(holder, name, value).ok()).collect();
    }
    let mut changed = world.clone();
    let (curve, field) = name["dvfs.".len()..].split_once('.').unwrap();
    let curve = &mut changed.device.constants.dvfs[curve.parse::<usize>().unwrap()];
    match field {
        "frequency" => curve.frequency.values.iter_mut().for_each(|point| point.0 *= 0.9),
        _ => curve.power.values.iter_mut().for_each(|point| point.0 *= 1.1),
    }
    vec![changed]
}

/// A file of constants.
struct File {
    /// `device`, `stack` or `system`.
    kind: &'static str,
    id: &'static str,
    holder: Holder,
    world: World,
    /// The result of each run without a change, computed on demand.
    base: Vec<OnceLock<Option<String>>>,
    names: Vec<String>,
}

impl File {
    fn new((kind, id, world): (&'static str, &'static str, World), runs: &[Run]) -> Self {
        let holder = match kind {
            "device" => Holder::Device,
            "stack" => Holder::Stack,
            _ => Holder::System,
        };
        let names = names(holder, &world);
        Self { kind, id, holder, world, base: runs.iter().map(|_| OnceLock::new()).collect(), names }
    }

    /// Whether changing the constant changes a number of one of `runs`, given by their indices.
    fn moves(&self, name: &str, of: impl IntoIterator<Item = usize>, runs: &[Run], cache: &Cache) -> bool {
        let worlds = worlds(self.holder, &self.world, name);
        let mover = of.into_iter().find(|&at| {
            let numbers = |world: &World| (runs[at].numbers)(world.clone(), cache);
            // Computed outside the lock: while a run waits, its thread may get another's work.
            let base = self.base[at].get().cloned().unwrap_or_else(|| numbers(&self.world));
            let base = self.base[at].get_or_init(|| base);
            base.is_some() && worlds.iter().any(|world| numbers(world) != *base)
        });
        // SHOW=1 prints which run each constant changes.
        if std::env::var_os("SHOW").is_some() {
            println!("{} {} {name}: {}", self.kind, self.id, mover.map_or("NOTHING", |at| runs[at].name));
        }
        mover.is_some()
    }

    /// The constant as in the lists.
    fn listed_as(&self, name: &str) -> String {
        format!("{} {name}", self.kind)
    }
}

/// The indices of the runs that `name` is likely to change, and of the others.
fn likely(name: &str, runs: &[Run]) -> (Vec<usize>, Vec<usize>) {
    (0..runs.len()).partition(|&at| runs[at].sections.iter().any(|section| name.starts_with(section)))
}

#[test]
fn every_constant_moves_a_number() {
    let (cache, runs) = (Cache::new(), runs());
    let unused = UNUSED.iter().map(|(file, pattern, _)| format!("{file} {pattern}"));
    let not_reached = NOT_REACHED.lines().filter(|line| !line.starts_with('#')).map(str::to_owned);
    let listed: Vec<String> = unused.chain(not_reached).collect();
    let files: Vec<File> = files_of_constants().into_iter().map(|file| File::new(file, &runs)).collect();

    // A name means the same in every file: the first file with it represents all.
    let mut first: BTreeMap<String, (&File, &str)> = BTreeMap::new();
    for file in &files {
        for name in &file.names {
            first.entry(file.listed_as(name)).or_insert((file, name));
        }
    }
    let is_listed = |name: &str| listed.iter().any(|pattern| fits(pattern, name));
    let (unused, used): (Vec<_>, Vec<_>) = first.iter().partition(|(name, _)| is_listed(name));
    let dead = used.into_par_iter().filter(|(_, (file, name))| {
        let (likely, others) = likely(name, &runs);
        !file.moves(name, likely.into_iter().chain(others), &runs, &cache)
    });
    let dead: BTreeSet<&String> = dead.map(|(name, _)| name).collect();
    assert!(dead.is_empty(), "moving these by a tenth changes no number of any run: {dead:#?}");

    let gone: Vec<&String> = listed.iter().filter(|pattern| !first.keys().any(|name| fits(pattern, name))).collect();
    assert!(gone.is_empty(), "no file has these: {gone:#?}");
    let revived =
        unused.into_par_iter().filter(|(_, (file, name))| file.moves(name, likely(name, &runs).0, &runs, &cache));
    let revived: Vec<&String> = revived.map(|(name, _)| name).collect();
    assert!(revived.is_empty(), "these are used now, and may leave the list: {revived:#?}");
}
