//! A policy written in Python: each hook is a question to its object, and what it raises ends the run.

use std::sync::{Arc, Mutex, PoisonError};

use haversack_policies::policy::{Planning, Room};
use haversack_policies::{
    Holding, IterationPlan, IterationSummary, MemoryView, Policy, PolicyError, Relief, Schedule, Setting, Want,
};
use haversack_workloads::{NodeId, TensorId, TrainingGraph};
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::memory::{Memory, phase};

/// A policy's object, with what it is called and which hooks it has.
#[derive(FromPyObject)]
pub(crate) struct Written {
    object: Py<PyAny>,
    #[pyo3(attribute("name"))]
    pub(crate) name: String,
    hooks: Vec<String>,
}

/// Why a policy can decide nothing any more; shared with whoever called.
#[derive(Clone, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<PyErr>>>);

impl Failure {
    /// What was raised, if anything was.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Nobody waits for the run any more: no further question is asked.
    pub(crate) fn leave(&self) {
        self.note(PyKeyboardInterrupt::new_err(()));
    }

    /// Takes note of what was raised; the first stays.
    fn note(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    fn text(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(ToString::to_string)
    }
}

/// What a policy asks Python.
pub(crate) struct Hooks {
    written: Arc<Written>,
    failure: Failure,
    /// The graph, and the node that makes each tensor; those of the first view.
    known: Option<(Arc<TrainingGraph>, Arc<Vec<NodeId>>)>,
    room: Option<Room>,
}

impl Hooks {
    pub(crate) fn new(written: Arc<Written>, failure: Failure) -> Self {
        Self { written, failure, known: None, room: None }
    }

    fn has(&self, hook: &str) -> bool {
        self.written.hooks.iter().any(|name| name == hook)
    }

    /// What `question` yields; `None` once anything was raised.
    fn ask<R>(&self, question: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>) -> Option<R> {
        if self.failure.text().is_some() {
            return None;
        }
        // None where the interpreter ends.
        let answer = Python::try_attach(|py| question(self.written.object.bind(py)));
        let gone = || PyValueError::new_err("the interpreter has ended");
        answer.unwrap_or_else(|| Err(gone())).map_err(|error| self.failure.note(error)).ok()
    }

    /// A copy of the view.
    fn see(&mut self, view: &MemoryView<'_>) -> Memory {
        let (graph, producers) =
            self.known.get_or_insert_with(|| (Arc::new(view.graph.clone()), Arc::new(view.producers.to_vec())));
        Memory::of(view, graph, producers)
    }
}

impl Policy for Hooks {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let mut schedule = Schedule::plain(setting.batch);
        if self.has("prepare") {
            let answer = self.ask(|object| {
                let answer = object.call_method1("prepare", (described(object.py(), setting)?,))?;
                answer.extract::<Option<u64>>().map_err(|_| wrong("prepare", "a micro-batch or None", &answer))
            });
            if let Some(Some(micro_batch)) = answer {
                schedule.micro_batch = micro_batch;
            }
        }
        self.failure.text().map_or(Ok(schedule), |why| Err(PolicyError::Failed(why)))
    }

    fn plan_within(&mut self, _graph: &TrainingGraph, room: Room) -> Option<Planning> {
        if self.has("budget_changed") && self.room.replace(room) != Some(room) {
            self.ask(|object| {
                let budgets = PyDict::new(object.py());
                budgets.set_item("memory_bytes", room.memory.map(|bytes| bytes.0))?;
                budgets.set_item("activation_bytes", room.activations.map(|bytes| bytes.0))?;
                object.call_method1("budget_changed", (budgets,)).map(drop)
            });
        }
        None
    }

    fn begin_iteration(&mut self, plan: &mut IterationPlan) {
        if !self.has("begin_iteration") {
            return;
        }
        let micro_batch = plan.micro_batch;
        let answer = self.ask(|object| {
            let answer = object.call_method1("begin_iteration", (micro_batch,))?;
            answer.extract::<Option<u64>>().map_err(|_| wrong("begin_iteration", "a micro-batch or None", &answer))
        });
        if let Some(Some(micro_batch)) = answer {
            plan.micro_batch = micro_batch;
        }
    }

    fn hold(&mut self, tensor: TensorId, memory: &MemoryView<'_>) -> Holding {
        if !self.has("hold") || self.failure.text().is_some() {
            return Holding::Keep;
        }
        let seen = self.see(memory);
        let answer = self.ask(|object| {
            let answer = object.call_method1("hold", (seen.of_id(tensor), seen))?;
            holding(&answer)
        });
        answer.unwrap_or(Holding::Keep)
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Vec<Relief> {
        if !self.has("relieve") || self.failure.text().is_some() {
            return Vec::new();
        }
        let seen = self.see(memory);
        let answer = self.ask(|object| {
            let answer = object.call_method1("relieve", (want.bytes().0, seen))?;
            if answer.is_none() {
                return Ok(Vec::new());
            }
            answer.try_iter()?.map(|action| relief(&action?)).collect()
        });
        answer.unwrap_or_default()
    }

    fn gives_way(&self) -> bool {
        self.has("relieve")
    }

    fn failed(&self) -> Option<String> {
        self.failure.text()
    }

    fn end_iteration(&mut self, seen: &IterationSummary) {
        if self.has("end_iteration") {
            self.ask(|object| {
                let summary = PyDict::new(object.py());
                summary.set_item("time_s", seen.time.seconds())?;
                summary.set_item("micro_batches", &seen.micro_batches)?;
                object.call_method1("end_iteration", (summary,)).map(drop)
            });
        }
    }
}

/// What a policy knows before the first iteration.
fn described<'py>(py: Python<'py>, setting: &Setting<'_>) -> PyResult<Bound<'py, PyDict>> {
    let (graph, described) = (setting.graph, PyDict::new(py));
    described.set_item("batch", setting.batch)?;
    described.set_item("filling_micro_batch", setting.filling_micro_batch)?;
    described.set_item("activation_budget_bytes", setting.activation_budget.map(|bytes| bytes.0))?;
    described.set_item("time_budget_s", setting.time_budget.map(|time| time.seconds()))?;
    described.set_item("saved", graph.saved())?;
    let nodes = graph.nodes.iter().zip(setting.times()).map(|(node, time)| {
        let described = PyDict::new(py);
        described.set_item("name", &node.name)?;
        described.set_item("operator", node.work.kind.name())?;
        described.set_item("phase", phase(node.phase))?;
        described.set_item("time_s", time.seconds())?;
        described.set_item("inputs", &node.inputs)?;
        described.set_item("outputs", &node.outputs)?;
        Ok(described)
    });
    described.set_item("nodes", PyList::new(py, nodes.collect::<PyResult<Vec<_>>>()?)?)?;
    Ok(described)
}

/// An answer that is none.
fn wrong(hook: &str, expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("{hook}: expected {expected}, found {found}"))
}

fn holding(answer: &Bound<'_, PyAny>) -> PyResult<Holding> {
    let expected = "\"keep\", \"rematerialise\", \"skip\", \"compress\", \"swap\" or None";
    if answer.is_none() {
        return Ok(Holding::Keep);
    }
    match answer.extract::<String>().as_deref() {
        Ok("keep") => Ok(Holding::Keep),
        Ok("rematerialise") => Ok(Holding::Rematerialise),
        Ok("skip") => Ok(Holding::Skip),
        Ok("compress") => Ok(Holding::Compress),
        Ok("swap") => Ok(Holding::Swap),
        _ => Err(wrong("hold", expected, answer)),
    }
}

fn relief(action: &Bound<'_, PyAny>) -> PyResult<Relief> {
    let expected = "(\"rematerialise\" | \"skip\" | \"compress\" | \"swap\", tensor) or (\"shrink\", samples)";
    let wrong = || wrong("relieve", expected, action);
    let (name, what): (String, Bound<'_, PyAny>) = action.extract().map_err(|_| wrong())?;
    if name == "shrink" {
        return Ok(Relief::ShrinkMicroBatch(what.extract().map_err(|_| wrong())?));
    }
    // A tensor, or its id.
    let id = if what.hasattr("id")? { what.getattr("id")? } else { what };
    let tensor: TensorId = id.extract().map_err(|_| wrong())?;
    match name.as_str() {
        "rematerialise" => Ok(Relief::Rematerialise(tensor)),
        "skip" => Ok(Relief::Skip(tensor)),
        "compress" => Ok(Relief::Compress(tensor)),
        "swap" => Ok(Relief::Swap(tensor)),
        _ => Err(wrong()),
    }
}
