//! The operators that can be imported, and how a node finds its own.

use super::constant::{Constant, Kind, Number};
use super::graph::Node;
use super::importer::Importer;
use super::items::Item;
use super::{Fault, evaluate, layers, pointwise, rearrange, slices};

type Apply = fn(&mut Importer<'_>, &Node) -> Result<(), Fault>;

const OPERATORS: &[(&str, Apply)] = &[
    ("Abs", evaluate::elementwise),
    ("Add", pointwise::add),
    ("And", evaluate::elementwise),
    ("AveragePool", layers::average_pool),
    ("BatchNormalization", layers::batch_norm),
    ("Cast", evaluate::cast),
    ("Ceil", evaluate::elementwise),
    ("Clip", pointwise::clip),
    ("Concat", rearrange::concat),
    ("Constant", constant),
    ("ConstantOfShape", evaluate::constant_of_shape),
    ("Conv", layers::convolution),
    ("CumSum", evaluate::same_shape),
    ("Div", pointwise::div),
    ("Dropout", layers::dropout),
    ("Equal", evaluate::elementwise),
    ("Expand", rearrange::expand),
    ("Flatten", rearrange::flatten),
    ("Floor", evaluate::elementwise),
    ("Gather", slices::gather),
    ("Gelu", pointwise::gelu),
    ("Gemm", layers::gemm),
    ("GlobalAveragePool", layers::global_average_pool),
    ("Greater", evaluate::elementwise),
    ("GreaterOrEqual", evaluate::elementwise),
    ("Identity", identity),
    ("LayerNormalization", layers::layer_norm),
    ("Less", evaluate::elementwise),
    ("LessOrEqual", evaluate::elementwise),
    ("LogSoftmax", layers::log_softmax),
    ("MatMul", layers::matmul),
    ("Max", evaluate::elementwise),
    ("MaxPool", layers::max_pool),
    ("Min", evaluate::elementwise),
    ("Mod", evaluate::elementwise),
    ("Mul", pointwise::mul),
    ("Neg", pointwise::neg),
    ("Not", evaluate::elementwise),
    ("Or", evaluate::elementwise),
    ("Pad", slices::pad),
    ("Pow", pointwise::pow),
    ("Range", evaluate::range),
    ("ReduceMean", layers::reduce_mean),
    ("Relu", pointwise::relu),
    ("Reshape", rearrange::reshape),
    ("Shape", evaluate::shape),
    ("Slice", slices::slice),
    ("Softmax", layers::softmax),
    ("Split", slices::split),
    ("Sqrt", evaluate::elementwise),
    ("Squeeze", rearrange::squeeze),
    ("Sub", pointwise::sub),
    ("Tanh", pointwise::tanh),
    ("Transpose", rearrange::transpose),
    ("Trilu", evaluate::same_shape),
    ("Unsqueeze", rearrange::unsqueeze),
    ("Where", pointwise::select),
];

/// The names of the operators that can be imported, in alphabetical order.
///
/// `Erf` and the parts of a layer normalisation are taken where they make up a GELU or a layer
/// normalisation; the integer and boolean ones only where no gradient flows.
pub fn operators() -> impl Iterator<Item = &'static str> {
    OPERATORS.iter().map(|&(name, _)| name)
}

/// Adds what `node` does.
pub(super) fn apply(importer: &mut Importer<'_>, node: &Node) -> Result<(), Fault> {
    match OPERATORS.iter().find(|(name, _)| *name == node.operator) {
        Some((_, apply)) => apply(importer, node),
        None => Err(unsupported(&node.operator)),
    }
}

fn unsupported(operator: &str) -> Fault {
    const SHOWN: usize = 3;
    let plain = operator.rsplit('.').next().unwrap_or(operator);
    let mut near: Vec<_> = operators().map(|name| (strsim::jaro_winkler(plain, name), name)).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near: Vec<_> = near.into_iter().take(SHOWN).map(|(_, name)| name).collect();
    let hint = if plain == "Erf" { " (it is taken as a part of a GELU only)" } else { "" };
    Fault::new(format!("the operator '{operator}' is not supported{hint}; the nearest that are: {}", near.join(", ")))
}

fn identity(importer: &mut Importer<'_>, node: &Node) -> Result<(), Fault> {
    let item = importer.item(node, 0)?;
    importer.set(node, 0, item);
    Ok(())
}

fn constant(importer: &mut Importer<'_>, node: &Node) -> Result<(), Fault> {
    let real = |value: f32| Number::Real(f64::from(value));
    let item = if let Some(tensor) = node.attribute("value").and_then(|attribute| attribute.t.as_ref()) {
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
    };
    importer.set(node, 0, item);
    Ok(())
}
