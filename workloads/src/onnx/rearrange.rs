//! Operators that rearrange: reshape, transpose, slices, concatenation, look-ups.

use super::constant::elements;
use super::evaluate::{broadcast, described, inputs};
use super::{Constant, Fault, Importer, Item, KEPT, Kind, Number, OnnxNode, Opaque, Order, Result, Weight};
use crate::operator::{Along, Part};
use crate::{Dim, Shape, ValueId};
use haversack_devices::ensure;

/// `axis` counted from the front.
pub(super) fn place(axis: i64, rank: usize) -> Result<usize> {
    let wide = i64::try_from(rank).unwrap_or(i64::MAX);
    let front = if axis < 0 { axis.saturating_add(wide) } else { axis };
    let place = usize::try_from(front).ok().filter(|&place| place < rank);
    place.ok_or_else(|| Fault::mismatch(format!("axis {axis}"), format!("one of the {rank} axes")))
}

/// The axes of `node`: its second input, or the attribute of older operator sets.
pub(super) fn axes(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Option<Vec<i64>>> {
    if let Some(item) = importer.optional(node, 1)? {
        return importer.ints(&item).map(Some);
    }
    Ok(node.attribute("axes").map(|attribute| attribute.ints.clone()))
}

/// `Reshape`.
pub(super) fn reshape(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let item = importer.item(node, 0)?;
    let target = importer.item(node, 1)?;
    let numbers = importer.numbers(&target)?;
    let keeps_zero = node.int("allowzero")?.unwrap_or(0) != 0;
    let shape = resolve(&importer.shape(&item), &numbers, keeps_zero, importer.batch)?;
    reshaped(importer, node, item, shape)
}

/// The new shape that `numbers` give for `old`: 0 keeps a size, −1 takes the rest. If the file was exported with a
/// fixed batch, a first number equal to that batch means the batch.
fn resolve(old: &Shape, numbers: &[Number], keeps_zero: bool, batch: Option<u64>) -> Result<Shape> {
    let wrong =
        || Fault::mismatch(format!("{old} and a target of {} sizes", numbers.len()), "sizes with as many elements");
    let mut dims: Vec<Option<Dim>> = Vec::new();
    for (axis, number) in numbers.iter().enumerate() {
        dims.push(match number.int() {
            Some(-1) => None,
            Some(0) if !keeps_zero => Some(*old.0.get(axis).ok_or_else(wrong)?),
            _ => Some(number.dim().ok_or_else(wrong)?),
        });
    }
    let batched = old.is_batched();
    if let (true, Some(batch)) = (batched, batch)
        && !dims.iter().flatten().any(|dim| dim.batched)
        && let Some(place) = carrier(old, &dims, batch)
        && let Some(Some(dim)) = dims.get_mut(place)
    {
        *dim = Dim::batched(dim.size / batch);
    }
    let product = |dims: &[Dim]| elements(&dims.iter().map(|dim| dim.size).collect::<Vec<_>>()).ok_or_else(wrong);
    let total = product(&old.0)?;
    let known = product(&dims.iter().copied().flatten().collect::<Vec<_>>())?;
    let carried = dims.iter().flatten().any(|dim| dim.batched);
    ensure!(dims.iter().filter(|dim| dim.is_none()).count() <= 1, Fault::mismatch("more than one −1", "at most one"));
    let left = total.checked_div(known).unwrap_or(0);
    let open = Dim { size: left, batched: batched && !carried };
    let shape = Shape(dims.iter().map(|dim| dim.unwrap_or(open)).collect());
    let same = product(&shape.0)? == total && shape.is_batched() == batched;
    if same { Ok(shape) } else { Err(Fault::mismatch(format!("{old} and a target of {shape}"), "as many elements")) }
}

/// The dimension among `dims` that gets the batch of `old`, in row-major order: the one after as many elements as
/// before; or the first that is a multiple of `batch`.
fn carrier(old: &Shape, dims: &[Option<Dim>], batch: u64) -> Option<usize> {
    let sizes = old.sizes();
    let before = elements(&sizes[..old.0.iter().position(|dim| dim.batched)?])?;
    let known = elements(&dims.iter().flatten().map(|dim| dim.size).collect::<Vec<_>>())?;
    let open = elements(&sizes)?.checked_mul(batch)?.checked_div(known)?;
    let mut passed = 1_u64;
    for (place, dim) in dims.iter().enumerate() {
        let size = dim.map_or(open, |dim| dim.size);
        if passed == before && size.is_multiple_of(batch) {
            return Some(place);
        }
        passed = passed.checked_mul(size)?;
    }
    dims.first().copied().flatten().filter(|first| first.size.is_multiple_of(batch)).map(|_| 0)
}

/// `item` with the same elements under `shape`.
fn reshaped(importer: &mut Importer<'_>, node: &OnnxNode, item: Item, shape: Shape) -> Result<Item> {
    importer.admit(&shape)?;
    Ok(match item {
        Item::Value(x) => Item::Value(look(importer, node, x, shape)?),
        Item::Weight(weight) => {
            let (dims, stored) = (shape.sizes(), weight.order == Order::Stored);
            let order = if stored || dims == weight.dims { weight.order } else { Order::Other };
            Item::Weight(Weight { dims, order, ..weight })
        }
        Item::Constant(constant) => Item::Constant(Constant { dims: shape.sizes(), ..constant }),
        Item::Opaque(opaque) => Item::Opaque(Opaque { shape, ..opaque }),
    })
}

/// A value under another shape; axes of one position are added and removed, and axes are split, without a copy.
fn look(importer: &mut Importer<'_>, node: &OnnxNode, x: ValueId, shape: Shape) -> Result<ValueId> {
    let old = importer.network.shape(x);
    if *old == shape {
        return Ok(x);
    }
    let Some(part) = apart(old, &shape).filter(|_| !importer.network.value(x).contiguous) else {
        return Ok(importer.network.reshape(&node.name, x, shape)?);
    };
    let front = part.axes.iter().rev().skip(2).filter(|along| along.step > 0).map(|along| along.axis);
    let folds = front.clone().count() > 1 && front.clone().all(|axis| Some(axis) == front.clone().next());
    let seen = importer.network.slice(&node.name, x, part, shape, false);
    importer.foldable.extend(folds.then_some(seen));
    Ok(seen)
}

/// The whole of a tensor under a shape that splits its axes, and may add axes of one position; `None` if
/// axes are joined.
fn apart(old: &Shape, shape: &Shape) -> Option<Part> {
    let mut whole = (0..old.rank()).filter(|&axis| old.dim(axis) != Dim::ONE);
    let mut open: Option<(usize, Dim)> = None;
    let mut axes = Vec::new();
    for &dim in &shape.0 {
        if dim == Dim::ONE {
            axes.push(Along { axis: 0, step: 0 });
            continue;
        }
        let (axis, left) = open.take().or_else(|| whole.next().map(|axis| (axis, old.dim(axis))))?;
        let step = left.size.checked_div(dim.size).filter(|step| step * dim.size == left.size)?;
        if left.batched != dim.batched {
            return None;
        }
        axes.push(Along { axis, step });
        open = (step > 1).then_some((axis, Dim::fixed(step)));
    }
    (open.is_none() && whole.next().is_none()).then(|| Part { start: vec![0; old.rank()], axes })
}

/// `Flatten`: two dimensions, cut before `axis`.
pub(super) fn flatten(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (item, shape) = importer.shaped(node, 0)?;
    let axis = node.int("axis")?.unwrap_or(1);
    let rank = shape.rank();
    let cut = if usize::try_from(axis) == Ok(rank) { rank } else { place(axis, rank)? };
    let fold = |dims: &[Dim]| Dim {
        size: dims.iter().map(|dim| dim.size).product(),
        batched: dims.iter().any(|dim| dim.batched),
    };
    let (front, back) = shape.0.split_at(cut);
    reshaped(importer, node, item, Shape(vec![fold(front), fold(back)]))
}

/// `Squeeze`.
pub(super) fn squeeze(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (item, shape) = importer.shaped(node, 0)?;
    let places = match axes(importer, node)? {
        Some(axes) => axes.iter().map(|&axis| place(axis, shape.rank())).collect::<Result<Vec<_>, _>>()?,
        None => (0..shape.rank()).filter(|&axis| shape.dim(axis) == Dim::ONE).collect(),
    };
    if places.iter().any(|&axis| shape.dim(axis) != Dim::ONE) {
        return Err(Fault::mismatch(format!("{shape} without the axes {places:?}"), "axes of one position"));
    }
    let rest = shape.0.iter().enumerate().filter(|(axis, _)| !places.contains(axis)).map(|(_, &dim)| dim);
    let rest = Shape(rest.collect());
    match reshaped(importer, node, item, rest)? {
        // The copy that `nn.MultiheadAttention` makes of its queries, keys and values.
        Item::Value(x) if node.attribute("contiguous").is_some() => {
            Ok(Item::Value(importer.network.contiguous(&node.name, x)))
        }
        other => Ok(other),
    }
}

/// `Unsqueeze`.
pub(super) fn unsqueeze(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (item, shape) = importer.shaped(node, 0)?;
    let new = axes(importer, node)?.ok_or_else(|| Fault::new("attribute 'axes' is missing; expected one"))?;
    let rank = shape.rank() + new.len();
    let mut places = new.iter().map(|&axis| place(axis, rank)).collect::<Result<Vec<_>, _>>()?;
    places.sort_unstable();
    places.dedup();
    let mut dims = shape.0;
    for axis in places {
        // In ascending order, so that each ends up at its final position.
        dims.insert(axis.min(dims.len()), Dim::ONE);
    }
    reshaped(importer, node, item, Shape(dims))
}

/// `Transpose`.
pub(super) fn transpose(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (item, shape) = importer.shaped(node, 0)?;
    let order = match node.attribute("perm") {
        None => (0..shape.rank()).rev().collect(),
        Some(perm) => perm.ints.iter().map(|&axis| place(axis, shape.rank())).collect::<Result<Vec<_>, _>>()?,
    };
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if sorted != (0..shape.rank()).collect::<Vec<_>>() {
        return Err(Fault::mismatch(format!("{shape} in the order {order:?}"), "a permutation of its axes"));
    }
    let permuted = Shape(order.iter().map(|&axis| shape.dim(axis)).collect());
    let sizes = permuted.sizes();
    Ok(match item {
        Item::Value(x) => Item::Value(importer.network.permute(&node.name, x, &order)?),
        Item::Weight(weight) if order == [1, 0] => Item::Weight(weight.turned()),
        Item::Weight(weight) => {
            let order = if order.is_sorted() { weight.order } else { Order::Other };
            Item::Weight(Weight { dims: sizes, order, ..weight })
        }
        Item::Constant(constant) => {
            let source = |index: &[u64]| {
                let mut at = vec![0; order.len()];
                for (&axis, &place) in order.iter().zip(index) {
                    if let Some(slot) = at.get_mut(axis) {
                        *slot = place;
                    }
                }
                at
            };
            Item::Constant(constant.gather(sizes, source).ok_or_else(|| Fault::mismatch(&shape, "a constant tensor"))?)
        }
        Item::Opaque(opaque) => opaque.part(permuted),
    })
}

/// `Expand`.
pub(super) fn expand(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let item = importer.item(node, 0)?;
    let target = importer.item(node, 1)?;
    let mut target = described(importer, &target)?;
    let shape = importer.shape(&item);
    if let (Item::Weight(_), Some(batch), Some(first)) = (&item, importer.batch, target.0.first_mut())
        && batch > 1
        && first.size == batch
    {
        *first = Dim::batched(1);
    }
    let wide = broadcast(&shape, &target)?;
    importer.admit(&wide)?;
    Ok(match item {
        same if wide == shape => same,
        Item::Value(x) => Item::Value(seen_wide(importer, node, x, wide)),
        Item::Weight(weight) => {
            let parameter = importer.parameter(&weight)?;
            Item::Value(importer.whole_table(node, parameter, wide))
        }
        Item::Constant(constant) => match constant.stretch(&wide.sizes()).filter(|_| !wide.is_batched()) {
            Some(stretched) => Item::Constant(stretched),
            None => Item::Opaque(Opaque::of(&constant, wide)),
        },
        Item::Opaque(opaque) => opaque.part(wide),
    })
}

/// A value broadcast to `wide` by a view, with no step along the axes that it lacks.
fn seen_wide(importer: &mut Importer<'_>, node: &OnnxNode, x: ValueId, wide: Shape) -> ValueId {
    let shape = importer.network.shape(x).clone();
    if shape == wide {
        return x;
    }
    let lead = wide.rank() - shape.rank();
    let along = |(place, dim): (usize, &Dim)| match place.checked_sub(lead) {
        Some(axis) if shape.dim(axis) == *dim => Along { axis, step: 1 },
        Some(axis) => Along { axis, step: 0 },
        None => Along { axis: 0, step: 0 },
    };
    let part = Part { start: vec![0; shape.rank()], axes: wide.0.iter().enumerate().map(along).collect() };
    importer.network.slice(&node.name, x, part, wide, false)
}

/// `item` as a value of shape `wide`, to which it broadcasts.
pub(super) fn stretched(importer: &mut Importer<'_>, node: &OnnxNode, item: Item, wide: &Shape) -> Result<ValueId> {
    let x = importer.value(node, &item)?;
    Ok(seen_wide(importer, node, x, wide.clone()))
}

/// `Concat`.
pub(super) fn concat(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let items = inputs(importer, node)?;
    let shapes: Vec<Shape> = items.iter().map(|item| importer.shape(item)).collect();
    let first = shapes.first().cloned().unwrap_or_default();
    let axis = place(node.required_int("axis")?, first.rank())?;
    let agrees = |shape: &Shape| {
        let others = shape.0.iter().zip(&first.0).enumerate();
        shape.rank() == first.rank() && { others }
            .all(|(place, (a, b))| place == axis && a.batched == b.batched || a == b)
    };
    let learned = items.iter().any(|item| item.is_learned());
    // With a fixed export batch, a learned token may be prepended to each sample.
    let batched = shapes.iter().any(|shape| shape.dim(0).batched);
    if !(shapes.iter().all(agrees) || learned && batched && importer.batch.is_some()) {
        let shown: Vec<String> = shapes.iter().map(Shape::to_string).collect();
        return Err(Fault::mismatch(shown.join(" and "), format!("tensors that agree in every axis but {axis}")));
    }
    let size = shapes.iter().try_fold(0_u64, |sum, shape| sum.checked_add(shape.size(axis)));
    let mut joined = first.clone();
    match (joined.0.get_mut(axis), size) {
        (Some(dim), Some(size)) => dim.size = size,
        _ => return Err(Fault::mismatch("sizes beyond 64 bits", "smaller ones")),
    }
    importer.admit(&joined)?;
    Ok(if learned {
        let mut parts = Vec::new();
        for item in &items {
            parts.push(match item {
                Item::Weight(weight) if batched && axis > 0 && weight.dims.first().copied() == importer.batch => {
                    let parameter = importer.parameter(weight)?;
                    let shape = Shape::batched(weight.dims.get(1..).unwrap_or_default());
                    importer.whole_table(node, parameter, shape)
                }
                other => importer.value(node, other)?,
            });
        }
        Item::Value(importer.network.concat(&node.name, &parts, axis)?)
    } else {
        match join(&items, axis, &joined) {
            Some(constant) => Item::Constant(constant),
            None => importer.computed(&items, joined, items.first().map_or(Kind::Whole, Item::kind))?,
        }
    })
}

fn join(items: &[Item], axis: usize, joined: &Shape) -> Option<Constant> {
    let parts = items.iter().map(|item| item.constant());
    let parts = parts.collect::<Option<Vec<_>>>()?;
    let dims = joined.sizes();
    elements(&dims).filter(|&count| count <= KEPT as u64)?;
    let rows = usize::try_from(elements(dims.get(..axis)?)?).ok()?;
    let mut numbers = Vec::new();
    for row in 0..rows {
        for part in &parts {
            let width = part.numbers.len().checked_div(rows)?;
            numbers.extend(part.numbers.get(row * width..(row + 1) * width)?);
        }
    }
    Some(Constant { dims, numbers, kind: parts.first()?.kind, origin: None })
}
