//! Memory budgets over a run, from a CSV file with the header `time_s,budget_bytes`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haversack_devices::units::Nanos;

use super::error::{Fault, Origin, ScenarioError};
use super::key::Key;
use super::walls::Step;

/// The header of a memory trace.
const HEADER: &str = "time_s,budget_bytes";

/// Whether `named`, with or without a user, is a table of traces.
pub(super) fn is_table(named: &Path) -> bool {
    split(named).0.extension().is_some_and(|extension| extension == "parquet")
}

/// A path as a scenario names it, `FILE` or `FILE#USER`, in its parts. A file whose own name has the sign keeps it.
pub(crate) fn split(named: &Path) -> (PathBuf, Option<String>) {
    let text = named.to_string_lossy();
    match text.rsplit_once('#') {
        Some((file, user)) if !named.exists() && !user.is_empty() => (PathBuf::from(file), Some(user.to_owned())),
        _ => (named.to_path_buf(), None),
    }
}

/// Reads the trace at `path`; `origin` is who named it.
///
/// # Errors
/// A file that cannot be read or is not a memory trace, with the line.
pub(super) fn read(path: &Path, origin: &Origin) -> Result<Vec<Step>, ScenarioError> {
    let refuse = |message: String| ScenarioError::new(origin.clone(), Key::Trace.name(), Fault::Refused(message));
    let bytes = std::fs::read(path).map_err(|error| refuse(format!("{} cannot be read: {error}", path.display())))?;
    let supported = || {
        let path = path.display();
        refuse(format!(
            "{path} is not a memory trace; expected a CSV file with the header {HEADER}, or a .parquet file of `trace import`"
        ))
    };
    let text = String::from_utf8(bytes).map_err(|_| supported())?;
    parse(&path.display().to_string(), &text)?.ok_or_else(supported)
}

/// The steps of a trace; `None` if the text is something else.
fn parse(file: &str, text: &str) -> Result<Option<Vec<Step>>, ScenarioError> {
    // A line that begins with '#' is a comment.
    let is_row = |(_, line): &(usize, &str)| !line.is_empty() && !line.starts_with('#');
    let mut lines = (1..).zip(text.lines().map(str::trim)).filter(is_row);
    let header = lines.next().map(|(_, line)| line.trim_start_matches('\u{feff}').replace(' ', ""));
    if header.as_deref() != Some(HEADER) {
        return Ok(None);
    }
    let file: Arc<str> = file.into();
    let mut steps: Vec<Step> = Vec::new();
    for (line, row) in lines {
        let wrong = |field: &str, fault: Fault| {
            ScenarioError::new(Origin::File { file: Arc::clone(&file), line }, field, fault)
        };
        let Some((time, budget)) = row.split_once(',') else {
            return Err(wrong("", Fault::value(format!("two columns, {HEADER}"), format!("'{row}'"))));
        };
        let seconds = time.trim().parse::<f64>().ok().filter(|seconds| (0.0..1e9).contains(seconds));
        let at = seconds.map(Nanos::from_seconds).ok_or_else(|| {
            wrong("time_s", Fault::value("seconds from the start of the run", format!("'{}'", time.trim())))
        })?;
        if steps.last().is_some_and(|last| last.at >= at) {
            return Err(wrong("time_s", Fault::Refused("times must rise from row to row".to_owned())));
        }
        let budget =
            budget.trim().parse().map_err(|error: super::QuantityError| wrong("budget_bytes", error.into()))?;
        steps.push(Step { at, budget });
    }
    if steps.is_empty() {
        let fault = Fault::Refused(format!("the trace has no rows below its header {HEADER}"));
        return Err(ScenarioError::new(Origin::File { file, line: 0 }, "", fault));
    }
    Ok(Some(steps))
}

#[cfg(test)]
mod tests {
    use haversack_devices::units::Bytes;

    use super::super::Budget;
    use super::*;

    #[test]
    fn rows_become_steps_and_sizes_may_have_units() {
        let steps = parse("t.csv", "# a comment\ntime_s, budget_bytes\n0,1000\n\n0.5, 2MB\n1,30%\n").unwrap().unwrap();
        assert_eq!(steps.len(), 3);
        // Half a second is 5e8 ns, 2 MB are 2e6 B.
        assert_eq!(steps[1], Step { at: Nanos(500_000_000), budget: Budget::Bytes(Bytes(2_000_000)) });
        assert_eq!(steps[2].budget, Budget::Percent(30.0));
    }

    #[test]
    fn a_wrong_row_is_named() {
        let error = |text: &str| parse("t.csv", text).unwrap_err().to_string();
        assert!(error("time_s,budget_bytes\n0,1MB\n0,2MB\n").starts_with("t.csv:3: time_s: times must rise"));
        assert!(error("#\ntime_s,budget_bytes\n0,-1\n").starts_with("t.csv:3: budget_bytes: expected a size"));
        assert!(error("time_s,budget_bytes\n").contains("no rows"));
        assert!(parse("t.csv", "user,time_s\n").unwrap().is_none());
    }
}
