//! The operators that can be imported, and how a node finds its own.

use haversack_devices::text::nearest;

use super::constant::{Constant, Kind, Number};
use super::graph::OnnxNode;
use super::importer::Importer;
use super::items::Item;
use super::{Fault, Result, evaluate, layers, pointwise, rearrange, slices};
use crate::operator::Unary;

/// Adds what a node does to the network, and says what its first output is.
type Apply = fn(&mut Importer<'_>, &OnnxNode) -> Result<Item>;

/// What each operator does.
const OPERATORS: &[(&[&str], Apply)] = &[
    (&["Abs", "And", "Ceil", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less"], evaluate::elementwise),
    (&["LessOrEqual", "Max", "Min", "Mod", "Not", "Or", "Sqrt"], evaluate::elementwise),
    (&["Add", "Sub"], pointwise::add),
    (&["AveragePool"], layers::average_pool),
    (&["BatchNormalization"], layers::batch_norm),
    (&["Cast"], evaluate::cast),
    (&["Clip"], pointwise::clip),
    (&["Concat"], rearrange::concat),
    (&["Constant"], constant),
    (&["ConstantOfShape"], evaluate::constant_of_shape),
    (&["Conv"], layers::convolution),
    (&["CumSum", "Trilu"], evaluate::same_shape),
    (&["Div"], pointwise::div),
    (&["Dropout"], layers::dropout),
    (&["Expand"], rearrange::expand),
    (&["Flatten"], rearrange::flatten),
    (&["Gather"], slices::gather),
    (&["Gelu"], pointwise::gelu),
    (&["Gemm"], layers::gemm),
    (&["GlobalAveragePool"], layers::global_average_pool),
    (&["Identity"], |importer, node| importer.item(node, 0)),
    (&["LayerNormalization"], layers::layer_norm),
    (&["LogSoftmax"], layers::log_softmax),
    (&["MatMul"], layers::matmul),
    (&["MaxPool"], layers::max_pool),
    (&["Mul"], pointwise::mul),
    (&["Neg"], |importer, node| pointwise::unary(importer, node, Unary::Scale(-1.0))),
    (&["Pad"], slices::pad),
    (&["Pow"], pointwise::pow),
    (&["Range"], evaluate::range),
    (&["ReduceMean"], layers::reduce_mean),
    (&["Relu"], pointwise::relu),
    (&["Reshape"], rearrange::reshape),
    (&["Shape"], evaluate::shape),
    (&["Sigmoid"], |importer, node| pointwise::unary(importer, node, Unary::Sigmoid)),
    (&["Slice"], slices::slice),
    (&["Softmax"], layers::softmax),
    (&["Split"], slices::split),
    (&["Squeeze"], rearrange::squeeze),
    (&["Swish"], pointwise::swish),
    (&["Tanh"], |importer, node| pointwise::unary(importer, node, Unary::Tanh)),
    (&["Transpose"], rearrange::transpose),
    (&["Unsqueeze"], rearrange::unsqueeze),
    (&["Where"], pointwise::select),
];

/// The names of the operators that can be imported, in alphabetical order.
///
/// `Erf` and the parts of a layer normalisation are taken where they make up a GELU or a layer
/// normalisation; the integer and boolean ones only where no gradient flows.
pub fn operators() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<&'static str> = OPERATORS.iter().flat_map(|(names, _)| *names).copied().collect();
    names.sort_unstable();
    names.into_iter()
}

/// Adds what `node` does.
pub(super) fn apply(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<()> {
    let found = OPERATORS.iter().find(|(names, _)| names.contains(&node.operator.as_str()));
    let (_, apply) = found.ok_or_else(|| unsupported(&node.operator))?;
    let item = apply(importer, node)?;
    importer.set(node, 0, item);
    Ok(())
}

/// Those that are computed beforehand, of constants and of shapes: no gradient flows through them.
const COMPUTED_BEFOREHAND: &[&str] = &[
    "Abs",
    "And",
    "Ceil",
    "Equal",
    "Floor",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Min",
    "Mod",
    "Not",
    "Or",
    "Sqrt",
    "Cast",
    "Constant",
    "ConstantOfShape",
    "CumSum",
    "Trilu",
    "Range",
    "Shape",
];

/// Whether gradients may flow through the operator `name`, or it is taken of constants and shapes alone.
pub fn carries_gradients(name: &str) -> bool {
    !COMPUTED_BEFOREHAND.contains(&name)
}

fn unsupported(operator: &str) -> Fault {
    const SHOWN: usize = 3;
    let plain = operator.rsplit('.').next().unwrap_or(operator);
    // What an operator is composed of by its name comes first: a transposed convolution is near a convolution.
    let mut near: Vec<_> = operators().filter(|name| plain.contains(name)).collect();
    near.extend(nearest(plain, operators()).filter(|name| !plain.contains(name)));
    near.truncate(SHOWN);
    let hint = match plain {
        "Erf" => " (it is taken as a part of a GELU only)",
        "Einsum" => " (MatMul, Transpose and Reshape say the same)",
        _ => "",
    };
    let near = if near.is_empty() { String::new() } else { format!("; the nearest that are: {}", near.join(", ")) };
    Fault::new(format!(
        "the operator '{operator}' is not supported{hint}{near}; `haversack list operators` has all that are"
    ))
}

/// `Constant`.
fn constant(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let real = |value: f32| Number::Real(f64::from(value));
    Ok(if let Some(tensor) = node.attribute("value").and_then(|attribute| attribute.t.as_ref()) {
        let mut item = importer.tensor(tensor, false)?;
        // A constant's tensor has no name of its own.
        if let Item::Constant(Constant { origin: Some(origin), .. }) = &mut item {
            origin.name.clone_from(&node.name);
        } else if let Item::Opaque(opaque) = &mut item {
            opaque.rename(&node.name);
        }
        item
    } else if let Some(value) = node.int("value_int")? {
        Item::Constant(Constant::scalar(Number::whole(value), Kind::Whole))
    } else if let Some(value) = node.float("value_float") {
        Item::Constant(Constant::scalar(Number::Real(value), Kind::Real))
    } else if let Some(attribute) = node.attribute("value_ints") {
        Item::Constant(Constant::row(attribute.ints.iter().copied().map(Number::whole).collect()))
    } else if let Some(attribute) = node.attribute("value_floats") {
        let numbers: Vec<_> = attribute.floats.iter().copied().map(real).collect();
        Item::Constant(Constant { kind: Kind::Real, ..Constant::row(numbers) })
    } else {
        return Err(Fault::new("attribute 'value' is missing; expected a tensor, an integer or a float"));
    })
}
