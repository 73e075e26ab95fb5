//! Dropping the tensors with the lowest scores.

use haversack_devices::units::Bytes;
use haversack_workloads::TensorId;

use crate::policy::Relief;
use crate::view::{MemoryView, TensorState};

impl MemoryView<'_> {
    /// Candidates in the order in which `score` lets them go, until `shortfall` is freed.
    pub fn evict_lowest(&self, shortfall: Bytes, score: impl Fn(TensorId, &TensorState) -> f64) -> Vec<Relief> {
        let state = |id: TensorId| &self.tensors[id as usize];
        let mut ranked: Vec<(f64, TensorId)> = self.candidates.iter().map(|id| (score(id, state(id)), id)).collect();
        let mut reliefs = Vec::new();
        let mut freed = Bytes::ZERO;
        while freed < shortfall && !ranked.is_empty() {
            // One pass a victim: few go at a time, and a full sort would cost more.
            let lowest = (0..ranked.len())
                .min_by(|&a, &b| ranked[a].0.total_cmp(&ranked[b].0).then(ranked[a].1.cmp(&ranked[b].1)));
            let Some(lowest) = lowest else { break };
            let (_, victim) = ranked.swap_remove(lowest);
            freed += state(victim).bytes;
            reliefs.push(Relief::Rematerialise(victim));
        }
        reliefs
    }
}
