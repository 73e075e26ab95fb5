//! How far long work has come: a bar on a terminal, elsewhere a line now and then; and what to say if it ends early.

use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{DecimalBytes, HumanCount, ProgressBar, ProgressStyle};

/// No line follows another sooner.
const SOONEST: Duration = Duration::from_secs(10);
/// A line comes for each such part of the work that is done ...
const PARTS: u64 = 10;
/// ... and after this time whatever was done.
const LATEST: Duration = Duration::from_secs(60);
/// What is done in so many parts of the work says how long the rest takes; of less it is not to be believed.
const BELIEVED: u64 = 20;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Things of this name, in the plural.
    Number(&'static str),
    /// Such of which some take much longer than others, so that nobody knows how long the rest takes.
    Uneven(&'static str),
    /// Bytes.
    Bytes,
}

impl Amount {
    /// The bar of a terminal, as indicatif writes it.
    fn template(self) -> String {
        match self {
            Self::Number(things) => format!("{{bar:40}} {{human_pos}} of {{human_len}} {things}, {{eta}} left"),
            Self::Uneven(things) => format!("{{bar:40}} {{human_pos}} of {{human_len}} {things}"),
            Self::Bytes => {
                "{bar:40} {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left".to_owned()
            }
        }
    }

    /// "1,200 of 12,000 runs".
    fn text(self, done: u64, all: u64) -> String {
        match self {
            Self::Number(things) | Self::Uneven(things) => {
                format!("{} of {} {things}", HumanCount(done), HumanCount(all))
            }
            Self::Bytes => format!("{} of {}", DecimalBytes(done), DecimalBytes(all)),
        }
    }
}

/// How far a piece of work has come, told on the standard error while it goes on.
pub struct Progress {
    bar: ProgressBar,
    lines: Option<Mutex<Lines>>,
    begun: Instant,
}

impl Progress {
    /// Work of `all`, of which `done` was done before.
    pub fn new(amount: Amount, all: u64, done: u64) -> Self {
        let lines = Lines { amount, all, before: done, done, told: done, last: Duration::ZERO };
        let lines = (!io::stderr().is_terminal()).then(|| Mutex::new(lines));
        let bar = if lines.is_some() { ProgressBar::hidden() } else { ProgressBar::new(all).with_position(done) };
        let bar = match ProgressStyle::with_template(&amount.template()) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        Self { bar, lines, begun: Instant::now() }
    }

    /// So much more is done.
    pub fn inc(&self, more: u64) {
        self.bar.inc(more);
        let Some(lines) = &self.lines else { return };
        let line = lines.lock().unwrap_or_else(PoisonError::into_inner).line(self.begun.elapsed(), more);
        if let Some(line) = line {
            // Where nobody listens there is nobody to tell.
            let _ = writeln!(io::stderr().lock(), "{line}");
        }
    }

    /// `reader`, whose bytes count as they are read.
    pub fn reading<R: Read>(&self, reader: R) -> impl Read {
        Reading { reader, progress: self }
    }

    /// Nothing more is to come.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The lines that stand for the bar where there is no terminal.
struct Lines {
    amount: Amount,
    all: u64,
    /// What was done before the work began.
    before: u64,
    done: u64,
    /// What was done at the last line, and when that was.
    told: u64,
    last: Duration,
}

impl Lines {
    /// The line that is due if `more` is done `now`, counted from the beginning.
    fn line(&mut self, now: Duration, more: u64) -> Option<String> {
        self.done += more;
        let since = now.saturating_sub(self.last);
        let is_part = (self.done - self.told).saturating_mul(PARTS) >= self.all;
        if since < SOONEST || self.done >= self.all || !(is_part || since >= LATEST) {
            return None;
        }
        (self.told, self.last) = (self.done, now);
        let (text, new) = (self.amount.text(self.done, self.all), self.done - self.before);
        if matches!(self.amount, Amount::Uneven(_)) || new * BELIEVED < self.all - self.before {
            return Some(text);
        }
        Some(format!("{text}, about {} left", about(now.as_secs_f64() * (self.all - self.done) as f64 / new as f64)))
    }
}

/// Seconds as far as they are to be believed: `40 s`, `3 min`, `2.5 h`.
fn about(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 90.0 => format!("{:.0} s", (seconds / 10.0).ceil() * 10.0),
        seconds if seconds < 5400.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

struct Reading<'p, R> {
    reader: R,
    progress: &'p Progress,
}

impl<R: Read> Read for Reading<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.progress.inc(read as u64);
        Ok(read)
    }
}

/// How far work had come that ended early, and how it goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped after {}; `{command}` goes on", Amount::Number(things).text(*done, *all))]
pub struct Stopped {
    /// How much was done ...
    pub done: u64,
    /// ... of how much ...
    pub all: u64,
    /// ... of what, in the plural.
    pub things: &'static str,
    /// The command that goes on.
    pub command: String,
}

/// A path as a word of a command line, in quotation marks if a shell would take it apart.
pub fn word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:,@".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(all: u64) -> Lines {
        Lines { amount: Amount::Number("runs"), all, before: 0, done: 0, told: 0, last: Duration::ZERO }
    }

    #[test]
    fn lines_come_a_tenth_at_a_time_and_never_within_ten_seconds() {
        let mut lines = lines(12_000);
        let mut at = |seconds: u64, more: u64| lines.line(Duration::from_secs(seconds), more);
        assert_eq!(at(9, 1_200), None, "too soon");
        assert_eq!(at(9, 0), None);
        // 1,200 in 10 s: 10,800 more take 90 s.
        assert_eq!(at(10, 0).as_deref(), Some("1,200 of 12,000 runs, about 2 min left"));
        assert_eq!(at(25, 600), None, "less than a tenth more");
        // A minute after the last line: 1,800 in 70 s, so 10,200 more take 396.7 s.
        assert_eq!(at(70, 0).as_deref(), Some("1,800 of 12,000 runs, about 7 min left"));
        assert_eq!(at(90, 10_200), None, "what is done needs no line");
    }

    #[test]
    fn what_was_done_before_makes_nothing_faster() {
        let mut lines = Lines { before: 50, done: 50, told: 50, ..lines(100) };
        // 10 in 3600 s: 40 more take four hours.
        let line = lines.line(Duration::from_secs(3600), 10).unwrap();
        assert_eq!(line, "60 of 100 runs, about 4.0 h left");
        assert_eq!([40.0, 89.0, 91.0].map(about), ["40 s", "90 s", "2 min"]);
    }

    #[test]
    fn what_is_not_to_be_believed_is_not_told() {
        let minute = Duration::from_secs(60);
        // A twenty-fifth is too little, and of things that take unlike times any share.
        assert_eq!(lines(100).line(minute, 4).as_deref(), Some("4 of 100 runs"));
        let mut uneven = Lines { amount: Amount::Uneven("artefacts"), ..lines(10) };
        assert_eq!(uneven.line(minute, 5).as_deref(), Some("5 of 10 artefacts"));
    }

    #[test]
    fn what_ended_early_says_how_to_go_on() {
        let command = format!("haversack sweep {} --resume", word(Path::new("my sweep.toml")));
        let stopped = Stopped { done: 312, all: 4_096, things: "runs", command };
        let expected = "stopped after 312 of 4,096 runs; `haversack sweep 'my sweep.toml' --resume` goes on";
        assert_eq!(stopped.to_string(), expected);
        assert_eq!(word(Path::new("out/a-b.toml")), "out/a-b.toml");
    }
}
