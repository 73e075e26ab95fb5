//! Descriptions of networks and policies.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use haversack_policies::entry::Parameter;
use haversack_policies::{EngineProcessor, Entry, registry};
use haversack_workloads::counts::count;
use haversack_workloads::models::MODELS;
use haversack_workloads::onnx::Reading;
use haversack_workloads::{Network, StorageId};
use serde_json::{Value, json};

use super::Shown;
use crate::Result;
use crate::scenario::{InputShape, workload};

/// The number of tensors shown.
const LARGEST: usize = 10;

/// The built-in network `id`, or the one in an ONNX file.
pub(super) fn network(id: &str) -> Result<Shown> {
    let network = workload::network(id, &Reading::default(), None)?;
    let about = MODELS.iter().find(|model| model.id == id).map(|model| model.about);
    let input = workload::own_input(id).map(|InputShape(shape)| shape);
    let counts = count(&network, 1);
    let json = json!({
        "model": id, "about": about, "input": input, "counts": counts,
        "layers": layers(&network), "largest_saved": largest(&network),
    });
    Ok(Shown::new(include_str!("../../texts/show-model.txt"), json, Value::Null))
}

/// The kinds of operators with their number and their forward operations for one sample, the most expensive first.
fn layers(network: &Network) -> Value {
    let mut kinds: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for node in &network.nodes {
        let (number, flops) = kinds.entry(node.op.name()).or_default();
        *number += 1;
        *flops += node.flops.at(1);
    }
    let mut kinds: Vec<_> =
        kinds.into_iter().map(|(name, (number, flops))| (Reverse((flops, number)), name.replace('_', " "))).collect();
    kinds.sort();
    let layer = |(Reverse((flops, number)), name)| json!({"operator": name, "number": number, "forward_flops": flops});
    kinds.into_iter().map(layer).collect()
}

/// The largest tensors that are saved for backward, of one sample.
fn largest(network: &Network) -> Value {
    let saved: HashSet<StorageId> = network.nodes.iter().flat_map(|node| node.saved.iter().copied()).collect();
    let mut tensors: Vec<_> = saved.into_iter().map(|id| network.storage(id)).collect();
    tensors.sort_by_key(|storage| (Reverse(storage.bytes.at(1)), &storage.name));
    let shown = tensors.iter().take(LARGEST);
    shown.map(|storage| json!({ "made_by": storage.name, "bytes": storage.bytes.at(1) })).collect()
}

/// The policy `id`.
pub(super) fn policy(id: &str) -> Result<Shown> {
    let entry = registry::find(id)?;
    let json = json!({
        "policy": entry.id, "about": entry.about, "description": entry.description, "citation": entry.citation,
        "stacks": stacks(entry)?, "precisions": precisions(entry), "processor": processor(entry),
        "cores": entry.engine.and_then(|engine| engine.cores), "parameters": parameters(entry),
    });
    let more = json!({ "is_engine": entry.engine.is_some() });
    Ok(Shown::new(include_str!("../../texts/show-policy.txt"), json, more))
}

/// The parameters of a policy.
pub(crate) fn parameters(entry: &Entry) -> Value {
    let parameter = |parameter: &Parameter| {
        let default = parameter.default_text();
        json!({ "name": parameter.name, "values": parameter.values(), "default": default, "about": parameter.about })
    };
    entry.parameters.iter().map(parameter).collect()
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
