//! The network that a scenario trains: a built-in model, or an ONNX file.

use std::path::Path;

use haversack_devices::ensure;
use haversack_workloads::onnx::{self, Reading};
use haversack_workloads::{Network, WorkloadError, models};

use super::InputShape;
use crate::truth;

/// Whether `model` is a file.
pub fn is_file(model: &str) -> bool {
    Path::new(model).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx"))
}

/// The display name of `model`: a file's name without its folder and ending, or a built-in model's id.
pub fn called(model: &str) -> &str {
    let stem = || Path::new(model).file_stem().and_then(|stem| stem.to_str());
    if is_file(model) { stem().unwrap_or(model) } else { model }
}

/// The options for reading a network from a file: samples of `input`, and comma-separated lists of names.
pub fn reading(input: Option<&InputShape>, [trainable, frozen, outputs]: [Option<&str>; 3]) -> Reading {
    let list = |names: Option<&str>| {
        names.into_iter().flat_map(|names| names.split(',')).map(|name| name.trim().to_owned()).collect()
    };
    let input = input.map(|input| input.0.clone());
    let [trainable, frozen, outputs] = [trainable, frozen, outputs].map(list);
    Reading { input, trainable, frozen, outputs, values: false }
}

/// The network of the built-in model or ONNX file `model`; a file defines its own number of classes, so
/// `classes` is ignored.
///
/// # Errors
/// An unknown name, a file that does not contain a network, an input that it cannot take; names of weights
/// in a built-in model.
pub fn network(model: &str, reading: &Reading, classes: Option<u64>) -> Result<Network, WorkloadError> {
    if let Some(bytes) = truth::network(model) {
        return onnx::import_bytes(model, bytes, reading);
    }
    if is_file(model) {
        return onnx::read(Path::new(model), reading);
    }
    let named = [&reading.trainable, &reading.frozen, &reading.outputs].iter().any(|names| !names.is_empty());
    let refused = || format!("{model} is built in; trainable, frozen and outputs are of networks from .onnx files");
    ensure!(!named, WorkloadError::Refused(refused()));
    models::build_for(model, reading.input.as_deref(), classes)
}

/// The default shape of a sample; `None` for a file, which defines its own.
pub fn own_input(model: &str) -> Option<InputShape> {
    models::named(model).ok().map(|(known, _)| InputShape(known.sample.own().to_vec()))
}
