//! The saved tensors of a mini-batch, and gradients computed from restored versions of them.

use haversack_kernels::compress::FeatureMap;
use haversack_numerics::{Contents, Map, Memory, ProgramError};
use haversack_workloads::{MapKind, Need, Phase, Role, TensorId};

use super::Trained;
use crate::artefacts::prelude::*;

/// A saved tensor of a mini-batch.
pub(in crate::artefacts) struct SavedMap {
    pub(in crate::artefacts) kind: MapKind,
    /// The map of one sample.
    pub(in crate::artefacts) map: Map,
    /// The values of all samples, in memory order.
    pub(in crate::artefacts) values: Vec<f32>,
}

impl SavedMap {
    /// A sample in the codec's form, channel by channel.
    pub(in crate::artefacts) const fn feature<'v>(&self, values: &'v [f32]) -> FeatureMap<'v> {
        FeatureMap { values, channels: self.map.channels, height: self.map.height, width: self.map.width }
    }

    /// The samples, each channel by channel.
    pub(in crate::artefacts) fn samples(&self) -> impl Iterator<Item = Vec<f32>> + '_ {
        let samples = self.values.chunks_exact(self.map.elements().max(1));
        samples.map(|sample| self.map.channels_first(sample))
    }

    /// The values in memory order, from samples that are channel by channel.
    pub(in crate::artefacts) fn of_samples(&self, samples: impl IntoIterator<Item = Vec<f32>>) -> Vec<f32> {
        samples.into_iter().flat_map(|sample| self.map.channels_back(sample)).collect()
    }
}

impl Trained {
    /// The saved tensors, each with its kind.
    pub(in crate::artefacts) fn saved(&self) -> Vec<(TensorId, MapKind)> {
        let graph = &self.plan.graph;
        let kinds = graph.map_kinds();
        let is_read = |tensor: TensorId| {
            let backward =
                graph.nodes.iter().filter(|node| node.phase == Phase::Backward && node.inputs.contains(&tensor));
            backward.map(|node| node.need_of(tensor)).any(|need| matches!(need, Need::Values | Need::Signs))
        };
        let saved = graph.saved().into_iter().filter(|&tensor| !self.program.is_integer(tensor) && is_read(tensor));
        saved.filter_map(|tensor| Some((tensor, kinds[tensor as usize]?))).collect()
    }

    fn map(&self, tensor: TensorId, kind: MapKind, memory: &dyn Memory) -> Result<SavedMap, ProgramError> {
        Ok(SavedMap { kind, map: self.program.map_of(tensor), values: memory.floats(tensor)?.to_vec() })
    }

    /// The saved tensors of the next mini-batch.
    pub(in crate::artefacts) fn maps(&self) -> Result<Vec<SavedMap>> {
        let saved = self.saved();
        let mut maps = Vec::new();
        self.watch(1, |node, memory| {
            // All saved tensors exist before the first node of backward.
            if node.phase == Phase::Backward && maps.is_empty() {
                for &(tensor, kind) in &saved {
                    maps.push(self.map(tensor, kind, memory)?);
                }
            }
            Ok(())
        })?;
        Ok(maps)
    }

    /// The gradients of all weights for the next mini-batch, one after the other, where backward reads the result of
    /// `restored` for each saved tensor.
    pub(in crate::artefacts) fn gradients(&self, restored: impl Fn(&SavedMap) -> Result<Vec<f32>>) -> Result<Vec<f32>> {
        let saved = self.saved();
        let of_weights =
            (0..).zip(&self.plan.graph.tensors).filter(|(_, tensor)| tensor.role == Role::ParameterGradient);
        let of_weights: Vec<TensorId> = of_weights.map(|(id, _)| id).collect();
        let (mut has_stored, mut gradients, mut failed) = (false, Vec::new(), None);
        self.watch(1, |node, memory| {
            if node.phase == Phase::Backward && !has_stored {
                has_stored = true;
                for &(tensor, kind) in &saved {
                    match restored(&self.map(tensor, kind, memory)?) {
                        Ok(values) => {
                            let values = memory.meter().copy(&values);
                            memory.put(tensor, Contents::Floats(values));
                        }
                        Err(error) => failed = Some(error),
                    }
                }
            }
            if node.phase == Phase::Update && gradients.is_empty() {
                for &gradient in &of_weights {
                    gradients.extend_from_slice(&memory.floats(gradient)?);
                }
            }
            Ok(())
        })?;
        failed.map_or(Ok(gradients), Err)
    }
}
