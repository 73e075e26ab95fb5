//! The measurements as a table, for programs and for people.

use std::iter::once;

use haversack_bench::{Family, Measurement, SIZES};
use haversack_reports::table::Table;
use haversack_reports::text_table::{Column, TextTable};

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
    let numbers = if compared { &NUMBERS[..] } else { &NUMBERS[..2] };
    let names = Column::left(measured.iter().map(|found| found.kernel.len()).max().unwrap_or(0));
    let of_a_size = Column::right(numbers.iter().map(|(_, width)| width).sum());
    let mut sizes = TextTable::new(once(names).chain([of_a_size; SIZES.len()]));
    sizes.row(once(String::new()).chain(SIZES.map(|size| format!("{} B", size.0))));
    let columns = SIZES.iter().flat_map(|_| numbers).map(|&(_, width)| Column::right(width));
    let mut table = TextTable::new(once(names).chain(columns));
    table.row(once("kernel").chain(SIZES.iter().flat_map(|_| numbers).map(|&(title, _)| title)));
    for &family in Family::ALL {
        let of_family: Vec<&Measurement> = measured.iter().filter(|found| found.family == family).collect();
        if !of_family.is_empty() {
            table.row([""]).row([family.title()]);
        }
        for sizes in of_family.chunk_by(|a, b| a.kernel == b.kernel) {
            table.row(row(sizes, compared));
        }
    }
    table
        .row([""])
        .row(["of limit: the rate as a share of the fastest read, write or copy of the same tensor in the same run"]);
    if compared {
        table.row(["× peer: how many times as fast as the peer, which the last column names"]);
    }
    format!("{sizes}{table}")
}

/// What is told of a kernel at a size, each with the width of its column.
const NUMBERS: [(&str, usize); 3] = [("GB/s", 8), ("of limit", 10), ("× peer", 8)];

/// The cells of a kernel: its name, its numbers at each size, and its peer.
fn row(sizes: &[&Measurement], compared: bool) -> Vec<String> {
    let mut row: Vec<String> = sizes.first().map(|found| found.kernel.clone()).into_iter().collect();
    for found in sizes {
        row.extend([format!("{:.2}", found.rate.0 * 1e-9), format!("{:.3}", found.share_of_limit())]);
        let times = found.times_peer().map(|times| format!("{times:.2}"));
        row.extend(times.or_else(|| compared.then(|| "-".to_owned())));
    }
    // Wider than a number, so that it follows the last one wherever that stands.
    row.extend(sizes.first().and_then(|found| found.peer.as_ref()).map(|peer| format!("  {:6}", peer.name)));
    row
}

#[cfg(test)]
mod tests {
    use haversack_bench::{Limit, Peer};
    use haversack_devices::units::BytesPerSecond;

    use super::*;

    fn measured(kernel: &str, size: usize, peer: Option<f64>) -> Measurement {
        Measurement {
            kernel: kernel.to_owned(),
            family: Family::Reduction,
            size: SIZES[size],
            rate: BytesPerSecond(12.5e9),
            limit: Limit::Read,
            limit_rate: BytesPerSecond(20e9),
            peer: peer.map(|rate| Peer { name: "a loop".to_owned(), rate: BytesPerSecond(rate) }),
        }
    }

    #[test]
    fn numbers_stand_below_their_titles() {
        // 12.5 GB/s of 20 are 0.625, and five times 2.5 GB/s. A kernel that has no third size has its peer behind the second.
        let all = [0, 1, 2].map(|size| measured("min", size, Some(2.5e9)));
        let some = [0, 1].map(|size| measured("product", size, if size == 0 { Some(2.5e9) } else { None }));
        let text = text(&[all.to_vec(), some.to_vec()].concat());
        let expected = "                         204800 B                 1572864 B                67108864 B
kernel     GB/s  of limit  × peer    GB/s  of limit  × peer    GB/s  of limit  × peer

Reductions
min       12.50     0.625    5.00   12.50     0.625    5.00   12.50     0.625    5.00  a loop
product   12.50     0.625    5.00   12.50     0.625       -  a loop

of limit: the rate as a share of the fastest read, write or copy of the same tensor in the same run
× peer: how many times as fast as the peer, which the last column names
";
        assert_eq!(text, expected);
    }

    #[test]
    fn without_peers_there_is_no_column_for_them() {
        let text = text(&[measured("minimum", 0, None)]);
        // A name of seven letters, then two columns a size, of 8 and 10.
        let sizes = format!("{:7}{:>18}{:>18}{:>18}", "", "204800 B", "1572864 B", "67108864 B");
        assert!(text.starts_with(&format!("{sizes}\nkernel     GB/s  of limit    GB/s")), "{text}");
        assert!(text.contains("\nminimum   12.50     0.625\n") && !text.contains("peer"), "{text}");
    }
}
