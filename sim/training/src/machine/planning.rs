//! What making and sending a plan takes on a machine.

use haversack_devices::processor::{CoreSelection, Frequency};
use haversack_devices::storage::ScalarSpeed;
use haversack_devices::units::{Factor, Nanos};
use haversack_policies::planning::{Operations, Planner, Planning};

use super::Machine;

/// Where services in the background run (Android's processor sets).
const BACKGROUND: &str = "little:1";

impl Machine {
    /// From asking for a plan until it is there; `None` where the stack does not say what plans cost, or the device has no
    /// core whose CoreMark is known.
    pub fn planning_time(&self, planning: &Planning) -> Option<Nanos> {
        let link = self.stack.constants.planning.as_ref()?.link.value;
        let sent = (planning.sent + planning.received).as_f64() / link.0;
        Some(self.making_time(planning.planner, planning.operations)? + Nanos::from_seconds(sent))
    }

    /// The time of a plan's `operations` on the core that makes it; `None` as in [`Machine::planning_time`].
    pub fn making_time(&self, planner: Planner, operations: Operations) -> Option<Nanos> {
        let constants = self.stack.constants.planning.as_ref()?;
        let speed = match planner {
            Planner::Server => ScalarSpeed::per_second(constants.server.value.0)?,
            Planner::Phone => self.background()?,
        };
        Some(speed.time(Factor(operations.total() as f64 * constants.operation.value.0)))
    }

    /// The core of services in the background: a little one, or the slowest where there is none.
    fn background(&self) -> Option<ScalarSpeed> {
        let cpu = self.device.cpu()?;
        let little = BACKGROUND.parse::<CoreSelection>().ok().and_then(|one| cpu.choose(one, Frequency::Highest).ok());
        let cores = little.or_else(|| cpu.choose(CoreSelection::All, Frequency::Highest).ok())?;
        ScalarSpeed::of(&cores)
    }
}
