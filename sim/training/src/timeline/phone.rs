//! What happened on a phone in use beside the operators of an iteration, for its timeline.

use haversack_devices::{Bytes, Nanos};
use haversack_memory::phone::{Counters, Psi, Usage};
use serde_json::{Value, json};

use super::microseconds;

/// The process of the trace in which the phone is shown; the run is the first.
const PID: u32 = 2;

/// A phone in use during a run, in order of time; times are from the run's beginning, in a timeline from the iteration's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhoneTrack {
    /// All memory that the kernel manages.
    pub managed: Bytes,
    /// Free memory at which kswapd wakes.
    pub low_watermark: Bytes,
    /// What its kernel shows: at the beginning, once a second, and at the end.
    pub samples: Vec<PhoneSample>,
    /// Who waited, and who was ended.
    pub events: Vec<PhoneEvent>,
    /// The memory budgets that were planned: the one in force at the beginning, and those that followed.
    pub budgets: Vec<(Nanos, Bytes)>,
}

/// What a phone's kernel shows.
#[derive(Clone, Debug, PartialEq)]
pub struct PhoneSample {
    /// When.
    pub at: Nanos,
    /// Where memory is.
    pub usage: Usage,
    /// What of anonymous memory is the trainer's.
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
    /// Somebody stalled.
    pub some: Nanos,
    /// Somebody stalled, and nobody worked who did not.
    pub full: Nanos,
}

impl Pressure {
    /// What it has summed up to.
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
    /// What it was.
    pub what: Happening,
}

/// What happens on a phone in use.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// The process that trains waited for memory.
    TrainerStall,
    /// A process of the system did.
    SystemStall,
    /// An app did.
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
    /// What of it is from `since` on, times counted from there.
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

    /// The events of a Chrome trace: counters for what the kernel shows and what was planned, spans for who waited, instants
    /// for kills.
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

    /// The share of time in which somebody stalled since the sample before, in percent.
    fn pressure(&self, events: &mut Vec<Value>) {
        for pair in self.samples.windows(2) {
            let [before, sample] = pair else { continue };
            let span = sample.at.saturating_sub(before.at).seconds();
            let share = |now: Nanos, then: Nanos| 100.0 * now.saturating_sub(then).seconds() / span;
            if span > 0.0 {
                let some = share(sample.pressure.some, before.pressure.some);
                let full = share(sample.pressure.full, before.pressure.full);
                // A counter holds until its next value.
                events.push(counter("PSI memory", before.at, &json!({"some_percent": some, "full_percent": full})));
            }
        }
    }

    /// What was counted since the iteration began, of each counter that moved.
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
