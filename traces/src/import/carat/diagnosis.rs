//! Why a line is no sample: the field, what was expected, and which name may be meant.
//!
//! This reads the line a second time, slowly, and only for lines that somebody will be told of.

use haversack_devices::text::nearest;
use serde_json::{Map, Value};

use super::super::context::ImportContext;
use super::super::report::{Reason, excerpt};
use super::super::{LONGEST_LINE, Result};
use super::sample;

/// A fault: the field, and what is wrong with it.
type Fault = (String, String);

/// The longest line that is looked into; of a longer one the parser's own words have to do.
const LONGEST_LOOK: usize = LONGEST_LINE / 16;

/// Tells of a line that is no sample.
pub(super) fn report(line: &str, context: &mut ImportContext<'_>) -> Result<()> {
    let Err(error) = sample::check(line) else { return Ok(()) };
    let error = &error;
    if !error.is_data() {
        return context.find(Reason::NotJson, "", || {
            let shape = if line.starts_with('[') { "; `jq -c '.[]'` takes an array apart" } else { "" };
            format!("expected a JSON object, one a line: {}{shape}", words(error))
        });
    }
    let (field, message) = if context.is_told(Reason::Field) {
        look(line).unwrap_or_else(|| (String::new(), words(error)))
    } else {
        Fault::default()
    };
    context.find(Reason::Field, &field, || message)
}

/// The parser's words, without its line, which is always the first.
fn words(error: &serde_json::Error) -> String {
    let words = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    words.strip_suffix(&place).map_or(words.clone(), |words| format!("{words} at place {}", error.column()))
}

/// What is wrong with a time.
pub(super) fn time(seconds: f64) -> String {
    let unit = if seconds >= 1e11 { "; this looks like milliseconds" } else { "" };
    format!("expected seconds since 1970 and before 2100, found {seconds}{unit}")
}

/// The first fault of a line of JSON.
fn look(line: &str) -> Option<Fault> {
    if line.len() > LONGEST_LOOK {
        return None;
    }
    let value = serde_json::from_str(line).ok()?;
    let Value::Object(sample) = &value else { return Some((String::new(), expected("a JSON object", &value))) };
    let faults = [
        text(sample, "", "uuid"),
        number(sample, "", if sample.contains_key("time") { "time" } else { "timestamp" }),
        sample.get("apps").and_then(apps),
        ["batteryStatus", "batteryState"].iter().find_map(|name| optional_text(sample, name)),
        sample.get("memory").and_then(memory),
    ];
    faults.into_iter().flatten().next()
}

fn apps(apps: &Value) -> Option<Fault> {
    let list = match apps {
        Value::Null => return None,
        Value::Array(list) => list,
        other => return Some(("apps".into(), expected("a list of processes", other))),
    };
    list.iter().enumerate().find_map(|(place, app)| {
        let at = format!("apps[{place}]");
        let Value::Object(app) = app else { return Some((at, expected("a process", app))) };
        let priority = optional_text(app, "priority").map(|(name, message)| (format!("{at}.{name}"), message));
        text(app, &format!("{at}."), "processName").or(priority)
    })
}

fn memory(memory: &Value) -> Option<Fault> {
    let fields = match memory {
        Value::Null => return None,
        Value::Object(fields) => fields,
        other => return Some(("memory".into(), expected("an object", other))),
    };
    let names = ["memoryActive", "memoryInactive", "memoryFree", "memoryUser"];
    names.iter().find_map(|name| number(fields, "memory.", name))
}

fn text(object: &Map<String, Value>, at: &str, name: &str) -> Option<Fault> {
    field(object, at, name, "a text", Value::is_string)
}

fn number(object: &Map<String, Value>, at: &str, name: &str) -> Option<Fault> {
    field(object, at, name, "a number", Value::is_number)
}

fn optional_text(object: &Map<String, Value>, name: &str) -> Option<Fault> {
    let value = object.get(name).filter(|value| !value.is_string() && !value.is_null())?;
    Some((name.to_owned(), expected("a text", value)))
}

fn field(object: &Map<String, Value>, at: &str, name: &str, what: &str, is_right: fn(&Value) -> bool) -> Option<Fault> {
    let message = match object.get(name) {
        Some(value) if is_right(value) => return None,
        Some(value) => expected(what, value),
        None => missing(object, name),
    };
    Some((format!("{at}{name}"), message))
}

/// The field is not there; a name like it may be.
fn missing(object: &Map<String, Value>, name: &str) -> String {
    let near = nearest(name, object.keys().map(String::as_str).filter(|key| key.len() <= 2 * name.len()));
    near.map_or_else(|| "the field is missing".to_owned(), |near| format!("the field is missing; is '{near}' meant?"))
}

fn expected(what: &str, found: &Value) -> String {
    format!("expected {what}, found {}", excerpt(&found.to_string()))
}
