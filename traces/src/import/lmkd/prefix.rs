//! The time at the beginning of a line of `logcat`, in any of the formats that have one.
//!
//! `-v threadtime` and `-v time` begin with `MM-DD HH:MM:SS.mmm`, with a year before it under `-v year` and a zone behind
//! it under `-v zone`; `-v epoch` begins with seconds since 1970.

use chrono::{Datelike, NaiveDate, NaiveDateTime};

use super::super::clock::{self, UtcOffset};
use crate::row::UtcTime;

/// The year of a log that states none.
const NO_YEAR: i32 = 1970;

/// Which year it is, in a log that tells it or not.
#[derive(Debug, Default)]
pub(super) struct Calendar {
    /// The year and the month of the line before, where lines state no year.
    recent: Option<(i32, u32)>,
}

impl Calendar {
    /// Whether a year had to be added.
    pub(super) fn has_guessed(&self) -> bool {
        self.recent.is_some()
    }

    /// The time at the beginning of `line`; `year` is that of the first line that states none.
    pub(super) fn time(&mut self, line: &str, offset: UtcOffset, year: Option<i32>) -> Option<UtcTime> {
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
            // A log that goes from December to January has seen a new year.
            Some((year, before)) if before == 12 && month == 1 => year + 1,
            Some((year, _)) => year,
            None => year.unwrap_or(NO_YEAR),
        };
        let date = NaiveDate::from_ymd_opt(year, month, day).or_else(|| leap_day(month, day))?;
        let found = clock::time_of_day(date, rest)?;
        self.recent = Some((date.year(), month));
        Some(found)
    }
}

/// The 29th of February, in a log that states no year: there was none in 1970.
fn leap_day(month: u32, day: u32) -> Option<NaiveDate> {
    NaiveDate::from_ymd_opt(1972, month, day)
}

/// The zone behind the time, where one is stated.
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
