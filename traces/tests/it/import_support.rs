//! Imports of texts, with their rows as texts.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use haversack_traces::import::{Import, ImportError, Kind, Options, Reason, Report};
use haversack_traces::row::Row;

/// Rows and the report of an import.
pub(crate) struct Imported {
    /// `user time_s package adj source confidence`.
    pub(crate) apps: Vec<String>,
    /// `user time_s counter value`.
    pub(crate) counters: Vec<String>,
    pub(crate) report: Report,
}

/// How often a reason was found.
pub(crate) fn count(report: &Report, reason: Reason) -> u64 {
    report.findings.get(&reason).map_or(0, |findings| findings.count)
}

/// Imports files of some bytes.
pub(crate) fn import_all(options: Options, files: &[(&str, &[u8])]) -> Result<Imported, ImportError> {
    let (mut apps, mut counters) = (Vec::new(), Vec::new());
    let mut sink = |row: Row<'_>| {
        match row {
            Row::App(row) => apps.push(format!(
                "{} {} {} {} {} {}",
                row.user,
                row.time.seconds(),
                row.package,
                row.adj,
                row.source.word(),
                row.confidence.word()
            )),
            Row::Counter(row) => {
                counters.push(format!("{} {} {} {}", row.user, row.time.seconds(), row.counter, row.value));
            }
        }
        Ok(())
    };
    let mut import = Import::new(options, &mut sink);
    import.read_all(files.iter().map(|(name, bytes)| ((*name).to_owned(), Ok(*bytes))))?;
    let report = import.finish()?;
    Ok(Imported { apps, counters, report })
}

/// Imports a text.
pub(crate) fn import(kind: Kind, text: &str) -> Imported {
    import_all(Options::new(kind), &[("file.txt", text.as_bytes())]).unwrap()
}

/// The error that ends a strict import of a text.
pub(crate) fn strict(kind: Kind, bytes: &[u8]) -> String {
    let options = Options { strict: true, ..Options::new(kind) };
    import_all(options, &[("file.txt", bytes)]).err().unwrap().to_string()
}

/// The first finding of a reason, as it is printed.
pub(crate) fn finding(report: &Report, reason: Reason) -> String {
    report.findings.get(&reason).and_then(|found| found.first.first()).unwrap().to_string()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A file of `traces/fixtures`.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)).unwrap()
}
