//! Giving up weight gradients: the rest of an iteration that does not train all its weights.

use crate::{Phase, Role, TensorId, TrainingGraph};

impl TrainingGraph {
    /// The iteration without the parameter gradients that `given_up` names, and without everything that only they
    /// needed: their updates, and the backward nodes whose results have no reader left (backward ends at the earliest
    /// weight that is still trained). Tensors keep their ids; those that only removed nodes read are no longer saved.
    pub fn without_gradients(&self, given_up: impl Fn(TensorId) -> bool) -> Self {
        let mut kept = self.kept_without(given_up).into_iter();
        let mut graph = self.clone();
        graph.nodes.retain(|_| kept.next().unwrap_or(true));
        graph
    }

    /// The nodes that [`Self::without_gradients`] keeps.
    pub fn kept_without(&self, given_up: impl Fn(TensorId) -> bool) -> Vec<bool> {
        let lost = |id: TensorId| self.tensor(id).role == Role::ParameterGradient && given_up(id);
        let mut wanted = vec![false; self.tensors.len()];
        let mut kept = vec![false; self.nodes.len()];
        for (position, node) in self.nodes.iter().enumerate().rev() {
            kept[position] = match node.phase {
                Phase::Forward => true,
                Phase::Backward => node.outputs.iter().any(|&output| wanted[output as usize]),
                Phase::Update => !node.inputs.iter().any(|&input| lost(input)),
            };
            if kept[position] && node.phase != Phase::Forward {
                for &input in &node.inputs {
                    wanted[input as usize] = true;
                }
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use crate::autograd::{EagerRules, differentiate};
    use crate::models;
    use crate::training_graph::{Phase, Role, TensorId, TrainingGraph};

    fn lenet() -> TrainingGraph {
        differentiate(&models::build("lenet5", None).unwrap(), EagerRules::default()).unwrap()
    }

    fn parameter_gradients(graph: &TrainingGraph) -> Vec<TensorId> {
        let ids = (0..).zip(&graph.tensors);
        ids.filter(|(_, tensor)| tensor.role == Role::ParameterGradient).map(|(id, _)| id).collect()
    }

    fn count(graph: &TrainingGraph, phase: Phase) -> usize {
        graph.nodes.iter().filter(|node| node.phase == phase).count()
    }

    #[test]
    fn giving_up_nothing_changes_nothing() {
        let graph = lenet();
        assert_eq!(graph.without_gradients(|_| false).nodes.len(), graph.nodes.len());
    }

    #[test]
    fn giving_up_everything_leaves_forward_alone() {
        let graph = lenet();
        let pruned = graph.without_gradients(|_| true);
        assert_eq!(pruned.nodes.len(), count(&graph, Phase::Forward));
        assert!(pruned.saved().is_empty());
    }

    #[test]
    fn backward_ends_at_the_earliest_weight_still_trained() {
        let graph = lenet();
        // The classifier's weight and bias get their gradients first, hence have the lowest ids.
        let gradients = parameter_gradients(&graph);
        let last_layer = &gradients[..2];
        let pruned = graph.without_gradients(|id| !last_layer.contains(&id));
        // The seed, the two nodes of the loss, and the classifier's own weight gradient: no input gradient at all.
        assert_eq!(count(&pruned, Phase::Backward), 4);
        assert_eq!(count(&pruned, Phase::Update), 2);
    }
}
