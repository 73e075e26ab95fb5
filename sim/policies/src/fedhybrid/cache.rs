//! The table of plans that were made before (section 4.3.2): a budget that comes back costs no new plan.

use std::collections::HashMap;

use haversack_workloads::TrainingGraph;

use super::digest::Digest;
use super::plan::{Plan, PlanError};
use super::profile::Profile;
use crate::policy::Room;

/// Plans by graph, profile and budget.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct PlanCache {
    plans: HashMap<(Digest, Digest, Room), Plan>,
}

impl PlanCache {
    /// The plan for `graph` within `room`, and whether it was there already; made if it was not.
    ///
    /// # Errors
    /// As [`Profile::plan`].
    pub fn get_or_make(
        &mut self,
        graph: &TrainingGraph,
        profile: &Profile,
        room: Room,
    ) -> Result<(Plan, bool), PlanError> {
        let key = (profile.graph_digest(), profile.digest(), room);
        if let Some(plan) = self.plans.get(&key) {
            return Ok((plan.clone(), true));
        }
        let plan = profile.plan(graph, room)?;
        self.plans.insert(key, plan.clone());
        Ok((plan, false))
    }

    /// The number of plans.
    pub fn len(&self) -> usize {
        self.plans.len()
    }

    /// Whether no plan was made yet.
    pub fn is_empty(&self) -> bool {
        self.plans.is_empty()
    }
}
