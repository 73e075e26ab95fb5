//! Operators that take a part of a tensor: slices, splits and look-ups.

use super::rearrange::place;
use super::{Fault, Importer, Item, Kind, Number, OnnxNode, Result};
use crate::operator::{Along, Part};
use crate::{Dim, Extent, Shape, Taking};
use haversack_devices::ensure;

/// Positions `start`, `start + step`, … along `axis`, `count` of them.
#[derive(Clone, Copy, Debug)]
struct Cut {
    axis: usize,
    start: u64,
    step: i64,
    count: u64,
}

/// `Slice`.
pub(super) fn slice(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let item = importer.item(node, 0)?;
    let starts = bounds(importer, node, 1, "starts")?.ok_or_else(|| missing("starts"))?;
    let ends = bounds(importer, node, 2, "ends")?.ok_or_else(|| missing("ends"))?;
    let axes = bounds(importer, node, 3, "axes")?;
    let steps = bounds(importer, node, 4, "steps")?;
    let mut result = item;
    for (at, (&start, &end)) in starts.iter().zip(&ends).enumerate() {
        let shape = importer.shape(&result);
        let axis = match &axes {
            None => i64::try_from(at).unwrap_or(i64::MAX),
            Some(axes) => axes.get(at).and_then(|axis| axis.int()).ok_or_else(|| missing("axes"))?,
        };
        let axis = place(axis, shape.rank())?;
        let step = match &steps {
            None => 1,
            Some(steps) => steps.get(at).and_then(|step| step.int()).ok_or_else(|| missing("steps"))?,
        };
        let Some(&dim) = shape.0.get(axis) else { continue };
        if whole(dim, start, end, step) {
            continue;
        }
        let got = || format!("{shape} cut along axis {axis}");
        ensure!(!dim.batched, Fault::mismatch(got(), "slices that leave the batch whole"));
        let (Some(start), Some(end)) = (start.int(), end.int()) else {
            return Err(Fault::mismatch(got(), "bounds that do not depend on the batch"));
        };
        let cut =
            cut(axis, dim.size, start, end, step).ok_or_else(|| Fault::mismatch(got(), "a step other than zero"))?;
        result = take(importer, node, result, cut)?;
    }
    Ok(result)
}

fn missing(name: &str) -> Fault {
    Fault::new(format!("'{name}' is missing or too short; expected a constant for each axis that is cut"))
}

/// Bounds of a slice: an input, or the attribute of older operator sets.
fn bounds(importer: &mut Importer<'_>, node: &OnnxNode, index: usize, name: &str) -> Result<Option<Vec<Number>>> {
    if let Some(item) = importer.optional(node, index)? {
        return importer.numbers(&item).map(Some);
    }
    Ok(node.attribute(name).map(|attribute| attribute.ints.iter().copied().map(Number::whole).collect()))
}

/// Whether a slice leaves `dim` unchanged.
fn whole(dim: Dim, start: Number, end: Number, step: i64) -> bool {
    /// More samples than any batch has: exporters write the end of an axis as a number above any size.
    const END: i64 = 1 << 20;
    let far = if dim.batched { END } else { i64::try_from(dim.size).unwrap_or(i64::MAX) };
    let to_end = end.int().is_some_and(|end| end >= far) || end.dim() == Some(dim);
    start == Number::whole(0) && step == 1 && to_end
}

/// The slice `start:end:step` of an axis of `size` positions, clamped as ONNX does.
fn cut(axis: usize, size: u64, start: i64, end: i64, step: i64) -> Option<Cut> {
    let size = i64::try_from(size).ok()?;
    let front = |bound: i64| if bound < 0 { bound.saturating_add(size) } else { bound };
    let (start, span) = if step > 0 {
        let start = front(start).clamp(0, size);
        (start, front(end).clamp(0, size) - start)
    } else {
        let start = front(start).clamp(0, size - 1);
        (start, start - front(end).clamp(-1, size - 1))
    };
    let stride = step.checked_abs().filter(|&stride| stride > 0)?;
    let count = u64::try_from(span.max(0)).ok()?.div_ceil(u64::try_from(stride).ok()?);
    Some(Cut { axis, start: u64::try_from(start).ok()?, step, count })
}

/// The part of `item` that `cut` selects.
fn take(importer: &mut Importer<'_>, node: &OnnxNode, item: Item, cut: Cut) -> Result<Item> {
    let shape = importer.shape(&item);
    let mut dims = shape.0.clone();
    if let Some(dim) = dims.get_mut(cut.axis) {
        dim.size = cut.count;
    }
    let shown = Shape(dims);
    if shown == shape && cut.step == 1 {
        return Ok(item);
    }
    match item {
        Item::Constant(constant) => {
            let sizes = shown.sizes();
            let source = |index: &[u64]| {
                let mut at = index.to_vec();
                if let Some(slot) = at.get_mut(cut.axis) {
                    let moved = i128::from(cut.start) + i128::from(*slot) * i128::from(cut.step);
                    *slot = u64::try_from(moved).unwrap_or(u64::MAX);
                }
                at
            };
            let taken = constant.gather(sizes, source);
            taken.map(Item::Constant).ok_or_else(|| Fault::mismatch(&shape, "a slice within it"))
        }
        Item::Opaque(opaque) => Ok(opaque.part(shown)),
        learned @ (Item::Value(_) | Item::Weight(_)) => {
            if cut.count == 0 || cut.step < 0 {
                return Err(Fault::mismatch(format!("{shape} cut to {shown}"), "a part of it, in its order"));
            }
            let x = importer.value(node, &learned)?;
            let contiguous = importer.network.value(x).contiguous && in_one_piece(&shape, cut.axis) && cut.step == 1;
            let part = Part::whole(shape.rank()).from(cut.axis, cut.start, cut.step.unsigned_abs());
            Ok(Item::Value(importer.network.slice(&node.name, x, part, shown, contiguous)))
        }
    }
}

/// Whether a part along `axis` lies in one piece: no other axis is outside it.
fn in_one_piece(shape: &Shape, axis: usize) -> bool {
    shape.0.iter().take(axis).all(|dim| *dim == Dim::ONE)
}

/// `Split`: equal parts, or parts of given sizes.
pub(super) fn split(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (item, shape) = importer.shaped(node, 0)?;
    let axis = place(node.int("axis")?.unwrap_or(0), shape.rank())?;
    let size = shape.size(axis);
    let parts = node.outputs.len() as u64;
    let given = match importer.optional(node, 1)? {
        Some(sizes) => Some(importer.ints(&sizes)?),
        None => node.attribute("split").map(|attribute| attribute.ints.clone()),
    };
    let sizes: Vec<u64> = match given {
        Some(sizes) => sizes.iter().map(|&size| u64::try_from(size).unwrap_or(u64::MAX)).collect(),
        None => {
            let each = size.div_ceil(parts.max(1));
            (0..parts).map(|part| each.min(size.saturating_sub(part.saturating_mul(each)))).collect()
        }
    };
    let total = sizes.iter().try_fold(0_u64, |sum, &size| sum.checked_add(size));
    if total != Some(size) || sizes.len() < node.outputs.len() || shape.dim(axis).batched {
        let got = format!("{shape} split along axis {axis} into {sizes:?}");
        return Err(Fault::mismatch(got, "sizes that add up to that of an axis other than the batch"));
    }
    let mut start = 0;
    let mut parts = Vec::new();
    for &count in &sizes {
        parts.push(take(importer, node, item.clone(), Cut { axis, start, step: 1, count })?);
        start += count;
    }
    let first = parts.first().cloned().unwrap_or(item);
    for (output, part) in parts.into_iter().enumerate().skip(1) {
        importer.set(node, output, part);
    }
    Ok(first)
}

/// `Pad`: zeros, a mirror or a wrap around a tensor, in new storage; negative padding cuts it.
pub(super) fn pad(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let item = importer.item(node, 0)?;
    let pads = bounds(importer, node, 1, "pads")?.ok_or_else(|| missing("pads"))?;
    let shape = importer.shape(&item);
    let places = match importer.optional(node, 3)? {
        None => (0..shape.rank()).collect(),
        Some(axes) => {
            let axes = importer.ints(&axes)?;
            axes.iter().map(|&axis| place(axis, shape.rank())).collect::<Result<Vec<_>, _>>()?
        }
    };
    let pads: Option<Vec<i64>> = pads.iter().map(|pad| pad.int()).collect();
    let (front, back) = match &pads {
        Some(pads) if pads.len() == 2 * places.len() => pads.split_at(places.len()),
        _ => return Err(Fault::mismatch(format!("{} pads", pads.map_or(0, |pads| pads.len())), "two for each axis")),
    };
    if front.iter().chain(back).all(|&pad| pad == 0) {
        return Ok(item);
    }
    let mut wide = shape.clone();
    for (&axis, (&before, &after)) in places.iter().zip(front.iter().zip(back)) {
        let Some(dim) = wide.0.get_mut(axis) else { continue };
        let more = before.checked_add(after);
        let size = more.and_then(|more| dim.size.checked_add_signed(more)).filter(|_| !dim.batched || more == Some(0));
        dim.size = size.ok_or_else(|| {
            Fault::mismatch(format!("{shape} with padding of {pads:?}"), "sizes, and the batch as it is")
        })?;
    }
    let behind = front.iter().all(|&pad| pad == 0) && back.iter().all(|&pad| pad >= 0);
    let zeros = node.text("mode").is_none_or(|mode| mode == "constant");
    match item {
        Item::Value(x) if behind && zeros => {
            importer.admit(&wide)?;
            Ok(Item::Value(importer.network.pad(&node.name, x, wide)))
        }
        item => importer.take(node, item, Taking::PadAround, Extent::ZERO, wide),
    }
}

/// `Gather`: rows of a weight by ids, one position of a value, or a look-up in a constant.
pub(super) fn gather(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let data = importer.item(node, 0)?;
    let indices = importer.item(node, 1)?;
    let shape = importer.shape(&data);
    let axis = place(node.int("axis")?.unwrap_or(0), shape.rank())?;
    let mut dims = shape.0.clone();
    dims.splice(axis..=axis, importer.shape(&indices).0);
    let looked_up = Shape(dims);
    if indices.kind() != Kind::Whole {
        return Err(Fault::mismatch(format!("indices of shape {}", importer.shape(&indices)), "integer indices"));
    }
    importer.admit(&looked_up)?;
    let single = if let Item::Constant(constant) = &indices { constant.single().and_then(Number::int) } else { None };
    Ok(match (data, single) {
        (Item::Weight(weight), _) if weight.dims.len() == 2 && axis == 0 => {
            let table = importer.parameter(&weight)?;
            let ids = importer.value(node, &indices)?;
            Item::Value(importer.network.embedding(&node.name, ids, shape.last(), table))
        }
        (Item::Constant(constant), _) => match &indices {
            Item::Constant(at) => {
                let places = at.numbers.iter().map(|number| number.int()).collect::<Option<Vec<_>>>();
                let places =
                    places.ok_or_else(|| Fault::mismatch("indices that depend on the batch", "constant ones"))?;
                let (size, inner) = (constant.dims.get(axis).copied().unwrap_or(0), at.dims.clone());
                let source = |index: &[u64]| pick(index, axis, &inner, &places, size);
                let taken = constant.gather(looked_up.sizes(), source);
                Item::Constant(taken.ok_or_else(|| Fault::mismatch(&shape, "indices within it"))?)
            }
            _ => importer.computed(&[indices], looked_up, constant.kind)?,
        },
        (Item::Opaque(opaque), _) => {
            let kind = opaque.kind;
            importer.computed(&[Item::Opaque(opaque), indices], looked_up, kind)?
        }
        (learned, Some(index)) => {
            let size = shape.size(axis);
            let inside = i64::try_from(size).is_ok_and(|size| (-size..size).contains(&index));
            if !inside || shape.dim(axis).batched {
                return Err(Fault::mismatch(
                    format!("{shape} at {index} of axis {axis}"),
                    "a position other than a sample",
                ));
            }
            let x = importer.value(node, &learned)?;
            let contiguous = importer.network.value(x).contiguous && in_one_piece(&shape, axis);
            let at = u64::try_from(index).unwrap_or_else(|_| size - index.unsigned_abs());
            let part = one_position(&shape, axis, at, importer.shape(&indices).rank());
            Item::Value(importer.network.slice(&node.name, x, part, looked_up, contiguous))
        }
        (learned, None) => {
            if shape.dim(axis).batched {
                return Err(Fault::mismatch(
                    format!("{shape} at places of axis {axis}"),
                    "an axis other than the batch",
                ));
            }
            let elements = importer.shape(&indices).elements();
            importer.take(node, learned, Taking::LookUp, elements, looked_up)?
        }
    })
}

/// The position `at` of `axis`, shown as `ones` axes of one position.
fn one_position(shape: &Shape, axis: usize, at: u64, ones: usize) -> Part {
    let mut part = Part::whole(shape.rank()).at(axis, at);
    let one = Along { axis, step: 0 };
    part.axes.splice(axis..axis, std::iter::repeat_n(one, ones));
    part
}

/// The index into the data of the element at `index` of the result; out of range if the given index is.
fn pick(index: &[u64], axis: usize, inner: &[u64], places: &[i64], size: u64) -> Vec<u64> {
    let (front, rest) = index.split_at(axis.min(index.len()));
    let (middle, back) = rest.split_at(inner.len().min(rest.len()));
    let at = middle.iter().zip(inner).fold(0_u64, |at, (&place, &size)| at.saturating_mul(size).saturating_add(place));
    let found = usize::try_from(at).ok().and_then(|at| places.get(at)).copied().unwrap_or(i64::MAX);
    let wrapped = if found < 0 { i128::from(found) + i128::from(size) } else { i128::from(found) };
    let found = u64::try_from(wrapped).unwrap_or(u64::MAX);
    front.iter().copied().chain([found]).chain(back.iter().copied()).collect()
}
