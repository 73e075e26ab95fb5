//! Tsinghua App Usage: which app moved how many bytes, at which base station.
//!
//! Columns between blanks, without a header: `user time location app traffic`, the time `YYYYMMDDHHMMSS` of a Chinese
//! city's clock, the app a number. Traffic tells that an app ran, not that anybody looked at it; its amount and the
//! base station have no place in the rows.

use haversack_devices::units::Bytes;

use super::context::{ImportContext, digest};
use super::report::{Reason, excerpt};
use super::{Format, Result};
use crate::clock::{self, UtcOffset};
use crate::row::{AppRow, Confidence, OomAdj, Source};

/// China has one time zone.
const CHINA: UtcOffset = UtcOffset::hours(8);

/// The reader of Tsinghua App Usage.
pub(super) struct Tsinghua;

/// What is wrong: a field, and what it has to be.
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
    match fields.next() {
        Some(more) => Err(("", "five columns: user time location app traffic", format!("a sixth, {}", found(more)))),
        None => Ok((user, at, app)),
    }
}

impl Format for Tsinghua {
    fn begin(&mut self, _file: &str, context: &mut ImportContext<'_>) {
        let offset = context.options.offset.unwrap_or(CHINA);
        context.note(&format!("Tsinghua states no time zone; its times are taken as local at {offset}"));
        context.note("Tsinghua sees network traffic, not the screen; every app is taken as a service");
    }

    fn line(&mut self, line: &[u8], context: &mut ImportContext<'_>) -> Result<()> {
        let Some(text) = context.text(line)? else { return Ok(()) };
        match parse(text, context.options.offset.unwrap_or(CHINA)) {
            Ok((user, time, package)) => {
                if !context.sample(user, time, digest(line), false)? {
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
