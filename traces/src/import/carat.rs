//! Carat's JSON lines: the public data of the top thousand users, and the full records by request.
//!
//! Fields: the public release's record, and `JsonSampleAppExtras` of carat-dataset-tools. The two call the time
//! `timestamp` and `time`, the battery's state `batteryStatus` and `batteryState`. Times are seconds since 1970, UTC.
//!
//! Until June 2017 a sample lists the processes that ran; from then on, what UsageStats saw in front since the sample
//! before, all of it called a foreground app.

mod diagnosis;
mod fields;
mod memory;
mod priority;

use haversack_devices::text::hint;

use super::clock;
use super::context::ImportContext;
use super::report::Reason;
use super::{CaratSemantics, Format, ImportError};
use crate::row::{AppRow, Confidence, OomAdj, Source, UtcTime};
use fields::{App, Sample};
use memory::Memories;
use priority::{Priority, priority, words};

/// When the client began to send usage intervals: the day after its commits of 20 and 21 June 2017, UTC.
const USAGE_INTERVALS: UtcTime = UtcTime::from_seconds(1_498_003_200);

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

    fn sample(
        &mut self,
        sample: &Sample<'_>,
        line: &[u8],
        context: &mut ImportContext<'_, '_>,
    ) -> Result<(), ImportError> {
        let user = sample.uuid.0.as_ref();
        if !context.is_name("uuid", user)? {
            return Ok(());
        }
        let Some(time) = clock::from_seconds(sample.time.0) else {
            return context.find(Reason::Field, "timestamp", || diagnosis::time(sample.time.0));
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
        match (&mut self.memories, &sample.memory) {
            (Some(memories), Some(memory)) => memories.take(user, time, memory, context),
            _ => Ok(()),
        }
    }
}

/// The processes of a sample in the order of their packages, each package once, with its least `oom_score_adj`.
fn processes<'l>(
    apps: &'l [App<'_>],
    source: Source,
    context: &mut ImportContext<'_, '_>,
) -> Result<Vec<Process<'l>>, ImportError> {
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

fn unknown(word: &str, context: &mut ImportContext<'_, '_>) -> Result<(), ImportError> {
    context.report.unmapped_priorities.add(word);
    context.find(Reason::UnknownPriority, "apps.priority", || {
        let word = super::report::excerpt(word);
        let meant = if word.eq_ignore_ascii_case("unknown") { String::new() } else { hint(word, words()) };
        format!("expected an importance, found '{word}'{meant}")
    })
}

/// Whether the id is an iPhone's: more than 16 digits, capitals and hyphens alone (carat-dataset-tools).
fn is_apple(id: &str) -> bool {
    id.len() > 16 && id.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase() || byte == b'-')
}

impl Format for Carat {
    fn line(&mut self, line: &[u8], context: &mut ImportContext<'_, '_>) -> Result<(), ImportError> {
        // One look at the whole line is faster than one at every text in it.
        let Some(text) = context.text(line)? else { return Ok(()) };
        match serde_json::from_str::<Sample<'_>>(text) {
            Ok(sample) => self.sample(&sample, line, context),
            Err(error) => diagnosis::report(text, &error, context),
        }
    }

    fn finish(&mut self, context: &mut ImportContext<'_, '_>) -> Result<(), ImportError> {
        self.memories.as_mut().map_or(Ok(()), |memories| memories.finish(context))
    }
}
