//! The speed of importing Carat's lines, on one core: `cargo bench -p haversack-traces`.
//!
//! Samples have 52 processes, as the median sample of the public data has. The rows are discarded; to measure the
//! additional cost of writing a table, run `haversack trace import` on a file.

use std::fmt::Write as _;
use std::io::Write as _;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use flate2::Compression;
use flate2::write::GzEncoder;
use haversack_traces::import::{Import, Kind, Options};
use haversack_traces::row::Row;

/// Processes of a sample.
const PROCESSES: usize = 52;
/// Samples of the text: some 12 MB.
const SAMPLES: usize = 3000;
/// Words by their share of the public data, in twelfths.
const PRIORITIES: [&str; 12] = [
    "Background process",
    "Service",
    "Background process",
    "Foreground app",
    "Service",
    "Background process",
    "Visible task",
    "Service",
    "Background process",
    "Service",
    "Background process",
    "Perceptible task",
];

fn main() {
    divan::main();
}

/// Lines like those of the public data.
fn text() -> String {
    let mut text = String::new();
    for sample in 0..SAMPLES {
        let (user, time) = (sample / 40, 1_443_336_825 + 3000 * sample);
        // Writing to a text cannot fail.
        let _ = write!(
            text,
            r#"{{"uuid":"{user:064x}","timestamp":{time},"batteryLevel":46,"batteryStatus":"discharging","timeZone":"Europe/Helsinki","mobileCountryCode":"244","apps":["#
        );
        for process in 0..PROCESSES {
            let separator = if process == 0 { "" } else { "," };
            // 17 and 120 have no common factor: the packages of a sample are unordered, and distinct.
            let package = (17 * process + sample) % 120;
            let priority = PRIORITIES[(process + sample) % PRIORITIES.len()];
            let _ = write!(text, r#"{separator}{{"processName":"com.example.app{package}","priority":"{priority}"}}"#);
        }
        text.push_str("]}\n");
    }
    text
}

/// Imports a file and returns the number of its rows.
fn import(bytes: &[u8]) -> u64 {
    let mut sink = |row: Row<'_>| {
        black_box(row);
        Ok(())
    };
    let mut import = Import::new(Options::new(Kind::Carat), &mut sink);
    let read = import.read("part", bytes);
    read.and_then(|()| import.finish()).map_or(0, |report| report.app_rows)
}

#[divan::bench]
fn plain(bencher: Bencher<'_, '_>) {
    let text = text();
    bencher.counter(BytesCount::new(text.len())).bench(|| import(text.as_bytes()));
}

/// The rate is that of the unpacked text.
#[divan::bench]
fn gzipped(bencher: Bencher<'_, '_>) {
    let text = text();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to a vector cannot fail.
    let _ = encoder.write_all(text.as_bytes());
    let packed = encoder.finish().unwrap_or_default();
    bencher.counter(BytesCount::new(text.len())).bench(|| import(&packed));
}
