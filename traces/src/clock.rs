//! Times as files and people write them: seconds, calendars with and without a zone, and offsets from UTC.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, NaiveDate, NaiveDateTime, Offset, TimeZone, Timelike};
use chrono_tz::Tz;

use crate::UtcTime;

/// The end of the times that a trace may have: 2100-01-01 00:00:00 UTC, in seconds.
const LATEST: i64 = 4_102_444_800;

/// The offset of a local clock from UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct UtcOffset {
    /// The seconds ahead.
    pub seconds: i32,
}

impl UtcOffset {
    /// A number of whole hours ahead.
    pub const fn hours(hours: i32) -> Self {
        Self { seconds: hours * 3600 }
    }

    /// The last midnight of such a clock that is not after `time`.
    pub fn midnight(self, time: UtcTime) -> UtcTime {
        const DAY: i64 = 86_400 * 1_000_000_000;
        let ahead = i64::from(self.seconds) * 1_000_000_000;
        let local = time.0.saturating_add(ahead);
        UtcTime(local.div_euclid(DAY).saturating_mul(DAY).saturating_sub(ahead))
    }

    /// The display of such a clock at `time`: `2016-01-01 12:00:00 +02:00`.
    pub fn local(self, time: UtcTime) -> String {
        let ahead = i64::from(self.seconds) * 1_000_000_000;
        let shown = chrono::DateTime::from_timestamp_nanos(time.0.saturating_add(ahead)).format("%Y-%m-%d %H:%M:%S");
        format!("{shown} {self}")
    }

    /// The point at which a clock with this offset shows `local`; `None` before 1970 or after 2099.
    pub fn utc(self, local: NaiveDateTime) -> Option<UtcTime> {
        let seconds = local.and_utc().timestamp() - i64::from(self.seconds);
        let time = UtcTime(UtcTime::from_seconds(seconds).0 + i64::from(local.and_utc().timestamp_subsec_nanos()));
        (0..LATEST).contains(&seconds).then_some(time)
    }
}

impl FromStr for UtcOffset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (sign, rest) = match text.split_at_checked(1)? {
                ("+", rest) => (1, rest),
                ("-", rest) => (-1, rest),
                _ => return None,
            };
            let (hours, minutes) = rest.split_once(':').or_else(|| rest.split_at_checked(2)).unwrap_or((rest, "00"));
            let number = |text: &str| text.parse::<u8>().ok().filter(|_| text.len() == 2).map(i32::from);
            let (hours, minutes) = (number(hours)?, number(minutes)?);
            (hours <= 14 && minutes < 60).then_some(Self { seconds: sign * (hours * 3600 + minutes * 60) })
        };
        parse().ok_or_else(|| format!("expected what local time is ahead of UTC, such as +03:30, found '{text}'"))
    }
}

impl fmt::Display for UtcOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.seconds < 0 { '-' } else { '+' };
        let minutes = self.seconds.abs() / 60;
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

/// The offset from UTC of clocks in the time zone `zone` at `time`. A zone is a name of the tz database
/// (`Europe/Helsinki`, `EET`) or an offset (`GMT+02:00`, `+0330`); `None` for anything else.
pub(crate) fn zone_offset(zone: &str, time: UtcTime) -> Option<UtcOffset> {
    let zone = zone.trim();
    let fixed = zone.strip_prefix("GMT").or_else(|| zone.strip_prefix("UTC")).unwrap_or(zone);
    if fixed.starts_with(['+', '-']) {
        let (sign, hours) = fixed.split_at_checked(1)?;
        // `GMT+2` is `+02:00`, and so is `+02`.
        let is_hour = hours.len() <= 2 && hours.bytes().all(|byte| byte.is_ascii_digit());
        return if is_hour { format!("{sign}{hours:0>2}:00").parse().ok() } else { fixed.parse().ok() };
    }
    let zone: Tz = zone.parse().ok()?;
    let utc = DateTime::from_timestamp_nanos(time.0).naive_utc();
    Some(UtcOffset { seconds: zone.offset_from_utc_datetime(&utc).fix().local_minus_utc() })
}

/// Seconds since 1970, if they are in the range of traces.
pub(crate) fn from_seconds(seconds: f64) -> Option<UtcTime> {
    (0.0..LATEST as f64).contains(&seconds).then(|| UtcTime::nearest(seconds))
}

/// Seconds since 1970 in digits, with or without a fraction; thirteen digits are milliseconds (`date +%s%3N`), sixteen
/// microseconds, nineteen nanoseconds.
pub(crate) fn parse_seconds(text: &str) -> Option<UtcTime> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let unit = match text.len() {
        13 if !text.contains('.') => 1_000_000,
        16 if !text.contains('.') => 1_000,
        19 if !text.contains('.') => 1,
        _ => return text.parse().ok().filter(|_| is_plain).and_then(from_seconds),
    };
    let nanos = text.parse::<i64>().ok().filter(|_| is_plain)?.checked_mul(unit)?;
    (nanos / 1_000_000_000 < LATEST).then_some(UtcTime(nanos))
}

/// The default output of `date`: `Sat Nov 28 03:36:00 UTC 2026`, or with the day before the month and the year after
/// it, with a 12-hour or a 24-hour clock. A zone that is neither UTC nor a number is `offset`.
fn parse_date(text: &str, offset: UtcOffset) -> Option<UtcTime> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (front, clock, behind) = match *words.as_slice() {
        [_, month, day, clock, ref behind @ .., year] if year.len() == 4 => ([month, day, year], clock, behind),
        [_, day, month, year, clock, ref behind @ ..] => ([month, day, year], clock, behind),
        _ => return None,
    };
    let [month, day, year] = front;
    let date = NaiveDate::parse_from_str(&format!("{year} {month} {day}"), "%Y %b %d").ok()?;
    let (local, rest) = time_of_day(date, clock)?;
    let (half, zone) = match behind {
        [half @ ("AM" | "PM"), zone @ ..] => (Some(*half), zone),
        zone => (None, zone),
    };
    let hour = local.hour();
    let local = match half {
        Some("PM") if hour < 12 => local.with_hour(hour + 12)?,
        Some("AM") if hour == 12 => local.with_hour(0)?,
        _ => local,
    };
    let offset = match zone {
        ["UTC" | "GMT" | "Z"] => UtcOffset::default(),
        [zone] => zone.parse().unwrap_or(offset),
        [] => offset,
        _ => return None,
    };
    offset.utc(local).filter(|_| rest.is_empty())
}

/// The number in the `count` digits of `text` from `from` on; `None` if there is anything else.
fn digits(text: &[u8], from: usize, count: usize) -> Option<u32> {
    let digits = text.get(from..from + count)?;
    digits.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0')))
}

/// `YYYY-MM-DD HH:MM:SS`, optionally with a `T` for the blank and with a fraction, and the text after it.
pub(crate) fn calendar(text: &str) -> Option<(NaiveDateTime, &str)> {
    let bytes = text.as_bytes();
    if bytes.get(4) != Some(&b'-') || bytes.get(7) != Some(&b'-') {
        return None;
    }
    let year = i32::try_from(digits(bytes, 0, 4)?).ok()?;
    let date = NaiveDate::from_ymd_opt(year, digits(bytes, 5, 2)?, digits(bytes, 8, 2)?)?;
    if !matches!(bytes.get(10), Some(b' ' | b'T')) {
        return None;
    }
    time_of_day(date, text.get(11..)?)
}

/// `HH:MM:SS` on `date`, optionally with a fraction, and the text after it.
pub(crate) fn time_of_day(date: NaiveDate, text: &str) -> Option<(NaiveDateTime, &str)> {
    let bytes = text.as_bytes();
    if bytes.get(2) != Some(&b':') || bytes.get(5) != Some(&b':') {
        return None;
    }
    let mut end = 8;
    let mut nanos = 0;
    if matches!(bytes.get(8), Some(b'.' | b',')) {
        let fraction = bytes.get(9..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
        // Digits beyond nanoseconds are cut off.
        let shown = fraction.min(9);
        nanos = digits(bytes, 9, shown)? * 10_u32.pow(9 - shown as u32);
        end = 9 + fraction;
    }
    let time = date.and_hms_nano_opt(digits(bytes, 0, 2)?, digits(bytes, 3, 2)?, digits(bytes, 6, 2)?, nanos)?;
    Some((time, text.get(end..)?))
}

/// A calendar time in numbers, or in the format of `date`: in its own zone (`Z`, `+0330`) if it states one,
/// else at `offset`.
pub fn parse_calendar(text: &str, offset: UtcOffset) -> Option<UtcTime> {
    let Some((local, zone)) = calendar(text) else { return parse_date(text, offset) };
    match zone.trim() {
        "" => offset.utc(local),
        "Z" | "UTC" => UtcOffset::default().utc(local),
        zone => zone.parse::<UtcOffset>().ok()?.utc(local),
    }
}

/// `YYYYMMDDHHMMSS` at `offset`.
pub(crate) fn parse_compact(text: &str, offset: UtcOffset) -> Option<UtcTime> {
    let bytes = text.as_bytes();
    let part = |from, count| digits(bytes, from, count);
    let year = i32::try_from(part(0, 4)?).ok()?;
    let date = NaiveDate::from_ymd_opt(year, part(4, 2)?, part(6, 2)?).filter(|_| bytes.len() == 14)?;
    offset.utc(date.and_hms_opt(part(8, 2)?, part(10, 2)?, part(12, 2)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calendars_become_seconds() {
        let utc = UtcOffset::default();
        // 2018-01-16 is 17547 days after 1970; 17547 * 86400 + 6 * 3600 + 65 = 1516082465.
        let time = UtcTime::from_seconds(1_516_082_465);
        assert_eq!(parse_calendar("2018-01-16 06:01:05", utc), Some(time));
        assert_eq!(parse_calendar("2018-01-16T06:01:05Z", UtcOffset::hours(8)), Some(time));
        assert_eq!(parse_calendar("2018-01-16 09:31:05.5 +0330", utc), Some(UtcTime(time.0 + 500_000_000)));
        assert_eq!(parse_compact("20180116140105", UtcOffset::hours(8)), Some(time));
        for wrong in
            ["2018-02-30 06:01:05", "2018-01-16 24:01:05", "2018-01-16", "1969-12-31 23:59:59", "é018-01-16 06"]
        {
            assert_eq!(parse_calendar(wrong, utc), None, "{wrong}");
        }
        assert_eq!(parse_compact("2018011614010", utc), None);
        assert_eq!(time.to_string(), "2018-01-16 06:01:05 UTC");
    }

    #[test]
    fn what_date_prints_is_a_time() {
        // 2018-01-16 18:01:05 is 17547 * 86400 + 18 * 3600 + 65.
        let time = Some(UtcTime::from_seconds(1_516_125_665));
        for text in [
            "Tue Jan 16 18:01:05 UTC 2018",
            "Tue Jan 16 18:01:05 2018",
            "Tue 16 Jan 2018 06:01:05 PM UTC",
            "Tue Jan 16 21:31:05 +0330 2018",
        ] {
            assert_eq!(parse_calendar(text, UtcOffset::default()), time, "{text}");
        }
        assert_eq!(parse_calendar("Tue Jan 16 19:01:05 CET 2018", UtcOffset::hours(1)), time);
        for wrong in ["Tue Jan 36 18:01:05 UTC 2018", "Tue Jan 16 18:01 UTC 2018", "MemFree: 5 kB", "Tue Jan 16 2018"] {
            assert_eq!(parse_calendar(wrong, UtcOffset::default()), None, "{wrong}");
        }
    }

    #[test]
    fn seconds_keep_their_fraction_and_have_bounds() {
        assert_eq!(parse_seconds("1443336825.25"), Some(UtcTime(1_443_336_825_250_000_000)));
        for (text, nanos) in [
            ("1443336825250", 1_443_336_825_250_000_000),
            ("1443336825250001", 1_443_336_825_250_001_000),
            ("1443336825250001002", 1_443_336_825_250_001_002),
        ] {
            assert_eq!(parse_seconds(text), Some(UtcTime(nanos)), "{text}");
        }
        for wrong in ["-1", "14433368250", "9443336825000", "1e9", "inf", "NaN", "", "1.2.3"] {
            assert_eq!(parse_seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn zones_have_names_and_offsets_that_change_with_the_season() {
        // 1 January and 1 July 2016: Helsinki is two hours ahead, three in summer; Kolkata five and a half.
        let [winter, summer] = [1_451_606_400, 1_467_331_200].map(UtcTime::from_seconds);
        let hours = |zone: &str, time: UtcTime| zone_offset(zone, time).map(|offset| offset.seconds / 60);
        assert_eq!((hours("Europe/Helsinki", winter), hours("Europe/Helsinki", summer)), (Some(120), Some(180)));
        assert_eq!((hours("Asia/Kolkata", winter), hours("America/New_York", winter)), (Some(330), Some(-300)));
        assert_eq!(
            (hours("GMT+02:00", winter), hours("GMT-3", winter), hours("UTC", winter)),
            (Some(120), Some(-180), Some(0))
        );
        assert_eq!(["Europe/Nowhere", "", "unknown", "GMT+x", "+é"].map(|zone| hours(zone, winter)), [None; 5]);
    }

    #[test]
    fn offsets_are_signed_hours_and_minutes() {
        assert_eq!("+03:30".parse(), Ok(UtcOffset { seconds: 12_600 }));
        assert_eq!("-0700".parse(), Ok(UtcOffset { seconds: -25_200 }));
        assert_eq!(UtcOffset { seconds: -12_600 }.to_string(), "-03:30");
        // 22:30 in Tehran is 19:00 UTC, and the midnight before it 20:30 UTC the day before.
        let tehran = UtcOffset { seconds: 12_600 };
        let evening = UtcTime::from_seconds(1_516_129_200);
        assert_eq!(tehran.local(evening), "2018-01-16 22:30:00 +03:30");
        assert_eq!(tehran.midnight(evening), UtcTime::from_seconds(1_516_129_200 - 81_000));
        assert_eq!(tehran.midnight(tehran.midnight(evening)), tehran.midnight(evening));
        assert!("3".parse::<UtcOffset>().unwrap_err().contains("+03:30"));
    }
}
