//! Bits by the kind of layer that keeps a tensor.

use haversack_workloads::{LayerKind, Need, Phase, TrainingGraph};

use crate::PolicyError;
use crate::entry::Settings;

/// Bits of what layers of a kind keep, in the order of `KINDS`; `None` where those of every tensor count.
pub type KindBits = [Option<u8>; KINDS.len()];

/// The names of the kinds, each with a parameter that sets its bits in place of `bits`.
const KINDS: [&str; 7] = ["convolution", "linear", "product", "softmax", "norm", "elementwise", "loss"];

/// What was set.
pub(super) fn read(settings: &Settings<'_>) -> Result<KindBits, PolicyError> {
    let mut found = [None; KINDS.len()];
    for (bits, kind) in found.iter_mut().zip(KINDS) {
        *bits = settings.get(&format!("{kind}_bits"))?;
    }
    Ok(found)
}

/// The bits of each tensor to start from: the most that a layer asks for that needs its values, `bits` where it says
/// nothing or none does.
pub(super) fn start(graph: &TrainingGraph, kinds: &KindBits, bits: u8) -> Vec<u8> {
    let of_kind = |layer: LayerKind| {
        let place = KINDS.iter().position(|kind| *kind == layer.name());
        place.and_then(|place| kinds[place]).unwrap_or(bits)
    };
    let mut asked = vec![None; graph.tensors.len()];
    for node in graph.nodes.iter().filter(|node| node.phase == Phase::Backward) {
        for &input in node.inputs.iter().filter(|&&input| node.need_of(input) == Need::Values) {
            let most = &mut asked[input as usize];
            *most = (*most).max(Some(of_kind(node.layer)));
        }
    }
    asked.into_iter().map(|asked| asked.unwrap_or(bits)).collect()
}
