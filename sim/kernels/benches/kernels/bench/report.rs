//! The benchmark's output: every kernel and its limit, as text or JSON, and with peers the bars.

use haversack_devices::units::Bytes;
use haversack_kernels::KernelError;

use crate::bench::bars::{Against, Bar, bars};
use crate::bench::{Asked, FEATURE_MAPS, Family, HAS_PEERS, Kernel, Measurement, SIZES, catalogue, measure};

/// Measures the kernels that the arguments select and prints them.
///
/// # Errors
/// A `HAVERSACK_SIMD` that this machine lacks, or a kernel that cannot run.
pub(crate) fn print(asked: &Asked) -> Result<(), KernelError> {
    let catalogue = catalogue()?;
    let kernels: Vec<&Kernel> = catalogue.iter().filter(|kernel| kernel.id().contains(&asked.name)).collect();
    if asked.list {
        kernels.iter().for_each(|kernel| println!("{:<28} {}", kernel.id(), kernel.about()));
        return Ok(());
    }
    let sizes: Vec<Vec<Measurement>> =
        SIZES.iter().map(|&size| measure(&kernels, size, HAS_PEERS)).collect::<Result<_, _>>()?;
    let of_kernel = |place: usize| sizes.iter().filter_map(move |measured| measured.get(place).cloned());
    let measured: Vec<Measurement> = (0..kernels.len()).flat_map(of_kernel).collect();
    if asked.json {
        println!("{}", json(&measured));
    } else {
        print!("{}", text(&measured));
    }
    if HAS_PEERS && !asked.json { print_bars(&catalogue, &asked.name) } else { Ok(()) }
}

/// An array with an element for each kernel and size.
pub(crate) fn json(measured: &[Measurement]) -> String {
    let rows: Vec<String> = measured.iter().map(row).collect();
    format!("[\n{}\n]", rows.join(",\n"))
}

fn row(found: &Measurement) -> String {
    let Measurement { kernel, size, rate, limit_rate, peer, .. } = found;
    let peer = peer.as_ref().map_or_else(String::new, |peer| format!(", \"peer_bytes_per_s\": {}", peer.rate.0));
    format!(
        "  {{\"name\": \"{kernel}\", \"size\": {}, \"bytes_per_s\": {}, \"limit_bytes_per_s\": {}{peer}}}",
        size.0, rate.0, limit_rate.0
    )
}

/// One line a kernel, the sizes side by side, under a title for each family.
pub(crate) fn text(measured: &[Measurement]) -> String {
    let compared = measured.iter().any(|found| found.peer.is_some());
    let width = measured.iter().map(|found| found.kernel.len()).max().unwrap_or(0);
    let (of_size, title) = if compared { (26, "    GB/s  of limit  × peer") } else { (18, "    GB/s  of limit") };
    let sizes: String = SIZES.map(|size| format!("{:>of_size$}", format!("{} B", size.0))).concat();
    let mut text = format!("{:width$}{sizes}\n{:width$}{}\n", "", "kernel", title.repeat(SIZES.len()));
    for &family in Family::ALL {
        let of_family: Vec<&Measurement> = measured.iter().filter(|found| found.family == family).collect();
        if !of_family.is_empty() {
            text += &format!("\n{}\n", family.title());
        }
        for sizes in of_family.chunk_by(|a, b| a.kernel == b.kernel) {
            text += &line(sizes, width, compared);
        }
    }
    text += "\nof limit: the rate as a share of the fastest read, write or copy of the same tensor in the same run\n";
    if compared {
        text += "× peer: how many times as fast as the peer, which the last column names\n";
    }
    text
}

/// A kernel's name, its numbers at each size, and its peer.
fn line(sizes: &[&Measurement], width: usize, compared: bool) -> String {
    let mut line = format!("{:width$}", sizes.first().map_or("", |found| &found.kernel));
    for found in sizes {
        line += &format!("{:>8.2}{:>10.3}", found.rate.0 * 1e-9, found.share_of_limit());
        if compared {
            line += &format!("{:>8}", found.times_peer().map_or_else(|| "-".to_owned(), |times| format!("{times:.2}")));
        }
    }
    line += &sizes
        .first()
        .and_then(|found| found.peer.as_ref())
        .map_or_else(String::new, |peer| format!("  {}", peer.name));
    line + "\n"
}

/// Prints the kernels that have bars, each next to its bar: one interleaved run a size.
fn print_bars(catalogue: &[Kernel], name: &str) -> Result<(), KernelError> {
    let bars: Vec<Bar> = bars().into_iter().filter(|bar| bar.kernel.contains(name)).collect();
    println!("\n{:<24} {:>9} {:>11} {:>9}   {:<44} {:>7}", "kernel", "size", "a pass", "ratio", "to", "bar");
    let mut verdicts = Vec::new();
    for size in SIZES.into_iter().chain([FEATURE_MAPS]) {
        verdicts.extend(bars_of(size, &bars, catalogue)?);
    }
    let count = |verdict| verdicts.iter().filter(|&&found| found == verdict).count();
    let missing = count(None);
    println!("\n{} met, {} missed, {missing} not to be had on this machine", count(Some(true)), count(Some(false)));
    Ok(())
}

/// Measures and prints the bars of one size. Returns whether each is met, `None` if its kernel cannot run here.
fn bars_of(size: Bytes, bars: &[Bar], catalogue: &[Kernel]) -> Result<Vec<Option<bool>>, KernelError> {
    let bars: Vec<&Bar> = bars.iter().filter(|bar| bar.size == size).collect();
    let needed = |kernel: &&Kernel| bars.iter().any(|bar| bar.kernels().any(|name| name == kernel.id()));
    let kernels: Vec<&Kernel> = catalogue.iter().filter(needed).collect();
    let measured = measure(&kernels, size, true)?;
    Ok(bars.into_iter().map(|bar| verdict(bar, &measured)).collect())
}

/// Prints the outcome of a bar.
fn verdict(bar: &Bar, measured: &[Measurement]) -> Option<bool> {
    let found = measured.iter().find(|found| found.kernel == bar.kernel && found.size == bar.size);
    let (Some(found), Some(ratio)) = (found, bar.reached(measured)) else {
        println!("{:<24} {:>9} not to be had on this machine", bar.kernel, bar.size.0);
        return None;
    };
    let to = match &bar.against {
        Against::Limit => format!("the {} limit", found.limit.name()),
        Against::Peer => found.peer.as_ref().map_or_else(String::new, |peer| peer.name.clone()),
        Against::Kernel(other) => other.clone(),
    };
    let pass = found.size.as_f64() / found.rate.0 * 1e6;
    let met = ratio >= bar.least;
    let verdict = if met { "met" } else { "MISSED" };
    println!("{:<24} {:>9} {pass:>8.1} µs {ratio:>9.3}   {to:<44} {:>7} {verdict}", bar.kernel, bar.size.0, bar.least);
    Some(met)
}
