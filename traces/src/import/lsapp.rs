//! LSApp: who opened, used and closed which app, to the second.
//!
//! Columns: `user_id session_id timestamp app_name event_type`, between tabs. Apps have names, not packages; times
//! have no zone and are taken as UTC unless the options say otherwise. An app that was closed counts as the one before
//! the present one; who is in front after it, the next row says.

use haversack_devices::text::hint;

use super::context::{ImportContext, digest};
use super::fields::Fields;
use super::report::{Reason, excerpt};
use super::{Format, Result};
use crate::clock;
use crate::row::{AppRow, Confidence, OomAdj, Source};

const COLUMNS: [&str; 5] = ["user_id", "session_id", "timestamp", "app_name", "event_type"];
const EVENTS: [&str; 4] = ["Opened", "Closed", "User Interaction", "Broken"];

/// The reader of LSApp.
#[derive(Debug)]
pub(super) struct Lsapp {
    /// The place of each of [`COLUMNS`].
    places: [usize; 5],
    fields: Fields,
}

impl Default for Lsapp {
    fn default() -> Self {
        Self { places: [0, 1, 2, 3, 4], fields: Fields::separated_by(b'\t') }
    }
}

impl Lsapp {
    /// Takes over the order of a header; says whether the line is one.
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

    fn event(&self, line: &[u8], context: &mut ImportContext<'_>) -> Result<()> {
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
            return context.find(Reason::Field, "timestamp", || {
                format!("expected YYYY-MM-DD HH:MM:SS from 1970 to 2099, found '{}'", excerpt(time))
            });
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
        if !context.sample(user, at, digest(line), false)? {
            return Ok(());
        }
        let (source, confidence) = (Source::Lsapp, Confidence::Inferred);
        context.app(AppRow { user, time: at, package: app, adj, source, confidence })
    }
}

impl Format for Lsapp {
    fn begin(&mut self, _file: &str, context: &mut ImportContext<'_>) {
        let offset = context.options.offset.unwrap_or_default();
        context.note(&format!("LSApp states no time zone; its times are taken as local at {offset}"));
        self.places = [0, 1, 2, 3, 4];
    }

    fn line(&mut self, line: &[u8], context: &mut ImportContext<'_>) -> Result<()> {
        let Some(text) = context.text(line)? else { return Ok(()) };
        self.fields.split(text);
        if self.header(context)? {
            return Ok(());
        }
        self.event(line, context)
    }
}
