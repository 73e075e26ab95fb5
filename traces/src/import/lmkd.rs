//! The kills of Android's low-memory killer daemon, as `logcat` prints them.
//!
//! Two lines record a kill: lmkd's own (`Kill 'package' (pid), uid …, oom_score_adj …`, main buffer) and the event
//! `killinfo` (tag 10195355, events buffer), which lacks the name but has all memory counters at that moment. If a log
//! contains both, they are one kill. Android 8 and 9, and the kernel's driver before them, write `Killing`, and the
//! freed size on the next line.
//!
//! Fields of `killinfo`: `event.logtags` of lmkd (AOSP).

use chrono::{Datelike, NaiveDate, NaiveDateTime};
use haversack_devices::ensure;

use super::context::digest;
use super::{Format, ImportContext, Reason, Result};
use crate::clock;
use crate::words::WORDS;
use crate::{AppRow, Confidence, CounterRow, OomAdj, Source, UtcOffset, UtcTime};

/// The text before the size of a kill.
const FREES: &str = "to free ";
/// Both lines of a kill are written within moments; a pid is not reused so soon.
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
    /// A kill whose name is not known yet.
    nameless: Option<Kill>,
    /// The latest kill with a name.
    named: Option<Kill>,
    /// The time of a kill whose size has not been read yet.
    unsized_at: Option<UtcTime>,
}

impl Kill {
    fn is(&self, other: &Self) -> bool {
        self.pid == other.pid && self.time.0.abs_diff(other.time.0) <= TOGETHER
    }
}

impl Lmkd {
    pub(super) fn new(file: &str, context: &ImportContext<'_>) -> Self {
        Self { owner: context.owner(file), ..Self::default() }
    }

    fn row(&self, package: &str, kill: &Kill, context: &mut ImportContext<'_>) -> Result<()> {
        let (user, source, confidence) = (self.owner.as_str(), Source::LmkdKill, Confidence::Recorded);
        context.app(AppRow { user, time: kill.time, package, adj: kill.adj, source, confidence })
    }

    /// Emits a kill whose name never came.
    fn give_up(&mut self, context: &mut ImportContext<'_>) -> Result<()> {
        let Some(kill) = self.nameless.take() else { return Ok(()) };
        self.row(&format!("pid:{}", kill.pid), &kill, context)
    }

    /// A line of lmkd itself.
    fn text(&mut self, line: &str, message: &str, context: &mut ImportContext<'_>) -> Result<()> {
        let (package, pid, adj) = match kill(message) {
            Ok(kill) => kill,
            Err((field, expected)) => return context.wrong(field, expected, message),
        };
        let Some(time) = self.time(line, context)? else { return Ok(()) };
        if !context.is_name("package", package)? {
            return Ok(());
        }
        let kill = Kill { pid, time, adj };
        if self.nameless.take_if(|nameless| nameless.is(&kill)).is_none() && !self.see(line, time, context)? {
            return Ok(());
        }
        self.give_up(context)?;
        self.row(package, &kill, context)?;
        self.unsized_at = line.contains("Killing '").then_some(kill.time);
        self.named = Some(kill);
        if message.contains(FREES) { self.size(message, context) } else { Ok(()) }
    }

    /// The size that an older kill frees, in the same line or the next one.
    fn size(&mut self, text: &str, context: &mut ImportContext<'_>) -> Result<()> {
        let Some(time) = self.unsized_at.take() else { return Ok(()) };
        let size = text.split_once(FREES).and_then(|(_, behind)| behind.split_once("kB")?.0.trim().parse::<u32>().ok());
        let Some(size) = size else { return context.wrong("size", "to free a number of kB", text) };
        let value = f64::from(size) * f64::from(KILOBYTES);
        context.counter(CounterRow { user: &self.owner, time, counter: "lmkd/task_size", value })
    }

    /// An event.
    fn event(&mut self, line: &str, values: &str, context: &mut ImportContext<'_>) -> Result<()> {
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        let head = head(&values);
        let (pid, adj) = match head {
            Ok(head) => head,
            Err((field, expected)) => return context.wrong(field, expected, &values.join(",")),
        };
        let Some(time) = self.time(line, context)? else { return Ok(()) };
        let kill = Kill { pid, time, adj };
        let is_named = self.named.as_ref().is_some_and(|named| named.is(&kill));
        if !is_named && !self.see(line, time, context)? {
            return Ok(());
        }
        self.give_up(context)?;
        for ((name, counter, factor), value) in WORDS.lmkd.iter().zip(values.iter().skip(OTHERS)) {
            match value.parse::<f64>().ok().filter(|value| value.is_finite()) {
                Some(value) if value < 0.0 && *factor == KILOBYTES => {
                    context.find(Reason::NegativeMemory, name, || format!("expected kB, found {value}"))?;
                }
                Some(value) => {
                    let (user, value) = (self.owner.as_str(), value * f64::from(*factor));
                    context.counter(CounterRow { user, time, counter, value })?;
                }
                None => context.wrong(name, "a number", value)?,
            }
        }
        if !is_named {
            self.nameless = Some(kill);
        }
        Ok(())
    }

    /// Records a kill; returns whether it is a new one.
    fn see(&self, line: &str, time: UtcTime, context: &mut ImportContext<'_>) -> Result<bool> {
        context.sample(&self.owner, time, digest(line.as_bytes()), false)
    }

    fn time(&mut self, line: &str, context: &mut ImportContext<'_>) -> Result<Option<UtcTime>> {
        let offset = context.options.offset.unwrap_or_default();
        let since_boot = since_boot(line).map(|time| UtcTime(context.options.start.0.saturating_add(time.0)));
        if since_boot.is_some() {
            let start = context.options.start.seconds();
            context.note(&format!("the kernel counts from its own start; time_s is that, plus {start} s"));
        }
        let time = since_boot.or_else(|| self.calendar.time(line, offset, context.options.year));
        if time.is_none() {
            let expected = "a line that begins with its time, as `logcat -v threadtime,year,UTC` prints it";
            context.wrong("time", expected, line)?;
        }
        if self.calendar.recent.is_some() && context.options.year.is_none() {
            context.note("the log states no year: it is taken as 1970; --year tells it");
        }
        Ok(time)
    }
}

/// The package, the process and its value in a line of lmkd.
fn kill(message: &str) -> Result<(&str, u32, OomAdj), (&'static str, &'static str)> {
    let (package, rest) = message.split_once("' (").ok_or(("package", "Kill 'package' (pid), …"))?;
    let (pid, rest) = rest.split_once(')').ok_or(("pid", "a process in brackets"))?;
    let pid = pid.trim().parse().map_err(|_| ("pid", "the number of a process"))?;
    // Before Android 10 the line had oom_adj, before that adj.
    let behind = ["oom_score_adj ", "oom_adj ", "adj "].iter().find_map(|word| rest.split_once(word)).map(|(_, b)| b);
    let word = behind.and_then(|behind| behind.split([' ', ',']).next());
    let adj = word.and_then(|word| word.parse().ok()).and_then(OomAdj::new);
    Ok((package, pid, adj.ok_or(("oom_score_adj", "oom_score_adj from -1000 to 1000"))?))
}

/// The text between the brackets of an event `killinfo`.
fn killinfo(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("killinfo").or_else(|| line.split_once("10195355"))?;
    let (_, rest) = rest.split_once('[')?;
    Some(rest.split(']').next().unwrap_or(rest))
}

/// The number of fields other than counters: the process, its user and its value.
const OTHERS: usize = 3;
/// Memory is in kB in the event, and in bytes in the row.
const KILOBYTES: u32 = 1024;
/// The smallest number of fields of an event: up to `MemFree`.
const LEAST: usize = 7;

/// The process and its value.
fn head(values: &[&str]) -> Result<(u32, OomAdj), (&'static str, &'static str)> {
    ensure!(values.len() >= LEAST, ("killinfo", "at least Pid, Uid, OomAdj, MinOomAdj, TaskSize, reason, MemFree"));
    let number = |place: usize| values.get(place).and_then(|value| value.parse::<i64>().ok());
    let pid = number(0).and_then(|pid| u32::try_from(pid).ok()).ok_or(("Pid", "the number of a process"))?;
    let adj = number(2).and_then(OomAdj::new).ok_or(("OomAdj", "a whole number from -1000 to 1000"))?;
    Ok((pid, adj))
}

impl Format for Lmkd {
    fn line(&mut self, text: &str, context: &mut ImportContext<'_>) -> Result<()> {
        if let Some((_, message)) = text.split_once("Kill '").or_else(|| text.split_once("Killing '")) {
            return self.text(text, message, context);
        }
        if self.unsized_at.is_some() && text.contains(FREES) {
            return self.size(text, context);
        }
        match killinfo(text) {
            Some(values) => self.event(text, values, context),
            None => {
                context.report.other_lines += 1;
                Ok(())
            }
        }
    }

    fn end(&mut self, context: &mut ImportContext<'_>) -> Result<()> {
        self.give_up(context)
    }
}

// The time at the beginning of a line of `logcat`: `-v threadtime` and `-v time` begin with `MM-DD HH:MM:SS.mmm`,
// preceded by a year under `-v year` and followed by a zone under `-v zone`; `-v epoch` begins with seconds since 1970.

/// The year of a log without years.
const NO_YEAR: i32 = 1970;

/// The time of a line of `dmesg`, as `[ 1234.567890]`, since the kernel's start.
fn since_boot(line: &str) -> Option<UtcTime> {
    let (_, rest) = line.split_once('[').filter(|(front, _)| front.is_empty() || front.starts_with('<'))?;
    clock::parse_seconds(rest.split_once(']')?.0.trim())
}

/// Determines the year, with or without years in the log.
#[derive(Debug, Default)]
struct Calendar {
    /// The year and the month of the previous line, if lines have no year.
    recent: Option<(i32, u32)>,
}

impl Calendar {
    /// The time at the beginning of `line`; `year` is that of the first line without one.
    fn time(&mut self, line: &str, offset: UtcOffset, year: Option<i32>) -> Option<UtcTime> {
        if let Some((local, behind)) = clock::calendar(line) {
            return zone(behind, offset).utc(local);
        }
        let word = line.split_ascii_whitespace().next().filter(|word| word.contains('.'));
        if let Some(time) = word.and_then(clock::parse_seconds) {
            return Some(time);
        }
        let (local, behind) = self.without_year(line, year)?;
        zone(behind, offset).utc(local)
    }

    fn without_year<'l>(&mut self, line: &'l str, year: Option<i32>) -> Option<(NaiveDateTime, &'l str)> {
        let (date, rest) = line.split_once(' ')?;
        let (month, day) = date.split_once('-')?;
        let (month, day): (u32, u32) = (month.parse().ok()?, day.parse().ok()?);
        let year = match self.recent {
            // A log that goes from December to January has reached the next year.
            Some((year, before)) if before == 12 && month == 1 => year + 1,
            Some((year, _)) => year,
            None => year.unwrap_or(NO_YEAR),
        };
        // The 29th of February, in a log without years: 1970 had none.
        let leap_day = || NaiveDate::from_ymd_opt(1972, month, day);
        let date = NaiveDate::from_ymd_opt(year, month, day).or_else(leap_day)?;
        let found = clock::time_of_day(date, rest)?;
        self.recent = Some((date.year(), month));
        Some(found)
    }
}

/// The zone after the time, if it is given.
fn zone(behind: &str, offset: UtcOffset) -> UtcOffset {
    behind.split_ascii_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_formats_of_logcat_tell_the_time() {
        let mut calendar = Calendar::default();
        let mut time = |line| calendar.time(line, UtcOffset::default(), Some(2023)).map(UtcTime::seconds);
        // 2024-05-12 is 19855 days after 1970: 19855 * 86400 + 36000 + 660 + 12.5.
        let expected = Some(1_715_508_672.5);
        assert_eq!(time("2024-05-12 10:11:12.500  600  600 I lowmemorykiller: x"), expected);
        assert_eq!(time("2024-05-12 12:11:12.500 +0200  600  600 I lowmemorykiller: x"), expected);
        assert_eq!(time("         1715508672.500  600  600 I lowmemorykiller: x"), expected);
        // 2023-12-31 is 19722 days after 1970, and the year changes with the month.
        assert_eq!(time("12-31 23:59:59.000 I/lowmemorykiller(  600): x"), Some(1_704_067_199.0));
        assert_eq!(time("01-01 00:00:01.000 I/lowmemorykiller(  600): x"), Some(1_704_067_201.0));
        assert_eq!(time("I/lowmemorykiller(  600): x"), None);
        assert_eq!(time("13-01 00:00:01.000 I x"), None);
    }
}
