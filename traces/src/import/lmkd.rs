//! The kills of Android's low-memory killer daemon, as `logcat` prints them.
//!
//! Two lines tell of a kill: lmkd's own (`Kill 'package' (pid), uid …, oom_score_adj …`, main buffer) and the event
//! `killinfo` (tag 10195355, events buffer), which has no name but the whole of the memory at that moment. Where a log
//! holds both, they are one kill.
//!
//! Fields of `killinfo`: `event.logtags` of lmkd (AOSP).

mod prefix;

use super::context::ImportContext;
use super::report::{Reason, excerpt};
use super::{Format, ImportError};
use crate::row::{AppRow, Confidence, CounterRow, OomAdj, Source, UtcTime};
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
    fn row(&self, package: &str, kill: &Kill, context: &mut ImportContext<'_, '_>) -> Result<(), ImportError> {
        let (user, source, confidence) = (self.owner.as_str(), Source::LmkdKill, Confidence::Recorded);
        context.app(AppRow { user, time: kill.time, package, adj: kill.adj, source, confidence })
    }

    /// Gives out a kill whose name never came.
    fn give_up(&mut self, context: &mut ImportContext<'_, '_>) -> Result<(), ImportError> {
        match self.nameless.take() {
            Some(kill) => self.row(&format!("pid:{}", kill.pid), &kill, context),
            None => Ok(()),
        }
    }

    /// A line of lmkd itself.
    fn text(&mut self, line: &str, message: &str, context: &mut ImportContext<'_, '_>) -> Result<(), ImportError> {
        let (package, pid, adj) = match kill(message) {
            Ok(kill) => kill,
            Err((field, expected)) => {
                return context
                    .find(Reason::Field, field, || format!("expected {expected}, found '{}'", excerpt(message)));
            }
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
        self.named = Some(kill);
        Ok(())
    }

    /// An event.
    fn event(&mut self, line: &str, values: &str, context: &mut ImportContext<'_, '_>) -> Result<(), ImportError> {
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        let head = head(&values);
        let (pid, adj) = match head {
            Ok(head) => head,
            Err((field, expected)) => {
                return context.find(Reason::Field, field, || {
                    format!("expected {expected}, found '{}'", excerpt(&values.join(",")))
                });
            }
        };
        let Some(time) = self.time(line, context)? else { return Ok(()) };
        let kill = Kill { pid, time, adj };
        let is_named = self.named.as_ref().is_some_and(|named| named.is(&kill));
        if !is_named && !self.see(line, time, context)? {
            return Ok(());
        }
        self.give_up(context)?;
        for (field, value) in FIELDS.iter().zip(&values) {
            let Some(factor) = field.unit.factor() else { continue };
            match value.parse::<f64>().ok().filter(|value| value.is_finite()) {
                Some(value) if value < 0.0 && field.unit == Unit::Kilobytes => {
                    context.find(Reason::NegativeMemory, field.name, || format!("expected kB, found {value}"))?;
                }
                Some(value) => {
                    let (user, counter) = (self.owner.as_str(), field.counter);
                    context.counter(CounterRow { user, time, counter, value: value * factor })?;
                }
                None => context
                    .find(Reason::Field, field.name, || format!("expected a number, found '{}'", excerpt(value)))?,
            }
        }
        if !is_named {
            self.nameless = Some(kill);
        }
        Ok(())
    }

    /// Takes note of a kill; says whether it is a new one.
    fn see(&self, line: &str, time: UtcTime, context: &mut ImportContext<'_, '_>) -> Result<bool, ImportError> {
        context.sample(&self.owner, time, line.as_bytes(), false)
    }

    fn time(&mut self, line: &str, context: &mut ImportContext<'_, '_>) -> Result<Option<UtcTime>, ImportError> {
        let offset = context.options.offset.unwrap_or_default();
        let time = self.calendar.time(line, offset, context.options.year);
        if time.is_none() {
            context.find(Reason::Field, "time", || {
                format!(
                    "expected a line that begins with its time, as `logcat -v threadtime,year,UTC` prints it, found '{}'",
                    excerpt(line)
                )
            })?;
        }
        if self.calendar.has_guessed() && context.options.year.is_none() {
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

/// What a field counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Memory: kB in the event, bytes in the row.
    Kilobytes,
    /// Anything else, which stays as it is.
    Plain,
    /// Part of the row of apps, no counter.
    None,
}

impl Unit {
    /// What a value is multiplied by, where it is a counter.
    fn factor(self) -> Option<f64> {
        match self {
            Self::Kilobytes => Some(1024.0),
            Self::Plain => Some(1.0),
            Self::None => None,
        }
    }
}

/// A field.
struct Field {
    /// Its name in the event.
    name: &'static str,
    /// The counter that it becomes: `/proc/meminfo`'s name where it is one of its, else lmkd's.
    counter: &'static str,
    unit: Unit,
}

const fn field(name: &'static str, counter: &'static str, unit: Unit) -> Field {
    Field { name, counter, unit }
}

/// The fields.
const FIELDS: [Field; 38] = [
    field("Pid", "", Unit::None),
    field("Uid", "", Unit::None),
    field("OomAdj", "", Unit::None),
    field("MinOomAdj", "lmkd/min_oom_adj", Unit::Plain),
    field("TaskSize", "lmkd/task_size", Unit::Kilobytes),
    field("reason", "lmkd/reason", Unit::Plain),
    field("MemFree", "MemFree", Unit::Kilobytes),
    field("Cached", "Cached", Unit::Kilobytes),
    field("SwapCached", "SwapCached", Unit::Kilobytes),
    field("Buffers", "Buffers", Unit::Kilobytes),
    field("Shmem", "Shmem", Unit::Kilobytes),
    field("Unevictable", "Unevictable", Unit::Kilobytes),
    field("SwapTotal", "SwapTotal", Unit::Kilobytes),
    field("SwapFree", "SwapFree", Unit::Kilobytes),
    field("ActiveAnon", "Active(anon)", Unit::Kilobytes),
    field("InactiveAnon", "Inactive(anon)", Unit::Kilobytes),
    field("ActiveFile", "Active(file)", Unit::Kilobytes),
    field("InactiveFile", "Inactive(file)", Unit::Kilobytes),
    field("SReclaimable", "SReclaimable", Unit::Kilobytes),
    field("SUnreclaim", "SUnreclaim", Unit::Kilobytes),
    field("KernelStack", "KernelStack", Unit::Kilobytes),
    field("PageTables", "PageTables", Unit::Kilobytes),
    field("IonHeap", "ION_heap", Unit::Kilobytes),
    field("IonHeapPool", "ION_heap_pool", Unit::Kilobytes),
    field("CmaFree", "CmaFree", Unit::Kilobytes),
    field("MsSinceEvent", "lmkd/ms_since_event", Unit::Plain),
    field("MsSincePrevWakeup", "lmkd/ms_since_prev_wakeup", Unit::Plain),
    field("WakeupsSinceEvent", "lmkd/wakeups_since_event", Unit::Plain),
    field("SkippedWakeups", "lmkd/skipped_wakeups", Unit::Plain),
    field("TaskSwapSize", "lmkd/task_swap_size", Unit::Kilobytes),
    field("GPU", "lmkd/gpu", Unit::Kilobytes),
    field("Thrashing", "lmkd/thrashing", Unit::Plain),
    field("MaxThrashing", "lmkd/max_thrashing", Unit::Plain),
    field("PsiMemSome", "lmkd/psi_mem_some", Unit::Plain),
    field("PsiMemFull", "lmkd/psi_mem_full", Unit::Plain),
    field("PsiIoSome", "lmkd/psi_io_some", Unit::Plain),
    field("PsiIoFull", "lmkd/psi_io_full", Unit::Plain),
    field("PsiCpuSome", "lmkd/psi_cpu_some", Unit::Plain),
];

/// The least number of fields that an event needs to be one: up to `MemFree`.
const LEAST: usize = 7;

/// The process and its value.
fn head(values: &[&str]) -> Result<(u32, OomAdj), (&'static str, &'static str)> {
    if values.len() < LEAST {
        return Err(("killinfo", "at least Pid, Uid, OomAdj, MinOomAdj, TaskSize, reason, MemFree"));
    }
    let number = |place: usize| values.get(place).and_then(|value| value.parse::<i64>().ok());
    let pid = number(0).and_then(|pid| u32::try_from(pid).ok()).ok_or(("Pid", "the number of a process"))?;
    let adj = number(2).and_then(OomAdj::new).ok_or(("OomAdj", "a whole number from -1000 to 1000"))?;
    Ok((pid, adj))
}

impl Format for Lmkd {
    fn begin(&mut self, file: &str, context: &mut ImportContext<'_, '_>) {
        *self = Self { owner: context.owner(file), ..Self::default() };
    }

    fn line(&mut self, line: &[u8], context: &mut ImportContext<'_, '_>) -> Result<(), ImportError> {
        let Some(text) = context.text(line)? else { return Ok(()) };
        if let Some((_, message)) = text.split_once("Kill '") {
            return self.text(text, message, context);
        }
        match killinfo(text) {
            Some(values) => self.event(text, values, context),
            None => {
                context.report.other_lines += 1;
                Ok(())
            }
        }
    }

    fn end(&mut self, context: &mut ImportContext<'_, '_>) -> Result<(), ImportError> {
        self.give_up(context)
    }
}
