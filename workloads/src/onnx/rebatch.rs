//! Makes a network that was read at one batch linear in the batch.

use crate::{Dim, Extent, Network, Op, Role};

/// Makes everything in `network` that depends on its samples grow with the batch; it was read with `batch` samples.
pub(super) fn rebatch(network: &mut Network, batch: u64) {
    let mut sampled: Vec<bool> =
        network.values.iter().map(|value| network.storage(value.storage).role == Role::Input).collect();
    let grown = |extent: Extent| match extent {
        Extent { fixed, per_sample: 0 } if fixed.is_multiple_of(batch) => Extent::per_sample(fixed / batch),
        other => other,
    };
    for node in &mut network.nodes {
        if !node.inputs.iter().any(|&input| sampled[input as usize]) {
            continue;
        }
        sampled[node.output as usize] = true;
        node.flops = grown(node.flops);
        // The statistics of a batch have the same size for any batch.
        let own = node.saved.iter().filter(|_| !matches!(node.op, Op::BatchNorm { .. }));
        for &storage in own.chain([&network.values[node.output as usize].storage]) {
            let storage = &mut network.storages[storage as usize];
            if storage.role == Role::Activation {
                storage.bytes = grown(storage.bytes);
            }
        }
    }
    for (value, _) in network.values.iter_mut().zip(sampled).filter(|(_, sampled)| *sampled) {
        let storage = &mut network.storages[value.storage as usize];
        if storage.role == Role::Input {
            storage.bytes = grown(storage.bytes);
        }
        let sizes = &mut value.shape.0;
        let place = sizes.iter().position(|dim| dim.size == batch);
        let place = place.or_else(|| sizes.iter().position(|dim| dim.size.is_multiple_of(batch)));
        if let Some(dim) = place.and_then(|place| sizes.get_mut(place)) {
            *dim = Dim::batched(dim.size / batch);
        }
    }
}
