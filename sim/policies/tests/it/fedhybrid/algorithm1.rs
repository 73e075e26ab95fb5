//! Algorithm 1 against an exhaustive search.

use std::collections::{HashMap, HashSet};

use haversack_devices::work::OperatorKind;
use haversack_policies::Relief;
use haversack_policies::fedhybrid::Parameters;
use haversack_policies::restore::Technique;
use haversack_workloads::{NodeId, TensorId};
use proptest::prelude::*;

use super::hybrid::relieve;
use super::scene::{Scene, scenes};

/// Algorithm 1 without any memory between victims: every tensor by every technique, for every victim.
struct Search<'a> {
    scene: &'a Scene,
    psi: Option<u64>,
    given: HashMap<TensorId, Technique>,
}

impl Search<'_> {
    fn layout(&self, node: NodeId) -> bool {
        self.scene.graph.nodes[node as usize].work.kind == OperatorKind::Layout
    }

    /// Nodes and fetched tensors that `tensor` needs, directly from the definition.
    fn needs(&self, tensor: TensorId, wanted: NodeId, nodes: &mut HashSet<NodeId>, fetched: &mut HashSet<TensorId>) {
        let writer = self.scene.producers[tensor as usize];
        if !nodes.insert(writer) {
            return;
        }
        for &input in &self.scene.graph.nodes[writer as usize].inputs {
            let later = || self.scene.graph.nodes[wanted as usize..].iter().any(|node| node.uses().any(|u| u == input));
            match self.given.get(&input) {
                _ if input == 0 => {}
                _ if !later() => self.needs(input, wanted, nodes, fetched),
                Some(Technique::Recompute) => self.needs(input, wanted, nodes, fetched),
                Some(_) => drop(fetched.insert(input)),
                None if !self.scene.states[input as usize].form.is_whole() => self.needs(input, wanted, nodes, fetched),
                None => {}
            }
        }
    }

    fn recompute(&self, tensor: TensorId) -> u64 {
        let (mut nodes, mut fetched) = (HashSet::new(), HashSet::new());
        self.needs(tensor, self.scene.states[tensor as usize].next_use, &mut nodes, &mut fetched);
        let weight = |&node: &NodeId| match self.psi {
            Some(psi) if self.layout(node) => psi,
            None if self.layout(node) => 0,
            _ => 1,
        };
        let computed: u64 = nodes.iter().map(|node| weight(node) * self.scene.times[*node as usize].0).sum();
        let back = |tensor: &TensorId| match self.given[tensor] {
            Technique::Compress => self.scene.prices.codec[*tensor as usize].unwrap().decompress.0,
            _ => self.scene.prices.flash.unwrap().1 * self.scene.bytes(*tensor),
        };
        computed + fetched.iter().map(back).sum::<u64>() + self.way(self.scene.states[tensor as usize].next_use)
    }

    fn way(&self, reader: NodeId) -> u64 {
        let Some(psi) = self.psi.filter(|_| reader != NodeId::MAX && self.layout(reader)) else { return 0 };
        let made = self.scene.graph.nodes[reader as usize].outputs[0];
        let taker = (0..).zip(&self.scene.graph.nodes).find(|(id, node)| *id > reader && node.inputs.contains(&made));
        psi * self.scene.times[reader as usize].0 + taker.map_or(0, |(id, _)| self.way(id))
    }

    /// (saved, cost) by each technique that is possible.
    fn options(&self, tensor: TensorId, parameters: Parameters) -> Vec<(Technique, u64, u64)> {
        let bytes = self.scene.bytes(tensor);
        let mut options = Vec::new();
        let codec = self.scene.prices.codec[tensor as usize].filter(|codec| codec.bytes.0 < bytes);
        if let Some(codec) = codec.filter(|_| parameters.compression) {
            options.push((Technique::Compress, bytes - codec.bytes.0, codec.compress.0 + codec.decompress.0));
        }
        if parameters.recomputation {
            options.push((Technique::Recompute, bytes, self.recompute(tensor)));
        }
        if let Some((out, back)) = self.scene.prices.flash.filter(|_| parameters.swapping) {
            options.push((Technique::Swap, bytes, bytes * (out + back)));
        }
        options
    }

    fn run(&mut self, parameters: Parameters, shortfall: u64) -> Vec<Relief> {
        let mut left: Vec<TensorId> = self.scene.candidates.iter().collect();
        left.sort_unstable();
        let (mut reliefs, mut freed) = (Vec::new(), 0);
        while freed < shortfall {
            let mut best: Option<(TensorId, Technique, u64, f64)> = None;
            for &tensor in &left {
                let lifetime = self.scene.between(self.scene.at, self.scene.states[tensor as usize].next_use);
                for (technique, saved, cost) in self.options(tensor, parameters) {
                    let mps = if saved * lifetime == 0 { 0.0 } else { (saved * lifetime) as f64 / cost as f64 };
                    if best.is_none_or(|(.., before)| mps > before) {
                        best = Some((tensor, technique, saved, mps));
                    }
                }
            }
            let Some((tensor, technique, saved, _)) = best else { break };
            left.retain(|&other| other != tensor);
            self.given.insert(tensor, technique);
            freed += saved;
            reliefs.push(technique.relief(tensor));
        }
        reliefs
    }
}

proptest! {
    #![proptest_config(super::cases(400))]

    #[test]
    fn the_choice_is_that_of_a_search_through_everything(
        scene in scenes(),
        shortfall in 0..200_u64,
        compression: bool,
        swapping: bool,
        layout: bool,
        crossing: bool,
    ) {
        let parameters = Parameters { compression, swapping, layout, crossing, ..Parameters::default() };
        let psi = layout.then_some(if crossing { 2 } else { 1 });
        let expected = Search { scene: &scene, psi, given: HashMap::new() }.run(parameters, shortfall);
        prop_assert_eq!(relieve(parameters, &scene, shortfall), expected);
    }
}
