//! Randomly drawn graphs, and a policy that draws its actions.

use haversack_policies::{Holding, IterationPlan, MemoryView, Policy, PolicyError, Relief, Want};
use haversack_testing::Draws;
use haversack_workloads::training_graph::Node;
use haversack_workloads::{Phase, Role, TensorId, TrainingGraph};

use super::{BATCH, for_its_shape, graph, node, tensor};

/// A network of some operators with branches, whose backward reads randomly chosen tensors of forward, sometimes only
/// their shape; some gradients are of weights.
pub(crate) fn network(draws: &mut Draws) -> TrainingGraph {
    let mut tensors = vec![tensor("input", 80_000, Role::Input)];
    let mut nodes: Vec<Node> = Vec::new();
    let count = 3 + draws.below(8);
    let add = |tensors: &mut Vec<_>, name: String, bytes: usize, role| {
        tensors.push(tensor(&name, BATCH * bytes as u64, role));
        tensors.len() as TensorId - 1
    };
    for at in 0..count {
        let made = add(&mut tensors, format!("a{at}"), 1_000 + draws.below(100_000), Role::Activation);
        let earlier = draws.below(at + 1) as TensorId;
        let mut inputs = vec![at as TensorId, earlier];
        inputs.dedup();
        nodes.push(node(&format!("forward {at}"), Phase::Forward, &inputs, &[made], draws.below(400) as u64));
    }
    let mut gradient = None;
    for at in (0..count).rev() {
        let mut inputs: Vec<TensorId> = gradient.into_iter().collect();
        inputs.extend((0..=draws.below(3)).map(|_| 1 + draws.below(count) as TensorId));
        inputs.sort_unstable();
        inputs.dedup();
        let made = add(&mut tensors, format!("g{at}"), 1_000 + draws.below(100_000), Role::Gradient);
        let mut outputs = vec![made];
        if draws.below(3) == 0 {
            let weight = add(&mut tensors, format!("w{at}"), 5_000, Role::Parameter { trainable: true });
            outputs.push(add(&mut tensors, format!("d{at}"), 5_000, Role::ParameterGradient));
            inputs.push(weight);
        }
        let mut backward = node(&format!("backward {at}"), Phase::Backward, &inputs, &outputs, draws.below(400) as u64);
        for &input in inputs.iter().filter(|&&input| (1..=count as TensorId).contains(&input)) {
            if draws.below(3) == 0 {
                backward = for_its_shape(backward, input);
            }
        }
        nodes.push(backward);
        gradient = Some(made);
    }
    let updated: Vec<_> = (0..tensors.len()).filter(|&at| tensors[at].role == Role::ParameterGradient).collect();
    for gradient in updated {
        let gradient = gradient as TensorId;
        nodes.push(node("update", Phase::Update, &[gradient - 1, gradient], &[gradient - 1], 10));
    }
    graph(tensors, nodes)
}

/// Draws how to store tensors and which give way, the same in every iteration.
pub(crate) struct Drawn {
    seed: u64,
    draws: Draws,
    /// The tensors it has sent to flash; they stay on flash.
    sent: Vec<TensorId>,
    /// The techniques it uses, and how often each was requested.
    pub(crate) asked: [u64; 4],
}

impl Drawn {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, draws: Draws(seed), sent: Vec::new(), asked: [0; 4] }
    }

    fn technique(&mut self) -> usize {
        let technique = self.draws.below(4);
        self.asked[technique] += 1;
        technique
    }
}

impl Policy for Drawn {
    fn begin_iteration(&mut self, _: &mut IterationPlan) -> Result<(), PolicyError> {
        self.draws = Draws(self.seed);
        self.sent.clear();
        Ok(())
    }

    fn hold(&mut self, tensor: TensorId, _: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        if self.sent.contains(&tensor) {
            return Ok(Holding::Keep);
        }
        Ok([Holding::Keep, Holding::Rematerialise, Holding::Compress, Holding::Swap][self.technique()])
    }

    fn relieve(&mut self, _: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        // The order of candidates is the executor's own.
        let mut candidates: Vec<TensorId> = memory.candidates.iter().collect();
        candidates.sort_unstable();
        if candidates.is_empty() {
            let fewer = memory.micro_batch / 2;
            return Ok(if fewer > 0 { vec![Relief::ShrinkMicroBatch(fewer)] } else { Vec::new() });
        }
        let several = 1 + self.draws.below(3);
        Ok((0..several.min(candidates.len()))
            .map(|_| {
                let tensor = candidates.swap_remove(self.draws.below(candidates.len()));
                match self.technique() {
                    0 | 1 => Relief::Rematerialise(tensor),
                    2 => Relief::Compress(tensor),
                    _ => {
                        self.sent.push(tensor);
                        Relief::Swap(tensor)
                    }
                }
            })
            .collect())
    }
}
