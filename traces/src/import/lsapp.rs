//! LSApp: who opened, used and closed which app, to the second.
//!
//! Columns: `user_id session_id timestamp app_name event_type`, between tabs. Apps have names, not packages; times
//! have no zone and are taken as UTC unless the options say otherwise. An app that was closed counts as the one before
//! the present one; who is in front after it, the next row says.

use std::borrow::Cow;

use super::desk::Desk;
use super::report::{Reason, excerpt, hint};
use super::{Format, ImportError, clock, separated};
use crate::row::{AppRow, Confidence, OomAdj, Source};

const COLUMNS: [&str; 5] = ["user_id", "session_id", "timestamp", "app_name", "event_type"];
const EVENTS: [&str; 4] = ["Opened", "Closed", "User Interaction", "Broken"];

/// The reader of LSApp.
#[derive(Debug)]
pub(super) struct Lsapp {
    /// The place of each of [`COLUMNS`].
    places: [usize; 5],
}

impl Default for Lsapp {
    fn default() -> Self {
        Self { places: [0, 1, 2, 3, 4] }
    }
}

impl Lsapp {
    /// Takes over the order of a header; says whether the line is one.
    fn header(&mut self, fields: &[Cow<'_, str>], desk: &mut Desk<'_, '_>) -> Result<bool, ImportError> {
        if !fields.iter().any(|field| COLUMNS.contains(&field.trim())) {
            return Ok(false);
        }
        for (place, column) in self.places.iter_mut().zip(COLUMNS) {
            let Some(found) = fields.iter().position(|field| field.trim() == column) else {
                desk.find(Reason::Columns, column, || {
                    format!("the column is missing{}", hint(column, fields.iter().map(AsRef::as_ref)))
                })?;
                return Ok(true);
            };
            *place = found;
        }
        desk.report.other_lines += 1;
        Ok(true)
    }

    fn event(&self, line: &[u8], fields: &[Cow<'_, str>], desk: &mut Desk<'_, '_>) -> Result<(), ImportError> {
        let picked = self.places.map(|place| fields.get(place).map(|field| field.trim()));
        let [Some(user), Some(_), Some(time), Some(app), Some(event)] = picked else {
            let found = fields.len();
            return desk.find(Reason::Columns, "", || {
                format!("expected the columns {} between tabs, found {found} columns", COLUMNS.join(", "))
            });
        };
        if !desk.is_name("user_id", user)? || !desk.is_name("app_name", app)? {
            return Ok(());
        }
        let offset = desk.options.offset.unwrap_or_default();
        let Some(at) = clock::parse_calendar(time, offset) else {
            return desk.find(Reason::Field, "timestamp", || {
                format!("expected YYYY-MM-DD HH:MM:SS from 1970 to 2099, found '{}'", excerpt(time))
            });
        };
        let adj = match EVENTS.iter().position(|known| known.eq_ignore_ascii_case(event)) {
            Some(0 | 2) => Some(OomAdj::FOREGROUND_APP),
            Some(1) => Some(OomAdj::PREVIOUS_APP),
            Some(_) => None,
            None => {
                return desk.find(Reason::Field, "event_type", || {
                    let found = excerpt(event);
                    format!("expected {}, found '{found}'{}", EVENTS.join(", "), hint(found, EVENTS))
                });
            }
        };
        let Some(adj) = adj else {
            return desk.find(Reason::IdleEvent, "event_type", || format!("{event}: {}", excerpt(app)));
        };
        if !desk.sample(user, at, line, false)? {
            return Ok(());
        }
        let (source, confidence) = (Source::Lsapp, Confidence::Inferred);
        desk.app(AppRow { user, time: at, package: app, adj, source, confidence })
    }
}

impl Format for Lsapp {
    fn begin(&mut self, _file: &str, desk: &mut Desk<'_, '_>) {
        let offset = desk.options.offset.unwrap_or_default();
        desk.note(&format!("LSApp states no time zone; its times are taken as local at {offset}"));
        *self = Self::default();
    }

    fn line(&mut self, line: &[u8], desk: &mut Desk<'_, '_>) -> Result<(), ImportError> {
        let Some(text) = desk.text(line)? else { return Ok(()) };
        let mut fields = Vec::with_capacity(COLUMNS.len());
        separated::split(text, '\t', &mut fields);
        if self.header(&fields, desk)? {
            return Ok(());
        }
        self.event(line, &fields, desk)
    }
}
