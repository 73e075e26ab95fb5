//! What a scenario trains: a built-in model, or an ONNX file.

use std::path::Path;

use haversack_workloads::{Network, WorkloadError, models, onnx};

use super::InputShape;
use crate::truth;

/// Whether `model` is a file.
pub fn is_file(model: &str) -> bool {
    Path::new(model).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx"))
}

/// What people call `model`: a file's name without its folder and ending, a built-in model's id.
pub fn called(model: &str) -> &str {
    let stem = || Path::new(model).file_stem().and_then(|stem| stem.to_str());
    if is_file(model) { stem().unwrap_or(model) } else { model }
}

/// The network of the built-in model or ONNX file `model`; a file tells its own classes apart, whatever is asked.
///
/// # Errors
/// An unknown name, a file that is no network, an input that it cannot take.
pub fn network(model: &str, input: Option<&InputShape>, classes: Option<u64>) -> Result<Network, WorkloadError> {
    let shape = input.map(|input| input.0.as_slice());
    if let Some(bytes) = truth::network(model) {
        return onnx::import_bytes(model, bytes, shape);
    }
    if is_file(model) { onnx::import(Path::new(model), shape) } else { models::build_for(model, shape, classes) }
}

/// The same with what it holds before training: a file's weights are its own.
///
/// # Errors
/// As [`network`].
pub fn network_with_values(
    model: &str,
    input: Option<&InputShape>,
    classes: Option<u64>,
) -> Result<Network, WorkloadError> {
    if !is_file(model) {
        return network(model, input, classes);
    }
    let shape = input.map(|input| input.0.as_slice());
    onnx::read_with_values(Path::new(model), shape).map(|imported| imported.network)
}

/// The shape of a sample by default; `None` for a file, which decides itself.
pub fn own_input(model: &str) -> Option<InputShape> {
    models::named(model).ok().map(|(known, _)| InputShape(known.sample.own().to_vec()))
}
