//! The command line: what can be asked for, and which module answers.

mod scenario_flags;
mod trace_arguments;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use scenario_flags::ScenarioFlags;
use trace_arguments::TraceArguments;

use crate::error::CommandError;
use crate::output::Format;
use crate::sweep::Shard;
use crate::{calibrate, kernels_command, list, model_command, replay_command, reproduce, simulate, sweep};

/// The command line of `haversack`.
#[derive(Debug, Parser)]
#[command(
    name = "haversack",
    version,
    about = "Simulates the training of neural networks on phones, within memory and time budgets",
    after_help = "Example:\n  haversack simulate --device galaxy-s10 --model resnet50 --batch 32 --policy sage --memory-budget 30%",
    arg_required_else_help = true,
    subcommand_required = true
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Reproduces the papers' figures and tables, each number beside the paper's own
    Reproduce(ReproduceArguments),
    /// Simulates one training run: time, memory, energy, and where the time went
    Simulate(SimulateArguments),
    /// Runs a whole grid of scenarios into one table and Pareto fronts
    Sweep(SweepArguments),
    /// Puts the shards of a sweep together, to the same bytes as one run
    Merge(MergeArguments),
    /// Counts a network: weights, operations, and the bytes saved for backward
    Model(ModelArguments),
    /// Replays a recorded operator log under dynamic tensor rematerialisation
    Replay(ReplayArguments),
    /// Measures the kernels on this machine, beside what its memory allows
    Kernels(KernelsArguments),
    /// Fits a device's constants to what was observed on it, and shows every residual
    Calibrate(CalibrateArguments),
    /// Imports, describes and generates recordings of apps and memory
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Trace(TraceArguments),
    /// Lists what scenarios can name
    List(ListArguments),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  haversack reproduce sage/table1 --out out\n  haversack reproduce sage --seed 1 --jobs 2"
)]
struct ReproduceArguments {
    /// `all`, a paper, `comparison`, or the beginning of an id such as sage/table1 [default: all]
    #[arg(value_name = "SELECTOR")]
    selectors: Vec<String>,
    /// The folder to write to
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    /// The seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Artefacts that run at once [default: one a processor]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Runs every seed and network of the accuracy artefacts
    #[arg(long)]
    full: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    haversack simulate --device galaxy-s10 --model resnet50 --batch 32 --policy sage --memory-budget 30%\n  \
    haversack simulate scenario.toml --memory-budget 1.2GB --format json --timeline run.json\n  \
    haversack simulate --device rtx-3090 --model bert-base --policy sage --set order=half --least-memory\n\n\
    A scenario file holds the same keys, as in\n  \
    device = \"galaxy-s10\"\n  model = \"resnet50\"\n  batch = 32\n  policy = \"sage\"\n  memory_budget = \"30%\"\n  set = { order = \"half\" }\n\
    Flags win over the file.")]
struct SimulateArguments {
    /// A scenario file; flags win over what it says
    #[arg(value_name = "SCENARIO.toml")]
    file: Option<PathBuf>,
    #[command(flatten)]
    scenario: ScenarioFlags,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Writes every operator and the memory to FILE, for chrome://tracing or Perfetto
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    /// Lists the ten largest tensors at the peak, and the operator there
    #[arg(long)]
    explain: bool,
    /// Also prints the smallest memory budget that works
    #[arg(long)]
    least_memory: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  haversack sweep budgets.toml --out budgets\n\nwith budgets.toml as\n  \
    device = [\"galaxy-s10\", \"rtx-3090\"]\n  model = [\"resnet50\"]\n  batch = [32]\n  \
    policy = [\"original\", \"dgc\", \"dga\", \"sage\"]\n  \
    memory_budget = { from = \"20%\", to = \"100%\", steps = 40 }\n  seed = [1]\n\n\
    Every key of a scenario may have one value, a list, or a span. Runs are numbered in the order device, stack, \
    model, input, batch, policy, set, precision, optimizer, graph, gradients, allocator, cores, frequency, ambient_c, \
    memory_budget, activation_budget, time_budget, trace, iterations, seed: the first varies slowest.")]
struct SweepArguments {
    /// The specification
    #[arg(value_name = "SPEC.toml")]
    specification: PathBuf,
    /// The folder to write to
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    /// Goes on where a killed sweep of the same specification ended
    #[arg(long)]
    resume: bool,
    /// Runs only the I-th of N equal parts, for `haversack merge`
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Runs at once [default: one a processor]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  haversack merge part1 part2 --out whole")]
struct MergeArguments {
    /// The folders of all shards of one sweep
    #[arg(value_name = "DIR", required = true)]
    shards: Vec<PathBuf>,
    /// The folder to write to
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  haversack model resnet50 --batch 8 --format json\n  haversack model network.onnx --input 3x96x96"
)]
struct ModelArguments {
    /// A model of `list models`, or an ONNX file
    #[arg(value_name = "NAME|FILE.onnx")]
    model: String,
    /// Samples of a mini-batch
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true)]
    batch: String,
    /// The shape of a sample, such as 3x96x96 or 256 [default: the model's own]
    #[arg(long, value_name = "SHAPE", allow_hyphen_values = true)]
    input: Option<String>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  haversack replay resnet32.log --policy dtr --heuristic dtr-eq --memory-ratio 0.5 --format json"
)]
struct ReplayArguments {
    /// The recorded log, one JSON instruction a line
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// The policy; only dtr replays logs
    #[arg(long, value_name = "ID", default_value = "dtr")]
    policy: String,
    /// dtr, dtr-eq, dtr-local, msps, lru or size
    #[arg(long, value_name = "NAME", default_value = "dtr")]
    heuristic: String,
    /// The memory, as a share of the log's own peak
    #[arg(long, value_name = "R", allow_hyphen_values = true)]
    memory_ratio: f64,
    /// Stops once the log takes so many times its own time [default: 4.0]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    overhead_limit: Option<f64>,
    /// Also prints how many operators a second were replayed
    #[arg(long)]
    timing: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  haversack kernels\n  haversack kernels pack2 --compare --format json\n\n\
    Each kernel runs on tensors of 200 KiB, 1.5 MiB and 64 MiB in turn with its limit, which is the fastest read, \
    write or copy of the same tensor, and with --compare with its peer, which is what one would take from a crate \
    (cargo run --release --features peers -- kernels --compare builds a program that has them). \
    The rates are of this machine at this moment; the ratios are what to keep. HAVERSACK_SIMD=scalar, avx2, avx512 \
    or neon chooses the instructions.")]
struct KernelsArguments {
    /// Only kernels whose name contains this; `haversack list kernels` shows the names
    #[arg(value_name = "FILTER")]
    filter: Option<String>,
    /// Also runs the peers: plain iterators and loops, and the crates bitpacking, lz4_flex, zstd and rayon; needs a
    /// program that was built with --features peers
    #[arg(long)]
    compare: bool,
    /// The folder that the table and the plot are written to
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  haversack calibrate server-core\n  haversack calibrate galaxy-s10 --stack sage-opencl --format json"
)]
struct CalibrateArguments {
    /// A device of `list devices` that something was observed of
    #[arg(value_name = "DEVICE")]
    device: String,
    /// The software stack [default: the device's own]
    #[arg(long, value_name = "ID")]
    stack: Option<String>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The seed of the search's starts
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// Devices that train
    Devices,
    /// Networks that are trained
    Models,
    /// Memory policies, with their parameters
    Policies,
    /// Software stacks
    Stacks,
    /// Operating systems
    Systems,
    /// Figures and tables of the papers
    Artefacts,
    /// Kernels that really run
    Kernels,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  haversack list policies")]
struct ListArguments {
    /// What to list: one id a line, then its description
    what: Listed,
}

/// Runs the command.
///
/// # Errors
/// [`CommandError`], whose exit code is the program's.
pub fn run(arguments: Arguments) -> Result<(), CommandError> {
    match arguments.command {
        Command::Reproduce(given) => reproduce::run(&reproduce::Options {
            selectors: given.selectors,
            out: given.out,
            seed: given.seed,
            jobs: given.jobs,
            full: given.full,
        })
        .map_err(CommandError::from),
        Command::Simulate(given) => simulate::run(&simulate::Options {
            scenario: given.scenario.over(given.file.as_deref())?,
            format: given.format,
            timeline: given.timeline,
            explain: given.explain,
            least_memory: given.least_memory,
        }),
        Command::Sweep(given) => sweep::run(&sweep::Options {
            specification: given.specification,
            out: given.out,
            resume: given.resume,
            shard: given.shard,
            jobs: given.jobs,
        }),
        Command::Merge(given) => sweep::merge(&given.shards, &given.out),
        Command::Model(given) => model_command::run(&given.model, &given.batch, given.input.as_deref(), given.format),
        Command::Replay(given) => replay_command::run(&replay_command::Options {
            log: given.log,
            policy: given.policy,
            heuristic: given.heuristic,
            memory_ratio: given.memory_ratio,
            overhead_limit: given.overhead_limit,
            timing: given.timing,
            format: given.format,
        }),
        Command::Kernels(given) => kernels_command::run(&kernels_command::Options {
            filter: given.filter,
            compare: given.compare,
            out: given.out,
            format: given.format,
        }),
        Command::Calibrate(given) => calibrate::run(&calibrate::Options {
            device: given.device,
            stack: given.stack,
            format: given.format,
            seed: given.seed,
        }),
        Command::Trace(given) => trace_arguments::run(given),
        Command::List(given) => list::run(given.what),
    }
}
