//! Lines of Carat as samples, with everything that a single line determines; blocks of them are read on any
//! number of threads.
//!
//! Also the reason why a line is not a sample: the field, the expected value, and the name that may be meant. This
//! reads the line a second time, slowly, and only for lines that are reported.

use std::borrow::Cow;
use std::ops::Range;

use haversack_devices::text::nearest;
use memchr::memchr_iter;
use serde::Deserialize;
use serde_json::{Map, Number, Value};

use super::{LONGEST_NAME, Priority, priority};
use crate::import::context::{ImportContext, digest};
use crate::import::report::{Reason, excerpt};
use crate::import::{LONGEST_LINE, Result};
use crate::{CaratSemantics, Confidence, OomAdj, Source, UtcTime, clock, state};

/// When the client began to send usage intervals: the day after its commits of 20 and 21 June 2017, UTC.
const USAGE_INTERVALS: UtcTime = UtcTime::from_seconds(1_498_003_200);

/// A text, borrowed from the line unless it contains an escape. (A bare `Option<Cow>` would always be a copy.)
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'l>(#[serde(borrow)] Cow<'l, str>);

/// A line.
#[derive(Deserialize)]
struct Record<'l> {
    #[serde(borrow)]
    uuid: Text<'l>,
    #[serde(alias = "timestamp")]
    time: Number,
    #[serde(borrow, default, alias = "batteryStatus", rename = "batteryState")]
    battery: Option<Text<'l>>,
    #[serde(borrow, default)]
    apps: Option<Vec<App<'l>>>,
    memory: Option<Memory>,
    #[serde(rename = "batteryLevel")]
    level: Option<Number>,
    #[serde(borrow, default, rename = "timeZone")]
    zone: Option<Text<'l>>,
    #[serde(borrow, default, rename = "networkStatus")]
    network: Option<Text<'l>>,
    #[serde(borrow, default, rename = "androidFields")]
    android: Option<Android<'l>>,
}

/// The fields of full records that only Android has.
#[derive(Deserialize)]
struct Android<'l> {
    #[serde(borrow, default, rename = "timeZone")]
    zone: Option<Text<'l>>,
}

/// A process.
#[derive(Deserialize)]
struct App<'l> {
    #[serde(borrow, rename = "processName")]
    name: Text<'l>,
    #[serde(borrow, default)]
    priority: Option<Text<'l>>,
}

/// The memory of a phone as the client recorded it: in kB, and not what the names mean.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Memory {
    memory_active: Number,
    memory_inactive: Number,
    memory_free: Number,
    memory_user: Number,
}

/// A text of a sample: a piece of its block, or, if it contained escapes, a separate string.
#[derive(Clone, Debug)]
pub(in super::super) enum Name {
    Piece(u32, u32),
    Own(Box<str>),
}

impl Name {
    /// The text, given that of the block.
    pub(super) fn of<'t>(&'t self, block: &'t str) -> &'t str {
        match self {
            Self::Piece(start, end) => block.get(*start as usize..*end as usize).unwrap_or_default(),
            Self::Own(own) => own,
        }
    }
}

/// The lines of a block.
pub(in super::super) struct Parsed {
    /// The block.
    pub(super) text: String,
    pub(super) lines: Vec<Line>,
    /// The processes of all samples.
    pub(super) processes: Vec<Process>,
}

/// A line, and its bytes without its end.
pub(super) struct Line {
    pub(super) length: usize,
    pub(super) what: What,
}

/// The content of a line.
pub(super) enum What {
    /// An empty line.
    Blank,
    /// Longer than a line may be.
    TooLong,
    /// Not UTF-8, from this byte on.
    NotText {
        at: usize,
    },
    /// Not a sample.
    Wrong(Name),
    Sample(Box<Sample>),
}

/// A sample without its neighbours.
pub(super) struct Sample {
    pub(super) user: Name,
    pub(super) seconds: f64,
    /// The same, if it is in the range of traces.
    pub(super) time: Option<UtcTime>,
    /// A hash of the line.
    pub(super) content: u64,
    pub(super) battery: Option<Name>,
    pub(super) level: Option<f64>,
    pub(super) charging: Option<f64>,
    pub(super) network: Option<f64>,
    pub(super) offset: Option<f64>,
    pub(super) unknown_zone: Option<Name>,
    pub(super) source: Source,
    /// In the order of their packages, each package once, with its least `oom_score_adj`.
    pub(super) processes: Range<usize>,
    /// The number of processes merged into another of the same package.
    pub(super) merged: u64,
    pub(super) odd: Vec<Odd>,
    /// Active, inactive, free and user, as the client recorded them.
    pub(super) memory: Option<[f64; 4]>,
}

/// A process of a sample, by package.
pub(super) struct Process {
    pub(super) package: Name,
    pub(super) adj: OomAdj,
    pub(super) confidence: Confidence,
}

/// An oddity among the processes of a sample.
pub(super) enum Odd {
    /// A name that is empty or too long.
    Name { length: usize },
    /// Something happened to a package.
    PackageEvent { package: Name, word: Name },
    /// A word that corresponds to no importance.
    Unknown { word: Name },
    /// Processes in the background where intervals are expected.
    MixedInterval,
}

/// How lines are read.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Parser {
    pub(in super::super) semantics: CaratSemantics,
}

impl Parser {
    /// Reads the lines of `block`.
    pub(in super::super) fn parse(self, block: Vec<u8>) -> Parsed {
        let (text, broken) = as_text(block);
        let mut parsed = Parsed { text: String::new(), lines: Vec::new(), processes: Vec::new() };
        let mut broken = broken.into_iter().peekable();
        let lines = text.strip_suffix('\n').unwrap_or(&text);
        let mut start = 0;
        for (number, end) in memchr_iter(b'\n', lines.as_bytes()).chain([lines.len()]).enumerate() {
            let line = lines.get(start..end).unwrap_or_default();
            start = end + 1;
            let what = match broken.next_if(|(broken, _)| *broken == number) {
                _ if line.len() > LONGEST_LINE => What::TooLong,
                Some((_, at)) => What::NotText { at },
                None => self.line(line.trim_ascii(), &text, &mut parsed.processes),
            };
            parsed.lines.push(Line { length: line.len(), what });
        }
        Parsed { text, ..parsed }
    }

    fn line(self, line: &str, block: &str, processes: &mut Vec<Process>) -> What {
        if line.is_empty() {
            return What::Blank;
        }
        let Ok(record) = serde_json::from_str::<Record<'_>>(line) else { return What::Wrong(name(line, block)) };
        What::Sample(Box::new(self.sample(&record, line, block, processes)))
    }

    fn sample(self, record: &Record<'_>, line: &str, block: &str, all: &mut Vec<Process>) -> Sample {
        let seconds = real(&record.time);
        let time = clock::from_seconds(seconds);
        let source = self.source(time.unwrap_or_default());
        let zone = record.zone.as_ref().or_else(|| record.android.as_ref()?.zone.as_ref()).map(|zone| zone.0.as_ref());
        let offset = zone.and_then(|zone| clock::zone_offset(zone, time?));
        let kept = |text: &Text<'_>| name(&text.0, block);
        let mut odd = Vec::new();
        let first = all.len();
        let merged = processes(record.apps.as_deref().unwrap_or_default(), source, block, all, &mut odd);
        Sample {
            user: kept(&record.uuid),
            seconds,
            time,
            content: digest(line.as_bytes()),
            battery: record.battery.as_ref().map(kept),
            level: record.level.as_ref().map(real).filter(|level| (0.0..=100.0).contains(level)),
            charging: record
                .battery
                .as_ref()
                .and_then(|state| state::charges(&state.0))
                .map(|is| f64::from(u8::from(is))),
            network: record.network.as_ref().and_then(|network| state::network(&network.0)),
            offset: offset.map(|offset| f64::from(offset.seconds)),
            unknown_zone: zone.filter(|zone| offset.is_none() && !zone.is_empty()).map(|zone| name(zone, block)),
            source,
            processes: first..all.len(),
            merged,
            odd,
            memory: record.memory.as_ref().map(|memory| {
                [&memory.memory_active, &memory.memory_inactive, &memory.memory_free, &memory.memory_user].map(real)
            }),
        }
    }

    /// The meaning of the processes of a sample at `time`.
    fn source(self, time: UtcTime) -> Source {
        match self.semantics {
            CaratSemantics::ProcessList => Source::CaratProcessList,
            CaratSemantics::UsageInterval => Source::CaratUsageInterval,
            CaratSemantics::Auto if time < USAGE_INTERVALS => Source::CaratProcessList,
            CaratSemantics::Auto => Source::CaratUsageInterval,
        }
    }
}

/// Appends the processes of a sample to `all`; returns the number of those merged into another of the same package.
fn processes(apps: &[App<'_>], source: Source, block: &str, all: &mut Vec<Process>, odd: &mut Vec<Odd>) -> u64 {
    let mut processes: Vec<(u64, &str, OomAdj, Confidence)> = Vec::with_capacity(apps.len());
    let mut has_others = false;
    for app in apps {
        // The part after a colon names one of several processes of a package.
        let package = app.name.0.split(':').next().unwrap_or_default();
        if !(1..=LONGEST_NAME).contains(&package.len()) {
            odd.push(Odd::Name { length: package.len() });
            continue;
        }
        let word = app.priority.as_ref().map_or("", |word| word.0.as_ref());
        let (adj, confidence) = match priority(word) {
            Priority::Process(adj) => (adj, Confidence::Inferred),
            Priority::PackageEvent => {
                odd.push(Odd::PackageEvent { package: name(package, block), word: name(word, block) });
                continue;
            }
            Priority::Unknown => {
                odd.push(Odd::Unknown { word: name(word, block) });
                (OomAdj::CACHED_APP_MIN, Confidence::Assumed)
            }
        };
        has_others |= !adj.is_foreground();
        // In an interval an app was in front at some time, which does not determine its state at the end.
        let confidence = if source == Source::CaratUsageInterval { Confidence::Assumed } else { confidence };
        processes.push((beginning(package), package, adj, confidence));
    }
    if has_others && source == Source::CaratUsageInterval {
        odd.push(Odd::MixedInterval);
    }
    processes.sort_unstable();
    let found = processes.len();
    processes.dedup_by_key(|process| process.1);
    let kept = processes.len();
    all.extend(processes.into_iter().map(|(_, package, adj, confidence)| {
        let package = name(package, block);
        Process { package, adj, confidence }
    }));
    (found - kept) as u64
}

/// The first bytes of a name as a number, which is ordered as the names are.
fn beginning(name: &str) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(name.as_bytes()).for_each(|(byte, of_name)| *byte = *of_name);
    u64::from_be_bytes(bytes)
}

/// Whether `line` is a sample, and if not, why.
pub(super) fn check(line: &str) -> Result<(), serde_json::Error> {
    serde_json::from_str::<Record<'_>>(line).map(drop)
}

/// `text` as a piece of `block`, if it is one.
fn name(text: &str, block: &str) -> Name {
    let start = (text.as_ptr() as usize).wrapping_sub(block.as_ptr() as usize);
    let end = start.saturating_add(text.len());
    match (u32::try_from(start), u32::try_from(end)) {
        (Ok(from), Ok(to)) if end <= block.len() => Name::Piece(from, to),
        _ => Name::Own(text.into()),
    }
}

/// The block as text, and the lines that are not UTF-8: their numbers, and the position of their first wrong byte from
/// one. Such lines are blanked, so that every other line keeps its position.
fn as_text(block: Vec<u8>) -> (String, Vec<(usize, usize)>) {
    let mut block = match String::from_utf8(block) {
        Ok(text) => return (text, Vec::new()),
        Err(error) => error.into_bytes(),
    };
    let mut broken = Vec::new();
    for (number, line) in block.split_mut(|&byte| byte == b'\n').enumerate() {
        let blanks = line.len() - line.trim_ascii_start().len();
        if let Err(error) = std::str::from_utf8(line) {
            broken.push((number, error.valid_up_to() - blanks.min(error.valid_up_to()) + 1));
            line.fill(b' ');
        }
    }
    (String::from_utf8(block).unwrap_or_default(), broken)
}

/// The value of a number, with or without a fraction: Thrift's doubles reach JSON as either.
fn real(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

/// A fault: the field, and the description.
type Fault = (String, String);

/// The longest line that is examined; for a longer one the parser's own message is used.
const LONGEST_LOOK: usize = LONGEST_LINE / 16;

/// Reports a line that is not a sample.
pub(super) fn report(line: &str, context: &mut ImportContext<'_>) -> Result<()> {
    let Err(error) = check(line) else { return Ok(()) };
    let error = &error;
    if !error.is_data() {
        return context.find(Reason::NotJson, "", || {
            let shape = if line.starts_with('[') { "; `jq -c '.[]'` takes an array apart" } else { "" };
            format!("expected a JSON object, one a line: {}{shape}", words(error))
        });
    }
    let (field, message) = if context.is_told(Reason::Field) {
        look(line).unwrap_or_else(|| (String::new(), words(error)))
    } else {
        Fault::default()
    };
    context.find(Reason::Field, &field, || message)
}

/// The parser's message, without its line, which is always the first.
fn words(error: &serde_json::Error) -> String {
    let words = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    words.strip_suffix(&place).map_or(words.clone(), |words| format!("{words} at place {}", error.column()))
}

/// The description of a wrong time.
pub(super) fn time(seconds: f64) -> String {
    let unit = if seconds >= 1e11 { "; this looks like milliseconds" } else { "" };
    format!("expected seconds since 1970 and before 2100, found {seconds}{unit}")
}

/// The first fault of a line of JSON.
fn look(line: &str) -> Option<Fault> {
    if line.len() > LONGEST_LOOK {
        return None;
    }
    let value = serde_json::from_str(line).ok()?;
    let Value::Object(sample) = &value else { return Some((String::new(), expected("a JSON object", &value))) };
    let faults = [
        text(sample, "", "uuid"),
        number(sample, "", if sample.contains_key("time") { "time" } else { "timestamp" }),
        sample.get("apps").and_then(apps),
        ["batteryStatus", "batteryState"].iter().find_map(|name| optional_text(sample, name)),
        sample.get("memory").and_then(memory),
    ];
    faults.into_iter().flatten().next()
}

fn apps(apps: &Value) -> Option<Fault> {
    let list = match apps {
        Value::Null => return None,
        Value::Array(list) => list,
        other => return Some(("apps".into(), expected("a list of processes", other))),
    };
    list.iter().enumerate().find_map(|(place, app)| {
        let at = format!("apps[{place}]");
        let Value::Object(app) = app else { return Some((at, expected("a process", app))) };
        let priority = optional_text(app, "priority").map(|(name, message)| (format!("{at}.{name}"), message));
        text(app, &format!("{at}."), "processName").or(priority)
    })
}

fn memory(memory: &Value) -> Option<Fault> {
    let fields = match memory {
        Value::Null => return None,
        Value::Object(fields) => fields,
        other => return Some(("memory".into(), expected("an object", other))),
    };
    let names = ["memoryActive", "memoryInactive", "memoryFree", "memoryUser"];
    names.iter().find_map(|name| number(fields, "memory.", name))
}

fn text(object: &Map<String, Value>, at: &str, name: &str) -> Option<Fault> {
    field(object, at, name, "a text", Value::is_string)
}

fn number(object: &Map<String, Value>, at: &str, name: &str) -> Option<Fault> {
    field(object, at, name, "a number", Value::is_number)
}

fn optional_text(object: &Map<String, Value>, name: &str) -> Option<Fault> {
    let value = object.get(name).filter(|value| !value.is_string() && !value.is_null())?;
    Some((name.to_owned(), expected("a text", value)))
}

fn field(object: &Map<String, Value>, at: &str, name: &str, what: &str, is_right: fn(&Value) -> bool) -> Option<Fault> {
    let message = match object.get(name) {
        Some(value) if is_right(value) => return None,
        Some(value) => expected(what, value),
        None => missing(object, name),
    };
    Some((format!("{at}{name}"), message))
}

/// The message for a missing field, with a suggestion if there is a similar name.
fn missing(object: &Map<String, Value>, name: &str) -> String {
    let near = nearest(name, object.keys().map(String::as_str).filter(|key| key.len() <= 2 * name.len()));
    near.map_or_else(|| "the field is missing".to_owned(), |near| format!("the field is missing; is '{near}' meant?"))
}

fn expected(what: &str, found: &Value) -> String {
    format!("expected {what}, found {}", excerpt(&found.to_string()))
}
