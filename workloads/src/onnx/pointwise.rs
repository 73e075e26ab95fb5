//! Element-wise operators where a gradient flows.

use super::evaluate::{broadcast, fold, inputs};
use super::{Constant, Fault, Importer, Item, Number, OnnxNode, Result};
use crate::{Addend, Mask, Pairing, Pointwise, StorageId, Unary, ValueId};

/// The two sides of a binary operator.
enum Sides {
    /// Neither needs a gradient.
    Folded(Item),
    /// Both are values.
    Values(ValueId, ValueId),
    /// One is a value, the other needs no gradient; `first` if the value comes first.
    Mixed { x: ValueId, other: Item, first: bool },
}

fn sides(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Sides> {
    let (a, b) = (importer.item(node, 0)?, importer.item(node, 1)?);
    match (a.is_learned(), b.is_learned()) {
        (false, false) => fold(importer, node, &[a, b]).map(Sides::Folded),
        (true, true) => Ok(Sides::Values(importer.value(node, &a)?, importer.value(node, &b)?)),
        (first, _) => {
            let (item, other) = if first { (a, b) } else { (b, a) };
            Ok(Sides::Mixed { x: importer.value(node, &item)?, other, first })
        }
    }
}

/// Whether the result with a second operand has the shape of `x`.
fn keeps_shape(importer: &Importer<'_>, x: ValueId, other: &Item) -> Result<bool> {
    let (shape, small) = (importer.network.shape(x), importer.shape(other));
    Ok(broadcast(shape, &small)? == *shape)
}

/// The operands in the order of the node, both as values.
fn in_order(
    importer: &mut Importer<'_>,
    node: &OnnxNode,
    x: ValueId,
    other: &Item,
    first: bool,
) -> Result<[ValueId; 2]> {
    let other = importer.value(node, other)?;
    Ok(if first { [x, other] } else { [other, x] })
}

/// `Add`, or `Sub`, which costs and saves the same.
pub(super) fn add(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    Ok(match sides(importer, node)? {
        Sides::Folded(item) => item,
        Sides::Values(a, b) if node.operator == "Sub" => Item::Value(importer.network.subtract(&node.name, a, b)?),
        Sides::Values(a, b) => Item::Value(importer.network.add(&node.name, a, b)?),
        Sides::Mixed { x, other, first } if !keeps_shape(importer, x, &other)? => {
            let [a, b] = in_order(importer, node, x, &other, first)?;
            Item::Value(importer.network.add(&node.name, a, b)?)
        }
        Sides::Mixed { x, other, first } => {
            let addend = match (single(&other), node.operator == "Sub", first) {
                (Some(value), false, _) => Addend::Value(value),
                (Some(value), true, true) => Addend::Value(-value),
                // Subtraction from a constant changes the sign, which [`Addend::Value`] does not describe.
                _ => Addend::Tensor,
            };
            Item::Value(importer.network.unary(&node.name, x, Unary::AddConstant(addend)))
        }
    })
}

/// The only number of a constant.
#[expect(clippy::cast_possible_truncation, reason = "networks here compute in fp32")]
fn single(item: &Item) -> Option<f32> {
    item.constant()?.single()?.real().map(|value| value as f32)
}

/// `Mul`.
pub(super) fn mul(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    Ok(match sides(importer, node)? {
        Sides::Folded(item) => item,
        Sides::Values(a, b) => Item::Value(importer.network.mul(&node.name, a, b)?),
        Sides::Mixed { x, other, .. } => Item::Value(scale(importer, node, x, &other)?),
    })
}

/// A value multiplied or divided by an operand that needs no gradient.
fn scale(importer: &mut Importer<'_>, node: &OnnxNode, x: ValueId, other: &Item) -> Result<ValueId> {
    if let Some(factor) = single(other).filter(|_| importer.shape(other).rank() <= importer.network.shape(x).rank()) {
        let factor = if node.operator == "Div" { 1.0 / factor } else { factor };
        return Ok(importer.network.unary(&node.name, x, Unary::Scale(factor)));
    }
    let other = importer.value(node, other)?;
    Ok(importer.network.mul(&node.name, x, other)?)
}

/// An element-wise function of two operands; of one operand if the other is a constant with a known special case.
pub(super) fn pairwise(importer: &mut Importer<'_>, node: &OnnxNode, pairing: Pairing) -> Result<Item> {
    let [a, b] = match sides(importer, node)? {
        Sides::Folded(item) => return Ok(item),
        Sides::Values(a, b) => [a, b],
        Sides::Mixed { x, other, first } => {
            let number = single(&other).filter(|_| keeps_shape(importer, x, &other).unwrap_or(false));
            let function = match (pairing, number, first) {
                (Pairing::Quotient, _, true) => return scale(importer, node, x, &other).map(Item::Value),
                (Pairing::Quotient, Some(1.0), false) => Some(Unary::Other(Pointwise::Reciprocal)),
                (Pairing::PowerOf, Some(1.0), true) => Some(Unary::Scale(1.0)),
                (Pairing::PowerOf, Some(exponent), true) => Some(Unary::Power(exponent)),
                (Pairing::Extreme, Some(bound), _) if node.operator == "Max" => {
                    Some(Unary::Clip { low: bound, high: f32::INFINITY })
                }
                (Pairing::Extreme, Some(bound), _) => Some(Unary::Clip { low: f32::NEG_INFINITY, high: bound }),
                _ => None,
            };
            if let Some(function) = function {
                return Ok(Item::Value(importer.network.unary(&node.name, x, function)));
            }
            in_order(importer, node, x, &other, first)?
        }
    };
    Ok(Item::Value(importer.network.pairwise(&node.name, a, b, pairing)?))
}

/// `Max` and `Min` of one, two or more operands.
pub(super) fn extreme(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let items = inputs(importer, node)?;
    if !items.iter().any(Item::is_learned) {
        return fold(importer, node, &items);
    }
    match items.as_slice() {
        [only] => Ok(only.clone()),
        [_, _] => pairwise(importer, node, Pairing::Extreme),
        _ => {
            let mut values =
                items.iter().map(|item| importer.value(node, item)).collect::<Result<Vec<_>, _>>()?.into_iter();
            let first = values.next().ok_or_else(|| Fault::new("no operand; expected one"))?;
            let network = &mut importer.network;
            let whole = { values }.try_fold(first, |a, b| network.pairwise(&node.name, a, b, Pairing::Extreme))?;
            Ok(Item::Value(whole))
        }
    }
}

/// `LeakyRelu`, in place if its input has no other reader.
pub(super) fn leaky_relu(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    const DEFAULT: f64 = 0.01;
    #[expect(clippy::cast_possible_truncation, reason = "networks here compute in fp32")]
    let slope = node.float("alpha").unwrap_or(DEFAULT) as f32;
    overwriting(importer, node, Unary::Other(Pointwise::LeakyRelu(slope)))
}

/// An element-wise function of one operand, in place if the operand has no other reader.
pub(super) fn overwriting(importer: &mut Importer<'_>, node: &OnnxNode, function: Unary) -> Result<Item> {
    of_one(importer, node, |importer, x| {
        if importer.overwrites(x) {
            return importer.network.in_place(&node.name, x, function);
        }
        importer.network.unary(&node.name, x, function)
    })
}

/// An element-wise function of one operand.
pub(super) fn unary(importer: &mut Importer<'_>, node: &OnnxNode, function: Unary) -> Result<Item> {
    of_one(importer, node, |importer, x| importer.network.unary(&node.name, x, function))
}

/// The result of `apply` for the first input, or the folded result if it needs no gradient.
fn of_one<'a>(
    importer: &mut Importer<'a>,
    node: &OnnxNode,
    apply: impl FnOnce(&mut Importer<'a>, ValueId) -> ValueId,
) -> Result<Item> {
    let item = importer.item(node, 0)?;
    if !item.is_learned() {
        return fold(importer, node, &[item]);
    }
    let x = importer.value(node, &item)?;
    Ok(Item::Value(apply(importer, x)))
}

/// `Gelu`, by either formula.
pub(super) fn gelu(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let by_tanh = node.text("approximate").as_deref() == Some("tanh");
    unary(importer, node, if by_tanh { Unary::GeluTanh } else { Unary::Gelu })
}

/// `Swish` with a factor of one: SiLU.
pub(super) fn swish(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    if node.float("alpha").is_some_and(|alpha| alpha != 1.0) {
        return Err(Fault::mismatch("a factor within the function ('alpha')", "alpha of 1"));
    }
    unary(importer, node, Unary::Silu)
}

/// `ThresholdedRelu`, which saves its input.
pub(super) fn thresholded(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    unary(importer, node, clamp(&[Some(node.float("alpha").unwrap_or(1.0)), None]))
}

/// `Clip`: ReLU6, in place if its input has no other reader, or another clamp, which saves its input as well.
pub(super) fn clip(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let mut bounds = Vec::new();
    for (index, name) in [(1, "min"), (2, "max")] {
        bounds.push(match importer.optional(node, index)? {
            Some(Item::Constant(constant)) => constant.single().and_then(Number::real),
            Some(_) => return Err(Fault::mismatch(format!("a '{name}' that is not constant"), "a constant one")),
            None => node.float(name),
        });
    }
    if let Item::Constant(constant) = importer.item(node, 0)? {
        let within = |&number: &Number| {
            let ends = [("Max", bounds.first()), ("Min", bounds.get(1))];
            ends.into_iter()
                .filter_map(|(operator, bound)| Some((operator, (*bound?)?)))
                .try_fold(number, |number, (operator, bound)| number.combine(operator, Number::Real(bound)))
        };
        if let Some(numbers) = constant.numbers.iter().map(within).collect::<Option<Vec<_>>>() {
            return Ok(Item::Constant(Constant { numbers, origin: None, ..constant }));
        }
    }
    if bounds == [Some(0.0), Some(6.0)] {
        return overwriting(importer, node, Unary::Relu6);
    }
    unary(importer, node, clamp(&bounds))
}

/// A clamp to `bounds`, of which either may be open.
#[expect(clippy::cast_possible_truncation, reason = "networks here compute in fp32")]
fn clamp(bounds: &[Option<f64>]) -> Unary {
    let bound = |place: usize, open: f32| bounds.get(place).copied().flatten().map_or(open, |bound| bound as f32);
    Unary::Clip { low: bound(0, f32::NEG_INFINITY), high: bound(1, f32::INFINITY) }
}

/// `Where`: a value masked by a condition that needs no gradient, or one of two values.
pub(super) fn select(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let items = inputs(importer, node)?;
    let [condition, a, b] = items.as_slice() else {
        return Err(Fault::mismatch(format!("{} operands", items.len()), "a condition and two sides"));
    };
    if !items.iter().any(Item::is_learned) {
        return fold(importer, node, &items);
    }
    let shape = broadcast(&importer.shape(condition), &broadcast(&importer.shape(a), &importer.shape(b))?)?;
    importer.admit(&shape)?;
    let chosen = importer.value(node, condition)?;
    let buffer = importer.network.value(chosen).storage;
    Ok(Item::Value(match (a.is_learned(), b.is_learned()) {
        (true, false) if importer.shape(a) == shape => masked(importer, node, a, buffer)?,
        (false, true) if importer.shape(b) == shape => masked(importer, node, b, buffer)?,
        _ => {
            let sides = [importer.value(node, a)?, importer.value(node, b)?];
            importer.network.select(&node.name, buffer, sides, shape)
        }
    }))
}

fn masked(importer: &mut Importer<'_>, node: &OnnxNode, item: &Item, buffer: StorageId) -> Result<ValueId> {
    let x = importer.value(node, item)?;
    Ok(importer.network.masked(&node.name, x, buffer, Mask::Tensor))
}

/// `Sum` and `Mean` of any number of operands: sums of two.
pub(super) fn sum(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let items = inputs(importer, node)?;
    let shares = items.len() as f32;
    let mut whole: Option<Item> = None;
    for item in items {
        whole = Some(match whole {
            None => item,
            Some(sum) if !sum.is_learned() && !item.is_learned() => {
                fold(importer, &OnnxNode { operator: "Add".to_owned(), ..node.clone() }, &[sum, item])?
            }
            Some(sum) => {
                let [sum, item] = [importer.value(node, &sum)?, importer.value(node, &item)?];
                Item::Value(importer.network.add(&node.name, sum, item)?)
            }
        });
    }
    match whole.ok_or_else(|| Fault::new("no operand; expected one"))? {
        Item::Value(x) if node.operator == "Mean" && shares > 1.0 => {
            Ok(Item::Value(importer.network.unary(&node.name, x, Unary::Scale(1.0 / shares))))
        }
        other => Ok(other),
    }
}

/// A gated linear unit of the two outputs of a `Split`: both are parts of its input, so that only this is saved.
pub(super) fn gated(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let [a, b] = [importer.input(node, 0)?, importer.input(node, 1)?];
    Ok(Item::Value(importer.network.pairwise(&node.name, a, b, Pairing::Gated)?))
}
