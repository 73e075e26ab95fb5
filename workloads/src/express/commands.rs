//! The commands of MNN: the geometry of an expression translates it into these before a kernel runs.
//!
//! The gradient of a dense convolution's input is a product that is scattered back and summed, that of its weight a
//! product of windows that are gathered into a matrix; one thread packs an operand of these products (`CPUMatMul.cpp`).
//! A depthwise convolution's gradient is computed tap by tap (`GeometryConv2D.cpp`,
//! `GeometryConv2DBackPropFilter.cpp`). A pooling's gradient compares every place of its windows with the maximum, map
//! by map (`GeometryPoolGrad.cpp`). A sum over a batch and positions takes two steps (`GeometryReduce.cpp`). Threads
//! share copies by boxes, and conversions by samples (`CPURaster.cpp`). An update makes new weights by a handful of
//! small graphs, each copied out (`SGD.cpp`).
//!
//! 1.1 makes the forward of a dense convolution a product of gathered windows, too, whose result has positions before
//! channels, so that the next reader transposes it; 2.3 has kernels for it. In 1.1 the broadcast operand of a sum is
//! written out, and one thread copies one box; in 2.3 a loop of one thread broadcasts in rows, and all threads share a
//! box. The conversions of 2.3's gradients are views until a kernel needs blocks (`ConvertUtils.cpp`,
//! `GeometryComputer.cpp`). Those of 1.1 are made immediately here, as when its constants were fitted, although its
//! sources do the same as 2.3's.
//!
//! Source: alibaba/MNN 1.1.0 and 2.3.0.

use haversack_devices::{OperatorKind, Product, ProductRole};

use super::{DataFormat, ExpressionWriter, Layout, Operation, VariableId, Version};
use crate::{Extent, NodeWork, OperatorNode, Role, Shape};

/// Copies of a weight that an update makes in new memory: the momentum, and the new weight (`SGD.cpp`, `fix`).
const COPIES: u64 = 2;
/// Copies that an update makes in addition to its sweeps: of those two, and of the gradient with its decay.
const MOVES: u64 = 3;
/// Rows of a tile.
const TILE: u64 = 12;

impl ExpressionWriter<'_> {
    /// The work of the node that was pushed last.
    pub(super) fn last(&mut self) -> &mut NodeWork {
        let place = self.writer.graph.nodes.len() - 1;
        &mut self.writer.graph.nodes[place].work
    }

    /// The node that was pushed last copies whole rows in `boxes` boxes, each by one thread; 2.3 cuts a single box into
    /// slices, one per thread.
    pub(super) fn by_rows(&mut self, boxes: u64) {
        let sliced = self.version == Version::V2 && boxes == 1;
        let work = self.last();
        (work.by_rows, work.parts) = (true, if sliced { Extent::ZERO } else { Extent::fixed(boxes) });
    }

    /// A copy of `x` in `layout`: threads share a conversion by samples; a transposition is one box, moved
    /// element by element.
    pub(super) fn moved(&mut self, label: &str, x: VariableId, layout: Layout) -> VariableId {
        let from = self.variable(x).format;
        let y = self.map(label, OperatorKind::Layout, &[x], layout);
        let converts = label == "convert" && from != DataFormat::Columns;
        self.by_rows(1);
        let work = self.last();
        work.by_rows = converts;
        work.parts = if converts { Extent::per_sample(1) } else { work.parts };
        y
    }

    /// The operands of a sweep over `layout`, and whether one thread runs it. In 1.1 smaller operands are written
    /// out. In 2.3 they are written out only in blocks: in rows one loop reads them again and again
    /// (`GeometryBinary.cpp`, `CPULoop`).
    pub(super) fn operands(&mut self, inputs: &[VariableId], layout: &Layout) -> (Vec<VariableId>, bool) {
        let loops = self.version == Version::V2 && layout.format == DataFormat::Rows;
        let is_smaller = |this: &Self, x| {
            let of_x = this.elements(x);
            of_x != layout.shape.elements() && of_x != Extent::fixed(1)
        };
        let looped = loops && inputs.iter().any(|&x| is_smaller(self, x));
        let written = |this: &mut Self, x| if !loops && is_smaller(this, x) { this.broadcast(x, layout) } else { x };
        (inputs.iter().map(|&x| written(self, x)).collect(), looped)
    }

    /// `x` broadcast to `layout` in memory, once for all readers.
    fn broadcast(&mut self, x: VariableId, layout: &Layout) -> VariableId {
        let key = (self.variable(x).tensor, layout.shape.clone());
        if let Some(&known) = self.broadcasts.get(&key) {
            return known;
        }
        let y = self.map("broadcast", OperatorKind::Layout, &[x], layout.clone());
        self.by_rows(1);
        self.variables[y as usize].need = self.variable(x).need;
        self.broadcasts.insert(key, y);
        y
    }

    /// The sum of `x` over the axes that `layout` lacks: one thread sums over the batch, map on map; then
    /// come the positions.
    pub(super) fn sum(&mut self, label: &str, x: VariableId, layout: Layout) -> VariableId {
        let shape = self.shape(x);
        let over_batch = shape.is_batched() && !layout.shape.is_batched() && shape.rank() > 1;
        if !over_batch {
            return self.map(label, OperatorKind::Reduction, &[x], layout);
        }
        let mut rest = shape;
        rest.0.iter_mut().filter(|dim| dim.batched).for_each(|dim| (dim.size, dim.batched) = (1, false));
        let bytes = self.bytes(x) * 3;
        let summed = self.map(label, OperatorKind::Reduction, &[x], Layout::rows(rest));
        let work = self.last();
        (work.parts, work.dram) = (Extent::fixed(1), bytes);
        self.map(label, OperatorKind::Reduction, &[summed], layout)
    }

    /// The current layer, if its operands are gathered into matrices: any but a depthwise convolution.
    pub(super) fn gathers(&self) -> Option<Product> {
        let layer = self.writer.origin.and_then(|origin| self.layers[origin as usize])?;
        layer.product.filter(|product| product.groups == 1)
    }

    /// A dense convolution as a product of gathered windows.
    pub(super) fn gathered_convolution(
        &mut self,
        node: &OperatorNode,
        x: VariableId,
        shape: Shape,
        product: &Product,
    ) -> VariableId {
        let parameters = node.parameters.iter().take(2).map(|&parameter| self.weights[parameter as usize]);
        let parameters: Vec<_> = parameters.collect();
        let windows = self.windows(x, product, positions(&shape));
        let operands: Vec<_> = std::iter::once(windows).chain(parameters.iter().copied()).collect();
        let layout = Layout { shape, format: DataFormat::Columns };
        let y = self.product("convolution", ProductRole::Forward, &operands, layout);
        let [of_windows, of_weight, of_y] = [windows, parameters[0], y].map(|variable| self.bytes(variable));
        self.packs([of_windows + of_weight, of_weight, of_y]);
        let inputs: Vec<_> = std::iter::once(x).chain(parameters).collect();
        self.record(Operation::Convolution, &inputs, y)
    }

    /// The windows of `x` at `positions` positions, next to each other; blocks are laid out in rows on the way.
    fn windows(&mut self, x: VariableId, product: &Product, positions: u64) -> VariableId {
        let x = self.as_told(x);
        let taps = product.taps[0] * product.taps[1];
        let windows = self.make("windows", Layout::rows(self.over(x, &[product.inputs * taps, positions])));
        let unpacked = if self.variable(x).format == DataFormat::Blocks { self.bytes(x) * 2 } else { Extent::ZERO };
        let bytes = self.bytes(windows) * 2 + unpacked;
        let work = self.push("windows", OperatorKind::Layout, &[x], &[windows]);
        (work.dram, work.by_rows, work.parts) = (bytes, true, Extent::per_sample(taps));
        windows
    }

    /// A shape with the batch of `x` and these sizes.
    fn over(&self, x: VariableId, sizes: &[u64]) -> Shape {
        let mut shape = Shape::batched(sizes);
        shape.0[0] = self.variable(x).shape.dim(0);
        shape
    }

    /// The product that was pushed last packs `operands` bytes by one thread, reads `reread` bytes again, and
    /// unpacks `result` bytes.
    fn packs(&mut self, [operands, reread, result]: [Extent; 3]) {
        let work = self.last();
        (work.laid_out_alone, work.reread, work.laid_out) = (operands * 2, reread, result * 2);
        self.workspace(operands + result);
    }

    /// Memory that the node that was pushed last takes while it runs.
    fn workspace(&mut self, bytes: Extent) {
        let workspace = self.make("workspace", Layout::rows(Shape::default()));
        let tensor = self.variable(workspace).tensor;
        self.tensor(workspace).bytes = bytes;
        let place = self.writer.graph.nodes.len() - 1;
        self.writer.graph.nodes[place].outputs.push(tensor);
    }

    /// The gradients of a dense convolution.
    pub(super) fn through_gathered(&mut self, inputs: &[VariableId], dy: VariableId, product: &Product) {
        let (x, weight) = (inputs[0], inputs[1]);
        let gathered = self.gather(dy);
        let [of_weight, of_dy] = [weight, gathered].map(|variable| self.bytes(variable));
        let taps = product.taps[0] * product.taps[1];
        let positions = positions(&self.shape(dy));
        if self.variable(x).trains {
            let layout = Layout::rows(self.over(x, &[product.inputs * taps, positions]));
            let operands = [weight, gathered];
            let windows = self.product("input_gradient", ProductRole::InputGradient, &operands, layout);
            let of_windows = self.bytes(windows);
            self.packs([of_dy + of_weight, of_dy, of_windows]);
            self.last().parts = tiles(product);
            let dx = self.scatter(x, windows, product);
            self.give(x, dx);
        }
        if self.variable(weight).trains {
            let windows = self.windows(x, product, positions);
            let (role, layout) = (ProductRole::WeightGradient, Layout::rows(self.shape(weight)));
            let made = self.product("weight_gradient", role, &[windows, gathered], layout);
            let of_windows = self.bytes(windows);
            let work = self.last();
            work.parts = tiles(product);
            work.laid_out = of_windows * 2;
            work.laid_out_alone = of_dy * 2;
            work.reread = of_dy;
            self.workspace(of_windows + of_weight + of_dy);
            self.give(weight, made);
        }
        self.give_bias(inputs, dy);
    }

    /// `dy` with channels before samples, as products read it.
    fn gather(&mut self, dy: VariableId) -> VariableId {
        let unpacked = if self.variable(dy).format == DataFormat::Blocks { self.bytes(dy) * 2 } else { Extent::ZERO };
        let gathered = self.map("gather", OperatorKind::Layout, &[dy], Layout::rows(self.shape(dy)));
        self.by_rows(1);
        self.last().dram += unpacked;
        gathered
    }

    /// The gradient of `x` from those of its windows: each is added at its source, tap by tap in separate maps.
    fn scatter(&mut self, x: VariableId, windows: VariableId, product: &Product) -> VariableId {
        let taps = product.taps[0] * product.taps[1];
        let places = product.inputs * positions(&self.shape(x));
        let spread = self.make("scatter", Layout::rows(self.over(x, &[taps, places])));
        let (moved, zeroed) = (self.bytes(windows) * 2, self.bytes(spread));
        let work = self.push("scatter", OperatorKind::Layout, &[windows], &[spread]);
        (work.dram, work.by_rows, work.parts) = (moved, true, Extent::per_sample(taps));
        work.laid_out_alone = if taps > 1 { zeroed } else { Extent::ZERO };
        let dx = self.map("reduce_sum", OperatorKind::Reduction, &[spread], Layout::rows(self.shape(x)));
        let work = self.last();
        work.parts = Extent::per_sample(1);
        work.dram = if taps > 1 { zeroed * 3 } else { zeroed * 2 };
        // The maker of an `x` in columns gathers its gradient in the layout that it has.
        match (self.variable(x).format, self.version) {
            (DataFormat::Blocks, Version::V1) => self.moved("convert", dx, self.layout(x)),
            (DataFormat::Blocks, Version::V2) => self.seen_in(dx, DataFormat::Unblocked),
            _ => dx,
        }
    }

    /// The gradient of a depthwise convolution's weight: for every tap a map of the input's samples, its product with
    /// `dy`, and the sum of that.
    pub(super) fn tap_by_tap(&mut self, x: VariableId, weight: VariableId, dy: VariableId) {
        let Some(layer) = self.writer.origin.and_then(|origin| self.layers[origin as usize]) else { return };
        let Some(product) = layer.product else { return };
        let [x, dy] = [x, dy].map(|variable| self.in_rows(variable));
        let channels = Layout::rows(Shape::fixed(&[self.shape(dy).size(1)]));
        let taps = product.taps[0] * product.taps[1];
        let mut sums = Vec::new();
        for _ in 0..taps {
            let sampled = self.sample(x, Layout::rows(self.shape(dy)));
            let multiplied = self.sweep("multiply", &[sampled, dy]);
            sums.push(self.map("reduce_sum", OperatorKind::Reduction, &[multiplied], channels.clone()));
        }
        let made = self.map("raster", OperatorKind::Layout, &sums, Layout::rows(self.shape(weight)));
        self.by_rows(taps);
        self.give(weight, made);
    }

    /// One place of every window of `x`.
    fn sample(&mut self, x: VariableId, layout: Layout) -> VariableId {
        let y = self.make("sample", layout);
        let bytes = self.bytes(y) * 2;
        self.push("sample", OperatorKind::Layout, &[x], &[y]).dram = bytes;
        self.by_rows(1);
        y
    }

    /// The gradient of a maximum: for every place of the windows a 0 or 1 for whether it is the maximum, times `dy`,
    /// scattered back to its place; and the sum of those maps. `flops` counts the places.
    pub(super) fn through_maximum(
        &mut self,
        x: VariableId,
        y: VariableId,
        dy: VariableId,
        flops: Extent,
    ) -> VariableId {
        let (small, large) = (self.layout(y), self.layout(x));
        let outputs = small.shape.elements();
        let places = (flops.fixed + flops.per_sample) / (outputs.fixed + outputs.per_sample).max(1);
        let dy = self.in_format(dy, DataFormat::Blocks);
        let mut spread = Vec::new();
        for _ in 0..places {
            let sampled = self.sample(x, small.clone());
            let mut mask = sampled;
            for (label, other) in [("greater_equal", Some(y)), ("cast", None)] {
                let operands: Vec<_> = std::iter::once(mask).chain(other).collect();
                mask = self.map(label, OperatorKind::ElementWise, &operands, small.clone());
                // One thread runs a cast, and in 1.1 a comparison.
                if other.is_none() || self.version == Version::V1 {
                    self.last().parts = Extent::fixed(1);
                }
            }
            let passed = self.sweep("multiply", &[mask, dy]);
            let placed = self.map("spread", OperatorKind::Layout, &[passed], large.clone());
            self.by_rows(1);
            spread.push(placed);
        }
        let bytes = self.bytes(x) * 3 * places;
        let dx = self.map("eltwise_sum", OperatorKind::ElementWise, &spread, large);
        self.last().dram = bytes;
        dx
    }

    /// Joins parts that a product has made: they are moved element by element, and blocks are made of rows.
    pub(super) fn join_columns(&mut self, parts: &[VariableId], layout: Layout) -> VariableId {
        let y = self.join(parts, layout);
        let bytes = self.bytes(y) * 2;
        let work = self.last();
        (work.laid_out, work.parts) = (bytes, Extent::fixed(parts.len() as u64));
        y
    }

    /// A linear layer: a product of matrices, and the sum with a bias that is written out.
    pub(super) fn matrix_product(&mut self, node: &OperatorNode, x: VariableId, shape: Shape) -> VariableId {
        let parameters: Vec<_> = node.parameters.iter().map(|&parameter| self.weights[parameter as usize]).collect();
        let operands = [x, parameters[0]];
        let y = self.product("matmul", ProductRole::Forward, &operands, Layout::rows(shape));
        self.lay_out_matrix(parameters[0], y);
        let y = self.record(Operation::Product, &operands, y);
        parameters.get(1).map_or(y, |&bias| self.step(Operation::Add, &[y, bias]))
    }

    /// The product that was pushed last packs `operand` by one thread, and unpacks `result`.
    pub(super) fn lay_out_matrix(&mut self, operand: VariableId, result: VariableId) {
        // 2.3 makes those of a batch in one loop, which all threads share (`GeometryBatchMatMul.cpp`).
        if self.version == Version::V2 {
            return;
        }
        let [of_operand, of_result] = [operand, result].map(|variable| self.bytes(variable));
        self.packs([of_operand, of_operand, of_result]);
    }

    /// All gradients are copied out of the pool before any weight is updated (`SGD.cpp`, `_Const`).
    pub(super) fn copy_gradients(&mut self) {
        for place in 0..self.weights.len() {
            let weight = self.weights[place] as usize;
            let Some(gradient) = self.gradients[weight] else { continue };
            let copy = self.map("gradient", OperatorKind::Layout, &[gradient], self.layout(gradient));
            self.by_rows(1);
            let bytes = self.bytes(copy);
            self.last().fresh = bytes;
            // One of them is the gradient from here on.
            let name = std::mem::replace(&mut self.tensor(gradient).name, "gradient in the pool".to_owned());
            self.tensor(gradient).role = Role::Gradient;
            let tensor = self.tensor(copy);
            (tensor.role, tensor.name) = (Role::ParameterGradient, name);
            self.gradients[weight] = Some(copy);
        }
    }

    /// The update that was pushed last, of a weight of `bytes`, has one command per sweep.
    pub(super) fn renew(&mut self, bytes: Extent, sweeps: u64) {
        let work = self.last();
        work.dram += bytes * (2 * MOVES);
        work.fresh = bytes * COPIES;
        work.launches = sweeps as u32;
    }
}

/// The positions of a map.
fn positions(map: &Shape) -> u64 {
    map.0.iter().skip(2).map(|dim| dim.size).product()
}

/// The units of work of a gradient's product: its rows are the input's channels at each place of the window, and
/// threads take tiles of twelve (`MNNGetMatMulPackMode`).
fn tiles(product: &Product) -> Extent {
    Extent::fixed((product.inputs * product.taps[0] * product.taps[1]).div_ceil(TILE))
}
