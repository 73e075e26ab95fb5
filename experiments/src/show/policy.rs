//! What a policy is.

use haversack_policies::entry::{EngineProcessor, Entry, Parameter};
use haversack_policies::registry;
use serde_json::{Value, json};

use super::Shown;
use super::writing::{fact, paragraph, table};
use crate::error::Result;

/// The policy `id`.
pub(super) fn show(id: &str) -> Result<Shown> {
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
    let parameters: Vec<Value> = entry.parameters.iter().map(|parameter| parameter_json(*parameter)).collect();
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
    let row = |parameter: &&dyn Parameter| {
        let default = parameter.default_text().unwrap_or_else(|| "not set".to_owned());
        vec![parameter.name().to_owned(), default, parameter.values(), parameter.about().to_owned()]
    };
    let mut rows: Vec<Vec<String>> = entry.parameters.iter().map(row).collect();
    rows.sort();
    table(&["parameter", "default", "values", "what it does"], |_| false, rows)
}

/// A parameter, for programs.
pub(crate) fn parameter_json(parameter: &dyn Parameter) -> Value {
    json!({
        "name": parameter.name(), "values": parameter.values(), "default": parameter.default_text(),
        "about": parameter.about(),
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
