//! A policy written in Python: each hook calls a method of its object, and an exception in it ends the run.

use std::sync::{Arc, Mutex, PoisonError};

use haversack::run::Brought;
use haversack_policies::planning::{Operations, Planning, Room};
use haversack_policies::{
    Holding, IterationPlan, IterationSummary, MemoryView, Oracle, PlanAhead, Policy, PolicyError, Relief, Schedule,
    Setting, Want,
};
use haversack_workloads::{NodeId, TensorId, TrainingGraph};
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::memory::{Memory, phase};

/// A policy's object, with its name and the hooks that it has.
#[derive(Debug, FromPyObject)]
pub(crate) struct Written {
    object: Py<PyAny>,
    #[pyo3(attribute("name"))]
    pub(crate) name: String,
    hooks: Vec<String>,
}

impl Written {
    /// The policy for runs that are simulated one after the other: all share the object.
    pub(crate) fn shared(self, failure: &Failure) -> Brought {
        let (name, written, failure) = (self.name.clone(), Arc::new(self), failure.clone());
        Brought::new(name, move || Box::new(Hooks::new(Arc::clone(&written), failure.clone())))
    }

    /// The policy for runs of which several are simulated at the same time: each has a copy of the object.
    pub(crate) fn copied(self, failure: &Failure) -> Brought {
        let (name, written, failure) = (self.name.clone(), Arc::new(self), failure.clone());
        let copied = move || {
            // None if the interpreter is ending.
            let copy = Python::try_attach(|py| {
                let object = py.import("copy")?.call_method1("deepcopy", (&written.object,))?.unbind();
                Ok(Self { object, name: written.name.clone(), hooks: written.hooks.clone() })
            });
            // An object that cannot be copied ends the run, as an exception in a hook does.
            let gone = || Err(PyValueError::new_err("the interpreter has ended"));
            let copy = copy.unwrap_or_else(gone).map_err(|error| failure.note(error));
            let own: Box<dyn Policy> =
                Box::new(Hooks::new(copy.map_or_else(|()| Arc::clone(&written), Arc::new), failure.clone()));
            own
        };
        Brought::new(name, copied)
    }
}

/// Why a policy can no longer decide; shared with the caller.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<PyErr>>>);

impl Failure {
    /// The exception, if one was raised.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The caller no longer waits for the run: no further hook is called.
    pub(crate) fn leave(&self) {
        self.note(PyKeyboardInterrupt::new_err(()));
    }

    /// Records an exception; the first stays.
    fn note(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// An error once an exception was raised.
    fn check(&self) -> Result<(), PolicyError> {
        let raised = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        raised.as_ref().map_or(Ok(()), |raised| Err(PolicyError::Failed(raised.to_string())))
    }
}

/// Calls hooks of a policy's object, unless one has raised an exception before.
#[derive(Clone, Debug)]
struct Asker {
    written: Arc<Written>,
    failure: Failure,
}

impl Asker {
    /// The result of `question`; `None` if the object has no such hook.
    ///
    /// # Errors
    /// The exception that was raised, now or before.
    fn ask<R>(
        &self,
        hook: &str,
        question: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>,
    ) -> Result<Option<R>, PolicyError> {
        self.failure.check()?;
        if !self.written.hooks.iter().any(|name| name == hook) {
            return Ok(None);
        }
        // None if the interpreter is ending.
        let answer = Python::try_attach(|py| question(self.written.object.bind(py)));
        let gone = || PyValueError::new_err("the interpreter has ended");
        let answer = answer.unwrap_or_else(|| Err(gone())).map_err(|error| self.failure.note(error)).ok();
        self.failure.check().map(|()| answer)
    }

    /// The micro-batch that a hook returns, if it returns one.
    fn micro_batch<'py>(hook: &str, object: &Bound<'py, PyAny>, told: impl IntoPyObject<'py>) -> PyResult<Option<u64>> {
        let answer = object.call_method1(hook, (told,))?;
        answer.extract().map_err(|_| wrong(hook, "a micro-batch or None", &answer))
    }
}

/// Calls the object's hook when its budgets change.
#[derive(Debug)]
struct Budgets {
    asker: Asker,
    room: Option<Room>,
}

impl PlanAhead for Budgets {
    fn plan_within(
        &mut self,
        _graph: &TrainingGraph,
        room: Room,
        _oracle: &dyn Oracle,
    ) -> Result<Option<Planning>, PolicyError> {
        if self.room.replace(room) != Some(room) {
            self.asker.ask("budget_changed", |object| {
                let budgets = PyDict::new(object.py());
                budgets.set_item("memory_bytes", room.memory.map(|bytes| bytes.0))?;
                budgets.set_item("activation_bytes", room.activations.map(|bytes| bytes.0))?;
                object.call_method1("budget_changed", (budgets,)).map(drop)
            })?;
        }
        Ok(None)
    }
}

/// A policy whose decisions are made in Python.
pub(crate) struct Hooks {
    asker: Asker,
    /// The graph, and the node that makes each tensor; those of the first view.
    known: Option<Known>,
}

impl Hooks {
    pub(crate) fn new(written: Arc<Written>, failure: Failure) -> Self {
        Self { asker: Asker { written, failure }, known: None }
    }
}

type Known = (Arc<TrainingGraph>, Arc<Vec<NodeId>>);

/// A copy of the view.
fn see(known: &mut Option<Known>, view: &MemoryView<'_>) -> Memory {
    let (graph, producers) =
        known.get_or_insert_with(|| (Arc::new(view.graph.clone()), Arc::new(view.producers.to_vec())));
    Memory::of(view, graph, producers)
}

impl Policy for Hooks {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let hook = "prepare";
        let answer =
            self.asker.ask(hook, |object| Asker::micro_batch(hook, object, described(object.py(), setting)?))?;
        let planner = Budgets { asker: self.asker.clone(), room: None };
        let micro_batch = answer.flatten().unwrap_or(setting.batch);
        Ok(Schedule { planner: Some(Box::new(planner)), ..Schedule::plain(micro_batch) })
    }

    fn begin_iteration(&mut self, plan: &mut IterationPlan) -> Result<(), PolicyError> {
        let (hook, micro_batch) = ("begin_iteration", plan.micro_batch);
        let answer = self.asker.ask(hook, |object| Asker::micro_batch(hook, object, micro_batch))?;
        plan.micro_batch = answer.flatten().unwrap_or(micro_batch);
        Ok(())
    }

    fn hold(&mut self, tensor: TensorId, memory: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        let known = &mut self.known;
        let answer = self.asker.ask("hold", |object| {
            let seen = see(known, memory);
            holding(&object.call_method1("hold", (seen.of_id(tensor), seen))?)
        })?;
        Ok(answer.unwrap_or(Holding::Keep))
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        let known = &mut self.known;
        let answer = self.asker.ask("relieve", |object| {
            let answer = object.call_method1("relieve", (want.bytes().0, see(known, memory)))?;
            if answer.is_none() {
                return Ok(Vec::new());
            }
            answer.try_iter()?.map(|action| relief(&action?)).collect()
        })?;
        Ok(answer.unwrap_or_default())
    }

    fn end_iteration(&mut self, seen: &IterationSummary) -> Result<Operations, PolicyError> {
        let answer = self.asker.ask("end_iteration", |object| {
            let summary = PyDict::new(object.py());
            summary.set_item("time_s", seen.time.seconds())?;
            summary.set_item("micro_batches", &seen.micro_batches)?;
            object.call_method1("end_iteration", (summary,)).map(drop)
        });
        answer.map(|_| Operations::default())
    }
}

/// The facts that a policy has before the first iteration.
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

/// The error for an answer of the wrong type.
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
