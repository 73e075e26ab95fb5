//! Series of `/proc/meminfo` and `/proc/vmstat`: repeated contents of the file, as a loop on a phone records them.
//!
//! A block may have its time on a line before it: seconds since 1970 (`date +%s`) or a calendar time. If no line has a
//! time, a block begins where its first name is repeated, and blocks are [`super::Options::interval`] apart. Values are
//! found by their names, never by their lines, which differ between kernels.

use super::report::excerpt;
use super::{Format, ImportContext, Reason, Result};
use crate::{CounterRow, UtcTime, clock};

/// Which file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum File {
    /// Lines `Name: value kB`; a few are numbers of pages, and have no unit.
    Meminfo,
    /// Lines `name value`.
    Vmstat,
}

/// The reader of a series.
#[derive(Debug)]
pub(super) struct Series {
    file: File,
    owner: String,
    /// The time of the current block.
    time: UtcTime,
    /// Whether there are lines with the time.
    is_timed: bool,
    /// The name that began the current block, if there is one.
    first: Option<Box<str>>,
    /// Whether the current block has been recorded.
    is_seen: bool,
    /// The sum of the current block's free and reclaimable memory, until its `MemAvailable` is read.
    available: Option<f64>,
}

/// The counters that a kernel before 3.14, which lacks `MemAvailable`, could give to a process, except
/// for its reserves.
const FREE: [&str; 4] = ["MemFree", "Active(file)", "Inactive(file)", "SReclaimable"];

impl Series {
    pub(super) fn new(file: File, name: &str, context: &ImportContext<'_>) -> Self {
        let (owner, time) = (context.owner(name), context.options.start);
        Self { file, owner, time, is_timed: false, first: None, is_seen: false, available: None }
    }

    /// Records the block that `name` belongs to.
    fn enter(&mut self, name: &str, context: &mut ImportContext<'_>) -> Result<()> {
        if !self.is_timed && self.first.as_deref() == Some(name) {
            self.leave(context)?;
            let interval = i64::try_from(context.options.interval.0).unwrap_or(i64::MAX);
            self.time = UtcTime(self.time.0.saturating_add(interval));
            self.is_seen = false;
        }
        if self.first.is_none() {
            self.first = Some(name.into());
            if !self.is_timed {
                let start = context.options.start.seconds();
                let interval = context.options.interval;
                context
                    .note(&format!("no line tells the time: blocks are taken as {interval} apart, from {start} s on"));
            }
        }
        if !std::mem::replace(&mut self.is_seen, true) {
            context.report.samples += 1;
            let order = context.users.see(&self.owner, self.time, 0);
            // Blocks can be distinguished only by their time.
            let order = if order == super::tracker::Order::Same { super::tracker::Order::SameTime } else { order };
            context.in_order(self.time, order, true)?;
        }
        Ok(())
    }

    /// Ends the current block.
    fn leave(&mut self, context: &mut ImportContext<'_>) -> Result<()> {
        let Some(value) = self.available.take() else { return Ok(()) };
        context.note(&format!("no MemAvailable: it is taken as the sum of {}", FREE.join(", ")));
        context.counter(CounterRow { user: &self.owner, time: self.time, counter: "MemAvailable", value })
    }

    fn value(&mut self, name: &str, value: &str, unit: f64, context: &mut ImportContext<'_>) -> Result<()> {
        if !context.is_name("name", name)? {
            return Ok(());
        }
        let Some(number) = value.parse::<i64>().ok().filter(|_| !value.starts_with('+')) else {
            return context.wrong(name, "a whole number", value);
        };
        if number < 0 {
            return context.find(Reason::NegativeMemory, name, || format!("expected zero or more, found {number}"));
        }
        self.enter(name, context)?;
        if self.file == File::Meminfo && FREE.contains(&name) {
            let sum = self.available.or((name == FREE[0]).then_some(0.0));
            self.available = sum.map(|sum| sum + number as f64 * unit);
        } else if name == "MemAvailable" {
            self.available = None;
        }
        context.counter(CounterRow { user: &self.owner, time: self.time, counter: name, value: number as f64 * unit })
    }
}

/// `Name: value` and the bytes of its unit, or a value's own unit.
fn meminfo(text: &str) -> Option<(&str, &str, f64)> {
    let (name, rest) = text.split_once(':')?;
    let mut parts = rest.split_ascii_whitespace();
    let (value, unit) = (parts.next()?, parts.next());
    let unit = match unit {
        None => 1.0,
        Some("kB" | "KB") => 1024.0,
        Some(_) => return None,
    };
    (parts.next().is_none() && !name.contains(' ')).then_some((name, value, unit))
}

/// `name value`.
fn vmstat(text: &str) -> Option<(&str, &str, f64)> {
    let mut parts = text.split_ascii_whitespace();
    let (name, value) = (parts.next()?, parts.next()?);
    (parts.next().is_none() && !name.ends_with(':')).then_some((name, value, 1.0))
}

impl Format for Series {
    fn line(&mut self, text: &str, context: &mut ImportContext<'_>) -> Result<()> {
        let time = clock::parse_seconds(text);
        if let Some(time) = time.or_else(|| clock::parse_calendar(text, context.options.offset.unwrap_or_default())) {
            self.leave(context)?;
            (self.time, self.is_timed, self.is_seen) = (time, true, false);
            context.report.other_lines += 1;
            return Ok(());
        }
        let (own, other) = match self.file {
            File::Meminfo => (meminfo(text), vmstat(text)),
            File::Vmstat => (vmstat(text), meminfo(text)),
        };
        match own {
            Some((name, value, unit)) => self.value(name, value, unit, context),
            None => context.find(Reason::Columns, "", || {
                let (expected, kind) = match self.file {
                    File::Meminfo => ("'Name: value kB'", "vmstat"),
                    File::Vmstat => ("'name value'", "meminfo"),
                };
                let meant = if other.is_some() { format!("; did you mean --kind {kind}?") } else { String::new() };
                format!("expected {expected} or a time, found '{}'{meant}", excerpt(text))
            }),
        }
    }

    fn end(&mut self, context: &mut ImportContext<'_>) -> Result<()> {
        self.leave(context)
    }
}
