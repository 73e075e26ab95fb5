//! The phone in use next to the operators of an iteration, for its timeline.

use haversack_devices::{Bytes, Nanos};
use haversack_memory::phone::{Counters, Psi, Usage};
use serde_json::{Value, json};

use super::microseconds;

/// The process of the trace in which the phone is shown; the run is the first.
const PID: u32 = 2;

/// A phone in use during a run, in order of time; times are from the run's beginning, in a timeline from the
/// iteration's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhoneTrack {
    /// All memory that the kernel manages.
    pub managed: Bytes,
    /// Free memory at which kswapd wakes.
    pub low_watermark: Bytes,
    /// Samples of its kernel's state: at the beginning, once a second, and at the end.
    pub samples: Vec<PhoneSample>,
    /// Stalls and kills.
    pub events: Vec<PhoneEvent>,
    /// The memory budgets that were planned: the one in force at the beginning, and those that followed.
    pub budgets: Vec<(Nanos, Bytes)>,
}

/// A sample of a phone's kernel state.
#[derive(Clone, Debug, PartialEq)]
pub struct PhoneSample {
    /// When.
    pub at: Nanos,
    /// The use of memory.
    pub usage: Usage,
    /// The trainer's part of anonymous memory.
    pub trainer: Bytes,
    /// All memory less `MemAvailable`.
    pub unavailable: Bytes,
    /// `/proc/pressure/memory`, summed since the phone was switched on.
    pub pressure: Pressure,
    /// `/proc/vmstat`, likewise.
    pub counters: Counters,
}

/// Pressure-stall information (`/proc/pressure/memory`), summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Some process stalled.
    pub some: Nanos,
    /// Some process stalled, and no other worked.
    pub full: Nanos,
}

impl Pressure {
    /// Its totals so far.
    pub(crate) fn of(psi: &Psi) -> Self {
        Self { some: psi.some.total, full: psi.full.total }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct PhoneEvent {
    /// When it began.
    pub start: Nanos,
    /// How long it took.
    pub duration: Nanos,
    /// Its kind.
    pub what: Happening,
}

/// Events on a phone in use.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// The process that trains waited for memory.
    TrainerStall,
    /// A process of the system waited for memory.
    SystemStall,
    /// An app waited for memory.
    AppStall,
    /// An app came to the front, until its pages were in.
    Launch {
        /// Its name.
        app: String,
    },
    /// The low-memory killer ended a process.
    Kill {
        /// Its name; `None` of the one that trains.
        app: Option<String>,
        /// Why, in the killer's words.
        reason: &'static str,
        /// Its `oom_score_adj`.
        adj: i32,
        /// The least that might be ended.
        min_adj: i32,
    },
}

impl Happening {
    /// The thread that it is shown in, and its name.
    const fn place(&self) -> (u32, &'static str) {
        match self {
            Self::TrainerStall => (1, "stall of the trainer"),
            Self::SystemStall => (2, "stall of the system"),
            Self::AppStall => (3, "stall of an app"),
            Self::Launch { .. } => (4, "launch of an app"),
            Self::Kill { app: None, .. } => (5, "trainer killed"),
            Self::Kill { app: Some(_), .. } => (5, "app killed"),
        }
    }
}

impl PhoneTrack {
    /// The part from `since` on, with times counted from there.
    pub(crate) fn part(&self, since: Nanos) -> Self {
        let after = |at: &Nanos| *at >= since;
        Self {
            managed: self.managed,
            low_watermark: self.low_watermark,
            samples: (self.samples.iter().filter(|sample| after(&sample.at)))
                .map(|sample| PhoneSample { at: sample.at - since, ..sample.clone() })
                .collect(),
            events: (self.events.iter().filter(|event| after(&(event.start + event.duration))))
                .map(|event| PhoneEvent { start: event.start.saturating_sub(since), ..event.clone() })
                .collect(),
            budgets: self
                .budgets
                .iter()
                .filter(|(at, _)| after(at))
                .map(|&(at, budget)| (at - since, budget))
                .collect(),
        }
    }

    /// The events of a Chrome trace: counters for the kernel's state and the planned budgets, spans for stalls,
    /// instants for kills.
    pub(super) fn chrome_events(&self) -> Vec<Value> {
        let mut events = vec![json!({"name": "process_name", "ph": "M", "pid": PID, "args": {"name": "phone in use"}})];
        for (thread, name) in [(1, "trainer"), (2, "system"), (3, "apps"), (4, "launches"), (5, "low-memory killer")] {
            events.push(json!({"name": "thread_name", "ph": "M", "pid": PID, "tid": thread, "args": {"name": name}}));
        }
        for sample in &self.samples {
            events.push(counter("unavailable memory", sample.at, &json!({"bytes": sample.unavailable.0})));
        }
        self.pressure(&mut events);
        self.vmstat(&mut events);
        for (at, budget) in &self.budgets {
            events.push(counter("planned budget", *at, &json!({"bytes": budget.0})));
        }
        events.extend(self.events.iter().map(PhoneEvent::chrome));
        events
    }

    /// The share of time in which some process stalled since the previous sample, in percent.
    fn pressure(&self, events: &mut Vec<Value>) {
        for pair in self.samples.windows(2) {
            let [before, sample] = pair else { continue };
            let span = sample.at.saturating_sub(before.at).seconds();
            let share = |now: Nanos, then: Nanos| 100.0 * now.saturating_sub(then).seconds() / span;
            if span > 0.0 {
                let some = share(sample.pressure.some, before.pressure.some);
                let full = share(sample.pressure.full, before.pressure.full);
                // A counter keeps its value until the next one.
                events.push(counter("PSI memory", before.at, &json!({"some_percent": some, "full_percent": full})));
            }
        }
    }

    /// The increase of each counter since the iteration began, if any.
    fn vmstat(&self, events: &mut Vec<Value>) {
        let (Some(first), Some(last)) = (self.samples.first(), self.samples.last()) else { return };
        let moved: Vec<&str> = (first.counters.each().zip(last.counters.each()))
            .filter(|((_, first), (_, last))| first != last)
            .map(|((name, _), _)| name)
            .collect();
        for sample in &self.samples {
            let counted = first.counters.each().zip(sample.counters.each());
            for ((name, begun), (_, now)) in counted.filter(|((name, _), _)| moved.contains(name)) {
                let pages = json!({"count": now.saturating_sub(begun)});
                events.push(counter(&format!("vmstat {name}"), sample.at, &pages));
            }
        }
    }
}

impl PhoneEvent {
    fn chrome(&self) -> Value {
        let (thread, name) = self.what.place();
        let at = microseconds(self.start);
        match &self.what {
            Happening::Kill { reason, adj, min_adj, .. } => json!({
                "name": name, "cat": "kill", "ph": "i", "s": "g", "pid": PID, "tid": thread, "ts": at,
                "args": {"reason": reason, "adj": adj, "min_adj": min_adj},
            }),
            _ => json!({
                "name": name, "cat": "memory", "ph": "X", "pid": PID, "tid": thread, "ts": at,
                "dur": microseconds(self.duration),
            }),
        }
    }
}

fn counter(name: &str, at: Nanos, values: &Value) -> Value {
    json!({"name": name, "ph": "C", "pid": PID, "ts": microseconds(at), "args": values})
}
