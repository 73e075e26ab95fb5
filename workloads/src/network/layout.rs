//! How the elements of each value lie in its storage, followed through views and slices.

use super::{Network, OperatorNode, Value};
use crate::error::Result;
use crate::operator::Part;
use crate::{Dim, Op, Shape, View, WorkloadError};

/// Where the elements of a value lie, in elements of its storage.
///
/// The batch is always outermost in memory: sample `s` begins `s · sample` elements further, and the strides are those
/// within one sample, the batched axis' too (it has more than one position a sample where rows are folded into it).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The first element of the first sample.
    pub offset: u64,
    /// The axes, as the value's shape has them.
    pub shape: Shape,
    /// Elements between two neighbours along each axis, within a sample.
    pub strides: Vec<u64>,
    /// Elements from one sample to the next; zero where all samples share them.
    pub sample: u64,
}

impl Layout {
    /// All elements in row-major order; `None` if the batch would not be outermost.
    pub fn row_major(shape: &Shape) -> Option<Self> {
        let batched = shape.0.iter().position(|dim| dim.batched);
        if batched.is_some_and(|axis| shape.0[..axis].iter().any(|&dim| dim != Dim::ONE)) {
            return None;
        }
        let (strides, elements) = dense((0..shape.rank()).rev(), shape);
        let sample = if batched.is_some() { elements } else { 0 };
        Some(Self { offset: 0, shape: shape.clone(), strides, sample })
    }

    /// Whether one sample's elements lie in row-major order without gaps.
    pub fn is_row_major(&self) -> bool {
        let (strides, elements) = dense((0..self.shape.rank()).rev(), &self.shape);
        let in_order =
            self.shape.0.iter().zip(&strides).zip(&self.strides).all(|((dim, a), b)| dim.size <= 1 || a == b);
        in_order && (self.sample == 0 || self.sample == elements)
    }

    /// The axes in another order.
    #[must_use]
    pub fn permuted(&self, order: &[usize]) -> Self {
        let shape = Shape(order.iter().map(|&axis| self.shape.dim(axis)).collect());
        Self { shape, strides: order.iter().map(|&axis| self.strides[axis]).collect(), ..self.clone() }
    }

    /// A part, seen as `shape`.
    #[must_use]
    pub fn part(&self, part: &Part, shape: &Shape) -> Self {
        let start: u64 = part.start.iter().zip(&self.strides).map(|(&at, &stride)| at * stride).sum();
        let strides = part.axes.iter().map(|along| along.step * self.strides.get(along.axis).copied().unwrap_or(0));
        Self { offset: self.offset + start, shape: shape.clone(), strides: strides.collect(), sample: self.sample }
    }

    /// The same elements in the same order under another shape; `None` if no strides describe it, or the batch
    /// is not outermost.
    fn reshaped(&self, shape: &Shape) -> Option<Self> {
        Self::row_major(&self.shape)?;
        Self::row_major(shape)?;
        // Neighbouring axes that can be walked as one: size, and stride of the innermost.
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for (dim, &stride) in self.shape.0.iter().zip(&self.strides).filter(|(dim, _)| dim.size != 1) {
            match runs.last_mut() {
                Some((size, inner)) if *inner == dim.size * stride => (*size, *inner) = (*size * dim.size, stride),
                _ => runs.push((dim.size, stride)),
            }
        }
        let mut strides = Vec::with_capacity(shape.rank());
        let mut run = runs.pop().unwrap_or((1, 1));
        for dim in shape.0.iter().rev() {
            if run.0 == 1 && dim.size != 1 {
                run = runs.pop()?;
            }
            if !run.0.is_multiple_of(dim.size.max(1)) {
                return None;
            }
            strides.push(run.1);
            run = (run.0 / dim.size.max(1), run.1 * dim.size);
        }
        strides.reverse();
        Some(Self { shape: shape.clone(), strides, ..self.clone() })
    }

    /// The layout of a result that is stored as this operand is: its axes in the same order in memory, without gaps.
    fn of_result(&self) -> Self {
        let mut order: Vec<usize> = (0..self.shape.rank()).collect();
        // Of equal strides the later axis is the inner one.
        order.sort_by_key(|&axis| (self.strides[axis], std::cmp::Reverse(axis)));
        let (strides, elements) = dense(order.into_iter(), &self.shape);
        let sample = if self.shape.is_batched() { elements } else { 0 };
        Self { offset: 0, shape: self.shape.clone(), strides, sample }
    }
}

/// Strides without gaps, given the axes from the innermost out, and the elements of a sample.
fn dense(order: impl Iterator<Item = usize>, shape: &Shape) -> (Vec<u64>, u64) {
    let mut strides = vec![0; shape.rank()];
    let mut stride = 1;
    for axis in order {
        strides[axis] = stride;
        stride *= shape.size(axis);
    }
    (strides, stride)
}

impl Network {
    /// The layout of every value over its storage, by [`super::ValueId`].
    ///
    /// # Errors
    /// A value whose batch would not be outermost in its storage, or a view that no strides describe: the message names
    /// the module.
    pub fn layouts(&self) -> Result<Vec<Layout>> {
        let mut known: Vec<Option<Layout>> = vec![None; self.values.len()];
        let mut makers: Vec<Option<&OperatorNode>> = vec![None; self.values.len()];
        for node in &self.nodes {
            makers[node.output as usize] = Some(node);
        }
        for (id, (value, maker)) in self.values.iter().zip(makers).enumerate() {
            // An operator's output comes after its inputs.
            let layout = match maker {
                Some(node) => self.layout_of(node, value, known[node.inputs[0] as usize].as_ref()),
                None => self.layout_of_source(value),
            };
            let refused = || WorkloadError::Shape {
                module: maker.map_or_else(|| self.storage(value.storage).name.clone(), |node| node.module.clone()),
                operator: maker.map_or("source", |node| node.op.name()),
                got: format!("{} as the shape of what it gives", value.shape),
                expected: "the batch to be its outermost axis, and axes that strides describe".to_owned(),
            };
            known[id] = Some(layout.ok_or_else(refused)?);
        }
        Ok(known.into_iter().flatten().collect())
    }

    /// The layout of a storage that no operator made; a buffer's is shared by all samples.
    fn layout_of_source(&self, value: &Value) -> Option<Layout> {
        let layout = Layout::row_major(&value.shape)?;
        let batched = self.storage(value.storage).bytes.per_sample > 0;
        Some(Layout { sample: if batched { layout.sample } else { 0 }, ..layout })
    }

    fn layout_of(&self, node: &OperatorNode, value: &Value, input: Option<&Layout>) -> Option<Layout> {
        let input = input?;
        match &node.op {
            Op::View(View::Permute(order)) => Some(input.permuted(order)),
            Op::View(View::Reshape) => input.reshaped(&value.shape),
            Op::Slice(part) => Some(input.part(part, &value.shape)),
            Op::Unary { in_place: true, .. } => Some(input.clone()),
            Op::Unary { .. } if !value.contiguous => Some(input.of_result()),
            _ => Layout::row_major(&value.shape),
        }
    }
}
