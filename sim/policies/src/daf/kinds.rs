//! Bits by the kind of layer that keeps a tensor.

use haversack_workloads::{LayerKind, Need, Phase, TrainingGraph};

use crate::PolicyError;
use crate::entry::{Number, Numbers, Settings};

/// Bits of what layers of a kind keep, in the order of the parameters; `None` where those of every tensor count.
pub type KindBits = [Option<u8>; KIND_BITS.len()];

/// The parameters that set the bits of what layers of a kind keep, in place of `bits`.
pub(super) static KIND_BITS: [(LayerKind, Number<Option<u64>>); 7] = [
    (LayerKind::Convolution, bits_of("convolution_bits", "bits of what convolutions keep; not set, as for any tensor")),
    (LayerKind::Linear, bits_of("linear_bits", "bits of what linear layers keep; not set, as for any tensor")),
    (LayerKind::Product, bits_of("product_bits", "bits of what attention's products keep; not set, as for any tensor")),
    (LayerKind::Softmax, bits_of("softmax_bits", "bits of attention's probabilities; not set, as for any tensor")),
    (LayerKind::Norm, bits_of("norm_bits", "bits of what normalisations keep; not set, as for any tensor")),
    (
        LayerKind::Elementwise,
        bits_of("elementwise_bits", "bits of what functions of elements keep; not set, as for any tensor"),
    ),
    (LayerKind::Loss, bits_of("loss_bits", "bits of the classes' probabilities; not set, as for any tensor")),
];

const fn bits_of(name: &'static str, about: &'static str) -> Number<Option<u64>> {
    Number::new(name, None, Numbers::Among(&[1, 2, 4, 8, 16, 32]), about)
}

/// What was set.
pub(super) fn read(settings: &Settings<'_>) -> Result<KindBits, PolicyError> {
    let mut found = [None; KIND_BITS.len()];
    for (bits, (_, parameter)) in found.iter_mut().zip(&KIND_BITS) {
        *bits = settings.get(parameter)?.map(|bits| bits as u8);
    }
    Ok(found)
}

/// The bits of each tensor to start from: the most that a layer asks for that needs its values, `bits` where it says
/// nothing or none does.
pub(super) fn start(graph: &TrainingGraph, kinds: &KindBits, bits: u8) -> Vec<u8> {
    let of_kind = |layer: LayerKind| {
        let place = KIND_BITS.iter().position(|(kind, _)| *kind == layer);
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
