//! The kernels that have to reach something, beside what they have to reach: one interleaved run a size.
//!
//! `cargo bench -p haversack-kernels -- pack` shows the bars of kernels whose name contains `pack`. The code that
//! measures is that of `haversack kernels`.

use std::process::ExitCode;

use haversack_bench::bars::{Against, Bar, bars};
use haversack_bench::{FEATURE_MAPS, Kernel, Measurement, SIZES};
use haversack_kernels::KernelError;

fn main() -> ExitCode {
    // Cargo says `--bench`; whatever is no flag is a filter.
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    match report(&filter) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn report(filter: &str) -> Result<(), KernelError> {
    let catalogue = haversack_bench::catalogue()?;
    let bars: Vec<Bar> = bars().into_iter().filter(|bar| bar.kernel.contains(filter)).collect();
    println!("{:<24} {:>9} {:>11} {:>9}   {:<44} {:>7}", "kernel", "size", "a pass", "ratio", "to", "bar");
    let (mut met, mut missed) = (0, 0);
    for size in SIZES.into_iter().chain([FEATURE_MAPS]) {
        let bars: Vec<&Bar> = bars.iter().filter(|bar| bar.size == size).collect();
        let needed = |kernel: &&Kernel| bars.iter().any(|bar| bar.kernels().any(|name| name == kernel.id()));
        let kernels: Vec<&Kernel> = catalogue.iter().filter(needed).collect();
        let measured = haversack_bench::run(&kernels, size, true, || ())?;
        for bar in bars {
            match line(bar, &measured) {
                Some(true) => met += 1,
                Some(false) => missed += 1,
                None => {}
            }
        }
    }
    println!("\n{met} met, {missed} missed, {} not to be had on this machine", bars.len() - met - missed);
    Ok(())
}

/// Prints what became of a bar: whether it is met, or `None` where the kernel cannot run here.
fn line(bar: &Bar, measured: &[Measurement]) -> Option<bool> {
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
