//! What MNN composes of several expressions: normalisation, GELU, dropout and the loss.

use haversack_devices::work::OperatorKind;

use super::expression::{DataFormat, Function, Operation, VariableId};
use super::writer::ExpressionWriter;
use crate::network::OperatorNode;
use crate::shape::Shape;
use crate::training_graph::{Element, Need};

impl ExpressionWriter<'_> {
    /// Batch normalisation as the module writes it in training: in rows, whatever order it is given.
    pub(super) fn batch_norm(&mut self, node: &OperatorNode, x: VariableId) -> VariableId {
        let format = self.variable(x).format;
        let rows = self.in_rows(x);
        let channels = Shape::fixed(&[self.shape(x).size(1)]);
        let (y, [mean, variance]) = self.normalise(node, rows, channels.clone());
        // Each of the two is a weighted sum of itself and of the batch's: two products and a sum.
        let running: Vec<_> = node.buffers.iter().map(|&buffer| self.leaf(buffer, channels.clone())).collect();
        if !running.is_empty() {
            let read: Vec<_> = [mean, variance].into_iter().chain(running.iter().copied()).collect();
            let work = self.push("running_statistics", OperatorKind::ElementWise, &read, &running);
            work.flops = channels.elements() * 6;
        }
        self.in_format(y, format)
    }

    /// Layer normalisation over the last axis, which is composed as batch normalisation is.
    pub(super) fn layer_norm(&mut self, node: &OperatorNode, x: VariableId) -> VariableId {
        let rows = self.in_rows(x);
        let statistics = self.shape(rows).with_last(1);
        self.normalise(node, rows, statistics).0
    }

    /// (x − mean) · 1/√(variance + ε) · weight + bias; with the mean and the variance of each group.
    fn normalise(&mut self, node: &OperatorNode, x: VariableId, groups: Shape) -> (VariableId, [VariableId; 2]) {
        let [weight, bias] = [0, 1].map(|place| self.weights[node.parameters[place] as usize]);
        let mean = self.reduce(true, x, groups.clone());
        let centred = self.step(Operation::Subtract, &[x, mean]);
        let square = self.apply(Function::Square, centred);
        let variance = self.reduce(true, square, groups);
        let safe = self.step(Operation::Offset, &[variance]);
        let deviation = self.apply(Function::Sqrt, safe);
        let inverse = self.apply(Function::Reciprocal, deviation);
        for statistic in [mean, variance, safe, deviation, inverse] {
            self.variables[statistic as usize].need = Need::Statistics;
        }
        let normal = self.step(Operation::Multiply, &[centred, inverse]);
        let scaled = self.step(Operation::Multiply, &[normal, weight]);
        (self.step(Operation::Add, &[scaled, bias]), [mean, variance])
    }

    /// x · (1 + erf(x/√2)) · ½, as it is exported.
    pub(super) fn gelu(&mut self, x: VariableId) -> VariableId {
        let divided = self.step(Operation::Scale, &[x]);
        let erf = self.apply(Function::Erf, divided);
        let outer = self.step(Operation::Offset, &[erf]);
        let product = self.step(Operation::Multiply, &[x, outer]);
        self.step(Operation::Scale, &[product])
    }

    /// A mask of `shape`, drawn anew, times `x`.
    pub(super) fn dropped(&mut self, x: VariableId, shape: Shape) -> VariableId {
        let format = if shape == self.shape(x) { self.variable(x).format } else { DataFormat::Rows };
        let mask = self.map("mask", OperatorKind::ElementWise, &[], shape, format);
        self.tensor(mask).element = Element::Whole;
        self.variables[mask as usize].need = Need::Mask;
        self.step(Operation::Multiply, &[x, mask])
    }

    /// Softmax in one operator.
    pub(super) fn softmax(&mut self, x: VariableId) -> VariableId {
        let x = self.in_rows(x);
        let y = self.map("softmax", OperatorKind::Reduction, &[x], self.shape(x), DataFormat::Rows);
        self.record(Operation::Softmax, &[x], y)
    }

    /// −mean over rows of Σ log(softmax(scores)) · one-hot labels.
    pub(super) fn cross_entropy(&mut self, scores: VariableId, labels: VariableId) -> VariableId {
        let shape = self.shape(scores);
        let predicted = self.softmax(scores);
        let log = self.apply(Function::Log, predicted);
        let one_hot = self.map("one_hot", OperatorKind::Gather, &[labels], shape.clone(), DataFormat::Rows);
        let picked = self.step(Operation::Multiply, &[log, one_hot]);
        let rows = self.reduce(false, picked, shape.with_last(1));
        let mean = self.reduce(true, rows, Shape::default());
        self.apply(Function::Negative, mean)
    }
}
