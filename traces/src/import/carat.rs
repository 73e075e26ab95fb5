//! Carat's JSON lines: the public data of the top thousand users, and the full records by request.
//!
//! Fields: the public release's record, and `JsonSampleAppExtras` of carat-dataset-tools. They name the time
//! `timestamp` and `time`, and the battery's state `batteryStatus` and `batteryState`. Times are seconds
//! since 1970, UTC.
//!
//! Until June 2017 a sample lists the processes that ran; from then on, the apps that UsageStats saw in front since the
//! previous sample, all of them as foreground apps.
//!
//! Blocks of lines become samples on any number of threads ([`Parser`]); their order relative to previous samples is
//! determined in the order of the files ([`Carat`]).

mod memory;
mod sample;

pub(super) use sample::{Parsed, Parser};

use haversack_devices::text::hint;
use memory::Memories;
use sample::{Odd, Sample, What};

use super::{ImportContext, LONGEST_NAME, Reason, Result};
use crate::words::WORDS;
use crate::{AppRow, CounterRow, OomAdj, state};

/// The state of the users of either kind of record.
pub(super) struct Carat {
    memories: Option<Memories>,
}

impl Carat {
    /// The initial state; `full` defines whether the records contain memory.
    pub(super) fn new(full: bool) -> Self {
        Self { memories: full.then(Memories::default) }
    }

    /// Takes the lines of a block, in their order.
    pub(super) fn take(&mut self, parsed: &Parsed, context: &mut ImportContext<'_>) -> Result<()> {
        for line in &parsed.lines {
            context.next_line(line.length);
            match &line.what {
                What::Blank => context.report.blank_lines += 1,
                What::TooLong => context.too_long(line.length)?,
                What::NotText { at } => context.not_text(*at)?,
                What::Wrong(text) => sample::report(text.of(&parsed.text), context)?,
                What::Sample(sample) => self.sample(sample, parsed, context)?,
            }
        }
        Ok(())
    }

    /// Emits the samples that were waiting for a successor.
    pub(super) fn finish(&mut self, context: &mut ImportContext<'_>) -> Result<()> {
        self.memories.as_mut().map_or(Ok(()), |memories| memories.finish(context))
    }

    fn sample(&mut self, sample: &Sample, parsed: &Parsed, context: &mut ImportContext<'_>) -> Result<()> {
        let text = parsed.text.as_str();
        let user = sample.user.of(text);
        if !context.is_name("uuid", user)? {
            return Ok(());
        }
        let Some(time) = sample.time else {
            return context.find(Reason::Field, "timestamp", || sample::time(sample.seconds));
        };
        if self.memories.is_some() && is_apple(user) {
            return context
                .find(Reason::AppleDevice, "uuid", || "an iPhone's priorities and memory mean other things".into());
        }
        if !context.sample(user, time, sample.content, true)? {
            return Ok(());
        }
        if let Some(state) = &sample.battery {
            context.report.battery.add(&state.of(text).to_ascii_lowercase());
        }
        for odd in &sample.odd {
            tell(odd, text, context)?;
        }
        context.report.merged_processes += sample.merged;
        for process in parsed.processes.get(sample.processes.clone()).unwrap_or_default() {
            let (package, source) = (process.package.of(text), sample.source);
            context.app(AppRow { user, time, package, adj: process.adj, source, confidence: process.confidence })?;
        }
        if let Some(zone) = &sample.unknown_zone {
            context.find(Reason::TimeZone, "timeZone", || {
                let zone = super::report::excerpt(zone.of(text));
                format!("expected a zone such as Europe/Helsinki, found '{zone}'")
            })?;
        }
        for (counter, value) in [
            (state::BATTERY, sample.level),
            (state::CHARGING, sample.charging),
            (state::NETWORK, sample.network),
            (state::UTC_OFFSET, sample.offset),
        ] {
            if let Some(value) = value {
                context.counter(CounterRow { user, time, counter, value })?;
            }
        }
        let (Some(memories), Some(memory)) = (&mut self.memories, &sample.memory) else { return Ok(()) };
        memories.take(user, time, memory, context)
    }
}

/// Reports an oddity among the processes of a sample.
fn tell(odd: &Odd, text: &str, context: &mut ImportContext<'_>) -> Result<()> {
    match odd {
        Odd::Name { length } => context.find(Reason::Field, "apps.processName", || {
            format!("expected a name of 1 to {LONGEST_NAME} bytes, found {length}")
        }),
        Odd::PackageEvent { package, word } => context.find(Reason::PackageEvent, "apps.priority", || {
            format!("'{}' was '{}'", package.of(text), word.of(text))
        }),
        Odd::Unknown { word } => unknown(word.of(text), context),
        Odd::MixedInterval => context.find(Reason::MixedInterval, "apps", || {
            "expected foreground apps alone, as UsageStats gives them; --carat-semantics process-list reads it otherwise".into()
        }),
    }
}

fn unknown(word: &str, context: &mut ImportContext<'_>) -> Result<()> {
    context.report.unmapped_priorities.add(word);
    context.find(Reason::UnknownPriority, "apps.priority", || {
        let word = super::report::excerpt(word);
        let meant = if word.eq_ignore_ascii_case("unknown") { String::new() } else { hint(word, words()) };
        format!("expected an importance, found '{word}'{meant}")
    })
}

/// Whether the id is an iPhone's: more than 16 digits, capitals and hyphens only (carat-dataset-tools).
fn is_apple(id: &str) -> bool {
    id.len() > 16 && id.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase() || byte == b'-')
}

/// The meaning of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Priority {
    /// The importance of a process.
    Process(OomAdj),
    /// Something that happened to a package.
    PackageEvent,
    /// An importance that the client had no word for, or an unknown word.
    Unknown,
}

/// The meaning of `word`, compared without case.
fn priority(word: &str) -> Priority {
    let is = |known: &str| known.eq_ignore_ascii_case(word.trim());
    match WORDS.carat_processes.iter().find(|(known, _)| is(known)) {
        Some((_, adj)) => Priority::Process(OomAdj(*adj)),
        None if WORDS.carat_events.iter().any(|known| is(known)) => Priority::PackageEvent,
        None => Priority::Unknown,
    }
}

/// All words.
fn words() -> impl Iterator<Item = &'static str> {
    let processes = WORDS.carat_processes.iter().map(|(word, _)| word.as_str());
    processes.chain(WORDS.carat_events.iter().map(String::as_str)).chain(["Unknown"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_match_whatever_their_case() {
        for word in ["Not running", "Not Running", " not running"] {
            assert_eq!(priority(word), Priority::Process(OomAdj(999)), "{word}");
        }
        assert_eq!(priority("foreground APP"), Priority::Process(OomAdj(0)));
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
            // Android's 1001 for Unknown is not a value that a process can have; it counts as cached.
            if !word.is_empty() && word != "Unknown" {
                assert_eq!(priority(word), Priority::Process(OomAdj(adj.parse().unwrap())));
                seen += 1;
            }
        }
        assert_eq!(seen, 7);
    }
}
