//! Element-wise operators where a gradient flows.

use super::constant::Number;
use super::evaluate::{broadcast, fold, inputs};
use super::graph::OnnxNode;
use super::importer::Importer;
use super::items::Item;
use super::{Fault, Result};
use crate::network::ValueId;
use crate::operator::{Addend, Mask, Unary};

/// The two sides of a binary operator.
enum Sides {
    /// Neither needs a gradient.
    Folded(Item),
    /// Both are values.
    Values(ValueId, ValueId),
    /// One is a value, the other needs no gradient; `first` where the value stands first.
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

/// Refuses a second operand that would widen `x`.
fn keeps_shape(importer: &Importer<'_>, x: ValueId, other: &Item) -> Result<()> {
    let (shape, small) = (importer.network.shape(x), importer.shape(other));
    if broadcast(shape, &small)? == *shape {
        return Ok(());
    }
    Err(Fault::mismatch(format!("{shape} and {small}"), "a constant that broadcasts to the other operand"))
}

/// `Add`, or `Sub`, which costs and saves what a sum does.
pub(super) fn add(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    Ok(match sides(importer, node)? {
        Sides::Folded(item) => item,
        Sides::Values(a, b) if node.operator == "Sub" => Item::Value(importer.network.subtract(&node.name, a, b)?),
        Sides::Values(a, b) => Item::Value(importer.network.add(&node.name, a, b)?),
        Sides::Mixed { x, other, first } => {
            keeps_shape(importer, x, &other)?;
            let addend = match (single(&other), node.operator == "Sub", first) {
                (Some(value), false, _) => Addend::Value(value),
                (Some(value), true, true) => Addend::Value(-value),
                // What is subtracted from a constant changes its sign, which is not described.
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

/// A value times, or divided by, something that needs no gradient.
fn scale(importer: &mut Importer<'_>, node: &OnnxNode, x: ValueId, other: &Item) -> Result<ValueId> {
    keeps_shape(importer, x, other)?;
    if let Some(factor) = single(other) {
        let factor = if node.operator == "Div" { 1.0 / factor } else { factor };
        return Ok(importer.network.unary(&node.name, x, Unary::Scale(factor)));
    }
    let other = importer.value(node, other)?;
    Ok(importer.network.mul(&node.name, x, other)?)
}

/// `Div` by what needs no gradient.
pub(super) fn div(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    Ok(match sides(importer, node)? {
        Sides::Folded(item) => item,
        Sides::Mixed { x, other, first: true } => Item::Value(scale(importer, node, x, &other)?),
        Sides::Values(..) | Sides::Mixed { .. } => {
            return Err(Fault::mismatch(
                "a divisor that needs a gradient",
                "a constant one, outside a layer normalisation",
            ));
        }
    })
}

/// `Pow` with a constant exponent: saves its input.
pub(super) fn pow(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    Ok(match sides(importer, node)? {
        Sides::Folded(item) => item,
        Sides::Mixed { x, other: exponent, first: true } if single(&exponent).is_some() => {
            let exponent = single(&exponent).unwrap_or(1.0);
            let function = if exponent == 1.0 { Unary::Scale(1.0) } else { Unary::Power(exponent) };
            Item::Value(importer.network.unary(&node.name, x, function))
        }
        _ => return Err(Fault::mismatch("an exponent that is not constant", "a constant one")),
    })
}

/// The first input as a value, or the result where it needs no gradient.
fn operand(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Result<ValueId, Item>> {
    let item = importer.item(node, 0)?;
    Ok(match item {
        Item::Value(_) | Item::Weight(_) => Ok(importer.value(node, &item)?),
        other => Err(fold(importer, node, &[other])?),
    })
}

/// An element-wise function of one operand.
pub(super) fn unary(importer: &mut Importer<'_>, node: &OnnxNode, function: Unary) -> Result<Item> {
    Ok(match operand(importer, node)? {
        Ok(x) => Item::Value(importer.network.unary(&node.name, x, function)),
        Err(folded) => folded,
    })
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

/// `Relu`, in place where nobody else needs its input.
pub(super) fn relu(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    Ok(match operand(importer, node)? {
        Ok(x) if importer.overwrites(x) => Item::Value(importer.network.relu_in_place(&node.name, x)),
        Ok(x) => Item::Value(importer.network.unary(&node.name, x, Unary::Relu)),
        Err(folded) => folded,
    })
}

/// `Clip`: ReLU6, in place where nobody else needs its input, or another clamp, which saves its input as well.
pub(super) fn clip(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let mut bounds = Vec::new();
    for (index, name) in [(1, "min"), (2, "max")] {
        bounds.push(match importer.optional(node, index)? {
            Some(Item::Constant(constant)) => constant.single().and_then(Number::real),
            Some(_) => return Err(Fault::mismatch(format!("a '{name}' that is not constant"), "a constant one")),
            None => node.float(name),
        });
    }
    let is_relu6 = bounds == [Some(0.0), Some(6.0)];
    Ok(match operand(importer, node)? {
        Ok(x) if is_relu6 && importer.overwrites(x) => Item::Value(importer.network.relu6_in_place(&node.name, x)),
        Ok(x) if is_relu6 => Item::Value(importer.network.unary(&node.name, x, Unary::Relu6)),
        Ok(x) => Item::Value(importer.network.unary(&node.name, x, clamp(&bounds))),
        Err(folded) => folded,
    })
}

/// A clamp to `bounds`, of which either may be open.
#[expect(clippy::cast_possible_truncation, reason = "networks here compute in fp32")]
fn clamp(bounds: &[Option<f64>]) -> Unary {
    let bound = |place: usize, open: f32| bounds.get(place).copied().flatten().map_or(open, |bound| bound as f32);
    Unary::Clip { low: bound(0, f32::NEG_INFINITY), high: bound(1, f32::INFINITY) }
}

/// `Where`: a value masked by a condition that needs no gradient.
pub(super) fn select(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let items = inputs(importer, node)?;
    Ok(match items.as_slice() {
        [condition, a, b] if !condition.is_learned() && a.is_learned() != b.is_learned() => {
            let (item, other) = if a.is_learned() { (a, b) } else { (b, a) };
            let x = importer.value(node, item)?;
            keeps_shape(importer, x, other)?;
            keeps_shape(importer, x, condition)?;
            let condition = importer.value(node, condition)?;
            let buffer = importer.network.value(condition).storage;
            Item::Value(importer.network.masked(&node.name, x, buffer, Mask::Tensor))
        }
        [_, _, _] if !items.iter().any(Item::is_learned) => fold(importer, node, &items)?,
        _ => return Err(Fault::mismatch("these operands", "a condition and one constant side")),
    })
}
