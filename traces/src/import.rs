//! Importers: from existing files to rows, line by line and within bounded memory.
//!
//! An [`Import`] takes any number of files of one [`Kind`] and gives every row to a sink. A line that cannot be read is
//! counted and reported in the [`Report`]; it ends an import only if [`Options::strict`] is set. The importers do not
//! know how the rows are used.
//!
//! ```
//! use haversack_traces::import::{Import, Kind, Options};
//! use haversack_traces::row::Row;
//!
//! let line = r#"{"uuid":"a","timestamp":1443336825,"apps":[{"processName":"com.a:ui","priority":"Service"}]}"#;
//! let mut packages = Vec::new();
//! let mut sink = |row: Row<'_>| {
//!     if let Row::App(row) = row {
//!         packages.push(row.package.to_owned());
//!     }
//!     Ok(())
//! };
//! let mut import = Import::new(Options::new(Kind::Carat), &mut sink);
//! import.read("part-00000", line.as_bytes())?;
//! let report = import.finish()?;
//! assert_eq!((packages, report.bad_lines), (vec!["com.a".to_owned()], 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod carat;
mod context;
mod lmkd;
mod lsapp;
mod perfetto;
mod pipeline;
mod proc_files;
mod report;
mod tracker;

pub use crate::clock::UtcOffset;
pub use report::{Coverage, Finding, Findings, Gaps, Reason, Report, Tally};
pub use tracker::{Order, Tracker};

use std::io::{self, Read};
use std::str::FromStr;

use carat::{Carat, Parsed, Parser};
use context::ImportContext;
use haversack_devices::Nanos;
use haversack_devices::text::hint;
use lsapp::Fields;
use pipeline::{Block, Blocks, Unpacked, Whole};
use strum::{EnumString, IntoStaticStr, VariantArray};
use thiserror::Error;

use crate::{Row, UtcTime};

/// The longest line that is read; a longer one is bad, and costs no memory.
pub const LONGEST_LINE: usize = 16 << 20;
/// The longest name of a user, a package or a counter, in bytes. Android's own limit for a package is 255.
pub const LONGEST_NAME: usize = 512;

/// The error of a sink.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;
/// The receiver of rows: called for one after the other, though not always from the same thread.
pub type Sink<'s> = dyn FnMut(Row<'_>) -> Result<(), SinkError> + Send + 's;

/// The formats that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Kind {
    /// The public Carat data: JSON lines in gzip parts.
    Carat,
    /// The Carat data by request: the same, with memory.
    CaratFull,
    /// LSApp: tab-separated events, in a tar.gz.
    Lsapp,
    /// Tsinghua App Usage: five columns between blanks.
    Tsinghua,
    /// A series of `/proc/meminfo` contents.
    Meminfo,
    /// A series of `/proc/vmstat` contents.
    Vmstat,
    /// Counters of a Perfetto trace, as CSV.
    Perfetto,
    /// The kills of lmkd, as logcat prints them.
    Lmkd,
}

impl Kind {
    /// All kinds.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The name on the command line.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// Whether its files can contain rows of apps.
    pub const fn has_apps(self) -> bool {
        !matches!(self, Self::Meminfo | Self::Vmstat)
    }

    /// Whether its files can contain rows of counters.
    pub const fn has_counters(self) -> bool {
        !matches!(self, Self::Lsapp | Self::Tsinghua)
    }
}

/// How the processes of a Carat sample are to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum CaratSemantics {
    /// The processes that run at the time of the sample.
    ProcessList,
    /// The apps that came to the front since the user's previous sample.
    UsageInterval,
    /// `ProcessList` before 21 June 2017, `UsageInterval` from then on, as the client changed.
    #[default]
    Auto,
}

/// How to import.
#[derive(Clone, Debug)]
#[must_use]
pub struct Options {
    /// The format.
    pub kind: Kind,
    /// Whether the first bad line ends the import.
    pub strict: bool,
    /// How Carat samples are to be read.
    pub semantics: CaratSemantics,
    /// The user of the phone, if the file does not name one; the file's name without its ending if `None`.
    pub user: Option<String>,
    /// The beginning of a trace without a clock.
    pub start: UtcTime,
    /// The time between the blocks of a `/proc` series without times.
    pub interval: Nanos,
    /// The year of the first line of a log without years; 1970 if `None`.
    pub year: Option<i32>,
    /// The offset of local times from UTC; the default of the kind if `None`.
    pub offset: Option<UtcOffset>,
    /// The number of findings per reason that are kept in full.
    pub listed: usize,
}

impl Options {
    /// The defaults for `kind`: lenient, with ten findings per reason.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            strict: false,
            semantics: CaratSemantics::Auto,
            user: None,
            start: UtcTime(0),
            interval: Nanos(1_000_000_000),
            year: None,
            offset: None,
            listed: 10,
        }
    }
}

/// Why an import ends early.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file is an archive that must be unpacked first.
    #[error("{file}: this is a {what}; {advice}")]
    Archive {
        /// The file.
        file: String,
        /// The kind of archive.
        what: &'static str,
        /// How to unpack it.
        advice: &'static str,
    },
    /// The file cannot be read.
    #[error("{file} cannot be read: {source}")]
    Read {
        /// The file.
        file: String,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A line is bad, and the import is strict.
    #[error("{0}")]
    Strict(Finding),
    /// The sink did not accept a row.
    #[error("{0}")]
    Sink(SinkError),
}

/// The result of reading, which may end the import.
type Result<T, E = ImportError> = std::result::Result<T, E>;

/// A reader for the lines of a kind.
trait Format: Send {
    /// Reads a line, which is neither blank nor more than [`LONGEST_LINE`] long.
    fn line(&mut self, text: &str, context: &mut ImportContext<'_>) -> Result<()>;

    /// Called at the end of a file.
    fn end(&mut self, _context: &mut ImportContext<'_>) -> Result<()> {
        Ok(())
    }
}

/// The reader for the lines of `file`, if its kind is read line by line.
fn format(file: &str, context: &mut ImportContext<'_>) -> Option<Box<dyn Format>> {
    Some(match context.options.kind {
        Kind::Carat | Kind::CaratFull => return None,
        Kind::Lsapp => Box::new(lsapp::Lsapp::new(context)),
        Kind::Tsinghua => Box::new(lsapp::Tsinghua::new(context)),
        Kind::Meminfo => Box::new(proc_files::Series::new(proc_files::File::Meminfo, file, context)),
        Kind::Vmstat => Box::new(proc_files::Series::new(proc_files::File::Vmstat, file, context)),
        Kind::Perfetto => Box::new(perfetto::Perfetto::new(file, context)),
        Kind::Lmkd => Box::new(lmkd::Lmkd::new(file, context)),
    })
}

/// An import in progress.
#[must_use]
pub struct Import<'i> {
    context: ImportContext<'i>,
    /// For kinds that are read block by block, on all threads.
    carat: Option<Carat>,
}

impl<'i> Import<'i> {
    /// An import that gives its rows to `sink`.
    pub fn new(options: Options, sink: &'i mut Sink<'i>) -> Self {
        let is_carat = matches!(options.kind, Kind::Carat | Kind::CaratFull);
        let carat = is_carat.then(|| Carat::new(options.kind == Kind::CaratFull));
        Self { context: ImportContext::new(options, sink), carat }
    }

    /// Reads a file, plain or gzip, to its end; `name` is its name in the report.
    ///
    /// # Errors
    /// As those of [`read_all`](Self::read_all).
    pub fn read(&mut self, name: &str, reader: impl Read + Send) -> Result<()> {
        self.read_all(std::iter::once((name.to_owned(), Ok(reader))))
    }

    /// Reads files one after the other, with their names in the report.
    ///
    /// Carat's are read on the threads of the present rayon pool. Rows, findings and the error that ends an import are
    /// the same on any number of threads.
    ///
    /// # Errors
    /// An archive, a file that cannot be read, a sink that fails; in a strict import the first bad line.
    pub fn read_all<R: Read + Send>(
        &mut self,
        files: impl Iterator<Item = (String, io::Result<R>)> + Send,
    ) -> Result<()> {
        if let Some(carat) = &mut self.carat {
            let parser = Parser { semantics: self.context.options.semantics };
            return pipeline::run(files, parser, carat, &mut self.context);
        }
        for (name, file) in files {
            let file = file.map_err(|source| ImportError::Read { file: name.clone(), source })?;
            self.read_lines(&name, file)?;
        }
        Ok(())
    }

    /// Reads a file of a kind that is read line by line.
    fn read_lines(&mut self, name: &str, reader: impl Read + Send) -> Result<()> {
        let failed = |source| ImportError::Read { file: name.to_owned(), source };
        let unpacked = match pipeline::unpack(reader, self.context.options.kind).map_err(failed)? {
            Ok(unpacked) => unpacked,
            Err((what, advice)) => return Err(ImportError::Archive { file: name.to_owned(), what, advice }),
        };
        let context = &mut self.context;
        context.open(name);
        let Some(format) = format(name, context) else { return Ok(()) };
        let mut reading = Reading { context, format };
        let failure = match unpacked {
            Unpacked::Text { reader, packed } => reading.text(reader)?.map(|(error, rest)| (error, rest, packed)),
            Unpacked::Tar(mut archive) => reading.texts(&mut archive)?.map(|(error, rest)| (error, rest, true)),
        };
        match failure {
            // A packed file that breaks off has a specific error; other errors come from the file system.
            Some((error, rest, true)) if is_damage(&error) => reading.context.damaged(rest, &error)?,
            Some((error, ..)) => return Err(failed(error)),
            None => {}
        }
        reading.format.end(reading.context)
    }

    /// Emits the samples that were waiting for a successor, and returns the report.
    ///
    /// # Errors
    /// A sink that fails.
    pub fn finish(mut self) -> Result<Report> {
        if let Some(carat) = &mut self.carat {
            carat.finish(&mut self.context)?;
        }
        Ok(self.context.finish())
    }
}

/// An import of a kind that is read line by line.
struct Reading<'a, 'i> {
    context: &'a mut ImportContext<'i>,
    format: Box<dyn Format>,
}

impl Reading<'_, '_> {
    /// The text files of a tar, one after the other, until one cannot be read.
    fn texts<R: Read>(&mut self, archive: &mut tar::Archive<R>) -> Result<Option<Unread>> {
        let entries = match archive.entries() {
            Ok(entries) => entries,
            Err(error) => return Ok(Some((error, 0))),
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => return Ok(Some((error, 0))),
            };
            if pipeline::is_text(&entry) {
                let left = entry.size();
                let failure = self.text(Whole { reader: entry, left })?;
                if failure.is_some() {
                    return Ok(failure);
                }
            }
        }
        Ok(None)
    }

    /// The lines of a text, until one cannot be read.
    fn text(&mut self, reader: impl Read) -> Result<Option<Unread>> {
        let mut blocks = Blocks::new(reader);
        loop {
            match blocks.next() {
                Block::Lines(lines) => {
                    let lines = lines.strip_suffix(b"\n").unwrap_or(&lines);
                    lines.split(|&byte| byte == b'\n').try_for_each(|line| self.line(line))?;
                }
                Block::TooLong(length) => self.too_long(length)?,
                Block::Failed(error, rest) => return Ok(Some((error, rest))),
                Block::End => return Ok(None),
            }
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<()> {
        if line.len() > LONGEST_LINE {
            return self.too_long(line.len());
        }
        self.context.next_line(line.len());
        let line = line.trim_ascii();
        if line.is_empty() {
            self.context.report.blank_lines += 1;
            return Ok(());
        }
        self.context.text(line)?.map_or(Ok(()), |text| self.format.line(text, self.context))
    }

    fn too_long(&mut self, length: usize) -> Result<()> {
        self.context.next_line(length);
        self.context.too_long(length)
    }
}

/// The error that stopped the reading of a text, and the number of bytes read of its last line.
type Unread = (io::Error, usize);

/// Whether the error is of a decoder, not of the file system. A fault of a tar is always of this kind.
fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(error.kind(), Kind::UnexpectedEof | Kind::InvalidData | Kind::InvalidInput | Kind::Other)
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL.iter().copied().find(|kind| kind.word() == word).ok_or_else(|| {
            let words: Vec<&str> = Self::ALL.iter().map(|kind| kind.word()).collect();
            format!("expected one of {}, found '{word}'{}", words.join(", "), hint(word, words))
        })
    }
}
