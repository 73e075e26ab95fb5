//! What giving up each saved tensor is worth by itself (figure 7).

use haversack_devices::units::Bytes;
use haversack_workloads::TensorId;

use super::FedHybrid;
use super::choice::terms;
use super::mps::Terms;
use crate::restore::{Layouts, RestoreCosts, Snapshot, Technique, absences, saved_alone};
use crate::setting::Setting;

impl FedHybrid {
    /// The MPS of every saved tensor by each technique, where nothing else is given up and each stays away from its
    /// last use in forward to its first in backward (figure 7). What forward does not save is gone by then.
    pub fn survey(setting: &Setting<'_>, layouts: Layouts) -> Vec<Surveyed> {
        let mut costs = RestoreCosts::new(setting, layouts);
        let saved = setting.graph.saved();
        let held = saved_alone(setting, &saved);
        let absences = absences(setting.graph);
        saved
            .iter()
            .filter_map(|&tensor| {
                let (from, at) = absences[tensor as usize]?;
                let snapshot = Snapshot { graph: setting.graph, held: &held, at, samples: setting.batch };
                let bytes = Bytes(setting.graph.tensor(tensor).bytes.at(setting.batch));
                let mut terms = |technique| terms(&mut costs, tensor, bytes, technique, &snapshot, (from, at));
                Some(Surveyed {
                    tensor,
                    recompute: terms(Technique::Recompute)?,
                    compress: terms(Technique::Compress),
                    swap: terms(Technique::Swap),
                })
            })
            .collect()
    }
}

/// What giving one saved tensor up is worth.
#[derive(Clone, Copy, Debug)]
pub struct Surveyed {
    /// The tensor.
    pub tensor: TensorId,
    /// By computing it again.
    pub recompute: Terms,
    /// By compression; nothing where no codec reaches it.
    pub compress: Option<Terms>,
    /// By swapping; nothing where there is no flash.
    pub swap: Option<Terms>,
}
