//! The shared state of all formats: the options, the report, the place in the input, and the sink for rows.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::quality::FixedState;
use haversack_devices::ensure;

use super::report::excerpt;
use super::{Finding, ImportError, LONGEST_LINE, LONGEST_NAME, Options, Order, Reason, Report, Result, Sink, Tracker};
use crate::{AppRow, CounterRow, Row, UtcTime};

/// A day, in nanoseconds: longer gaps are reported line by line.
const DAY: u64 = 86_400_000_000_000;

/// The state of an import in progress.
pub(super) struct ImportContext<'i> {
    pub(super) options: Options,
    pub(super) report: Report,
    pub(super) users: Tracker,
    sink: &'i mut Sink<'i>,
    /// The current line.
    pub(super) place: Place,
    line_is_bad: bool,
}

/// A line of the input.
#[derive(Clone, Debug)]
pub(super) struct Place {
    file: Arc<str>,
    line: u64,
}

impl<'i> ImportContext<'i> {
    pub(super) fn new(options: Options, sink: &'i mut Sink<'i>) -> Self {
        Self {
            options,
            report: Report::default(),
            users: Tracker::default(),
            sink,
            place: Place { file: "".into(), line: 0 },
            line_is_bad: false,
        }
    }

    /// A file begins.
    pub(super) fn open(&mut self, file: &str) {
        self.place = Place { file: file.into(), line: 0 };
        self.report.files += 1;
    }

    /// A line of `length` bytes begins.
    pub(super) fn next_line(&mut self, length: usize) {
        self.place.line += 1;
        self.line_is_bad = false;
        self.report.lines += 1;
        self.report.bytes += length as u64 + 1;
    }

    /// Emits a row of an app.
    pub(super) fn app(&mut self, row: AppRow<'_>) -> Result<()> {
        self.report.app_rows += 1;
        (self.sink)(Row::App(row)).map_err(ImportError::Sink)
    }

    /// Emits a row of a counter.
    pub(super) fn counter(&mut self, row: CounterRow<'_>) -> Result<()> {
        self.report.counter_rows += 1;
        (self.sink)(Row::Counter(row)).map_err(ImportError::Sink)
    }

    /// Whether a further finding of this reason is to be kept in full.
    pub(super) fn is_told(&self, reason: Reason) -> bool {
        let told = self.report.findings.get(&reason).map_or(0, |findings| findings.first.len());
        told < self.options.listed || (self.options.strict && reason.is_bad())
    }

    /// Reports a finding in the current line; the message is made only if it is kept.
    pub(super) fn find(&mut self, reason: Reason, field: &str, message: impl FnOnce() -> String) -> Result<()> {
        let counts = reason.is_bad() && !std::mem::replace(&mut self.line_is_bad, true);
        self.report.bad_lines += u64::from(counts);
        self.tell(&self.place.clone(), reason, field, message)
    }

    /// Reports a finding in an earlier line, whose sample waited for the next one.
    pub(super) fn find_at(
        &mut self,
        place: &Place,
        reason: Reason,
        field: &str,
        message: impl FnOnce() -> String,
    ) -> Result<()> {
        self.report.bad_lines += u64::from(reason.is_bad());
        self.tell(place, reason, field, message)
    }

    fn tell(&mut self, place: &Place, reason: Reason, field: &str, message: impl FnOnce() -> String) -> Result<()> {
        let ends = self.options.strict && reason.is_bad();
        let is_told = self.is_told(reason);
        let findings = self.report.findings.entry(reason).or_default();
        findings.count += 1;
        if !is_told {
            return Ok(());
        }
        let Place { file, line } = place.clone();
        let finding = Finding { reason, file: file.to_string(), line, field: field.to_owned(), message: message() };
        ensure!(!ends, ImportError::Strict(finding));
        findings.first.push(finding);
        Ok(())
    }

    /// The file breaks off, with `rest` bytes read of its last line.
    pub(super) fn damaged(&mut self, rest: usize, why: &std::io::Error) -> Result<()> {
        self.next_line(rest);
        if rest > 0 {
            self.find(Reason::CutLine, "", || format!("the file ends within this line, after {rest} bytes of it"))?;
        }
        self.find(Reason::DamagedFile, "", || {
            format!("the packed file breaks off or is damaged here ({why}); what came before is imported")
        })
    }

    /// The line as text.
    pub(super) fn text<'l>(&mut self, line: &'l [u8]) -> Result<Option<&'l str>> {
        match std::str::from_utf8(line) {
            Ok(text) => Ok(Some(text)),
            Err(error) => {
                self.not_text(error.valid_up_to() + 1)?;
                Ok(None)
            }
        }
    }

    /// The line is not UTF-8 from byte `at` on, counted from one.
    pub(super) fn not_text(&mut self, at: usize) -> Result<()> {
        self.find(Reason::NotText, "", || format!("expected UTF-8, found another byte at place {at}"))
    }

    /// The line, of `length` bytes, is too long.
    pub(super) fn too_long(&mut self, length: usize) -> Result<()> {
        self.find(Reason::LongLine, "", || format!("expected a line of at most {LONGEST_LINE} bytes, found {length}"))
    }

    /// A field that is not as `expected`.
    pub(super) fn wrong(&mut self, field: &str, expected: &str, found: &str) -> Result<()> {
        self.find(Reason::Field, field, || format!("expected {expected}, found '{}'", excerpt(found)))
    }

    /// Whether `name` can be a name; if it cannot, that is reported.
    pub(super) fn is_name(&mut self, field: &str, name: &str) -> Result<bool> {
        let fits = (1..=LONGEST_NAME).contains(&name.len());
        if !fits {
            let length = name.len();
            self.find(Reason::Field, field, || {
                format!("expected a name of 1 to {LONGEST_NAME} bytes, found {length}")
            })?;
        }
        Ok(fits)
    }

    /// Records a sample of `user`, whose content has this [`digest`], and reports its order; returns whether it is to
    /// be imported, which a duplicate is not. `one_a_time` defines whether two samples of a user at one time are odd,
    /// as two events are not.
    pub(super) fn sample(&mut self, user: &str, time: UtcTime, content: u64, one_a_time: bool) -> Result<bool> {
        let order = self.users.see(user, time, content);
        if order == Order::Same {
            self.find(Reason::Duplicate, "", || format!("the same as the user's line before, at {time}"))?;
            return Ok(false);
        }
        self.report.samples += 1;
        self.in_order(time, order, one_a_time)?;
        Ok(true)
    }

    /// Reports the order of a sample, and counts the gap before it.
    pub(super) fn in_order(&mut self, time: UtcTime, order: Order, one_a_time: bool) -> Result<()> {
        match order {
            Order::Later { gap } => {
                self.report.gaps.add(gap);
                if gap >= DAY {
                    let days = gap as f64 / DAY as f64;
                    self.find(Reason::Gap, "", || format!("{days:.1} days after the sample before"))?;
                }
            }
            Order::SameTime if one_a_time => {
                self.find(Reason::RepeatedTime, "", || format!("a second sample of the user at {time}"))?;
            }
            Order::Earlier { than } => {
                self.find(Reason::TimeReversal, "", || format!("{time} comes after {than}"))?;
            }
            Order::Untracked => self.report.untracked_samples += 1,
            Order::First | Order::Same | Order::SameTime => {}
        }
        Ok(())
    }

    /// The user of a file without users: from the options, or else the file's name without its endings.
    pub(super) fn owner(&self, file: &str) -> String {
        let stem = || {
            let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
            let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or("unknown");
            stem.to_owned()
        };
        self.options.user.clone().unwrap_or_else(stem)
    }

    /// Adds a note on the basis of the rows, once.
    pub(super) fn note(&mut self, note: &str) {
        if self.report.notes.iter().all(|found| found != note) {
            self.report.notes.push(note.to_owned());
        }
    }

    /// The report, after all lines are read.
    pub(super) fn finish(self) -> Report {
        Report { users: self.users.coverage(), ..self.report }
    }
}

/// A hash of a sample, to recognise duplicates. It has no key, so that reports are reproducible; a gigabyte takes a
/// tenth of a second.
pub(super) fn digest(content: &[u8]) -> u64 {
    FixedState::default().hash_one(content)
}
