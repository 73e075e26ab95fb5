//! Counters of a Perfetto trace, as `trace_processor -q` prints them in CSV.
//!
//! Columns by their names: `ts` in nanoseconds, `name` and `value`, and where there are, `process` and `pid`. The counter
//! `oom_score_adj` of a process is a row of apps, every other one a row of counters: with its name alone where it is the
//! phone's, as `process/name` where it is a process's. Perfetto counts memory in bytes.

use std::borrow::Cow;

use super::desk::Desk;
use super::report::{Reason, excerpt, hint};
use super::tracker::{Order, Tracker};
use super::{Format, ImportError, separated};
use crate::row::{AppRow, Confidence, CounterRow, OomAdj, Source, UtcTime};

const COLUMNS: [&str; 5] = ["ts", "name", "value", "process", "pid"];
/// The first so many of [`COLUMNS`] have to be there.
const NEEDED: usize = 3;
/// The counter that is a row of apps.
const OOM_SCORE_ADJ: &str = "oom_score_adj";
/// An instant, which has no value: the kernel's low-memory killer struck.
const KILL: &str = "mem.lmk";

/// The reader of Perfetto's CSV.
#[derive(Debug, Default)]
pub(super) struct Perfetto {
    owner: String,
    /// Where each of [`COLUMNS`] is; nothing before the header.
    places: Option<[Option<usize>; 5]>,
    /// Every counter has an order of its own: a trace may be sorted by counter.
    counters: Tracker,
    name: String,
}

impl Perfetto {
    fn header(&mut self, fields: &[Cow<'_, str>], desk: &mut Desk<'_, '_>) -> Result<(), ImportError> {
        // The unit may stand behind the name, as in `ts[ns]`.
        let names: Vec<&str> = fields.iter().map(|field| field.split('[').next().unwrap_or_default().trim()).collect();
        let places = COLUMNS.map(|column| names.iter().position(|name| name.eq_ignore_ascii_case(column)));
        for (column, place) in COLUMNS.into_iter().zip(places).take(NEEDED) {
            if place.is_none() {
                desk.find(Reason::Columns, column, || {
                    let near = hint(column, names.iter().copied());
                    format!("expected a header with the columns {}{near}", COLUMNS.join(", "))
                })?;
            }
        }
        if places.iter().take(NEEDED).all(Option::is_some) {
            self.places = Some(places);
            desk.report.other_lines += 1;
        }
        Ok(())
    }

    fn row(
        &mut self,
        places: [Option<usize>; 5],
        fields: &[Cow<'_, str>],
        desk: &mut Desk<'_, '_>,
    ) -> Result<(), ImportError> {
        let field = |place: Option<usize>| {
            fields.get(place?).map(|field| field.trim()).filter(|field| !field.is_empty() && *field != "[NULL]")
        };
        let [ts, name, value, process, pid] = places.map(field);
        let Some(time) = ts.and_then(|ts| ts.parse::<u64>().ok()).and_then(|ts| i64::try_from(ts).ok()) else {
            return wrong("ts", "whole nanoseconds", ts, desk);
        };
        let time = UtcTime(desk.options.start.0.saturating_add(time));
        let Some(name) = name else { return wrong("name", "the name of a counter", None, desk) };
        let value = if name == KILL && value.is_none() { Some("1") } else { value };
        let Some(number) = value.and_then(|value| value.parse::<f64>().ok()).filter(|number| number.is_finite()) else {
            return wrong("value", "a number", value, desk);
        };
        let nameless = pid.filter(|_| process.is_none()).map(|pid| format!("pid:{pid}"));
        let process = process.or(nameless.as_deref());
        if number < 0.0 && name != OOM_SCORE_ADJ && name.to_ascii_lowercase().starts_with("mem") {
            return desk.find(Reason::NegativeMemory, "value", || format!("expected bytes of {name}, found {number}"));
        }
        self.name.clear();
        self.name.extend(process.into_iter().flat_map(|process| [process, "/"]).chain([name]));
        if !desk.is_name("name", &self.name)? {
            return Ok(());
        }
        let adj = match (name, process) {
            (OOM_SCORE_ADJ, Some(package)) => {
                // The cast saturates, and what it saturates to is no value of Android's.
                let adj = OomAdj::new(number as i64).filter(|_| number.fract() == 0.0);
                let Some(adj) = adj else { return wrong("value", "a whole number from -1000 to 1000", value, desk) };
                Some((package, adj))
            }
            _ => None,
        };
        self.see(time, number, desk)?;
        match adj {
            Some((package, adj)) => {
                let (user, source, confidence) = (self.owner.as_str(), Source::Perfetto, Confidence::Recorded);
                desk.app(AppRow { user, time, package, adj, source, confidence })
            }
            None => desk.counter(CounterRow { user: &self.owner, time, counter: &self.name, value: number }),
        }
    }

    /// Takes note of a value of the counter [`Perfetto::name`].
    fn see(&mut self, time: UtcTime, value: f64, desk: &mut Desk<'_, '_>) -> Result<(), ImportError> {
        desk.report.samples += 1;
        desk.users.see(&self.owner, time, 0);
        let order = match self.counters.see(&self.name, time, value.to_bits()) {
            // Many counters change nothing for long, and the trace may say so twice.
            Order::Same => Order::SameTime,
            order => order,
        };
        desk.in_order(time, order, false)
    }
}

fn wrong(field: &str, expected: &str, found: Option<&str>, desk: &mut Desk<'_, '_>) -> Result<(), ImportError> {
    desk.find(Reason::Field, field, || {
        let found = found.map_or("nothing".to_owned(), |found| format!("'{}'", excerpt(found)));
        format!("expected {expected}, found {found}")
    })
}

impl Format for Perfetto {
    fn begin(&mut self, file: &str, desk: &mut Desk<'_, '_>) {
        *self = Self { owner: desk.owner(file), ..Self::default() };
        let start = desk.options.start.seconds();
        desk.note(&format!("Perfetto counts from the phone's own start; time_s is that, plus {start} s"));
    }

    fn line(&mut self, line: &[u8], desk: &mut Desk<'_, '_>) -> Result<(), ImportError> {
        let Some(text) = desk.text(line)? else { return Ok(()) };
        let mut fields = Vec::with_capacity(COLUMNS.len());
        separated::split(text, ',', &mut fields);
        match self.places {
            Some(places) => self.row(places, &fields, desk),
            None => self.header(&fields, desk),
        }
    }
}
