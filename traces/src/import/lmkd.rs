//! The kills of Android's low-memory killer daemon, as `logcat` prints them.
//!
//! Two lines tell of a kill: lmkd's own (`Kill 'package' (pid), uid …, oom_score_adj …`, main buffer) and the event
//! `killinfo` (tag 10195355, events buffer), which has no name but the whole of the memory at that moment. Where a log
//! holds both, they are one kill.
//!
//! Fields of `killinfo`: `event.logtags` of lmkd (AOSP).

mod event;
mod prefix;

use super::desk::Desk;
use super::report::{Reason, excerpt};
use super::{Format, ImportError};
use crate::row::{AppRow, Confidence, CounterRow, OomAdj, Source, UtcTime};
use event::{FIELDS, Unit};
use prefix::Calendar;

/// Both lines of a kill are written within moments; a pid is not given anew so soon.
const TOGETHER: u64 = 5_000_000_000;

/// A kill.
#[derive(Clone, Debug)]
struct Kill {
    pid: u32,
    time: UtcTime,
    adj: OomAdj,
}

/// The reader of logs.
#[derive(Debug, Default)]
pub(super) struct Lmkd {
    owner: String,
    calendar: Calendar,
    /// A kill that has no name yet.
    nameless: Option<Kill>,
    /// The kill that had a name last.
    named: Option<Kill>,
}

impl Kill {
    fn is(&self, other: &Self) -> bool {
        self.pid == other.pid && self.time.0.abs_diff(other.time.0) <= TOGETHER
    }
}

impl Lmkd {
    fn row(&self, package: &str, kill: &Kill, desk: &mut Desk<'_, '_>) -> Result<(), ImportError> {
        let (user, source, confidence) = (self.owner.as_str(), Source::LmkdKill, Confidence::Recorded);
        desk.app(AppRow { user, time: kill.time, package, adj: kill.adj, source, confidence })
    }

    /// Gives out a kill whose name never came.
    fn give_up(&mut self, desk: &mut Desk<'_, '_>) -> Result<(), ImportError> {
        match self.nameless.take() {
            Some(kill) => self.row(&format!("pid:{}", kill.pid), &kill, desk),
            None => Ok(()),
        }
    }

    /// A line of lmkd itself.
    fn text(&mut self, line: &str, message: &str, desk: &mut Desk<'_, '_>) -> Result<(), ImportError> {
        let (package, pid, adj) = match kill(message) {
            Ok(kill) => kill,
            Err((field, expected)) => {
                return desk
                    .find(Reason::Field, field, || format!("expected {expected}, found '{}'", excerpt(message)));
            }
        };
        let Some(time) = self.time(line, desk)? else { return Ok(()) };
        if !desk.is_name("package", package)? {
            return Ok(());
        }
        let kill = Kill { pid, time, adj };
        if self.nameless.take_if(|nameless| nameless.is(&kill)).is_none() && !self.see(line, time, desk)? {
            return Ok(());
        }
        self.give_up(desk)?;
        self.row(package, &kill, desk)?;
        self.named = Some(kill);
        Ok(())
    }

    /// An event.
    fn event(&mut self, line: &str, values: &str, desk: &mut Desk<'_, '_>) -> Result<(), ImportError> {
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        let head = event::head(&values);
        let (pid, adj) = match head {
            Ok(head) => head,
            Err((field, expected)) => {
                return desk.find(Reason::Field, field, || {
                    format!("expected {expected}, found '{}'", excerpt(&values.join(",")))
                });
            }
        };
        let Some(time) = self.time(line, desk)? else { return Ok(()) };
        let kill = Kill { pid, time, adj };
        let is_named = self.named.as_ref().is_some_and(|named| named.is(&kill));
        if !is_named && !self.see(line, time, desk)? {
            return Ok(());
        }
        self.give_up(desk)?;
        for (field, value) in FIELDS.iter().zip(&values) {
            let Some(factor) = field.unit.factor() else { continue };
            match value.parse::<f64>().ok().filter(|value| value.is_finite()) {
                Some(value) if value < 0.0 && field.unit == Unit::Kilobytes => {
                    desk.find(Reason::NegativeMemory, field.name, || format!("expected kB, found {value}"))?;
                }
                Some(value) => {
                    let (user, counter) = (self.owner.as_str(), field.counter);
                    desk.counter(CounterRow { user, time, counter, value: value * factor })?;
                }
                None => {
                    desk.find(Reason::Field, field.name, || format!("expected a number, found '{}'", excerpt(value)))?
                }
            }
        }
        if !is_named {
            self.nameless = Some(kill);
        }
        Ok(())
    }

    /// Takes note of a kill; says whether it is a new one.
    fn see(&self, line: &str, time: UtcTime, desk: &mut Desk<'_, '_>) -> Result<bool, ImportError> {
        desk.sample(&self.owner, time, line.as_bytes(), false)
    }

    fn time(&mut self, line: &str, desk: &mut Desk<'_, '_>) -> Result<Option<UtcTime>, ImportError> {
        let offset = desk.options.offset.unwrap_or_default();
        let time = self.calendar.time(line, offset, desk.options.year);
        if time.is_none() {
            desk.find(Reason::Field, "time", || {
                format!(
                    "expected a line that begins with its time, as `logcat -v threadtime,year,UTC` prints it, found '{}'",
                    excerpt(line)
                )
            })?;
        }
        if self.calendar.has_guessed() && desk.options.year.is_none() {
            desk.note("the log states no year: it is taken as 1970; --year tells it");
        }
        Ok(time)
    }
}

/// The package, the process and its value in a line of lmkd.
fn kill(message: &str) -> Result<(&str, u32, OomAdj), (&'static str, &'static str)> {
    let (package, rest) = message.split_once("' (").ok_or(("package", "Kill 'package' (pid), …"))?;
    let (pid, rest) = rest.split_once(')').ok_or(("pid", "a process in brackets"))?;
    let pid = pid.trim().parse().map_err(|_| ("pid", "the number of a process"))?;
    // Before Android 10 the line said oom_adj.
    let behind = rest.split_once("oom_score_adj ").or_else(|| rest.split_once("oom_adj ")).map(|(_, behind)| behind);
    let word = behind.and_then(|behind| behind.split([' ', ',']).next());
    let adj = word.and_then(|word| word.parse().ok()).and_then(OomAdj::new);
    Ok((package, pid, adj.ok_or(("oom_score_adj", "oom_score_adj from -1000 to 1000"))?))
}

/// What is between the brackets of an event `killinfo`.
fn killinfo(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("killinfo").or_else(|| line.split_once("10195355"))?;
    let (_, rest) = rest.split_once('[')?;
    Some(rest.split(']').next().unwrap_or(rest))
}

impl Format for Lmkd {
    fn begin(&mut self, file: &str, desk: &mut Desk<'_, '_>) {
        *self = Self { owner: desk.owner(file), ..Self::default() };
    }

    fn line(&mut self, line: &[u8], desk: &mut Desk<'_, '_>) -> Result<(), ImportError> {
        let Some(text) = desk.text(line)? else { return Ok(()) };
        if let Some((_, message)) = text.split_once("Kill '") {
            return self.text(text, message, desk);
        }
        match killinfo(text) {
            Some(values) => self.event(text, values, desk),
            None => {
                desk.report.other_lines += 1;
                Ok(())
            }
        }
    }

    fn end(&mut self, desk: &mut Desk<'_, '_>) -> Result<(), ImportError> {
        self.give_up(desk)
    }
}
