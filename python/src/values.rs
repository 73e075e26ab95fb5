//! Keywords as TOML, laid over a file, and answers in JSON as objects of Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value};

use crate::error;

/// The TOML `text` of `file` with the keys of `given`: a key that is in both has the value of `given`.
///
/// # Errors
/// InputError for a text that is not TOML.
pub(crate) fn over(py: Python<'_>, text: &str, file: &str, given: &str) -> PyResult<String> {
    let wrong = |reason: toml::de::Error| error::input(py, format!("{file}: not valid TOML: {}", reason.message()));
    let mut table: toml::Table = text.parse().map_err(wrong)?;
    table.extend(given.parse::<toml::Table>().map_err(wrong)?);
    let quoted = |key: String| toml::Value::String(key).to_string();
    Ok(table.into_iter().map(|(key, value)| format!("{} = {value}\n", quoted(key))).collect())
}

/// A JSON object as a dictionary.
///
/// # Errors
/// The interpreter is out of memory.
pub(crate) fn dictionary<'py>(py: Python<'py>, map: &Map<String, Value>) -> PyResult<Bound<'py, PyDict>> {
    let text = serde_json::to_string(map).map_err(|reason| error::failed(py, reason.to_string()))?;
    Ok(py.import("json")?.call_method1("loads", (text,))?.cast_into()?)
}
