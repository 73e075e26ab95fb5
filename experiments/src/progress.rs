//! Progress of long work: a bar on a terminal, otherwise a line now and then; and the message for work that ends early.

use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use indicatif::{DecimalBytes, HumanCount, ProgressBar, ProgressStyle};

use crate::cache::lock;

/// The least time between two lines.
const SOONEST: Duration = Duration::from_secs(10);
/// A line is printed for each such part of the work that is done ...
const PARTS: u64 = 10;
/// ... and after this time in any case.
const LATEST: Duration = Duration::from_secs(60);
/// The remaining time is estimated once one part in this many is done; before that the estimate is unreliable.
const BELIEVED: u64 = 20;

/// The unit of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Things of this name, in the plural.
    Number(&'static str),
    /// Like `Number`, but with very different durations: the remaining time cannot be estimated, so the elapsed time
    /// and the running items are shown.
    Uneven(&'static str),
    /// Bytes.
    Bytes,
}

impl Amount {
    /// The bar of a terminal, as indicatif writes it.
    fn template(self) -> String {
        match self {
            Self::Number(things) => format!("{{bar:40}} {{human_pos}} of {{human_len}} {things}, {{eta}} left"),
            Self::Uneven(things) => {
                format!("{{bar:20}} {{human_pos}} of {{human_len}} {things} in {{elapsed}}{{wide_msg}}")
            }
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

/// The outermost work that reports progress; all other work is part of it.
static OUTERMOST: Mutex<Weak<Told>> = Mutex::new(Weak::new());

/// Progress of a piece of work, shown on stderr while it runs, always in one line: work that begins within other work
/// is shown at the end of that line.
pub struct Progress {
    told: Arc<Told>,
    /// The count of work that runs within other work.
    within: Option<Mutex<Count>>,
    begun: Instant,
}

impl Progress {
    /// Work of `all` items, of which `done` were done before.
    pub fn new(amount: Amount, all: u64, done: u64) -> Self {
        let count = Count { amount, all, before: done, done };
        let mut outermost = lock(&OUTERMOST);
        if let Some(told) = outermost.upgrade() {
            return Self { told, within: Some(Mutex::new(count)), begun: Instant::now() };
        }
        let hidden = !io::stderr().is_terminal();
        let bar = if hidden { ProgressBar::hidden() } else { ProgressBar::new(all).with_position(done) };
        let bar = match ProgressStyle::with_template(&amount.template()) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        let lines = Lines { count, told: done, last: Duration::ZERO, running: Vec::new(), within: String::new() };
        let told = Arc::new(Told { bar, hidden, lines: Mutex::new(lines), begun: Instant::now() });
        *outermost = Arc::downgrade(&told);
        Self { told, within: None, begun: Instant::now() }
    }

    /// Counts `more` as done.
    pub fn inc(&self, more: u64) {
        let Some(within) = &self.within else {
            self.told.bar.inc(more);
            return self.told.tell(more, |_| ());
        };
        let mut count = lock(within);
        count.done += more;
        let text = count.text(self.begun.elapsed());
        drop(count);
        self.told.tell(0, |lines| lines.within = text);
    }

    /// Shows `what` as running until the returned guard is dropped.
    #[must_use]
    pub fn runs(&self, what: String) -> Running<'_> {
        self.told.tell(0, |lines| lines.running.push(what.clone()));
        Running { told: &self.told, what }
    }

    /// Wraps `reader`; its bytes count as they are read.
    pub fn reading<R: Read>(&self, reader: R) -> impl Read {
        Reading { reader, progress: self }
    }

    /// Ends the progress: nothing more will be counted.
    pub fn finish(&self) {
        if self.within.is_none() {
            self.told.bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
        if self.within.is_some() {
            self.told.tell(0, |lines| lines.within.clear());
        }
    }
}

/// A running item, shown until this guard is dropped.
pub struct Running<'p> {
    told: &'p Told,
    what: String,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.told.tell(0, |lines| {
            if let Some(place) = lines.running.iter().position(|what| *what == self.what) {
                lines.running.remove(place);
            }
        });
    }
}

/// The destination of progress: the bar, or lines.
struct Told {
    bar: ProgressBar,
    /// Whether lines are printed instead of the bar.
    hidden: bool,
    lines: Mutex<Lines>,
    begun: Instant,
}

impl Told {
    /// Reports that `more` is done, after `change` has updated the line.
    fn tell(&self, more: u64, change: impl FnOnce(&mut Lines)) {
        let mut lines = lock(&self.lines);
        change(&mut lines);
        let line = lines.line(self.begun.elapsed(), more);
        if !self.hidden {
            self.bar.set_message(lines.running());
        } else if let Some(line) = line {
            // A closed stderr leaves nowhere to report the error.
            let _ = writeln!(io::stderr().lock(), "{line}");
        }
    }
}

/// The number of items done.
struct Count {
    amount: Amount,
    all: u64,
    /// Items that were done before the work began.
    before: u64,
    done: u64,
}

impl Count {
    /// "60 of 100 runs, about 4.0 h left", `since` the beginning.
    fn text(&self, since: Duration) -> String {
        let (text, new) = (self.amount.text(self.done, self.all), self.done - self.before);
        if matches!(self.amount, Amount::Uneven(_)) {
            return format!("{text} in {}", about(since.as_secs_f64()));
        }
        if self.done >= self.all || new * BELIEVED < self.all - self.before {
            return text;
        }
        format!("{text}, about {} left", about(since.as_secs_f64() * (self.all - self.done) as f64 / new as f64))
    }
}

/// The lines that are printed instead of the bar where stderr is not a terminal.
struct Lines {
    count: Count,
    /// The number done at the last line, and the time of that line.
    told: u64,
    last: Duration,
    /// The running items, and the progress of the newest work within them.
    running: Vec<String>,
    within: String,
}

impl Lines {
    /// The line that is due if `more` is done `now`, counted from the beginning.
    fn line(&mut self, now: Duration, more: u64) -> Option<String> {
        let Self { count, told, last, .. } = self;
        count.done += more;
        let since = now.saturating_sub(*last);
        let is_part = (count.done - *told).saturating_mul(PARTS) >= count.all;
        if since < SOONEST || count.done >= count.all || !(is_part || since >= LATEST) {
            return None;
        }
        (*told, *last) = (count.done, now);
        Some(format!("{}{}", self.count.text(now), self.running()))
    }

    /// "; daf/table1 runs: 12 of 45 trainings".
    fn running(&self) -> String {
        let names = match self.running.as_slice() {
            [] => return String::new(),
            [one] => format!("{one} runs"),
            [one, other] => format!("{one} and {other} run"),
            [one, other, more @ ..] => format!("{one}, {other} and {} more run", more.len()),
        };
        if self.within.is_empty() { format!("; {names}") } else { format!("; {names}: {}", self.within) }
    }
}

/// Seconds, rounded to the precision of the estimate: `40 s`, `3 min`, `2.5 h`.
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

/// The progress of work that ended early, and how to resume it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped after {}; `{command}` continues", Amount::Number(things).text(*done, *all))]
pub struct Stopped {
    /// How much was done ...
    pub done: u64,
    /// ... of how much ...
    pub all: u64,
    /// ... of what, in the plural.
    pub things: &'static str,
    /// The command that resumes the work.
    pub command: String,
}

/// A path as one word of a command line, quoted if a shell would split it.
pub fn word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:,@".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(all: u64, before: u64) -> Lines {
        let count = Count { amount: Amount::Number("runs"), all, before, done: before };
        Lines { count, told: before, last: Duration::ZERO, running: Vec::new(), within: String::new() }
    }

    #[test]
    fn lines_come_a_tenth_at_a_time_and_never_within_ten_seconds() {
        let mut lines = lines(12_000, 0);
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
        // 10 in 3600 s: 40 more take four hours.
        let line = lines(100, 50).line(Duration::from_secs(3600), 10).unwrap();
        assert_eq!(line, "60 of 100 runs, about 4.0 h left");
        assert_eq!([40.0, 89.0, 91.0].map(about), ["40 s", "90 s", "2 min"]);
    }

    #[test]
    fn what_is_not_to_be_believed_is_not_told() {
        let minute = Duration::from_secs(60);
        // A twenty-fifth is too little.
        assert_eq!(lines(100, 0).line(minute, 4).as_deref(), Some("4 of 100 runs"));
    }

    #[test]
    fn of_unlike_things_a_line_says_which_run_and_how_far_they_are() {
        let mut lines = lines(10, 0);
        lines.count.amount = Amount::Uneven("artefacts");
        lines.running = ["daf/table1", "daf/figure8"].map(str::to_owned).to_vec();
        let mut at = |minutes: u64, more: u64| lines.line(Duration::from_secs(60 * minutes), more);
        assert_eq!(at(1, 5).as_deref(), Some("5 of 10 artefacts in 60 s; daf/table1 and daf/figure8 run"));
        lines.running.truncate(1);
        let within = Count { amount: Amount::Number("trainings"), all: 45, before: 0, done: 15 };
        lines.within = within.text(Duration::from_secs(100));
        let expected = "5 of 10 artefacts in 2 min; daf/table1 runs: 15 of 45 trainings, about 3 min left";
        assert_eq!(lines.line(Duration::from_secs(120), 0).as_deref(), Some(expected));
    }

    #[test]
    fn what_ended_early_says_how_to_go_on() {
        let command = format!("haversack sweep {} --resume", word(Path::new("my sweep.toml")));
        let stopped = Stopped { done: 312, all: 4_096, things: "runs", command };
        let expected = "stopped after 312 of 4,096 runs; `haversack sweep 'my sweep.toml' --resume` continues";
        assert_eq!(stopped.to_string(), expected);
        assert_eq!(word(Path::new("out/a-b.toml")), "out/a-b.toml");
    }
}
