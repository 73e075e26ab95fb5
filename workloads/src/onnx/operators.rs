//! The operators that can be imported, and the search for a node's own.
//!
//! Also the advice for operators that cannot be imported: those of its family that can, and alternatives.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use haversack_devices::text::{nearest, read_toml};
use serde::Deserialize;

use super::{
    Constant, Fault, Importer, Item, Kind, Number, OnnxNode, Result, composed, evaluate, further, layers, pointwise,
    rearrange, slices,
};
use crate::{Pairing, Pointwise, Reducing, Unary};

/// Adds the operation of a node to the network, and returns the item of its first output.
type Apply = fn(&mut Importer<'_>, &OnnxNode) -> Result<Item>;

/// The names of operators, and the function that applies each of them.
type Operators = &'static [(&'static [&'static str], Apply)];

/// Those through which gradients may flow.
const DIFFERENTIABLE: Operators = &[
    (&["Abs"], |importer, node| pointwise::unary(importer, node, Unary::Other(Pointwise::Abs))),
    (&["Add", "Sub"], pointwise::add),
    (&["Attention", "GroupQueryAttention"], composed::attention),
    (&["AveragePool"], layers::average_pool),
    (&["BatchNormalization"], layers::batch_norm),
    (&["Ceil", "Floor", "Round", "Sign"], |importer, node| {
        pointwise::unary(importer, node, Unary::Other(Pointwise::Round))
    }),
    (&["Celu", "Elu", "Selu"], |importer, node| pointwise::unary(importer, node, Unary::Other(Pointwise::Elu))),
    (&["Clip"], pointwise::clip),
    (&["Concat"], rearrange::concat),
    (&["Conv"], layers::convolution),
    (&["ConvTranspose"], further::transposed_convolution),
    (&["Cos", "Sin"], |importer, node| pointwise::unary(importer, node, Unary::Other(Pointwise::Sin))),
    (&["CumSum", "Trilu"], evaluate::same_shape),
    (&["DepthToSpace", "SpaceToDepth"], further::blocks),
    (&["Div"], |importer, node| pointwise::pairwise(importer, node, Pairing::Quotient)),
    (&["Dropout"], layers::dropout),
    (&["Einsum"], further::einsum),
    (&["Erf"], |importer, node| pointwise::unary(importer, node, Unary::Other(Pointwise::Erf))),
    (&["Exp"], |importer, node| pointwise::unary(importer, node, Unary::Other(Pointwise::Exp))),
    (&["Expand"], rearrange::expand),
    (&["Flatten"], rearrange::flatten),
    (&["GRU", "LSTM", "RNN"], further::recurrent),
    (&["Gather"], slices::gather),
    (&["GatherElements", "GatherND"], further::gather_elements),
    (&["Gelu"], pointwise::gelu),
    (&["Gemm"], layers::gemm),
    (&["GlobalAveragePool"], layers::global_average_pool),
    (&["GlobalMaxPool"], layers::global_max_pool),
    (&["GroupNormalization", "InstanceNormalization"], further::group_norm),
    (&["HardSigmoid"], |importer, node| pointwise::unary(importer, node, Unary::Other(Pointwise::HardSigmoid))),
    (&["HardSwish"], |importer, node| pointwise::unary(importer, node, Unary::Other(Pointwise::HardSwish))),
    (&["If"], evaluate::branch),
    (&["Identity"], |importer, node| importer.item(node, 0)),
    (&["LRN"], composed::local_response),
    (&["LayerNormalization"], layers::layer_norm),
    (&["LeakyRelu"], pointwise::leaky_relu),
    (&["Log"], |importer, node| pointwise::unary(importer, node, Unary::Other(Pointwise::Log))),
    (&["LogSoftmax"], layers::log_softmax),
    (&["LpNormalization"], composed::lp_norm),
    (&["MatMul"], layers::matmul),
    (&["Max", "Min"], pointwise::extreme),
    (&["MaxPool"], layers::max_pool),
    (&["Mean", "Sum"], pointwise::sum),
    (&["Mish"], |importer, node| pointwise::unary(importer, node, Unary::Other(Pointwise::Mish))),
    (&["Mul"], pointwise::mul),
    (&["Neg"], |importer, node| pointwise::unary(importer, node, Unary::Scale(-1.0))),
    (&["PRelu"], |importer, node| pointwise::pairwise(importer, node, Pairing::PRelu)),
    (&["Pad"], slices::pad),
    (&["Pow"], |importer, node| pointwise::pairwise(importer, node, Pairing::PowerOf)),
    (&["RMSNormalization", "SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization"], composed::rms_norm),
    (&["Reciprocal"], |importer, node| pointwise::unary(importer, node, Unary::Other(Pointwise::Reciprocal))),
    (&["ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceProd", "ReduceSumSquare"], |importer, node| {
        further::reduce(importer, node, Some(Reducing::Norm))
    }),
    (&["ReduceMax", "ReduceMin"], |importer, node| further::reduce(importer, node, Some(Reducing::Largest))),
    (&["ReduceMean"], |importer, node| further::reduce(importer, node, None)),
    (&["ReduceSum"], |importer, node| further::reduce(importer, node, Some(Reducing::Sum))),
    (&["Relu"], |importer, node| pointwise::overwriting(importer, node, Unary::Relu)),
    (&["Reshape"], rearrange::reshape),
    (&["Resize", "Upsample"], further::resize),
    (&["RotaryEmbedding"], composed::rotary),
    (&["Sigmoid"], |importer, node| pointwise::unary(importer, node, Unary::Sigmoid)),
    (&["Slice"], slices::slice),
    (&["Softmax"], layers::softmax),
    (&["Softplus"], |importer, node| pointwise::unary(importer, node, Unary::Other(Pointwise::Softplus))),
    (&["Softsign"], |importer, node| pointwise::unary(importer, node, Unary::Other(Pointwise::Softsign))),
    (&["Split"], slices::split),
    (&["Sqrt"], |importer, node| pointwise::unary(importer, node, Unary::Other(Pointwise::Sqrt))),
    (&["Squeeze"], rearrange::squeeze),
    (&["Swish"], pointwise::swish),
    (&["Tanh"], |importer, node| pointwise::unary(importer, node, Unary::Tanh)),
    (&["ThresholdedRelu"], pointwise::thresholded),
    (&["Tile"], further::tile),
    (&["TopK"], further::top),
    (&["Transpose"], rearrange::transpose),
    (&["Unsqueeze"], rearrange::unsqueeze),
    (&["Where"], pointwise::select),
];

/// Those that are computed beforehand, from constants and shapes: no gradient flows through them.
const COMPUTED_BEFOREHAND: Operators = &[
    (&["And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less"], evaluate::elementwise),
    (&["ArgMax", "ArgMin"], further::arg),
    (&["Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"], further::random),
    (&["Cast"], evaluate::cast),
    (&["Constant"], constant),
    (&["ConstantOfShape"], evaluate::constant_of_shape),
    (&["LessOrEqual", "Mod", "Not", "Or", "Xor"], evaluate::elementwise),
    (&["OneHot"], evaluate::one_hot),
    (&["Range"], evaluate::range),
    (&["ScatterElements", "ScatterND"], further::scatter),
    (&["Shape"], evaluate::shape),
    (&["Size"], evaluate::size),
];

/// Operators that [`super::refold`] composes and that ONNX lacks.
const REFOLDED: Operators = &[
    (&["CosineSimilarity"], composed::cosine_similarity),
    (&["Glu"], pointwise::gated),
    (&["MaxWithPlaces"], further::largest),
    (&["WeightNorm"], layers::weight_norm),
];

/// The names of the operators that can be imported, in alphabetical order.
///
/// Those that make up a GELU, a SiLU or a normalisation are combined into it; the integer and boolean ones are
/// supported only where no gradient flows.
pub fn operators() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<&'static str> =
        DIFFERENTIABLE.iter().chain(COMPUTED_BEFOREHAND).flat_map(|(names, _)| *names).copied().collect();
    names.sort_unstable();
    names.into_iter()
}

/// Applies `node`.
pub(super) fn apply(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<()> {
    let found = { DIFFERENTIABLE.iter().chain(COMPUTED_BEFOREHAND).chain(REFOLDED) }
        .find(|(names, _)| names.contains(&node.operator.as_str()));
    let (_, apply) = found.ok_or_else(|| unsupported(&node.operator, &operators().collect::<Vec<_>>()))?;
    let item = apply(importer, node)?;
    importer.set(node, 0, item);
    Ok(())
}

/// Whether gradients may flow through the operator `name`; if not, it takes only constants and shapes.
pub fn carries_gradients(name: &str) -> bool {
    !COMPUTED_BEFOREHAND.iter().any(|(names, _)| names.contains(&name))
}

/// `Constant`.
fn constant(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let real = |value: f32| Number::Real(f64::from(value));
    Ok(if let Some(tensor) = node.attribute("value").and_then(|attribute| attribute.t.as_ref()) {
        let mut item = importer.tensor(tensor, false)?;
        // A constant's tensor has no name.
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

/// Operators of one kind.
#[derive(Deserialize)]
struct Family {
    /// The name of the family.
    name: String,
    /// Parts of names by which an operator is assigned to this family.
    marks: Vec<String>,
    /// Advice to the user about an operator that is not supported.
    advice: String,
}

static FAMILIES: LazyLock<Vec<Family>> = LazyLock::new(|| {
    let mut read: BTreeMap<String, Vec<Family>> =
        read_toml("families.toml", include_str!("families.toml")).unwrap_or_default();
    read.remove("family").unwrap_or_default()
});

/// The fault of a node of the unsupported `operator`, with the operators of its family among `supported`.
pub(super) fn unsupported(operator: &str, supported: &[&str]) -> Fault {
    let plain = operator.rsplit('.').next().unwrap_or(operator);
    let family = FAMILIES.iter().find(|family| family.marks.iter().any(|mark| belongs(plain, mark)));
    let siblings = |family: &Family| {
        let is_of_it = |name: &&&str| family.marks.iter().any(|mark| belongs(name, mark));
        supported.iter().filter(is_of_it).copied().collect::<Vec<_>>().join(", ")
    };
    let (near, advice) = match family {
        Some(family) => match siblings(family) {
            none if none.is_empty() => (format!("; no {} are", family.name), family.advice.as_str()),
            names => (format!("; of {} these are: {names}", family.name), family.advice.as_str()),
        },
        None => {
            let near = nearest(plain, supported.iter().copied());
            let near = near.map_or_else(String::new, |near| format!("; the nearest that are: {near}"));
            (near, "write it in the network by operators that are, or leave it out of the export")
        }
    };
    Fault::new(format!(
        "the operator '{operator}' is not supported{near}; to continue, {advice} (`haversack list operators` has all)"
    ))
}

/// Whether an operator's name contains `mark`; a short mark must be the whole name.
fn belongs(name: &str, mark: &str) -> bool {
    const SHORT: usize = 3;
    if mark.len() < SHORT || mark == "Scan" { name == mark } else { name.contains(mark) }
}
