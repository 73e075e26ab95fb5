//! Counters of a Perfetto trace, as `trace_processor -q` prints them in CSV.
//!
//! Columns are found by their names, or by those of the queries in Perfetto's own pages: `ts` in nanoseconds, `name`
//! (`counter_name`) and `value`, and optionally `process` (`proc_name`, `process_name`) and `pid`. The counter
//! `oom_score_adj` of a process is a row of apps, every other one a row of counters: with only its name if it belongs
//! to the phone, as `process/name` if it belongs to a process. Perfetto counts memory in bytes.

use haversack_devices::text::hint;

use super::{Fields, Format, ImportContext, Order, Reason, Result, Tracker};
use crate::{AppRow, Confidence, CounterRow, OomAdj, Source, UtcTime};

const COLUMNS: [&str; 5] = ["ts", "name", "value", "process", "pid"];
/// The names of the columns in the queries of Perfetto's pages on memory and of its standard library.
const OTHER_NAMES: [&[&str]; 5] =
    [&[], &["counter_name", "track_name"], &["counter_value"], &["proc_name", "process_name"], &[]];
/// The number of leading [`COLUMNS`] that are required.
const NEEDED: usize = 3;
/// The counter that is a row of apps.
const OOM_SCORE_ADJ: &str = "oom_score_adj";
/// An instant, which has no value: the kernel's low-memory killer struck.
const KILL: &str = "mem.lmk";

/// The reader of Perfetto's CSV.
#[derive(Debug)]
pub(super) struct Perfetto {
    /// The position of each of [`COLUMNS`]; `None` before the header.
    places: Option<[Option<usize>; 5]>,
    fields: Fields,
    counters: Counters,
}

/// The counters of a trace.
#[derive(Debug, Default)]
struct Counters {
    owner: String,
    /// Every counter has its own order: a trace may be sorted by counter.
    orders: Tracker,
    /// The name of the current one.
    name: String,
}

impl Perfetto {
    pub(super) fn new(file: &str, context: &mut ImportContext<'_>) -> Self {
        let start = context.options.start.seconds();
        context.note(&format!("Perfetto counts from the phone's own start; time_s is that, plus {start} s"));
        let counters = Counters { owner: context.owner(file), ..Counters::default() };
        Self { places: None, fields: Fields::separated_by(b','), counters }
    }

    fn header(&mut self, context: &mut ImportContext<'_>) -> Result<()> {
        // The unit may follow the name, as in `ts[ns]`.
        let fields = self.fields.iter();
        let names: Vec<&str> = fields.map(|field| field.split('[').next().unwrap_or_default().trim()).collect();
        let place = |column: &str| names.iter().position(|name| name.eq_ignore_ascii_case(column));
        let mut places = COLUMNS.map(place);
        for (found, others) in places.iter_mut().zip(OTHER_NAMES) {
            *found = found.or_else(|| others.iter().find_map(|other| place(other)));
        }
        for (column, _) in COLUMNS.into_iter().zip(places).take(NEEDED).filter(|(_, place)| place.is_none()) {
            context.find(Reason::Columns, column, || {
                let near = hint(column, names.iter().copied());
                format!("expected a header with the columns {}{near}", COLUMNS.join(", "))
            })?;
        }
        if places.iter().take(NEEDED).all(Option::is_some) {
            self.places = Some(places);
            context.report.other_lines += 1;
        }
        Ok(())
    }
}

impl Counters {
    fn row(&mut self, places: [Option<usize>; 5], fields: &Fields, context: &mut ImportContext<'_>) -> Result<()> {
        let field = |place: Option<usize>| {
            fields.get(place?).map(str::trim).filter(|field| !field.is_empty() && *field != "[NULL]")
        };
        let [ts, name, value, process, pid] = places.map(field);
        let Some(time) = ts.and_then(|ts| ts.parse::<u64>().ok()).and_then(|ts| i64::try_from(ts).ok()) else {
            return wrong("ts", "whole nanoseconds", ts, context);
        };
        let time = UtcTime(context.options.start.0.saturating_add(time));
        let Some(name) = name else { return wrong("name", "the name of a counter", None, context) };
        let value = if name == KILL && value.is_none() { Some("1") } else { value };
        let Some(number) = value.and_then(|value| value.parse::<f64>().ok()).filter(|number| number.is_finite()) else {
            return wrong("value", "a number", value, context);
        };
        let nameless = pid.filter(|_| process.is_none()).map(|pid| format!("pid:{pid}"));
        let process = process.or(nameless.as_deref());
        if number < 0.0 && name != OOM_SCORE_ADJ && name.to_ascii_lowercase().starts_with("mem") {
            return context
                .find(Reason::NegativeMemory, "value", || format!("expected bytes of {name}, found {number}"));
        }
        self.name.clear();
        self.name.extend(process.into_iter().flat_map(|process| [process, "/"]).chain([name]));
        if !context.is_name("name", &self.name)? {
            return Ok(());
        }
        let adj = match (name, process) {
            (OOM_SCORE_ADJ, Some(package)) => {
                // The cast saturates, to a value outside Android's range.
                let adj = OomAdj::new(number as i64).filter(|_| number.fract() == 0.0);
                let Some(adj) = adj else { return wrong("value", "a whole number from -1000 to 1000", value, context) };
                Some((package, adj))
            }
            _ => None,
        };
        self.see(time, number, context)?;
        match adj {
            Some((package, adj)) => {
                let (user, source, confidence) = (self.owner.as_str(), Source::Perfetto, Confidence::Recorded);
                context.app(AppRow { user, time, package, adj, source, confidence })
            }
            None => context.counter(CounterRow { user: &self.owner, time, counter: &self.name, value: number }),
        }
    }

    /// Records a value of the counter [`Counters::name`].
    fn see(&mut self, time: UtcTime, value: f64, context: &mut ImportContext<'_>) -> Result<()> {
        context.report.samples += 1;
        context.users.see(&self.owner, time, 0);
        let order = match self.orders.see(&self.name, time, value.to_bits()) {
            // Many counters stay the same for long, and the trace may record the value twice.
            Order::Same => Order::SameTime,
            order => order,
        };
        context.in_order(time, order, false)
    }
}

fn wrong(field: &str, expected: &str, found: Option<&str>, context: &mut ImportContext<'_>) -> Result<()> {
    match found {
        Some(found) => context.wrong(field, expected, found),
        None => context.find(Reason::Field, field, || format!("expected {expected}, found nothing")),
    }
}

impl Format for Perfetto {
    fn line(&mut self, text: &str, context: &mut ImportContext<'_>) -> Result<()> {
        self.fields.split(text);
        let Some(places) = self.places else { return self.header(context) };
        self.counters.row(places, &self.fields, context)
    }
}
