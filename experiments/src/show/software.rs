//! What a software stack or an operating system is.

use haversack_devices::{Device, load, load_stack, load_system};
use serde_json::json;

use super::Shown;
use super::calibrated::{Belief, heading, place, processors};
use super::writing::fact;
use crate::error::Result;

/// The software stack `id`, or that of a file.
pub(super) fn stack(id: &str) -> Result<Shown> {
    let stack = load_stack(id)?;
    let belief = Belief::of(&stack, |artefact| artefact.stacks, |fit| Some(fit.stack.as_str()))?;
    let constants = &stack.constants;
    let (graph, allocator) = (constants.graph.to_string(), constants.allocator.to_string());
    let (mut own, mut runs) = (Vec::new(), Vec::new());
    for device in devices()? {
        if stack.processors_of(&device).contains(&true) {
            runs.push(device.id.clone());
        }
        if device.constants.default_stack == stack.id {
            own.push(device.id);
        }
    }
    let on = processors([stack.cpu().is_some(), stack.gpu().is_some(), stack.dsp().is_some()]);
    let mut text = heading(&stack.id, &constants.name, constants.remark.as_deref());
    text += &place(&stack);
    text += &fact("kernels for", &on.join(", "));
    text += &fact("graph", &graph);
    text += &fact("allocator", &allocator);
    if let Some(housekeeping) = &constants.housekeeping {
        let polling = housekeeping.polling.value.0 * 100.0;
        text +=
            &fact("page tables", &format!("kept by the host's thread, which polls for {polling:.0} % of its waiting"));
    }
    text += &fact("compression", if constants.codec.is_some() { "policies can compress" } else { "none" });
    text += &fact("devices that run it", &or_none(&runs));
    text += &fact("default of", &or_none(&own));
    text += &belief.text();
    let mut json = json!({
        "stack": stack.id, "name": constants.name, "remark": constants.remark, "file": stack.file,
        "bases": stack.bases, "digest": stack.digest, "processors": on, "graph": graph, "allocator": allocator,
        "devices": runs, "default_of": own,
    });
    crate::output::join(&mut json, belief.json());
    Ok(Shown { text, json })
}

/// The operating system `id`, or that of a file.
pub(super) fn system(id: &str) -> Result<Shown> {
    let system = load_system(id)?;
    let belief = Belief::of(&system, |artefact| artefact.systems, |fit| fit.system.as_deref())?;
    let constants = &system.constants;
    let mut text = heading(&system.id, &constants.name, constants.remark.as_deref());
    text += &place(&system);
    let reclaim = &constants.reclaim;
    text += &fact("page lists", &format!("{}, swappiness {}", reclaim.lists, reclaim.swappiness.value.0));
    let zram = constants.zram.as_ref().map_or_else(
        || "none".to_owned(),
        |zram| format!("{}, apps' memory to 1 / {:.1}", zram.algorithm, system.app_pages().mean_ratio().0),
    );
    text += &fact("compressed memory", &zram);
    text += &fact("swap on flash", if constants.swap.is_some() { "a partition" } else { "none" });
    text += &belief.text();
    let mut json = json!({
        "system": system.id, "name": constants.name, "remark": constants.remark, "file": system.file,
        "bases": system.bases, "digest": system.digest, "lists": reclaim.lists.to_string(),
        "zram": constants.zram.is_some(), "swap": constants.swap.is_some(),
    });
    crate::output::join(&mut json, belief.json());
    Ok(Shown { text, json })
}

fn devices() -> Result<Vec<Device>> {
    haversack_devices::list()?.iter().map(|listing| Ok(load(listing.id)?)).collect()
}

fn or_none(ids: &[String]) -> String {
    if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
}
