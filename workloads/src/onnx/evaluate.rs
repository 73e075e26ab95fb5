//! Operators on tensors without a gradient: shapes and other constants are computed, other tensors keep
//! only their shape.

use super::constant::elements;
use super::rearrange::place;
use super::{Branch, Constant, Fault, Importer, Item, KEPT, Kind, Number, OnnxNode, Result};
use crate::{Dim, Extent, Shape, Taking};
use haversack_devices::ensure;

/// `Shape`: a row of sizes.
pub(super) fn shape(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (_, shape) = importer.shaped(node, 0)?;
    let place = |value: i64| {
        let rank = i64::try_from(shape.rank()).unwrap_or(i64::MAX);
        let value = if value < 0 { value.saturating_add(rank) } else { value };
        usize::try_from(value.clamp(0, rank)).unwrap_or(0)
    };
    let start = node.int("start")?.map_or(0, place);
    let end = node.int("end")?.map_or(shape.rank(), place);
    let dims = shape.0.iter().take(end).skip(start);
    let sizes = dims.map(|&dim| Number::of_dim(dim)).collect::<Option<Vec<_>>>();
    let sizes = sizes.ok_or_else(|| Fault::mismatch(&shape, "sizes of at most 63 bits"))?;
    Ok(Item::Constant(Constant::row(sizes)))
}

/// `If`: requests the branch that its condition chooses.
pub(super) fn branch(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let known = match importer.item(node, 0)? {
        Item::Constant(constant) => constant.numbers.first().map(|number| number.is_true()),
        _ => None,
    };
    Err(Branch::of(node, known))
}

/// The shape that a row of numbers describes.
pub(super) fn described(importer: &Importer<'_>, item: &Item) -> Result<Shape> {
    let numbers = importer.numbers(item)?;
    let dims = numbers.iter().map(|number| number.dim()).collect::<Option<Vec<Dim>>>();
    let shape = Shape(dims.ok_or_else(|| Fault::mismatch(importer.shape(item), "a row of sizes"))?);
    importer.admit(&shape)?;
    Ok(shape)
}

/// The sizes of a shape without a batch, small enough for a constant.
fn small(shape: &Shape) -> Option<Vec<u64>> {
    let dims = shape.sizes();
    let few = !shape.is_batched() && elements(&dims)? <= KEPT as u64;
    few.then_some(dims)
}

/// `ConstantOfShape`.
pub(super) fn constant_of_shape(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let sizes = importer.item(node, 0)?;
    let shape = described(importer, &sizes)?;
    let (number, kind) = match node.attribute("value").and_then(|attribute| attribute.t.as_ref()) {
        None => (Some(Number::Real(0.0)), Kind::Real),
        Some(tensor) => match importer.tensor(tensor, false)? {
            Item::Constant(constant) => (constant.single(), constant.kind),
            other => (None, other.kind()),
        },
    };
    Ok(match (number, small(&shape)) {
        (Some(number), Some(dims)) => {
            let count = elements(&dims).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
            Item::Constant(Constant { dims, numbers: vec![number; count], kind, origin: None })
        }
        _ => importer.computed(&[], shape, kind)?,
    })
}

/// `Size`: the number of elements.
pub(super) fn size(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (_, shape) = importer.shaped(node, 0)?;
    let size = shape.0.iter().try_fold(1_u64, |product, dim| product.checked_mul(dim.size));
    let number = size.and_then(|size| Number::of_dim(Dim { size, batched: shape.is_batched() }));
    let number = number.ok_or_else(|| Fault::mismatch(&shape, "sizes of at most 63 bits"))?;
    Ok(Item::Constant(Constant::scalar(number, Kind::Whole)))
}

/// `OneHot`: one row per index.
pub(super) fn one_hot(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (item, mut shape) = importer.shaped(node, 0)?;
    let (depth, values) = (importer.item(node, 1)?, importer.item(node, 2)?);
    let depth = importer.ints(&depth)?.first().and_then(|&depth| u64::try_from(depth).ok());
    let depth = depth.ok_or_else(|| Fault::mismatch("a depth below zero", "a number of places"))?;
    let axis = place(node.int("axis")?.unwrap_or(-1), shape.rank() + 1)?;
    shape.0.insert(axis, Dim::fixed(depth));
    importer.computed(&[item], shape, values.kind())
}

/// `Range`, which may go over the batch.
pub(super) fn range(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let mut bounds = Vec::new();
    let mut numbers = Vec::new();
    for index in 0..3 {
        let item = importer.item(node, index)?;
        numbers.extend(importer.numbers(&item)?);
    }
    if let &[start, limit, step] = numbers.as_slice()
        && (start.int(), step.int()) == (Some(0), Some(1))
        && let Some(batch @ Dim { batched: true, .. }) = limit.dim()
    {
        return importer.computed(&[], Shape(vec![batch]), Kind::Whole);
    }
    for number in numbers {
        bounds.push(number.int().ok_or_else(|| Fault::mismatch("these bounds", "numbers, or 0 up to the batch"))?);
    }
    let &[start, limit, step] = bounds.as_slice() else {
        return Err(Fault::mismatch(format!("{} bounds", bounds.len()), "a start, a limit and a step"));
    };
    let span = i128::from(limit) - i128::from(start);
    let step_wide = i128::from(step);
    ensure!(step != 0, Fault::mismatch("a step of zero", "another step"));
    let count = if (span > 0) == (step > 0) { (span.abs() + step_wide.abs() - 1) / step_wide.abs() } else { 0 };
    let count = u64::try_from(count).map_err(|_| Fault::mismatch("a range beyond 64 bits", "a shorter one"))?;
    Ok(if count <= KEPT as u64 {
        let numbers = (0..i64::try_from(count).unwrap_or(0))
            .map(|place| Number::whole(start.wrapping_add(place.wrapping_mul(step))));
        Item::Constant(Constant::row(numbers.collect()))
    } else {
        importer.computed(&[], Shape::fixed(&[count]), Kind::Whole)?
    })
}

/// `Cast`: another kind of element; a value is unchanged, as networks here are fp32 throughout.
pub(super) fn cast(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let to = i32::try_from(node.required_int("to")?).map_err(|_| Fault::new("attribute 'to' is an unknown type"))?;
    let kind = Kind::of(to)?;
    Ok(match importer.item(node, 0)? {
        Item::Constant(mut constant) => {
            let numbers = constant.numbers.iter().map(|number| number.cast(kind)).collect::<Option<Vec<_>>>();
            match numbers {
                Some(numbers) => {
                    // A cast copies, so that autograd would not keep the constant of the file.
                    if kind != constant.kind {
                        constant.origin = None;
                    }
                    Item::Constant(Constant { numbers, kind, ..constant })
                }
                None => importer.computed(&[], constant.shape(), kind)?,
            }
        }
        item if item.kind() != kind => {
            let shape = importer.shape(&item);
            importer.computed(&[item], shape, kind)?
        }
        same => same,
    })
}

/// An operator whose result has its first input's shape; it is not computed, and saves nothing (`CumSum`, `Trilu`).
pub(super) fn same_shape(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (item, shape) = importer.shaped(node, 0)?;
    importer.take(node, item, Taking::Repeat, Extent::ZERO, shape)
}

/// An element-wise operator on tensors that need no gradient, or that has no derivative.
pub(super) fn elementwise(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let items = inputs(importer, node)?;
    if let Some(item) = items.iter().find(|item| item.is_learned() && node.operator == "Mod") {
        return Err(Fault::mismatch(importer.shape(item), "tensors that need no gradient"));
    }
    fold(importer, node, &items)
}

/// All inputs of `node`.
pub(super) fn inputs(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Vec<Item>> {
    (0..node.inputs.len().max(1)).map(|index| importer.item(node, index)).collect()
}

/// The result of an element-wise operator on constant or opaque `items`.
pub(super) fn fold(importer: &Importer<'_>, node: &OnnxNode, items: &[Item]) -> Result<Item> {
    let mut shape = Shape::default();
    for item in items {
        shape = broadcast(&shape, &importer.shape(item))?;
    }
    let kind = match node.operator.as_str() {
        "And" | "Equal" | "Greater" | "GreaterOrEqual" | "IsInf" | "IsNaN" | "Less" | "LessOrEqual" | "Not" | "Or"
        | "Xor" => Kind::Truth,
        "Where" => items.get(1).map_or(Kind::Real, Item::kind),
        _ if items.iter().any(|item| item.kind() == Kind::Real) => Kind::Real,
        _ => items.first().map_or(Kind::Real, Item::kind),
    };
    match constants(&shape, items).and_then(|parts| compute(&node.operator, &shape, &parts, kind)) {
        Some(constant) => Ok(Item::Constant(constant)),
        None => importer.computed(items, shape, kind),
    }
}

/// The items as constants stretched to `shape`; `None` unless all of them are constants.
fn constants(shape: &Shape, items: &[Item]) -> Option<Vec<Constant>> {
    let dims = small(shape)?;
    let stretched = items.iter().map(|item| if let Item::Constant(c) = item { c.stretch(&dims) } else { None });
    stretched.collect()
}

fn compute(operator: &str, shape: &Shape, parts: &[Constant], kind: Kind) -> Option<Constant> {
    let first = parts.first()?;
    let at = |part: usize, place: usize| parts.get(part).and_then(|part| part.numbers.get(place)).copied();
    let number = |place: usize| match (operator, parts.len()) {
        ("Where", 3) => at(if at(0, place)?.is_true() { 1 } else { 2 }, place),
        (_, 1) => at(0, place)?.map(operator),
        _ => (1..parts.len()).try_fold(at(0, place)?, |result, part| result.combine(operator, at(part, place)?)),
    };
    let numbers = (0..first.numbers.len()).map(number).collect::<Option<Vec<_>>>()?;
    Some(Constant { dims: small(shape)?, numbers, kind, origin: None })
}

/// The shape to which both broadcast.
pub(super) fn broadcast(a: &Shape, b: &Shape) -> Result<Shape> {
    a.broadcast(b).ok_or_else(|| Fault::mismatch(format!("{a} and {b}"), "shapes that broadcast to one"))
}
