//! The measurements as a table, for programs and for people.

use std::fmt::Write as _;

use haversack_bench::{Family, Measurement, SIZES};
use haversack_reports::table::Table;

use crate::error::CommandError;

/// The columns of the file.
const COLUMNS: [&str; 7] = ["name", "size", "bytes_per_s", "limit", "limit_bytes_per_s", "peer", "peer_bytes_per_s"];

/// One line a kernel and size; rates in bytes a second.
///
/// # Errors
/// None that can happen: every row has a cell for each column.
pub(super) fn csv(measured: &[Measurement]) -> Result<String, CommandError> {
    let mut table = Table::new(COLUMNS);
    for found in measured {
        let peer = found.peer.as_ref();
        let row = [
            found.kernel.as_str().into(),
            found.size.0.into(),
            found.rate.0.into(),
            found.limit.name().into(),
            found.limit_rate.0.into(),
            peer.map(|peer| peer.name.clone()).into(),
            peer.map(|peer| peer.rate.0).into(),
        ];
        table.push(row).map_err(CommandError::failed)?;
    }
    Ok(table.to_csv())
}

/// One line a kernel, the sizes side by side, under a title for each family.
pub(super) fn text(measured: &[Measurement]) -> String {
    let compared = measured.iter().any(|found| found.peer.is_some());
    let width = measured.iter().map(|found| found.kernel.len()).max().unwrap_or(0);
    let mut text = header(width, compared);
    for family in Family::ALL {
        let of_family: Vec<&Measurement> = measured.iter().filter(|found| found.family == family).collect();
        if !of_family.is_empty() {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "\n{}", family.title());
        }
        for sizes in of_family.chunk_by(|a, b| a.kernel == b.kernel) {
            text.push_str(&line(sizes, width, compared));
        }
    }
    text.push_str(
        "\nof limit: the rate as a share of the fastest read, write or copy of the same tensor in the same run\n",
    );
    if compared {
        text.push_str("× peer: how many times as fast as the peer, which the last column names\n");
    }
    text
}

fn header(width: usize, compared: bool) -> String {
    let peer = if compared { "  × peer" } else { "" };
    let columns = format!("    GB/s  of limit{peer}");
    let mut sizes = format!("{:width$}", "");
    let mut names = format!("{:width$}", "kernel");
    for size in SIZES {
        let _ = write!(sizes, "{:>place$}", format!("{} B", size.0), place = columns.chars().count());
        names.push_str(&columns);
    }
    format!("{sizes}\n{names}\n")
}

fn line(sizes: &[&Measurement], width: usize, compared: bool) -> String {
    let name = sizes.first().map_or("", |found| found.kernel.as_str());
    let mut line = format!("{name:width$}");
    for found in sizes {
        let _ = write!(line, "{:>8.2}{:>10.3}", found.rate.0 * 1e-9, found.share_of_limit());
        match found.times_peer() {
            Some(times) => {
                let _ = write!(line, "{times:>8.2}");
            }
            None if compared => line.push_str("       -"),
            None => {}
        }
    }
    let peer = sizes.first().and_then(|found| found.peer.as_ref());
    line + &peer.map_or_else(String::new, |peer| format!("  {}", peer.name)) + "\n"
}
