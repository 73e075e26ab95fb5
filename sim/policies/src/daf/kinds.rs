//! Bits by the kind of layer that keeps a tensor.

use haversack_workloads::{LayerKind, Need, Phase, TrainingGraph};

use crate::PolicyError;
use crate::entry::Settings;

/// Bits of the tensors kept by layers of a kind, in the order of `KINDS`; `None` uses those of every tensor.
pub type KindBits = [Option<u8>; KINDS.len()];

/// The names of the kinds, each with a parameter that sets its bits in place of `bits`.
const KINDS: [&str; 7] = ["convolution", "linear", "product", "softmax", "norm", "elementwise", "loss"];

/// Reads the bits from the settings.
pub(super) fn read(settings: &Settings<'_>) -> Result<KindBits, PolicyError> {
    let mut found = [None; KINDS.len()];
    for (bits, kind) in found.iter_mut().zip(KINDS) {
        *bits = settings.get(&format!("{kind}_bits"))?;
    }
    Ok(found)
}

/// The starting bits of each tensor: the maximum over the layers that need its values, `bits` for kinds without a
/// setting and for tensors without such a layer.
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
