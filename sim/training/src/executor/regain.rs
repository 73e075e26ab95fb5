//! Compressed and swapped tensors: out of memory, and back for those that read them.

use haversack_workloads::{NodeId, TensorId};

use super::{Executor, Stop};
use crate::job::RunError;

impl Executor<'_> {
    /// Compresses a tensor that is whole in memory.
    pub(super) fn compress(&mut self, tensor: TensorId, _node: NodeId) -> Result<(), Stop> {
        Err(RunError::IllegalAction { action: format!("compress tensor {tensor}"), reason: "no codec" }.into())
    }

    /// Writes a tensor that is whole in memory to flash.
    pub(super) fn swap_out(&mut self, tensor: TensorId, _node: NodeId) -> Result<(), Stop> {
        Err(RunError::IllegalAction { action: format!("swap tensor {tensor}"), reason: "no flash" }.into())
    }
}
