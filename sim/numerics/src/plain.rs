//! A plain loop over a graph: every tensor is kept in the form in which it was made, without policies and devices.
//!
//! It evaluates networks, and is the reference with which a run under the policy that keeps everything
//! has to agree to the bit.

use haversack_workloads::{Node, NodeId, Phase, Role, TensorId, TrainingGraph};

use crate::program::Result;
use crate::{
    Bytes, Contents, Eight, Loss, Memory, Meter, MiniBatch, Pass, Program, ProgramError, Seen, SeenIntegers, Signs,
    State, Statistics,
};

/// Tensors that are all kept in the form in which they were made.
struct Whole<'g> {
    graph: &'g TrainingGraph,
    contents: Vec<Option<Contents>>,
    /// For some tensors, bits that mark the elements that let a gradient through.
    signs: Vec<(TensorId, Bytes)>,
    meter: Meter,
}

impl Whole<'_> {
    fn missing(&self, tensor: TensorId) -> ProgramError {
        ProgramError::Missing(self.graph.tensor(tensor).name.clone())
    }
}

impl Memory for Whole<'_> {
    fn floats(&self, tensor: TensorId) -> Result<Seen<'_>> {
        match &self.contents[tensor as usize] {
            Some(Contents::Floats(values)) => Ok(Seen::Held(values)),
            held => {
                let values = held.as_ref().and_then(|held| held.decoded(&self.meter));
                values.map(Seen::Copy).ok_or_else(|| self.missing(tensor))
            }
        }
    }

    fn integers(&self, tensor: TensorId) -> Result<SeenIntegers<'_>> {
        match &self.contents[tensor as usize] {
            Some(Contents::Integers(values)) => Ok(SeenIntegers::Held(values)),
            _ => Err(self.missing(tensor)),
        }
    }

    fn signs(&self, tensor: TensorId) -> Result<Signs<'_>> {
        match self.signs.iter().find(|(kept, _)| *kept == tensor) {
            Some((_, bits)) => Ok(Signs::Bits(bits.clone())),
            None => self.floats(tensor).map(Signs::Values),
        }
    }

    fn keep_signs(&mut self, tensor: TensorId, bits: Bytes) {
        self.signs.push((tensor, bits));
    }

    fn eight(&self, tensor: TensorId) -> Option<&Eight> {
        let Some(Contents::Eight(held)) = &self.contents[tensor as usize] else { return None };
        Some(held)
    }

    fn take(&mut self, tensor: TensorId) -> Option<Contents> {
        self.contents[tensor as usize].take()
    }

    fn put(&mut self, tensor: TensorId, contents: Contents) {
        self.contents[tensor as usize] = Some(contents);
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }
}

/// One mini-batch, and the graph that a plain loop takes it through.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'p> {
    /// The arithmetic of the graph's nodes.
    pub program: &'p Program,
    /// The graph.
    pub graph: &'p TrainingGraph,
    /// The mini-batch.
    pub batch: &'p MiniBatch,
    /// Which of its samples are computed, and the parameters of training.
    pub pass: &'p Pass,
    /// Counts the bytes of tensors.
    pub meter: &'p Meter,
}

/// Which nodes run, and the function that is called before each.
struct Watch<'w> {
    runs: fn(Phase) -> bool,
    before: &'w mut dyn FnMut(&Node, &mut dyn Memory) -> Result,
}

impl Plain<'_> {
    /// Forward, backward and update.
    ///
    /// # Errors
    /// A graph that is not the program's, or samples that do not suit it.
    pub fn train(&self, state: &mut State) -> Result<Loss> {
        self.train_watched(state, |_, _| Ok(()))
    }

    /// As [`train`](Self::train); `before` is called with each node that is about to be computed, and may change
    /// the contents of tensors.
    ///
    /// # Errors
    /// As [`train`](Self::train), and errors of `before`.
    pub fn train_watched(
        &self,
        state: &mut State,
        mut before: impl FnMut(&Node, &mut dyn Memory) -> Result,
    ) -> Result<Loss> {
        self.walk(state, Watch { runs: |_| true, before: &mut before })
    }

    /// Forward only, with the running averages of normalisations.
    ///
    /// # Errors
    /// As [`train`](Self::train).
    pub fn evaluate(&self, state: &mut State) -> Result<Loss> {
        let pass = Pass { statistics: Statistics::Running, ..*self.pass };
        let watch = Watch { runs: |phase| phase == Phase::Forward, before: &mut |_, _| Ok(()) };
        Plain { pass: &pass, ..*self }.walk(state, watch)
    }

    fn walk(&self, state: &mut State, watch: Watch<'_>) -> Result<Loss> {
        let graph = self.graph;
        let mut contents: Vec<Option<Contents>> = graph.tensors.iter().map(|_| None).collect();
        for (tensor, held) in state.tensors_mut().drain(..) {
            contents[tensor as usize] = Some(held);
        }
        let mut memory = Whole { graph, contents, signs: Vec::new(), meter: self.meter.clone() };
        let walked = self.walk_nodes(&mut memory, watch);
        let states = (0..).zip(memory.contents).filter(|(id, _)| graph.tensor(*id).role.is_state());
        *state.tensors_mut() = states.filter_map(|(id, held)| held.map(|held| (id, held))).collect();
        walked
    }

    fn walk_nodes(&self, memory: &mut Whole<'_>, Watch { runs, before }: Watch<'_>) -> Result<Loss> {
        let Self { program, graph, batch, pass, meter } = *self;
        let range = pass.first..pass.first + pass.samples;
        let last = last_uses(graph, runs);
        for (id, tensor) in (0..).zip(&graph.tensors) {
            match tensor.role {
                Role::Input => memory.put(id, batch.samples_of(range.clone(), meter)),
                Role::Target => memory.put(id, batch.labels_of(range.clone(), meter)),
                _ => {}
            }
        }
        let mut loss = Loss::default();
        for (id, node) in (0..).zip(&graph.nodes).filter(|(_, node)| runs(node.phase)) {
            before(node, memory)?;
            for &output in &node.outputs {
                if memory.contents[output as usize].is_none() {
                    let blank = match graph.tensor(output).role {
                        Role::ParameterGradient if !program.is_in_eight_bits(output) => {
                            Contents::Floats(meter.zeros(program.elements(output, pass.samples as u64)))
                        }
                        _ => program.blank(output, pass.samples as u64, meter),
                    };
                    memory.put(output, blank);
                }
            }
            if let Some(found) = program.run(node, memory, pass, false)? {
                loss = found;
            }
            for tensor in node.uses().filter(|&tensor| last[tensor as usize] == Some(id)) {
                if !graph.tensor(tensor).role.is_state() {
                    memory.contents[tensor as usize] = None;
                }
            }
        }
        Ok(loss)
    }
}

/// The last node that runs and uses each tensor.
fn last_uses(graph: &TrainingGraph, runs: fn(Phase) -> bool) -> Vec<Option<NodeId>> {
    let mut last = vec![None; graph.tensors.len()];
    for (id, node) in (0..).zip(&graph.nodes).filter(|(_, node)| runs(node.phase)) {
        node.uses().for_each(|tensor| last[tensor as usize] = Some(id));
    }
    last
}
