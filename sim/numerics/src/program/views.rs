//! Views: in which order a value's elements lie in its storage, and in which order its gradient is read.

use crate::error::ProgramError;
use haversack_workloads::network::layout::Layout;
use haversack_workloads::network::{FP32, OperatorNode};
use haversack_workloads::operator::{Copying, View};
use haversack_workloads::{Network, Op};

/// The layout of every value that does not lie row by row over the whole of its storage.
pub(super) fn looks(network: &Network) -> Result<Vec<Option<Layout>>, ProgramError> {
    let layouts = network.layouts().map_err(|error| ProgramError::Network(error.to_string()))?;
    let looks = network.values.iter().zip(layouts).map(|(value, layout)| {
        let storage = network.storage(value.storage).bytes.times(1, FP32);
        let whole = layout.offset == 0 && layout.is_row_major() && value.shape.elements() == storage;
        (!whole && network.storage(value.storage).element != haversack_workloads::training_graph::Element::Whole)
            .then_some(layout)
    });
    Ok(looks.collect())
}

/// The order in which the gradient of a view's output is read as that of its input; `None` if it is the same.
///
/// # Errors
/// A view whose gradient is not a look at that of its output.
pub(super) fn back(network: &Network, node: &OperatorNode) -> Result<Option<Layout>, ProgramError> {
    let (input, output) = (network.shape(node.inputs[0]), network.shape(node.output));
    let refused = |reason: &str| ProgramError::Operator {
        module: node.module.clone(),
        operator: node.op.name(),
        reason: reason.to_owned(),
    };
    let order = match &node.op {
        Op::View(View::Reshape) | Op::Copy(Copying::Plain) => return Ok(None),
        Op::View(View::Permute(order)) => order,
        _ => return Err(refused("its gradient is not a look at that of what it makes")),
    };
    let layout = Layout::row_major(output).ok_or_else(|| refused("its batch is not outermost"))?;
    let inverse: Vec<usize> = (0..input.rank()).filter_map(|axis| order.iter().position(|&to| to == axis)).collect();
    Ok(Some(layout.permuted(&inverse)))
}

/// The part of the gradient of a concatenation that belongs to the input that begins at position `first` of `axis`.
pub(super) fn part(network: &Network, node: &OperatorNode, input: usize, axis: usize, first: u64) -> Option<Layout> {
    let whole = Layout::row_major(network.shape(node.output))?;
    let part = haversack_workloads::operator::Part::whole(whole.shape.rank()).from(axis, first, 1);
    Some(whole.part(&part, network.shape(node.inputs[input])))
}
