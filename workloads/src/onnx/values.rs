//! The values of a file's initialisers, kept as they lie in it.

use std::collections::HashMap;
use std::sync::Arc;

use prost::bytes::Bytes;

use super::constant::{dims_of, elements};
use super::graph::Graph;
use super::items::Order;
use super::proto::TensorProto;
use crate::network::{ImportedTensor, ImportedValues, Initial, Network, NumberFormat, StorageId};

/// An initialiser that fills a storage of the network.
pub(super) struct Holder {
    pub(super) storage: StorageId,
    /// The initialiser's name.
    pub(super) name: String,
    /// How the storage sees its numbers.
    pub(super) order: Order,
}

/// Gives `network` the values of the initialisers of `graph`. One that is read in two orders, or that lies outside the
/// file, has none.
pub(super) fn keep(network: &mut Network, holders: &[Holder], graph: &Graph) {
    let mut orders: HashMap<StorageId, Order> = HashMap::new();
    for holder in holders {
        let order = orders.entry(holder.storage).or_insert(holder.order);
        if *order != holder.order {
            *order = Order::Other;
        }
    }
    let mut tensors = HashMap::new();
    for holder in holders {
        let order = orders.get(&holder.storage).copied().unwrap_or(Order::Other);
        let found = graph.initialisers.get(&holder.name).and_then(|tensor| imported(tensor, order));
        if let Some(tensor) = found {
            network.storages[holder.storage as usize].initial = Some(Initial::Imported);
            tensors.insert(holder.storage, tensor);
        }
    }
    network.imported = Some(Arc::new(ImportedValues { tensors }));
}

/// The numbers of `tensor` in `order`; `None` if they are not all in the file or cannot be put in order.
fn imported(tensor: &TensorProto, order: Order) -> Option<ImportedTensor> {
    let dims = dims_of(tensor).ok()?;
    let (bytes, format) = match tensor.data_type {
        1 if tensor.raw_data.is_empty() => (packed(&tensor.float_data), NumberFormat::Single),
        1 => (tensor.raw_data.clone(), NumberFormat::Single),
        11 if !tensor.raw_data.is_empty() => (tensor.raw_data.clone(), NumberFormat::Double),
        10 if !tensor.raw_data.is_empty() => (tensor.raw_data.clone(), NumberFormat::Half),
        16 if !tensor.raw_data.is_empty() => (tensor.raw_data.clone(), NumberFormat::Brain),
        _ => return None,
    };
    let transposed = match (order, dims.as_slice()) {
        (Order::Stored, _) => None,
        (Order::Transposed, &[rows, columns]) => Some([rows, columns]),
        _ => return None,
    };
    let whole = elements(&dims)?.checked_mul(format.bytes() as u64) == Some(bytes.len() as u64);
    whole.then_some(ImportedTensor { bytes, format, transposed })
}

fn packed(values: &[f32]) -> Bytes {
    values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into()
}
