//! Errors of commands as exceptions of the package: the messages are those of the command line.

use haversack::CommandError;
use haversack::run::{LeastBudget, PlanError};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The module that defines the package's exceptions.
const MODULE: &str = "haversack.errors";

/// An exception of the package, by its name.
fn exception(py: Python<'_>, name: &str, message: String, more: &Bound<'_, PyDict>) -> PyErr {
    let raised = py.import(MODULE).and_then(|module| module.getattr(name)?.call((message,), Some(more)));
    raised.map_or_else(|error| error, PyErr::from_value)
}

/// The input is wrong.
pub(crate) fn input(py: Python<'_>, message: String) -> PyErr {
    exception(py, "InputError", message, &PyDict::new(py))
}

/// The run failed.
pub(crate) fn failed(py: Python<'_>, message: String) -> PyErr {
    exception(py, "RunError", message, &PyDict::new(py))
}

/// The exception for the exit code of `error`; `result` is the answer that was found nevertheless.
pub(crate) fn of(py: Python<'_>, error: &CommandError, result: Option<&Bound<'_, PyAny>>) -> PyErr {
    let more = PyDict::new(py);
    let name = match error.exit_code() {
        haversack::interrupt::EXIT_CODE => return PyKeyboardInterrupt::new_err(error.to_string()),
        2 => "InputError",
        3 => {
            let set = || -> PyResult<()> {
                if let CommandError::Plan(PlanError::Infeasible { least: Some(least), .. }) = error {
                    let name = match least {
                        LeastBudget::Memory(_) => "least_memory_bytes",
                        LeastBudget::Activations(_) => "least_activation_bytes",
                    };
                    more.set_item(name, least.bytes().0)?;
                }
                result.map_or(Ok(()), |result| more.set_item("result", result))
            };
            if let Err(error) = set() {
                return error;
            }
            "NoPlanError"
        }
        _ => "RunError",
    };
    exception(py, name, error.to_string(), &more)
}
