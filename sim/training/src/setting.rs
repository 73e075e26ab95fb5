//! The information that a policy gets on a job and a machine before the first iteration.

use haversack_devices::{Bytes, Nanos, Precision};
use haversack_policies::quantised::working_memory;
use haversack_policies::{DspProfile, ElementBytes, Learned, NodeTimes, Oracle, Room, Setting};
use haversack_workloads::NodeId;

use crate::machine::packing::CodecProfile;
use crate::{Job, Machine};

/// Information from data that a policy gets before the first iteration.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told<'a> {
    /// The importance of tensors; `None` if none was measured.
    pub(crate) importance: Option<&'a [f64]>,
    /// The policy's learned parameters from earlier; `None` if the run starts without any.
    pub(crate) learned: Option<&'a Learned>,
    /// Whether each iteration passes on the scale factors of the one before.
    pub(crate) factors: bool,
}

/// Calls `ask` with the information that a policy gets on `job` and `machine` before the first iteration, with `oracle`
/// to simulate candidate plans, and returns its result.
pub(crate) fn with_codec<T>(
    machine: &Machine,
    job: &Job<'_>,
    codec: &CodecProfile<'_>,
    told: Told<'_>,
    oracle: &dyn Oracle,
    ask: impl FnOnce(&Setting<'_>) -> T,
) -> T {
    let dsp = OnDsp { machine, job };
    // The largest workspace that a library uses while it runs an operator.
    let workspace = |id| machine.workspace(job.graph, id, job.batch, job.precision);
    ask(&Setting {
        importance: told.importance,
        learned: told.learned,
        factors: machine.stack.constants.factors.as_ref(),
        tells_factors: told.factors,
        graph: job.graph,
        batch: job.batch,
        filling_micro_batch: machine.filling_micro_batch(job.graph, job.batch),
        node_times: NodeTimes::on_demand(|| machine.times(job.graph, job.batch, job.precision)),
        elements: element_bytes(machine, job),
        beside: machine.library_workspace(),
        workspace: (0..job.graph.nodes.len()).map(workspace).max().unwrap_or_default(),
        room: Room { memory: memory_budget(machine, job, Nanos::ZERO), activations: job.budgets.activations },
        activation_budget: activation_budget(machine, job, Nanos::ZERO),
        time_budget: job.budgets.time,
        dsp: machine.dsp.is_some().then_some(&dsp),
        restore: Some(codec),
        oracle: Some(oracle),
    })
}

/// The bytes of elements in memory.
pub(crate) fn element_bytes(machine: &Machine, job: &Job<'_>) -> ElementBytes {
    let value = if job.precision == Precision::Fp16 { 2 } else { 4 };
    ElementBytes { value, mask: machine.stack.constants.dropout_mask.value.0 }
}

/// The framework's memory limit from `now` on: its budget, and the memory that a GPU can address if that is only a
/// share of the device's.
pub(crate) fn memory_budget(machine: &Machine, job: &Job<'_>, now: Nanos) -> Option<Bytes> {
    job.budgets.memory_at(now).into_iter().chain(machine.addressable()).min()
}

/// The limit for saved tensors from `now` on: the budget for them, and the memory budget less everything else.
pub(crate) fn activation_budget(machine: &Machine, job: &Job<'_>, now: Nanos) -> Option<Bytes> {
    let beside = || working_memory(job.graph, job.batch) + machine.library_workspace();
    let left = job.budgets.memory_at(now).map(|memory| memory.saturating_sub(beside()));
    job.budgets.activations.into_iter().chain(left).min()
}

/// The DSP as a policy profiles it.
struct OnDsp<'a> {
    machine: &'a Machine,
    job: &'a Job<'a>,
}

impl DspProfile for OnDsp<'_> {
    fn time(&self, node: NodeId, samples: u64) -> Option<Nanos> {
        let cost = self.machine.dsp_cost(self.job.graph, node as usize, samples, self.job.precision, 0);
        cost.map(|cost| cost.alone())
    }

    fn crossing(&self, bytes: Bytes) -> Nanos {
        self.machine.crossing(bytes)
    }

    fn accumulation(&self, node: NodeId) -> Nanos {
        self.machine.accumulation(self.job.graph, node as usize).alone()
    }

    fn memory(&self) -> Bytes {
        self.machine.dsp.as_ref().map_or(Bytes::ZERO, |offloader| offloader.dsp.memory())
    }
}
