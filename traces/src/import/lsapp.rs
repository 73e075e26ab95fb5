//! LSApp: which user opened, used and closed which app, to the second.
//!
//! Columns: `user_id session_id timestamp app_name event_type`, between tabs. Apps have names, not packages; times have
//! no zone and are read as UTC unless the options give another. An app that was closed counts as the previous app; the
//! next row gives the app in front after it.
//!
//! Tsinghua App Usage: which app moved how many bytes, at which base station.
//!
//! Columns between blanks, without a header: `user time location app traffic`, the time `YYYYMMDDHHMMSS` of a Chinese
//! city's clock, the app a number. Traffic shows that an app ran, not that a user looked at it; its amount and the base
//! station are not part of the rows.
//!
//! Also the fields of a line of separated values.

use haversack_devices::Bytes;
use haversack_devices::text::hint;

use super::context::digest;
use super::report::excerpt;
use super::{Format, ImportContext, Reason, Result};
use crate::{AppRow, Confidence, OomAdj, Source, UtcOffset, clock};

const COLUMNS: [&str; 5] = ["user_id", "session_id", "timestamp", "app_name", "event_type"];
const EVENTS: [&str; 4] = ["Opened", "Closed", "User Interaction", "Broken"];

/// The reader of LSApp.
#[derive(Debug)]
pub(super) struct Lsapp {
    /// The place of each of [`COLUMNS`].
    places: [usize; 5],
    fields: Fields,
}

impl Lsapp {
    pub(super) fn new(context: &mut ImportContext<'_>) -> Self {
        let offset = context.options.offset.unwrap_or_default();
        context.note(&format!("LSApp states no time zone; its times are taken as local at {offset}"));
        Self { places: [0, 1, 2, 3, 4], fields: Fields::separated_by(b'\t') }
    }

    /// Adopts the order of a header; returns whether the line is one.
    fn header(&mut self, context: &mut ImportContext<'_>) -> Result<bool> {
        let fields = &self.fields;
        if !fields.iter().any(|field| COLUMNS.contains(&field.trim())) {
            return Ok(false);
        }
        for (place, column) in self.places.iter_mut().zip(COLUMNS) {
            let Some(found) = fields.iter().position(|field| field.trim() == column) else {
                context.find(Reason::Columns, column, || {
                    format!("the column is missing{}", hint(column, fields.iter()))
                })?;
                return Ok(true);
            };
            *place = found;
        }
        context.report.other_lines += 1;
        Ok(true)
    }

    fn event(&self, line: &str, context: &mut ImportContext<'_>) -> Result<()> {
        let fields = &self.fields;
        let picked = self.places.map(|place| fields.get(place).map(str::trim));
        let [Some(user), Some(_), Some(time), Some(app), Some(event)] = picked else {
            let found = fields.len();
            return context.find(Reason::Columns, "", || {
                format!("expected the columns {} between tabs, found {found} columns", COLUMNS.join(", "))
            });
        };
        if !context.is_name("user_id", user)? || !context.is_name("app_name", app)? {
            return Ok(());
        }
        let offset = context.options.offset.unwrap_or_default();
        let Some(at) = clock::parse_calendar(time, offset) else {
            return context.wrong("timestamp", "YYYY-MM-DD HH:MM:SS from 1970 to 2099", time);
        };
        let adj = match EVENTS.iter().position(|known| known.eq_ignore_ascii_case(event)) {
            Some(0 | 2) => Some(OomAdj::FOREGROUND_APP),
            Some(1) => Some(OomAdj::PREVIOUS_APP),
            Some(_) => None,
            None => {
                return context.find(Reason::Field, "event_type", || {
                    let found = excerpt(event);
                    format!("expected {}, found '{found}'{}", EVENTS.join(", "), hint(found, EVENTS))
                });
            }
        };
        let Some(adj) = adj else {
            return context.find(Reason::IdleEvent, "event_type", || format!("{event}: {}", excerpt(app)));
        };
        if !context.sample(user, at, digest(line.as_bytes()), false)? {
            return Ok(());
        }
        let (source, confidence) = (Source::Lsapp, Confidence::Inferred);
        context.app(AppRow { user, time: at, package: app, adj, source, confidence })
    }
}

impl Format for Lsapp {
    fn line(&mut self, text: &str, context: &mut ImportContext<'_>) -> Result<()> {
        self.fields.split(text);
        if self.header(context)? {
            return Ok(());
        }
        self.event(text, context)
    }
}

/// China has one time zone.
const CHINA: UtcOffset = UtcOffset::hours(8);

/// The reader of Tsinghua App Usage.
pub(super) struct Tsinghua;

impl Tsinghua {
    pub(super) fn new(context: &mut ImportContext<'_>) -> Self {
        let offset = context.options.offset.unwrap_or(CHINA);
        context.note(&format!("Tsinghua states no time zone; its times are taken as local at {offset}"));
        context.note("Tsinghua sees network traffic, not the screen; every app is taken as a service");
        Self
    }
}

/// A fault: the field, the expected value, and the value found.
type Wrong = (&'static str, &'static str, String);

/// The user, the time and the app.
fn parse(text: &str, offset: UtcOffset) -> Result<(&str, crate::row::UtcTime, &str), Wrong> {
    let mut fields = text.split_ascii_whitespace();
    let mut next = |name, expected| fields.next().ok_or_else(|| (name, expected, "nothing".to_owned()));
    let found = |text: &str| format!("'{}'", excerpt(text));
    let whole = |name, text: &str| text.parse::<u64>().map_err(|_| (name, "a whole number", found(text)));
    let user = next("user", "a whole number")?;
    let time = next("time", "YYYYMMDDHHMMSS")?;
    let location = next("location", "a whole number")?;
    let app = next("app", "a whole number")?;
    let traffic = next("traffic", "bytes")?;
    whole("user", user)?;
    whole("location", location)?;
    whole("app", app)?;
    let at =
        clock::parse_compact(time, offset).ok_or_else(|| ("time", "YYYYMMDDHHMMSS from 1970 to 2099", found(time)))?;
    let bytes = traffic.parse::<f64>().ok().filter(|bytes| (0.0..Bytes::MAX.as_f64()).contains(bytes));
    bytes.ok_or_else(|| ("traffic", "bytes, not below zero", found(traffic)))?;
    let Some(more) = fields.next() else { return Ok((user, at, app)) };
    Err(("", "five columns: user time location app traffic", format!("a sixth, {}", found(more))))
}

impl Format for Tsinghua {
    fn line(&mut self, text: &str, context: &mut ImportContext<'_>) -> Result<()> {
        match parse(text, context.options.offset.unwrap_or(CHINA)) {
            Ok((user, time, package)) => {
                if !context.sample(user, time, digest(text.as_bytes()), false)? {
                    return Ok(());
                }
                let (adj, source, confidence) = (OomAdj::SERVICE, Source::Tsinghua, Confidence::Assumed);
                context.app(AppRow { user, time, package, adj, source, confidence })
            }
            Err((field, expected, found)) => {
                let reason = if field.is_empty() || found == "nothing" { Reason::Columns } else { Reason::Field };
                context.find(reason, field, || format!("expected {expected}, found {found}"))
            }
        }
    }
}

/// The fields of a line of separated values (RFC 4180): a field in double quotes may contain the separator, and doubled
/// quotes. Fields do not span lines here, so that an unclosed quote takes the rest of its line.
#[derive(Debug)]
pub(super) struct Fields {
    reader: csv_core::Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
    number: usize,
}

impl Fields {
    pub(super) fn separated_by(separator: u8) -> Self {
        let terminator = csv_core::Terminator::Any(b'\n');
        let reader = csv_core::ReaderBuilder::new().delimiter(separator).terminator(terminator).build();
        Self { reader, text: Vec::new(), ends: Vec::new(), number: 0 }
    }

    /// Takes the fields of `line`.
    pub(super) fn split(&mut self, line: &str) {
        // Neither the text nor the number of fields can be larger.
        self.text.resize(self.text.len().max(line.len()), 0);
        self.ends.resize(self.ends.len().max(line.len() + 1), 0);
        self.reader.reset();
        let (_, _, written, ended) = self.reader.read_record(line.as_bytes(), &mut self.text, &mut self.ends);
        let (text, ends) = (self.text.get_mut(written..), self.ends.get_mut(ended..));
        let (_, _, _, last) = self.reader.read_record(&[], text.unwrap_or_default(), ends.unwrap_or_default());
        self.number = ended + last;
    }

    /// The number of fields.
    pub(super) fn len(&self) -> usize {
        self.number
    }

    /// The field at `place`, from zero.
    pub(super) fn get(&self, place: usize) -> Option<&str> {
        let end = *self.ends.get(..self.number)?.get(place)?;
        let start = place.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        // Separators and quotes are ASCII, so that the text between them remains UTF-8.
        std::str::from_utf8(self.text.get(start..end)?).ok()
    }

    /// All fields.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.number).filter_map(|place| self.get(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_protect_separators() {
        let mut fields = Fields::separated_by(b',');
        for (line, expected) in [
            ("a,b,", vec!["a", "b", ""]),
            ("\"a,\"\"b\",c", vec!["a,\"b", "c"]),
            ("\"open,c", vec!["open,c"]),
            ("a\"b,\r,é", vec!["a\"b", "\r", "é"]),
            (",", vec!["", ""]),
        ] {
            fields.split(line);
            assert_eq!(fields.iter().collect::<Vec<_>>(), expected, "{line}");
            assert_eq!(fields.len(), expected.len());
        }
    }
}
