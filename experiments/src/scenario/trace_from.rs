//! The start of a run in a user's trace: `1800`, `30min`, `2016-01-01 19:00`, `evening`, `session:3` or `random`.

use std::fmt;
use std::str::FromStr;

use haversack_devices::text::{nearest, question};
use haversack_devices::{Nanos, Stream};
use haversack_traces::clock::parse_calendar;
use haversack_traces::{AppTimeline, UsageModel, UtcOffset, UtcTime};
use rand::RngExt;

use super::quantity::{QuantityError, parse_span, time_text};
use crate::trace_table::UserApps;

/// The default length of trace that a run uses: a day.
pub(crate) const DAY: Nanos = Nanos(86_400_000_000_000);
/// The hour, by the user's clock, at which `evening` begins: when people use their phones most.
const EVENING: Nanos = Nanos(19 * 3_600_000_000_000);
/// Shorter pauses do not end a session, as in `trace stats`.
const PAUSE: Nanos = Nanos(10_000_000_000);

/// The start of a run in a user's trace.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceFrom {
    /// This long after the first row.
    After(Nanos),
    /// At a date and time, by the user's clock unless it states another.
    At(String),
    /// At 19:00 by the user's clock, the first time that the trace covers it.
    Evening,
    /// When the session of this number begins, counted from one.
    Session(u64),
    /// Anywhere that leaves the window within the trace, by the seed and the user.
    Random,
}

/// The upper limit of a time in seconds: almost three hundred years, which nanoseconds can just represent.
const LATEST_S: f64 = 9e9;
const EVENING_WORD: &str = "evening";
const RANDOM: &str = "random";
const SESSION: &str = "session:";
const FROM: &str = "seconds after the first row, a time such as 30min, a date and time such as 2016-01-01T19:00, evening, \
                    session:N or random";

impl FromStr for TraceFrom {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let wrong = || QuantityError::new(FROM, text);
        if let Some(number) = text.strip_prefix(SESSION) {
            return number.parse().ok().filter(|number| *number > 0).map(Self::Session).ok_or_else(wrong);
        }
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let seconds = text.parse::<f64>().ok().filter(|seconds| is_number && *seconds < LATEST_S);
        if let Some(seconds) = seconds {
            return Ok(Self::After(Nanos::from_seconds(seconds)));
        }
        match text {
            EVENING_WORD => Ok(Self::Evening),
            RANDOM => Ok(Self::Random),
            _ if whole(text).is_some_and(|text| parse_calendar(&text, UtcOffset::default()).is_some()) => {
                Ok(Self::At(text.to_owned()))
            }
            _ => parse_span(text).map(Self::After).map_err(|_| {
                let guess = nearest(text, [EVENING_WORD, RANDOM, "session:1"]);
                QuantityError { hint: question(guess), ..wrong() }
            }),
        }
    }
}

impl fmt::Display for TraceFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(Nanos::ZERO) => f.write_str("0"),
            Self::After(time) => f.write_str(&time_text(*time)),
            Self::At(text) => f.write_str(text),
            Self::Evening => f.write_str(EVENING_WORD),
            Self::Session(number) => write!(f, "{SESSION}{number}"),
            Self::Random => f.write_str(RANDOM),
        }
    }
}

/// The date and time with seconds, which users often leave out; `None` if the text is not a date.
fn whole(text: &str) -> Option<String> {
    // YYYY-MM-DDTHH:MM and what follows.
    let (minutes, rest) = text.split_at_checked(16)?;
    Some(if rest.starts_with(':') { text.to_owned() } else { format!("{minutes}:00{rest}") })
}

/// The properties of a user's trace that determine the start of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'a> {
    pub(crate) user: &'a str,
    pub(crate) first: UtcTime,
    pub(crate) last: UtcTime,
    pub(crate) offset: UtcOffset,
}

impl Span<'_> {
    /// The length of the trace from `start` on, at most `window`.
    pub(crate) fn left(&self, start: UtcTime, window: Nanos) -> Nanos {
        between(start, self.last).min(window)
    }

    /// The start of a run that uses `window` of the trace; `draw` is a number from zero to one, and `timeline` returns
    /// the whole trace's timeline, called only if sessions are needed.
    ///
    /// # Errors
    /// A message if the start is outside the trace, or the session does not exist.
    pub(crate) fn start(
        &self,
        from: &TraceFrom,
        window: Nanos,
        draw: f64,
        timeline: impl FnOnce() -> Option<AppTimeline>,
    ) -> Result<UtcTime, String> {
        let start = match from {
            TraceFrom::After(time) => after(self.first, *time),
            TraceFrom::At(text) => whole(text).and_then(|text| parse_calendar(&text, self.offset)).unwrap_or_default(),
            TraceFrom::Evening => {
                let evening = after(self.offset.midnight(self.first), EVENING);
                if evening < self.first { after(evening, DAY) } else { evening }
            }
            TraceFrom::Random => {
                let room = between(self.first, self.last).saturating_sub(window);
                after(self.first, Nanos((room.0 as f64 * draw) as u64))
            }
            TraceFrom::Session(number) => {
                let timeline = timeline().ok_or("the trace says nothing of apps, and so nothing of sessions")?;
                let starts = session_starts(&timeline);
                let place = usize::try_from(*number - 1).unwrap_or(usize::MAX);
                let found = starts.get(place).copied();
                found.ok_or_else(|| format!("the trace of {} has {} sessions", self.user, starts.len()))?
            }
        };
        if (self.first..=self.last).contains(&start) {
            return Ok(start);
        }
        let local = |time| self.offset.local(time);
        Err(format!(
            "{from} is {} by the clock of {}, outside of the trace, which covers {} from {} to {}",
            local(start),
            self.user,
            between(self.first, self.last),
            local(self.first),
            local(self.last)
        ))
    }
}

/// The start of a run in the trace of a user, and the length left from there.
///
/// # Errors
/// As [`Span::start`].
pub(crate) fn beginning(
    of_user: &UserApps,
    from: &TraceFrom,
    window: Nanos,
    seed: u64,
    model: &UsageModel,
) -> Result<(UtcTime, Nanos), String> {
    let UserApps { user, first, last, offset, .. } = of_user;
    let span = Span { user, first: *first, last: *last, offset: *offset };
    let start = span.start(from, window, draw(seed, user), || Some(of_user.whole(model, seed)))?;
    Ok((start, span.left(start, window)))
}

/// The number from zero to one that determines a random start.
pub(crate) fn draw(seed: u64, user: &str) -> f64 {
    Stream::of_user(seed, user, "trace from").random()
}

/// The starts of sessions: an app comes to the foreground after a pause without one.
fn session_starts(timeline: &AppTimeline) -> Vec<UtcTime> {
    let (mut starts, mut dark_since) = (Vec::new(), Some(None));
    timeline.stretches(|time, alive| {
        let in_front = alive.iter().any(|app| app.adj.is_foreground());
        match (in_front, dark_since) {
            (true, Some(since)) => {
                if since.is_none_or(|since| time.saturating_sub(since) >= PAUSE) {
                    starts.push(after(timeline.start, time));
                }
                dark_since = None;
            }
            (false, None) => dark_since = Some(Some(time)),
            _ => {}
        }
    });
    starts
}

fn after(time: UtcTime, span: Nanos) -> UtcTime {
    UtcTime(time.0.saturating_add(i64::try_from(span.0).unwrap_or(i64::MAX)))
}

/// From one time to another; zero if that is earlier.
pub(crate) fn between(from: UtcTime, to: UtcTime) -> Nanos {
    Nanos(u64::try_from(to.0.saturating_sub(from.0)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_print_as_they_are_read() {
        for text in ["0", "30s", "evening", "random", "session:12", "2016-01-01T19:00", "2016-01-01 19:00:30Z"] {
            assert_eq!(text.parse::<TraceFrom>().unwrap().to_string(), text);
        }
        assert_eq!("1800".parse(), Ok(TraceFrom::After(Nanos(1_800_000_000_000))));
        assert_eq!("30m".parse(), Ok(TraceFrom::After(Nanos(1_800_000_000_000))));
        for wrong in ["", "-5", "session:0", "session:x", "2016-13-01T19:00", "19:00", "1e3", "nan"] {
            let error = wrong.parse::<TraceFrom>().unwrap_err().to_string();
            assert!(error.contains("evening, session:N or random"), "{wrong}: {error}");
        }
        let error = "evning".parse::<TraceFrom>().unwrap_err().to_string();
        assert!(error.ends_with("did you mean 'evening'?"), "{error}");
    }

    #[test]
    fn a_beginning_is_on_the_users_clock_and_within_the_trace() {
        // From 10:00 to 22:00 UTC on 1 January 2016, which is 12:00 to 24:00 two hours east.
        let noon = 1_451_606_400 + 10 * 3600;
        let first = UtcTime::from_seconds(noon);
        let last = UtcTime::from_seconds(noon + 12 * 3600);
        let span = Span { user: "u", first, last, offset: UtcOffset::hours(2) };
        let window = Nanos(4 * 3_600_000_000_000);
        let start = |text: &str| span.start(&text.parse().unwrap(), window, 0.5, || None);
        let at = |hours: i64| Ok(UtcTime::from_seconds(noon + hours * 3600));
        assert_eq!((start("0"), start("2h"), start("evening")), (at(0), at(2), at(7)));
        // The window of four hours begins up to eight hours after the first row.
        assert_eq!(start("random"), at(4));
        // 13:00 in that zone is an hour after the first row, and 11:00 UTC.
        assert_eq!(start("2016-01-01T13:00"), at(1));
        assert_eq!(start("2016-01-01T11:00Z"), at(1));
        for outside in ["13h", "2016-01-01T11:59", "2017-01-01T12:00"] {
            let error = start(outside).unwrap_err();
            assert!(error.contains("covers") && error.contains("from 2016-01-01 12:00:00 +02:00"), "{error}");
        }
        assert!(start("session:1").unwrap_err().contains("nothing of sessions"));
        assert_eq!(span.left(UtcTime::from_seconds(noon + 3600), DAY), Nanos(11 * 3_600_000_000_000));
    }
}
