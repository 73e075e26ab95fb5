//! Carat's JSON lines: the public data of the top thousand users, and the full records by request.
//!
//! Fields: the public release's record, and `JsonSampleAppExtras` of carat-dataset-tools. The two call the time
//! `timestamp` and `time`, the battery's state `batteryStatus` and `batteryState`. Times are seconds since 1970, UTC.
//!
//! Until June 2017 a sample lists the processes that ran; from then on, what UsageStats saw in front since the sample
//! before, all of it called a foreground app.

mod diagnosis;
mod memory;

use std::borrow::Cow;

use haversack_devices::text::hint;
use serde::Deserialize;
use serde_json::Number;

use super::context::ImportContext;
use super::report::Reason;
use super::{CaratSemantics, Format, Result};
use crate::clock;
use crate::row::{AppRow, Confidence, CounterRow, OomAdj, Source, UtcTime};
use crate::state;
use memory::Memories;

/// When the client began to send usage intervals: the day after its commits of 20 and 21 June 2017, UTC.
const USAGE_INTERVALS: UtcTime = UtcTime::from_seconds(1_498_003_200);

/// A text, borrowed from the line where no escape stands in its way. (A bare `Option<Cow>` would always be a copy.)
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'l>(#[serde(borrow)] Cow<'l, str>);

/// A line.
#[derive(Deserialize)]
struct Sample<'l> {
    #[serde(borrow)]
    uuid: Text<'l>,
    #[serde(alias = "timestamp")]
    time: Number,
    #[serde(borrow, default, alias = "batteryStatus", rename = "batteryState")]
    battery: Option<Text<'l>>,
    #[serde(borrow, default)]
    apps: Option<Vec<App<'l>>>,
    #[serde(default)]
    memory: Option<Memory>,
    #[serde(default, rename = "batteryLevel")]
    level: Option<Number>,
    #[serde(borrow, default, rename = "timeZone")]
    zone: Option<Text<'l>>,
    #[serde(borrow, default, rename = "networkStatus")]
    network: Option<Text<'l>>,
    #[serde(borrow, default, rename = "androidFields")]
    android: Option<Android<'l>>,
}

/// What the full records have of Android alone.
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

/// The memory of a phone as the client wrote it down: kB, and not what the names say.
#[derive(Debug, Deserialize)]
struct Memory {
    #[serde(rename = "memoryActive")]
    active: Number,
    #[serde(rename = "memoryInactive")]
    inactive: Number,
    #[serde(rename = "memoryFree")]
    free: Number,
    #[serde(rename = "memoryUser")]
    user: Number,
}

/// The reader of both kinds.
pub(super) struct Carat {
    semantics: CaratSemantics,
    memories: Option<Memories>,
}

/// A process of a sample, by package.
type Process<'l> = (&'l str, OomAdj, Confidence);

impl Carat {
    /// A reader; `full` says whether the records hold memory.
    pub(super) fn new(semantics: CaratSemantics, full: bool) -> Self {
        Self { semantics, memories: full.then(Memories::default) }
    }

    /// What the processes of a sample at `time` mean.
    fn source(&self, time: UtcTime) -> Source {
        match self.semantics {
            CaratSemantics::ProcessList => Source::CaratProcessList,
            CaratSemantics::UsageInterval => Source::CaratUsageInterval,
            CaratSemantics::Auto if time < USAGE_INTERVALS => Source::CaratProcessList,
            CaratSemantics::Auto => Source::CaratUsageInterval,
        }
    }

    fn sample(&mut self, sample: &Sample<'_>, line: &[u8], context: &mut ImportContext<'_>) -> Result<()> {
        let user = sample.uuid.0.as_ref();
        if !context.is_name("uuid", user)? {
            return Ok(());
        }
        let seconds = real(&sample.time);
        let Some(time) = clock::from_seconds(seconds) else {
            return context.find(Reason::Field, "timestamp", || diagnosis::time(seconds));
        };
        if self.memories.is_some() && is_apple(user) {
            return context
                .find(Reason::AppleDevice, "uuid", || "an iPhone's priorities and memory mean other things".into());
        }
        if !context.sample(user, time, line, true)? {
            return Ok(());
        }
        if let Some(state) = &sample.battery {
            context.report.battery.add(&state.0.to_ascii_lowercase());
        }
        let apps = sample.apps.as_deref().unwrap_or_default();
        let source = self.source(time);
        for (package, adj, confidence) in processes(apps, source, context)? {
            context.app(AppRow { user, time, package, adj, source, confidence })?;
        }
        state(sample, user, time, context)?;
        match (&mut self.memories, &sample.memory) {
            (Some(memories), Some(memory)) => memories.take(user, time, memory, context),
            _ => Ok(()),
        }
    }
}

/// Gives out the state of the phone, as far as the sample tells: battery, charger, network and clock.
fn state(sample: &Sample<'_>, user: &str, time: UtcTime, context: &mut ImportContext<'_>) -> Result<()> {
    let level = sample.level.as_ref().map(real).filter(|level| (0.0..=100.0).contains(level));
    let charging = sample.battery.as_ref().and_then(|battery| state::charges(&battery.0));
    let network = sample.network.as_ref().and_then(|network| state::network(&network.0));
    let zone = sample.zone.as_ref().or_else(|| sample.android.as_ref()?.zone.as_ref()).map(|zone| zone.0.as_ref());
    let offset = zone.and_then(|zone| clock::zone_offset(zone, time));
    if let Some(zone) = zone.filter(|zone| offset.is_none() && !zone.is_empty()) {
        context.find(Reason::TimeZone, "timeZone", || {
            format!("expected a zone such as Europe/Helsinki, found '{}'", super::report::excerpt(zone))
        })?;
    }
    for (counter, value) in [
        (state::BATTERY, level),
        (state::CHARGING, charging.map(|charging| f64::from(u8::from(charging)))),
        (state::NETWORK, network),
        (state::UTC_OFFSET, offset.map(|offset| f64::from(offset.ahead()))),
    ] {
        if let Some(value) = value {
            context.counter(CounterRow { user, time, counter, value })?;
        }
    }
    Ok(())
}

/// The processes of a sample in the order of their packages, each package once, with its least `oom_score_adj`.
fn processes<'l>(apps: &'l [App<'_>], source: Source, context: &mut ImportContext<'_>) -> Result<Vec<Process<'l>>> {
    let mut processes: Vec<Process<'l>> = Vec::with_capacity(apps.len());
    let mut has_others = false;
    for app in apps {
        // What follows a colon names one of several processes of a package.
        let package = app.name.0.split(':').next().unwrap_or_default();
        if !context.is_name("apps.processName", package)? {
            continue;
        }
        let word = app.priority.as_ref().map_or("", |word| word.0.as_ref());
        let (adj, confidence) = match priority(word) {
            Priority::Process(adj, confidence) => (adj, confidence),
            Priority::PackageEvent => {
                context.find(Reason::PackageEvent, "apps.priority", || format!("'{package}' was '{word}'"))?;
                continue;
            }
            Priority::Unknown => {
                unknown(word, context)?;
                (OomAdj::CACHED_APP_MIN, Confidence::Assumed)
            }
        };
        has_others |= !adj.is_foreground();
        // In an interval an app was in front at some time, which says little of its end.
        let confidence = if source == Source::CaratUsageInterval { Confidence::Assumed } else { confidence };
        processes.push((package, adj, confidence));
    }
    if has_others && source == Source::CaratUsageInterval {
        context.find(Reason::MixedInterval, "apps", || {
            "expected foreground apps alone, as UsageStats gives them; --carat-semantics process-list reads it otherwise".into()
        })?;
    }
    processes.sort_unstable();
    let all = processes.len();
    processes.dedup_by_key(|process| process.0);
    context.report.merged_processes += (all - processes.len()) as u64;
    Ok(processes)
}

fn unknown(word: &str, context: &mut ImportContext<'_>) -> Result<()> {
    context.report.unmapped_priorities.add(word);
    context.find(Reason::UnknownPriority, "apps.priority", || {
        let word = super::report::excerpt(word);
        let meant = if word.eq_ignore_ascii_case("unknown") { String::new() } else { hint(word, words()) };
        format!("expected an importance, found '{word}'{meant}")
    })
}

/// The value of a number, with or without a fraction: Thrift's doubles reach JSON as either.
fn real(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

/// Whether the id is an iPhone's: more than 16 digits, capitals and hyphens alone (carat-dataset-tools).
fn is_apple(id: &str) -> bool {
    id.len() > 16 && id.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase() || byte == b'-')
}

impl Format for Carat {
    fn line(&mut self, line: &[u8], context: &mut ImportContext<'_>) -> Result<()> {
        // One look at the whole line is faster than one at every text in it.
        let Some(text) = context.text(line)? else { return Ok(()) };
        match serde_json::from_str::<Sample<'_>>(text) {
            Ok(sample) => self.sample(&sample, line, context),
            Err(error) => diagnosis::report(text, &error, context),
        }
    }

    fn finish(&mut self, context: &mut ImportContext<'_>) -> Result<()> {
        self.memories.as_mut().map_or(Ok(()), |memories| memories.finish(context))
    }
}

/// What a word stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Priority {
    /// A process.
    Process(OomAdj, Confidence),
    /// Something that happened to a package.
    PackageEvent,
    /// An importance that the client had no word for, or a word that nobody knows.
    Unknown,
}

const PRIORITIES: [(&str, Priority); 13] = [
    ("Background process", Priority::Process(OomAdj::CACHED_APP_MIN, Confidence::Inferred)),
    ("Service", Priority::Process(OomAdj::SERVICE, Confidence::Inferred)),
    ("Foreground app", Priority::Process(OomAdj::FOREGROUND_APP, Confidence::Inferred)),
    ("Visible task", Priority::Process(OomAdj::VISIBLE_APP, Confidence::Inferred)),
    ("Perceptible task", Priority::Process(OomAdj::PERCEPTIBLE_APP, Confidence::Inferred)),
    ("Foreground service", Priority::Process(OomAdj::PERCEPTIBLE_RECENT_FOREGROUND_APP, Confidence::Inferred)),
    ("Not running", Priority::Process(OomAdj::CACHED_APP_MAX, Confidence::Inferred)),
    ("Unknown", Priority::Unknown),
    ("uninstalled", Priority::PackageEvent),
    ("disabled", Priority::PackageEvent),
    ("installed", Priority::PackageEvent),
    ("replaced", Priority::PackageEvent),
    // Only ever shown to the user, but nothing forbids a client to send it.
    ("Suggestion", Priority::PackageEvent),
];

/// What `word` stands for, whatever its case.
fn priority(word: &str) -> Priority {
    // The words come first in the spelling of the data, and most often the first ones.
    let exact = PRIORITIES.iter().find(|(known, _)| *known == word);
    let found = exact.or_else(|| PRIORITIES.iter().find(|(known, _)| known.eq_ignore_ascii_case(word.trim())));
    found.map_or(Priority::Unknown, |(_, priority)| *priority)
}

/// All words.
fn words() -> impl Iterator<Item = &'static str> {
    PRIORITIES.iter().map(|(word, _)| *word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_match_whatever_their_case() {
        for word in ["Not running", "Not Running", " not running"] {
            assert_eq!(priority(word), Priority::Process(OomAdj(999), Confidence::Inferred), "{word}");
        }
        assert_eq!(priority("foreground APP"), Priority::Process(OomAdj(0), Confidence::Inferred));
        assert_eq!(priority("Uninstalled"), Priority::PackageEvent);
        // The official tool compares with these two, which no client sends.
        assert_eq!(priority("foreground"), Priority::Unknown);
        assert_eq!(priority("visible"), Priority::Unknown);
    }

    #[test]
    fn values_are_androids() {
        let table = include_str!("../../fixtures/android_oom_adj.csv");
        let mut seen = 0;
        for row in table.lines().skip(1) {
            let fields: Vec<&str> = row.split(',').collect();
            let [_, adj, word] = fields[..] else { panic!("{row}") };
            let word = word.trim_end_matches(" (empty)");
            // Android's 1001 for Unknown is no value that a process can have; it is taken as cached.
            if !word.is_empty() && word != "Unknown" {
                assert_eq!(priority(word), Priority::Process(OomAdj(adj.parse().unwrap()), Confidence::Inferred));
                seen += 1;
            }
        }
        assert_eq!(seen, 7);
    }
}
