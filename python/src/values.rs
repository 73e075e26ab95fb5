//! Values of Python as TOML, and answers in JSON as objects of Python.

use std::path::PathBuf;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};
use serde_json::{Map, Value};

use crate::error;

/// The keys of `given` as TOML, one a line, in their order; one whose value is None is left out.
///
/// # Errors
/// InputError for a value that TOML cannot express.
pub(crate) fn to_toml(given: &Bound<'_, PyDict>) -> PyResult<String> {
    let mut text = String::new();
    for (key, value) in given {
        let key: String = key.str()?.extract()?;
        if !value.is_none() {
            text += &format!("{} = {}\n", quoted(&key), literal(&value, &key)?);
        }
    }
    Ok(text)
}

/// The TOML `text` with the keys of `given`: a key that is in both has the value of `given`.
///
/// # Errors
/// As [`to_toml`], or a text that is not TOML.
pub(crate) fn over(text: &str, file: &str, given: &Bound<'_, PyDict>) -> PyResult<String> {
    let wrong =
        |reason: toml::de::Error| error::input(given.py(), format!("{file}: not valid TOML: {}", reason.message()));
    let mut table: toml::Table = text.parse().map_err(wrong)?;
    let own: toml::Table = to_toml(given)?.parse().map_err(wrong)?;
    table.extend(own);
    Ok(table.into_iter().map(|(key, value)| format!("{} = {value}\n", quoted(&key))).collect())
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn literal(value: &Bound<'_, PyAny>, key: &str) -> PyResult<String> {
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(truth.is_true().to_string());
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(quoted(&text.extract::<String>()?));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(format!("{:?}", number.value()));
    }
    if let Ok(table) = value.cast::<PyDict>() {
        let entry = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let name: String = name.str()?.extract()?;
            Ok(format!("{} = {}", quoted(&name), literal(&value, &format!("{key}.{name}"))?))
        };
        let entries: PyResult<Vec<String>> = table.iter().map(entry).collect();
        return Ok(format!("{{ {} }}", entries?.join(", ")));
    }
    if value.hasattr("__fspath__")? {
        let path: PathBuf = value.extract()?;
        return Ok(quoted(&path.to_string_lossy()));
    }
    if value.hasattr("__index__")? {
        let number = value.call_method0("__index__")?;
        return Ok(number.cast::<PyInt>()?.str()?.to_string());
    }
    if value.hasattr("__iter__")? {
        let items: PyResult<Vec<String>> = value.try_iter()?.map(|item| literal(&item?, key)).collect();
        return Ok(format!("[{}]", items?.join(", ")));
    }
    if value.hasattr("__float__")? {
        return Ok(format!("{:?}", value.extract::<f64>()?));
    }
    let kind = value.get_type().qualname()?;
    let expected = "text, a path, a number, True or False, a list or a dictionary";
    Err(error::input(value.py(), format!("{key}: expected {expected}, found a {kind}")))
}

/// A JSON object as a dictionary.
///
/// # Errors
/// The interpreter is out of memory.
pub(crate) fn dictionary<'py>(py: Python<'py>, map: &Map<String, Value>) -> PyResult<Bound<'py, PyDict>> {
    let dictionary = PyDict::new(py);
    for (name, value) in map {
        dictionary.set_item(name, object(py, value)?)?;
    }
    Ok(dictionary)
}

fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(truth) => PyBool::new(py, *truth).to_owned().into_any(),
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(whole), ..) => whole.into_pyobject(py)?.into_any(),
            (_, Some(whole), _) => whole.into_pyobject(py)?.into_any(),
            (.., Some(real)) => PyFloat::new(py, real).into_any(),
            _ => return Err(PyOverflowError::new_err(number.to_string())),
        },
        Value::Array(items) => {
            let items: PyResult<Vec<_>> = items.iter().map(|item| object(py, item)).collect();
            PyList::new(py, items?)?.into_any()
        }
        Value::Object(map) => dictionary(py, map)?.into_any(),
    })
}
