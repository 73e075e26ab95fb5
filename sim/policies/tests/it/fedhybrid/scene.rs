//! A graph with times, a codec and flash, and memory at one of its nodes, from which tensors are given up.

use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::work::OperatorKind;
use haversack_policies::setting::{Compression, RestoreProfile, Swapping};
use haversack_policies::{Form, MemoryView, Setting, TensorSet, TensorState};
use haversack_workloads::{NodeId, Phase, Role, TensorId, TrainingGraph};
use proptest::prelude::*;

use crate::setting::setting;
use haversack_testing::GraphBuilder;

/// The compressed size of each tensor, and the speed of flash.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prices {
    pub(crate) codec: Vec<Option<Compression>>,
    /// Nanoseconds per byte, to flash and back.
    pub(crate) flash: Option<(u64, u64)>,
}

impl RestoreProfile for Prices {
    fn compression(&self, tensor: TensorId, _samples: u64) -> Option<Compression> {
        self.codec.get(tensor as usize).copied().flatten()
    }

    fn swapping(&self, bytes: Bytes) -> Option<Swapping> {
        let (out, back) = self.flash?;
        Some(Swapping { out: Nanos(bytes.0 * out), back: Nanos(bytes.0 * back) })
    }
}

/// A graph at a node.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) graph: TrainingGraph,
    pub(crate) times: Vec<Nanos>,
    pub(crate) prices: Prices,
    pub(crate) states: Vec<TensorState>,
    pub(crate) candidates: TensorSet,
    /// Every tensor: any may have changed between two calls.
    all: TensorSet,
    pub(crate) producers: Vec<NodeId>,
    pub(crate) at: NodeId,
}

impl std::fmt::Debug for Scene {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nodes: Vec<_> = self.graph.nodes.iter().map(|node| (&node.inputs, &node.outputs, node.work.kind)).collect();
        write!(f, "{nodes:?} {:?} {:?} {:?} at {}", self.times, self.prices, self.states, self.at)
    }
}

impl Scene {
    /// `forward` operators (inputs, nanoseconds, whether they transform a layout), of which number n makes tensor n + 1
    /// from tensor 0, the samples; then `backward` ones that read tensors, a nanosecond each. Tensor n has `bytes[n]`
    /// bytes a sample. The current node is the first of backward, with everything in memory.
    pub(crate) fn new(forward: &[(&[TensorId], u64, bool)], backward: &[&[TensorId]], bytes: &[u64]) -> Self {
        let mut builder = GraphBuilder::default();
        builder.tensor(Role::Input, bytes[0]);
        for (place, &(inputs, _, layout)) in forward.iter().enumerate() {
            let made = builder.tensor(Role::Activation, bytes[place + 1]);
            builder.node(Phase::Forward, inputs, &[made]);
            if layout {
                builder.graph.nodes[place].work.kind = OperatorKind::Layout;
            }
        }
        for inputs in backward {
            let gradient = builder.tensor(Role::Gradient, 1);
            builder.node(Phase::Backward, inputs, &[gradient]);
        }
        let mut times: Vec<Nanos> = forward.iter().map(|&(_, time, _)| Nanos(time)).collect();
        times.resize(builder.graph.nodes.len(), Nanos(1));
        let (at, count) = (forward.len() as NodeId, builder.graph.tensors.len());
        let mut producers = vec![NodeId::MAX; count];
        for (id, node) in (0..).zip(&builder.graph.nodes) {
            producers[node.outputs[0] as usize] = id;
        }
        let mut scene = Self {
            graph: builder.graph,
            times,
            prices: Prices::default(),
            states: vec![TensorState::default(); count],
            candidates: TensorSet::new(),
            all: (0..count as TensorId).collect(),
            producers,
            at,
        };
        scene.stand_at(at);
        scene
    }

    /// Sets the current node to `at`; all tensors made before it and still read are in memory, and may be given up.
    pub(crate) fn stand_at(&mut self, at: NodeId) {
        self.at = at;
        self.candidates.clear();
        for id in 0..self.states.len() {
            let tensor = id as TensorId;
            let uses = (0..).zip(&self.graph.nodes).filter(|(_, node)| node.uses().any(|used| used == tensor));
            let next = uses.map(|(node, _)| node).find(|&node: &NodeId| node >= at).unwrap_or(NodeId::MAX);
            let made = self.producers[id] == NodeId::MAX || self.producers[id] < at;
            let bytes = Bytes(self.graph.tensors[id].bytes.at(1));
            // Samples stay; tensors without further readers are released.
            let resident = made && (next != NodeId::MAX || self.producers[id] == NodeId::MAX);
            let form = if resident { Form::Whole } else { Form::Absent };
            self.states[id] = TensorState { form, bytes, next_use: next, ..TensorState::default() };
            if made && self.graph.tensors[id].role == Role::Activation && next != NodeId::MAX && next > at {
                self.candidates.insert(tensor);
            }
        }
    }

    /// The tensor is not in memory: dropped if it is still read, else released.
    pub(crate) fn lose(&mut self, tensor: TensorId) {
        let state = &mut self.states[tensor as usize];
        state.form = if state.next_use == NodeId::MAX { Form::Absent } else { Form::Dropped };
        self.candidates.remove(tensor);
    }

    pub(crate) fn setting(&self) -> Setting<'_> {
        Setting { restore: Some(&self.prices), ..setting(&self.graph, 1, &self.times) }
    }

    pub(crate) fn view(&self) -> MemoryView<'_> {
        MemoryView {
            tensors: &self.states,
            candidates: &self.candidates,
            changed: &self.all,
            producers: &self.producers,
            at: self.at,
            budget: Bytes(1_000),
            phase: Phase::Backward,
            ..MemoryView::empty(&self.graph)
        }
    }

    pub(crate) fn bytes(&self, tensor: TensorId) -> u64 {
        self.states[tensor as usize].bytes.0
    }

    /// Nanoseconds from one node to another, or to the end.
    pub(crate) fn between(&self, from: NodeId, to: NodeId) -> u64 {
        let to = (to as usize).min(self.times.len());
        self.times.get(from as usize..to).map_or(0, |times| times.iter().map(|time| time.0).sum())
    }
}

prop_compose! {
    /// One operator: its earlier input tensors, its time, its kind, the bytes of its output, their compressed size and
    /// the codec's times.
    fn operator()(
        reads in prop::collection::vec(any::<prop::sample::Index>(), 1..=2),
        time in 1..30_u64,
        layout in prop::bool::weighted(0.3),
        bytes in 1..40_u64,
        codec in prop::option::of((0..50_u64, 0..30_u64, 0..30_u64)),
    ) -> (Vec<prop::sample::Index>, u64, bool, u64, Option<(u64, u64, u64)>) {
        (reads, time, layout, bytes, codec)
    }
}

prop_compose! {
    /// A drawn graph at some node, with some tensors gone.
    pub(crate) fn scenes()(
        operators in prop::collection::vec(operator(), 2..10),
        backward in prop::collection::vec(operator(), 1..8),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        flash in prop::option::of((0..4_u64, 0..4_u64)),
        at in any::<prop::sample::Index>(),
    ) -> Scene {
        let pick = |from: &[prop::sample::Index], among: usize| -> Vec<TensorId> {
            let mut read: Vec<TensorId> = from.iter().map(|index| index.index(among) as TensorId).collect();
            read.sort_unstable();
            read.dedup();
            read
        };
        let reads: Vec<Vec<TensorId>> = (1..).zip(&operators).map(|(made, of)| pick(&of.0, made)).collect();
        let forward: Vec<_> = reads.iter().zip(&operators).map(|(reads, of)| (&reads[..], of.1, of.2)).collect();
        let grads: Vec<Vec<TensorId>> = backward.iter().map(|of| pick(&of.0, operators.len() + 1)).collect();
        let grads: Vec<&[TensorId]> = grads.iter().map(|reads| &reads[..]).collect();
        let bytes: Vec<u64> = std::iter::once(1).chain(operators.iter().map(|of| of.3)).collect();
        let mut scene = Scene::new(&forward, &grads, &bytes);
        let codec = |&(bytes, compress, decompress): &(u64, u64, u64)| Compression {
            bytes: Bytes(bytes),
            compress: Nanos(compress),
            decompress: Nanos(decompress),
        };
        scene.prices.codec = std::iter::once(None).chain(operators.iter().map(|of| of.4.as_ref().map(codec))).collect();
        scene.prices.flash = flash;
        for (node, of) in (operators.len()..).zip(&backward) {
            scene.times[node] = Nanos(of.1);
            if of.2 {
                scene.graph.nodes[node].work.kind = OperatorKind::Layout;
            }
        }
        scene.stand_at(at.index(scene.graph.nodes.len()) as NodeId);
        for index in lost {
            let chosen = scene.candidates.iter().nth(index.index(scene.candidates.iter().len().max(1)));
            if let Some(tensor) = chosen {
                scene.lose(tensor);
            }
        }
        scene
    }
}
