//! Memory as a policy written in Python sees it: a copy of the executor's view at the time of a hook's call.

use std::sync::Arc;

use haversack_devices::Bytes;
use haversack_policies::{Form, MemoryView, Storage, TensorState};
use haversack_workloads::{NodeId, Phase, TensorId, TrainingGraph};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

/// The word of a phase.
pub(crate) const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Forward => "forward",
        Phase::Backward => "backward",
        Phase::Update => "update",
    }
}

/// Memory at the time when a hook of a policy is called.
#[pyclass(frozen, module = "haversack")]
pub(crate) struct Memory {
    graph: Arc<TrainingGraph>,
    producers: Arc<Vec<NodeId>>,
    states: Vec<TensorState>,
    candidates: Vec<TensorId>,
    /// The node that is running.
    #[pyo3(get)]
    at: NodeId,
    /// Samples of the current micro-batch.
    #[pyo3(get)]
    micro_batch: u64,
    /// Bytes that may be in memory; None if memory is not bounded.
    #[pyo3(get)]
    budget_bytes: Option<u64>,
    /// Everything that is whole in memory, plus the memory that the next node needs.
    #[pyo3(get)]
    needed_bytes: u64,
    /// The clock, in seconds.
    #[pyo3(get)]
    now_s: f64,
    #[pyo3(get)]
    phase: &'static str,
}

impl Memory {
    /// A copy of `view`, whose graph and producers are these.
    pub(crate) fn of(view: &MemoryView<'_>, graph: &Arc<TrainingGraph>, producers: &Arc<Vec<NodeId>>) -> Self {
        // Their order in the view means nothing.
        let mut candidates: Vec<TensorId> = view.candidates.iter().collect();
        candidates.sort_unstable();
        Self {
            graph: Arc::clone(graph),
            producers: Arc::clone(producers),
            states: view.tensors.to_vec(),
            candidates,
            at: view.at,
            micro_batch: view.micro_batch,
            budget_bytes: (view.budget != Bytes::MAX).then_some(view.budget.0),
            needed_bytes: view.needed.at(view.micro_batch),
            now_s: view.now.seconds(),
            phase: phase(view.phase),
        }
    }

    /// The tensor `id`, if it exists.
    pub(crate) fn of_id(&self, id: TensorId) -> Option<Tensor> {
        let (tensor, state) = (self.graph.tensors.get(id as usize)?, self.states.get(id as usize)?);
        let producer = self.producers.get(id as usize).and_then(|&node| self.graph.nodes.get(node as usize));
        Some(Tensor {
            id,
            name: tensor.name.clone(),
            operator: producer.map(|node| node.work.kind.name()),
            form: form(state.form),
            bytes: state.bytes.0,
            cost_s: state.cost.seconds(),
            last_use_s: state.last_use.seconds(),
            next_use: (state.next_use != NodeId::MAX).then_some(state.next_use),
        })
    }
}

#[pymethods]
impl Memory {
    /// The tensors that may give way, by id: whole in memory, not in use, possible to compute again.
    #[getter]
    fn candidates(&self) -> Vec<Tensor> {
        self.candidates.iter().filter_map(|&id| self.of_id(id)).collect()
    }

    /// The tensor of this id.
    fn tensor(&self, id: TensorId) -> PyResult<Tensor> {
        self.of_id(id).ok_or_else(|| PyIndexError::new_err(format!("no tensor has the id {id}")))
    }

    /// The number of tensors; their ids are below it.
    fn __len__(&self) -> usize {
        self.states.len()
    }
}

/// The word for how a tensor is stored.
const fn form(form: Form) -> &'static str {
    match form {
        Form::Absent => "absent",
        Form::Dropped => "dropped",
        Form::Whole => "whole",
        Form::InFlight(_) => "in flight",
        Form::Stored(Storage::Quantised(_)) => "quantised",
        Form::Stored(Storage::Compressed) => "compressed",
        Form::Stored(Storage::Flash) => "on flash",
    }
}

/// One tensor as a policy sees it.
#[pyclass(frozen, get_all, module = "haversack")]
pub(crate) struct Tensor {
    id: TensorId,
    name: String,
    /// The kind of the operator that makes it; None for inputs and weights.
    operator: Option<&'static str>,
    /// How it is stored: absent, dropped, whole, in flight, quantised, compressed or on flash.
    form: &'static str,
    /// Its size when it is whole.
    bytes: u64,
    /// The time of the operator that makes it; after a recomputation, of all that had to be computed for it.
    cost_s: f64,
    /// When it was last read or written.
    last_use_s: f64,
    /// The next node that reads or writes it; None if none does.
    next_use: Option<NodeId>,
}

#[pymethods]
impl Tensor {
    fn __repr__(&self) -> String {
        format!("Tensor({}, {:?}, {} bytes, {})", self.id, self.name, self.bytes, self.form)
    }
}
