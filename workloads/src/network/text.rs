//! Products, normalisation over features, embeddings and the loss.

use super::{FP32, Initial, Network, OperatorNode, ParameterId, ValueId};
use crate::error::Result;
use crate::{Dim, EPSILON, Extent, Op, Shape};

impl Network {
    /// `x Wᵀ + b` into `features`, with new trained weights.
    ///
    /// # Errors
    /// A scalar.
    pub fn linear(&mut self, module: &str, x: ValueId, features: u64, bias: bool) -> Result<ValueId> {
        let width = self.shape(x).last();
        let initial = Initial::of_layer(width);
        let weight = self.weight(&format!("{module}.weight"), &[features, width], initial, true);
        let bias = bias.then(|| self.weight(&format!("{module}.bias"), &[features], initial, true));
        self.linear_with(module, x, features, weight, bias)
    }

    /// `x Wᵀ + b` with given weights, frozen or shared ones included.
    ///
    /// Saves its input only where the weight is trained.
    ///
    /// # Errors
    /// A scalar, or a weight whose elements do not match.
    pub(crate) fn linear_with(
        &mut self,
        module: &str,
        x: ValueId,
        features: u64,
        weight: ParameterId,
        bias: Option<ParameterId>,
    ) -> Result<ValueId> {
        let width = self.shape(x).last();
        if self.shape(x).rank() == 0 || self.parameter(weight).elements != width * features {
            let expected =
                format!("a tensor whose last dimension is {}", self.parameter(weight).elements / features.max(1));
            return Err(self.shape_error(module, &Op::Linear, &[x], &expected));
        }
        let shape = self.shape(x).with_last(features);
        let flops = shape.elements() * (2 * width);
        let saved = self.trains(weight).then(|| self.storage_of(x));
        let parameters: Vec<_> = std::iter::once(weight).chain(bias).collect();
        let node = OperatorNode::new(Op::Linear, &[x]).parameters(&parameters).saves(saved).flops(flops);
        Ok(self.add_node(module, node, shape))
    }

    /// Batched product of `…×M×K` and `…×K×N`; operands that are not contiguous are copied first, as
    /// `torch.matmul` does.
    ///
    /// Saves each operand that the other's gradient needs.
    ///
    /// # Errors
    /// Operands whose inner dimensions differ.
    pub fn matmul(&mut self, module: &str, a: ValueId, b: ValueId) -> Result<ValueId> {
        let [a, b] = [a, b].map(|operand| self.contiguous(module, operand));
        self.matmul_in_place(module, a, b)
    }

    /// The same, with operands that are read in place.
    ///
    /// # Errors
    /// As [`Self::matmul`].
    pub(crate) fn matmul_in_place(&mut self, module: &str, a: ValueId, b: ValueId) -> Result<ValueId> {
        let (rank_a, rank_b) = (self.shape(a).rank(), self.shape(b).rank());
        if rank_a < 2 || rank_b != rank_a || self.shape(a).last() != self.shape(b).size(rank_b - 2) {
            return Err(self.shape_error(module, &Op::Matmul, &[a, b], "…×M×K and …×K×N with one K"));
        }
        let (inner, columns) = (self.shape(a).last(), self.shape(b).last());
        let shape = self.shape(a).with_last(columns);
        let flops = shape.elements() * (2 * inner);
        let saved_a = self.needs_grad(b).then(|| self.storage_of(a));
        let saved_b = self.needs_grad(a).then(|| self.storage_of(b));
        let node = OperatorNode::new(Op::Matmul, &[a, b]).saves(saved_b).saves(saved_a).flops(flops);
        Ok(self.add_node(module, node, shape))
    }

    /// Layer normalisation over the last dimension with new weights; saves its input, mean and inverse deviation.
    pub fn layer_norm(&mut self, module: &str, x: ValueId, trainable: bool) -> ValueId {
        let width = self.shape(x).last();
        let parameters = self.norm_weights(module, width, trainable);
        self.normalise(module, x, parameters, EPSILON)
    }

    /// Layer normalisation with given weights, weight then bias, shared ones included, and an epsilon.
    ///
    /// # Errors
    /// Weights whose elements do not match the last dimension.
    pub(crate) fn layer_norm_with(
        &mut self,
        module: &str,
        x: ValueId,
        parameters: [ParameterId; 2],
        epsilon: f32,
    ) -> Result<ValueId> {
        let width = self.parameter(parameters[0]).elements;
        if self.shape(x).last() != width {
            let op = Op::LayerNorm { epsilon };
            return Err(self.shape_error(module, &op, &[x], &format!("a last dimension of {width}")));
        }
        Ok(self.normalise(module, x, parameters, epsilon))
    }

    fn normalise(&mut self, module: &str, x: ValueId, parameters: [ParameterId; 2], epsilon: f32) -> ValueId {
        let shape = self.shape(x).clone();
        let rows = shape.with_last(1).elements() * FP32;
        let statistics = ["mean", "inverse_deviation"].map(|s| self.side_storage(&format!("{module}.{s}"), rows));
        let node = OperatorNode::new(Op::LayerNorm { epsilon }, &[x])
            .parameters(&parameters)
            .saves([self.storage_of(x)])
            .saves(statistics);
        self.add_node(module, node, shape)
    }

    /// Softmax over the last dimension; saves its output.
    pub fn softmax(&mut self, module: &str, x: ValueId) -> ValueId {
        let shape = self.shape(x).clone();
        let storage = self.new_storage(module, shape.elements() * FP32, crate::Role::Activation);
        self.add_node_over(module, OperatorNode::new(Op::Softmax, &[x]).saves([storage]), shape, storage, true)
    }

    /// Rows of a `rows`×`width` table by id; saves the ids where the table is trained.
    pub fn embedding(&mut self, module: &str, ids: ValueId, width: u64, table: ParameterId) -> ValueId {
        let mut shape = self.shape(ids).clone();
        shape.0.push(Dim::fixed(width));
        let saved = self.trains(table).then(|| self.storage_of(ids));
        let node = OperatorNode::new(Op::Embedding, &[ids]).parameters(&[table]).saves(saved);
        self.add_node(module, node, shape)
    }

    /// Entries of a small trained table by the ids of a buffer (Swin's relative positions), as `shape`.
    pub fn index_table(&mut self, module: &str, ids: ValueId, table: ParameterId, shape: Shape) -> ValueId {
        let saved = self.trains(table).then(|| self.storage_of(ids));
        let node = OperatorNode::new(Op::IndexTable, &[ids]).parameters(&[table]).saves(saved);
        self.add_node(module, node, shape)
    }

    /// Cross-entropy of `rows×classes` scores with one label a row, averaged; the network's loss.
    ///
    /// Saves the log-probabilities once (log-softmax and the likelihood share them), the labels and
    /// a total weight of four bytes.
    ///
    /// # Errors
    /// Scores that are not two-dimensional.
    pub fn cross_entropy(&mut self, module: &str, scores: ValueId, target: ValueId) -> Result<ValueId> {
        self.expect_rank(module, &Op::CrossEntropy, scores, 2, "rows×classes scores")?;
        let log_probabilities =
            self.side_storage(&format!("{module}.log_softmax"), self.shape(scores).elements() * FP32);
        let total_weight = self.side_storage(&format!("{module}.total_weight"), Extent::fixed(FP32));
        let node = OperatorNode::new(Op::CrossEntropy, &[scores, target]).saves([
            log_probabilities,
            self.storage_of(target),
            total_weight,
        ]);
        let loss = self.add_node(module, node, Shape::default());
        self.loss = Some(loss);
        Ok(loss)
    }
}
