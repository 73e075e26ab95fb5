//! The inputs of a plan other than the budget: a graph, and a device's times for it.

use haversack_devices::calibration::Digest;
use haversack_devices::units::Bytes;
use haversack_workloads::{TensorId, TrainingGraph};

use super::choice::Chooser;
use super::parameters::Parameters;
use super::plan::{Plan, Step};
use crate::planning::{Operations, Room};
use crate::policy::setting::Setting;
use crate::restore::Technique;
use crate::{Oracle, PolicyError, Recorder, Relief, plan};

/// Bytes of a number in the profile, as a client sends it.
const NUMBER: u64 = 4;

/// A device's times for a graph: of every operator, and of compressing and swapping every tensor.
#[derive(Clone, Debug)]
#[must_use]
pub struct Profile {
    pub(super) chooser: Chooser,
    graph: Digest,
    digest: Digest,
    /// Operators of the graph.
    operators: u64,
}

impl Profile {
    /// Profile of `setting`, for plans within the techniques allowed by `parameters`.
    pub fn new(setting: &Setting<'_>, parameters: Parameters) -> Self {
        let chooser = Chooser::new(parameters, setting);
        let graph = digest_of(setting.graph, setting.batch);
        let allowed = parameters.allowed().map(|technique| technique as u64);
        let switches = [parameters.layout, parameters.crossing].map(u64::from);
        let beside = setting.beside;
        let own = allowed.chain(switches).chain([beside.0]).chain(chooser.costs.numbers());
        let (digest, operators) = (Digest::of(own), setting.graph.nodes.len() as u64);
        Self { graph, digest, operators, chooser }
    }

    /// A plan for `graph`, of which this is the profile, within `room`: the chooser's decisions in a run of `oracle`
    /// whenever memory is short.
    ///
    /// # Errors
    /// A room that no choice of tensors fits.
    pub fn plan(&self, graph: &TrainingGraph, room: Room, oracle: &dyn Oracle) -> Result<Plan, PolicyError> {
        let mut chooser = self.chooser.clone();
        let mut recorder = Recorder::new(&mut chooser);
        let tried = oracle.run(&mut recorder, room, 1)?;
        let recorded = recorder.into_plan()?;
        let steps = recorded.iterations.iter().flat_map(|iteration| &iteration.steps).flat_map(steps).collect();
        let chosen = chooser.operations();
        let ran = graph.nodes.len() as u64 + tried.recomputed;
        let operations = Operations { operators: chosen.operators + ran, ..chosen };
        Ok(Plan::new(self.graph, self.digest, room, operations, steps))
    }

    /// Whether any tensor can be given up by this technique.
    pub(super) fn offers(&self, technique: Technique) -> bool {
        self.chooser.costs.offers(technique)
    }

    /// Bytes that a client sends of it: a time for every operator, the rates of its codec both ways, and the budget.
    pub fn bytes(&self) -> Bytes {
        Bytes(NUMBER * (self.operators + 2) + size_of::<u64>() as u64)
    }
}

/// The tensors that give way in a step of a recorded run.
fn steps(step: &plan::Step) -> Vec<Step> {
    let plan::Action::Relieve(reliefs) = &step.action else { return Vec::new() };
    let of = |relief: &Relief| {
        let (tensor, technique) = match *relief {
            Relief::Rematerialise(tensor) => (tensor, Technique::Recompute),
            Relief::Compress(tensor) => (tensor, Technique::Compress),
            Relief::Swap(tensor) => (tensor, Technique::Swap),
            _ => return None,
        };
        Some(Step { before: step.before, tensor, technique })
    };
    reliefs.iter().filter_map(of).collect()
}

/// Digest of everything in a graph that a plan depends on: readers, writers and sizes of tensors.
fn digest_of(graph: &TrainingGraph, batch: u64) -> Digest {
    let list = |tensors: &[TensorId]| -> Vec<u64> {
        let ids = tensors.iter().map(|&tensor| u64::from(tensor));
        std::iter::once(tensors.len() as u64).chain(ids).collect()
    };
    let nodes = graph.nodes.iter().flat_map(|node| {
        let lists = [&node.inputs, &node.outputs, &node.releases].map(|tensors| list(tensors));
        [node.phase as u64, node.work.kind as u64].into_iter().chain(lists.into_iter().flatten())
    });
    let tensors = graph.tensors.iter().flat_map(|tensor| [tensor.bytes.at(batch), u64::from(tensor.role.is_state())]);
    Digest::of(std::iter::once(batch).chain(nodes).chain(tensors))
}
