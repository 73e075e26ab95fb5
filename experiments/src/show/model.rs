//! What a network is, and what a policy is.

use std::collections::{BTreeMap, HashSet};

use haversack_policies::entry::Parameter;
use haversack_policies::{EngineProcessor, Entry, registry};
use haversack_reports::table::three_digits;
use haversack_workloads::counts::count;
use haversack_workloads::models::MODELS;
use haversack_workloads::onnx::Reading;
use haversack_workloads::{Network, StorageId};
use serde_json::{Value, json};

use super::{Shown, fact, paragraph, table};
use crate::Result;
use crate::scenario::{InputShape, workload};

/// Tensors that are shown.
const LARGEST: usize = 10;

/// The built-in network `id`, or that of an ONNX file.
pub(super) fn network(id: &str) -> Result<Shown> {
    let network = workload::network(id, &Reading::default(), None)?;
    let about = MODELS.iter().find(|model| model.id == id).map(|model| model.about);
    let input = workload::own_input(id).map(|InputShape(shape)| shape);
    let counts = count(&network, 1);
    let (layers, tensors) = (layers(&network), largest(&network));
    let mut text = format!("{id}: {}\n\n", about.unwrap_or("an ONNX file"));
    let gflop = |flops: u64| format!("{} GFLOP", three_digits(flops as f64 * 1e-9));
    if let Some(input) = &input {
        let kind = if input.len() == 1 { "tokens" } else { "channels x height x width of an image" };
        text += &fact("input", &format!("{} ({kind}); others by --input", InputShape(input.clone())));
    }
    text += &fact("parameters", &format!("{} ({} trained)", counts.parameters, counts.trainable_parameters));
    text += &fact("parameter memory", &format!("{} MB", three_digits(counts.parameter_bytes as f64 * 1e-6)));
    text += "\nof one sample\n";
    text += &fact("forward", &gflop(counts.forward_flops));
    text += &fact("forward and backward", &gflop(counts.training_flops));
    let saved = format!("{} MB in {} tensors", three_digits(counts.saved_bytes as f64 * 1e-6), counts.saved_tensors);
    text += &fact("saved for backward", &saved);
    text += "\nlayers\n";
    let rows = layers.iter().map(|layer| vec![layer.0.clone(), layer.1.to_string(), gigaflops(layer.2)]).collect();
    text += &table(&["operator", "number", "forward, GFLOP a sample"], |place| place > 0, rows);
    text += "\nlargest tensors saved for backward\n";
    let rows = tensors.iter().map(|(name, bytes)| vec![name.clone(), three_digits(*bytes as f64 * 1e-6)]).collect();
    text += &table(&["made by", "MB a sample"], |place| place > 0, rows);
    let json = json!({
        "model": id, "about": about, "input": input, "counts": counts,
        "layers": layers.iter().map(|(name, number, flops)| json!({ "operator": name, "number": number, "forward_flops": flops })).collect::<Vec<Value>>(),
        "largest_saved": tensors.iter().map(|(name, bytes)| json!({ "made_by": name, "bytes": bytes })).collect::<Vec<Value>>(),
    });
    Ok(Shown { text, json })
}

fn gigaflops(flops: u64) -> String {
    if flops == 0 { "-".to_owned() } else { three_digits(flops as f64 * 1e-9) }
}

/// The kinds of operators with their number and their operations in forward of one sample, the most first.
fn layers(network: &Network) -> Vec<(String, usize, u64)> {
    let mut kinds: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for node in &network.nodes {
        let (number, flops) = kinds.entry(node.op.name()).or_default();
        *number += 1;
        *flops += node.flops.at(1);
    }
    let mut kinds: Vec<_> =
        kinds.into_iter().map(|(name, (number, flops))| (name.replace('_', " "), number, flops)).collect();
    kinds.sort_by(|a, b| (b.2, b.1, &a.0).cmp(&(a.2, a.1, &b.0)));
    kinds
}

/// The largest tensors that are saved for backward, of one sample.
fn largest(network: &Network) -> Vec<(String, u64)> {
    let saved: HashSet<StorageId> = network.nodes.iter().flat_map(|node| node.saved.iter().copied()).collect();
    let storages = saved.into_iter().map(|id| network.storage(id));
    let mut tensors: Vec<(String, u64)> = storages.map(|storage| (storage.name.clone(), storage.bytes.at(1))).collect();
    tensors.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    tensors.truncate(LARGEST);
    tensors
}

/// The policy `id`.
pub(super) fn policy(id: &str) -> Result<Shown> {
    let entry = registry::find(id)?;
    let (stacks, precisions) = (stacks(entry)?, precisions(entry));
    let mut text = format!("{}: {}\n\n{}\n", entry.id, entry.about, paragraph(entry.description, 0));
    text += &fact("source", entry.citation);
    let own = if entry.engine.is_some() { "; --stack names another" } else { "" };
    text += &fact("stacks", &format!("{}{own}", stacks.join(", ")));
    text += &fact("precisions", &precisions.join(", "));
    text += &fact("processor", processor(entry));
    if let Some(cores) = entry.engine.and_then(|engine| engine.cores) {
        text += &fact("cores", &format!("{cores} unless --cores says otherwise"));
    }
    text += "\n";
    text += &parameters(entry);
    let parameters: Vec<Value> = entry.parameters.iter().map(parameter_json).collect();
    let json = json!({
        "policy": entry.id, "about": entry.about, "description": entry.description, "citation": entry.citation,
        "stacks": stacks, "precisions": precisions, "processor": processor(entry),
        "cores": entry.engine.and_then(|engine| engine.cores), "parameters": parameters,
    });
    Ok(Shown { text, json })
}

/// The parameters of a policy as a table, or that it has none.
pub(crate) fn parameters(entry: &Entry) -> String {
    if entry.parameters.is_empty() {
        return format!("{} has no parameters\n", entry.id);
    }
    let row = |parameter: &Parameter| {
        let default = parameter.default_text().unwrap_or_else(|| "not set".to_owned());
        vec![parameter.name.to_owned(), default, parameter.values(), parameter.about.to_owned()]
    };
    let mut rows: Vec<Vec<String>> = entry.parameters.iter().map(row).collect();
    rows.sort();
    table(&["parameter", "default", "values", "what it does"], |_| false, rows)
}

/// A parameter, for programs.
pub(crate) fn parameter_json(parameter: &Parameter) -> Value {
    json!({
        "name": parameter.name, "values": parameter.values(), "default": parameter.default_text(),
        "about": parameter.about,
    })
}

/// The stacks that the policy runs on: its engine's own, or any.
fn stacks(entry: &Entry) -> Result<Vec<&'static str>> {
    match entry.engine {
        Some(engine) => Ok(vec![engine.stack]),
        None => Ok(haversack_devices::list_stacks()?.into_iter().map(|listing| listing.id).collect()),
    }
}

fn precisions(entry: &Entry) -> &'static [&'static str] {
    match entry.engine {
        Some(engine) if engine.eight_bit => &["int8"],
        None if !entry.stores_floats => &["fp32", "fp16", "int8"],
        _ => &["fp32", "fp16"],
    }
}

fn processor(entry: &Entry) -> &'static str {
    match entry.engine.map(|engine| engine.processor) {
        None => "whichever the stack trains on",
        Some(EngineProcessor::Cpu) => "CPU",
        Some(EngineProcessor::Gpu) => "GPU",
        Some(EngineProcessor::CpuAndDsp) => "CPU and DSP",
    }
}
