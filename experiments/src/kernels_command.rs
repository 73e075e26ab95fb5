//! `haversack kernels`: how fast the kernels are on this machine, beside what its memory allows and what others'
//! code does.
//!
//! The one command whose every output is a measurement. What is measured and how is in
//! [`haversack_bench`]; here it is selected, printed, written and drawn.

mod picture;
mod table;

use std::path::PathBuf;

use clap::Args;
use haversack_bench::{HAS_PEERS, Kernel, Measurement, SIZES};
use haversack_reports::write_atomically;
use serde_json::{Map, Value, json};

use crate::error::CommandError;
use crate::output::{Format, note, print, print_json};
use crate::output_folder::OutputFolder;
use crate::progress::{Amount, Progress};
use haversack_devices::text::hint;

/// The files, the picture's without its extension.
const TABLE: &str = "kernels.csv";
const PICTURE: &str = "kernels";
const OUTPUTS: [&str; 3] = [TABLE, "kernels.svg", "kernels.png"];

/// What `kernels` is asked for.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Examples:\n  haversack kernels\n  haversack kernels pack2 --compare --format json\n  haversack kernels --out measured\n\n\
    Each kernel runs on tensors of 200 KiB, 1.5 MiB and 64 MiB in turn with its limit, which is the fastest read, \
    write or copy of the same tensor, and with --compare with its peer, which is what one would take from a crate \
    (cargo run --release --features peers -- kernels --compare builds a program that has them). \
    The rates are of this machine at this moment; the ratios are what to keep. HAVERSACK_SIMD=scalar, avx2, avx512 \
    or neon chooses the instructions."
)]
pub struct KernelsOptions {
    /// Only kernels whose name contains this; `haversack list kernels` shows the names
    #[arg(value_name = "FILTER")]
    pub filter: Option<String>,
    /// Also runs the peers: plain iterators and loops, and the crates bitpacking, lz4_flex, zstd and rayon; needs a
    /// program that was built with --features peers
    #[arg(long)]
    pub compare: bool,
    /// The folder that the table and the plot are written to [default: none]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Deletes what the folder lists of another command or filter
    #[arg(long, requires = "out")]
    pub overwrite: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Measures the kernels, prints the table, and with a folder writes it and the plot there.
///
/// # Errors
/// Peers that were not compiled in, a filter that matches nothing, a `HAVERSACK_SIMD` that this machine lacks, a folder
/// that cannot be written.
pub fn run(options: &KernelsOptions) -> Result<(), CommandError> {
    if options.compare && !HAS_PEERS {
        let message = "--compare: this program was built without the crates that kernels are compared with; this one \
                       has them: cargo run --release --features peers -- kernels --compare";
        return Err(CommandError::input(message));
    }
    let catalogue = haversack_bench::catalogue().map_err(CommandError::input)?;
    let kernels = select(&catalogue, options.filter.as_deref().unwrap_or_default())?;
    // A folder that cannot be had is better heard of now than in a minute.
    let folder = options.out.as_deref().map(|out| OutputFolder::claim(out, &owner(options), options.overwrite));
    let mut folder = folder.transpose()?;
    if cfg!(debug_assertions) {
        note(&"this program was built without optimisation: build it with --release before believing a rate");
    }
    let measured = measure_all(&kernels, options.compare)?;
    if let Some(folder) = &mut folder {
        let outputs = OUTPUTS.map(str::to_owned);
        folder.begin(&outputs, Map::new())?;
        write_atomically(&folder.path(TABLE), table::csv(&measured)?.as_bytes())?;
        picture::draw(&measured).render()?.write(&folder.path(PICTURE))?;
        folder.record(owner(options), &outputs)?;
    }
    match options.format {
        Format::Json => print_json(&measured.iter().map(to_json).collect()),
        Format::Text => print(&table::text(&measured)),
    }
}

/// Whose the folder is: this command, with what it measures.
fn owner(options: &KernelsOptions) -> Map<String, Value> {
    let keys = [("command", json!("kernels")), ("filter", json!(options.filter)), ("compare", json!(options.compare))];
    keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The kernels whose names contain `filter`.
fn select<'a>(catalogue: &'a [Kernel], filter: &str) -> Result<Vec<&'a Kernel>, CommandError> {
    let kernels: Vec<&Kernel> = catalogue.iter().filter(|kernel| kernel.id().contains(filter)).collect();
    if kernels.is_empty() {
        let hint = hint(filter, catalogue.iter().map(Kernel::id));
        let message = format!("FILTER: no kernel's name contains '{filter}'{hint}; `haversack list kernels` names all");
        return Err(CommandError::input(message));
    }
    Ok(kernels)
}

/// One run a size; the answers kernel by kernel, each from small to large.
fn measure_all(kernels: &[&Kernel], compare: bool) -> Result<Vec<Measurement>, CommandError> {
    let turns = SIZES.iter().map(|&size| haversack_bench::turns(kernels, size, compare)).sum();
    let bar = Progress::new(Amount::Share("measured"), turns, 0);
    let mut sizes = Vec::new();
    for size in SIZES {
        sizes.push(haversack_bench::run(kernels, size, compare, || bar.inc(1)).map_err(CommandError::failed)?);
    }
    bar.finish();
    let of_kernel = |place: usize| sizes.iter().filter_map(move |measured| measured.get(place).cloned());
    Ok((0..kernels.len()).flat_map(of_kernel).collect())
}

fn to_json(measured: &Measurement) -> Value {
    let mut row = json!({
        "name": measured.kernel,
        "size": measured.size.0,
        "bytes_per_s": measured.rate.0,
        "limit_bytes_per_s": measured.limit_rate.0,
    });
    if let Some(peer) = &measured.peer {
        row["peer_bytes_per_s"] = json!(peer.rate.0);
    }
    row
}
