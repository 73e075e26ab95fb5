//! Operators with weights, products, pooling, normalisation, dropout and softmax.

use super::constant::Number;
use super::graph::OnnxNode;
use super::importer::Importer;
use super::items::{Item, Weight};
use super::rearrange::{axes, place};
use super::{Fault, Result};
use crate::network::{ParameterId, ValueId};
use crate::operator::{Averaging, EPSILON, MOMENTUM, Window};
use crate::shape::{Dim, Shape};

/// Kernel sizes, strides and paddings beyond this are faults of the file.
const MOST_POSITIONS: u64 = 1 << 24;

/// Input 0 as a value of samples × channels × height × width.
fn image(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<ValueId> {
    let x = importer.input(node, 0)?;
    let shape = importer.network.shape(x);
    let led = shape.0.first() == Some(&Dim::batched(1));
    if led && shape.rank() == 4 { Ok(x) } else { Err(Fault::mismatch(shape, "a B×C×H×W tensor (2-D only)")) }
}

fn pair(node: &OnnxNode, name: &str, values: &[i64], default: u64, least: u64) -> Result<[u64; 2]> {
    let sizes: Vec<Option<u64>> = values
        .iter()
        .map(|&value| u64::try_from(value).ok().filter(|size| (least..=MOST_POSITIONS).contains(size)))
        .collect();
    match sizes.as_slice() {
        [] if node.attribute(name).is_none() => Ok([default, default]),
        &[Some(height), Some(width)] => Ok([height, width]),
        _ => {
            Err(Fault::mismatch(format!("attribute '{name}' of {values:?}"), format!("two sizes of at least {least}")))
        }
    }
}

/// The window of a convolution or pooling whose kernel is `kernel`.
fn window(node: &OnnxNode, kernel: [u64; 2]) -> Result<Window> {
    let stride = pair(node, "strides", node.ints("strides"), 1, 1)?;
    if pair(node, "dilations", node.ints("dilations"), 1, 1)? != [1, 1] {
        return Err(Fault::mismatch(format!("dilations of {:?}", node.ints("dilations")), "dilations of 1"));
    }
    let padding = match (node.text("auto_pad").as_deref(), node.ints("pads")) {
        (Some("VALID"), _) => [0, 0],
        (None | Some("NOTSET"), &[top, left, bottom, right]) if (top, left) == (bottom, right) => {
            pair(node, "pads", &[top, left], 0, 0)?
        }
        (None | Some("NOTSET"), []) => [0, 0],
        // As many positions as before: with a stride of one, half the kernel on each side.
        (Some("SAME_UPPER" | "SAME_LOWER"), _) if stride == [1, 1] && kernel.iter().all(|k| k % 2 == 1) => {
            kernel.map(|k| k / 2)
        }
        (automatic, pads) => {
            let got = format!("padding of {pads:?}{}", automatic.map(|a| format!(" ({a})")).unwrap_or_default());
            return Err(Fault::mismatch(got, "the same padding on both sides of each of two axes"));
        }
    };
    Ok(Window { kernel, stride, padding })
}

/// The output of `window` over `x`, with `channels`; refused where it does not fit or would overflow.
fn windowed(
    importer: &Importer<'_>,
    x: ValueId,
    window: Window,
    channels: u64,
    round_up: bool,
    terms: u64,
) -> Result<()> {
    let shape = importer.network.shape(x);
    let sides = [0, 1].map(|axis| window.output(axis, shape.size(2 + axis), round_up));
    let [Some(height), Some(width)] = sides else {
        let [high, wide] = window.kernel;
        return Err(Fault::mismatch(shape, format!("at least {high}x{wide} positions with the padding")));
    };
    importer.admit_product(&Shape::batched(&[channels, height, width]), terms)
}

/// `Conv` with two spatial axes.
pub(super) fn convolution(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let x = image(importer, node)?;
    let weight = importer.weight(node, 1, 4)?;
    let &[channels, inner, height, width] = weight.dims.as_slice() else {
        return Err(Fault::mismatch("a weight", "four dimensions"));
    };
    let kernel = pair(node, "weight", &[height, width].map(|k| i64::try_from(k).unwrap_or(-1)), 1, 1)?;
    if !matches!(node.ints("kernel_shape"), [] | [_, _])
        || node.ints("kernel_shape").iter().zip(kernel).any(|(&a, b)| u64::try_from(a) != Ok(b))
    {
        let got = format!("a weight with a kernel of {height}x{width}");
        return Err(Fault::mismatch(got, format!("one of {:?}, as 'kernel_shape' says", node.ints("kernel_shape"))));
    }
    let groups = u64::try_from(node.int("group")?.unwrap_or(1)).unwrap_or(0);
    let inputs = importer.network.shape(x).size(1);
    if groups == 0 || inner.checked_mul(groups) != Some(inputs) || !channels.is_multiple_of(groups) {
        let got = format!("{inputs} channels in {groups} groups");
        return Err(Fault::mismatch(
            got,
            format!("the {inner} channels a group of its weight {}", Shape::fixed(&weight.dims)),
        ));
    }
    let window = window(node, kernel)?;
    windowed(importer, x, window, channels, false, inner.saturating_mul(height).saturating_mul(width))?;
    let bias = bias(importer, node, channels)?;
    let weight = importer.parameter(&weight)?;
    Ok(Item::Value(importer.network.convolution_with(&node.name, x, channels, window, groups, weight, bias)?))
}

/// Input 2 as a bias of `features`, if it is given.
fn bias(importer: &mut Importer<'_>, node: &OnnxNode, features: u64) -> Result<Option<ParameterId>> {
    if importer.optional(node, 2)?.is_none() {
        return Ok(None);
    }
    row(importer, node, 2, features).map(Some)
}

/// Input `index` as a weight of one dimension of `size`.
fn row(importer: &mut Importer<'_>, node: &OnnxNode, index: usize, size: u64) -> Result<ParameterId> {
    let weight = importer.weight(node, index, 1)?;
    if weight.dims != [size] {
        let got = format!("{} values as input {index}", Shape::fixed(&weight.dims));
        return Err(Fault::mismatch(got, format!("{size}")));
    }
    importer.parameter(&weight)
}

/// `BatchNormalization` with the batch's statistics; the running ones are buffers.
pub(super) fn batch_norm(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let x = importer.input(node, 0)?;
    let channels = importer.network.shape(x).size(1);
    let parameters = [row(importer, node, 1, channels)?, row(importer, node, 2, channels)?];
    // Here the momentum is the share that the running statistics keep.
    let momentum = node.float("momentum").map_or(MOMENTUM, |kept| (1.0 - kept) as f32);
    let y = importer.network.batch_norm_with(&node.name, x, parameters, [epsilon(node), momentum])?;
    importer.hold_statistics(node);
    Ok(Item::Value(y))
}

/// `LayerNormalization` over the last axis.
pub(super) fn layer_norm(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let x = importer.input(node, 0)?;
    let shape = importer.network.shape(x).clone();
    if place(node.int("axis")?.unwrap_or(-1), shape.rank())? + 1 != shape.rank() {
        return Err(Fault::mismatch(format!("{shape} over more than an axis"), "the last axis only"));
    }
    let parameters = [row(importer, node, 1, shape.last())?, row(importer, node, 2, shape.last())?];
    Ok(Item::Value(importer.network.layer_norm_with(&node.name, x, parameters, epsilon(node))?))
}

/// What a normalisation adds to the variance.
#[expect(clippy::cast_possible_truncation, reason = "the file has it in fp32")]
fn epsilon(node: &OnnxNode) -> f32 {
    node.float("epsilon").map_or(EPSILON, |epsilon| epsilon as f32)
}

/// `MaxPool`.
pub(super) fn max_pool(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (x, window, round_up) = pool(importer, node)?;
    Ok(Item::Value(importer.network.max_pool(&node.name, x, window, round_up)?))
}

/// `AveragePool`.
pub(super) fn average_pool(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (x, window, round_up) = pool(importer, node)?;
    let shape = importer.network.shape(x);
    let partial = |axis: usize| {
        window.output(axis, shape.size(2 + axis), true) != window.output(axis, shape.size(2 + axis), false)
    };
    if round_up && (partial(0) || partial(1)) {
        return Err(Fault::mismatch("a partial last window ('ceil_mode')", "windows that fit"));
    }
    let counts_padding = window.padding == [0, 0] || node.int("count_include_pad")?.unwrap_or(0) != 0;
    let averaging = if counts_padding { Averaging::Padded } else { Averaging::Inside };
    Ok(Item::Value(importer.network.average_pool_over(&node.name, x, window, averaging)?))
}

fn pool(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<(ValueId, Window, bool)> {
    let x = image(importer, node)?;
    let kernel = pair(node, "kernel_shape", node.required_ints("kernel_shape")?, 1, 1)?;
    let window = window(node, kernel)?;
    let round_up = node.int("ceil_mode")?.unwrap_or(0) != 0;
    let channels = importer.network.shape(x).size(1);
    windowed(importer, x, window, channels, round_up, 1)?;
    Ok((x, window, round_up))
}

/// `GlobalAveragePool`: a mean over all positions, which saves nothing.
pub(super) fn global_average_pool(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let x = image(importer, node)?;
    Ok(Item::Value(importer.network.adaptive_average_pool(&node.name, x, 1)?))
}

/// `ReduceMean` over fixed axes.
pub(super) fn reduce_mean(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let item = importer.item(node, 0)?;
    let shape = importer.shape(&item);
    let reduced = match axes(importer, node)? {
        Some(axes) => axes.iter().map(|&axis| place(axis, shape.rank())).collect::<Result<Vec<_>, _>>()?,
        None => (0..shape.rank()).collect(),
    };
    if reduced.iter().any(|&axis| shape.dim(axis).batched) {
        return Err(Fault::mismatch(format!("{shape} over the axes {reduced:?}"), "axes other than the batch"));
    }
    let keeps = node.int("keepdims")?.unwrap_or(1) != 0;
    let dims = shape.0.iter().enumerate().filter_map(|(axis, &dim)| match (reduced.contains(&axis), keeps) {
        (false, _) => Some(dim),
        (true, true) => Some(Dim::ONE),
        (true, false) => None,
    });
    let mean = Shape(dims.collect());
    Ok(match item {
        Item::Value(x) => Item::Value(importer.network.mean(&node.name, x, reduced, mean)),
        other => {
            let kind = other.kind();
            importer.computed(&[other], mean, kind)?
        }
    })
}

/// `Gemm` with a weight: a linear layer.
pub(super) fn gemm(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let scaled = ["alpha", "beta"].into_iter().any(|name| node.float(name).is_some_and(|value| value != 1.0));
    if scaled || node.int("transA")?.unwrap_or(0) != 0 {
        return Err(Fault::mismatch("scaled or transposed operands", "alpha and beta of 1 and transA of 0"));
    }
    let x = importer.input(node, 0)?;
    let weight = importer.weight(node, 1, 2)?;
    let weight = if node.int("transB")?.unwrap_or(0) == 0 { weight } else { weight.turned() };
    linear(importer, node, x, &weight)
}

/// `x W + b`, with `weight` seen as inputs × outputs and the bias as input 2.
fn linear(importer: &mut Importer<'_>, node: &OnnxNode, x: ValueId, weight: &Weight) -> Result<Item> {
    let shape = importer.network.shape(x).clone();
    let (Some(last), &[inputs, outputs]) = (shape.0.last(), weight.dims.as_slice()) else {
        return Err(Fault::mismatch(&shape, "a tensor and a weight of two dimensions"));
    };
    if *last != Dim::fixed(inputs) {
        return Err(Fault::mismatch(
            &shape,
            format!("a last dimension of {inputs}, as its weight {inputs}x{outputs} has"),
        ));
    }
    importer.admit_product(&shape.with_last(outputs), inputs)?;
    let bias = bias(importer, node, outputs)?;
    // PyTorch folds the rows of more than two dimensions into one, which needs them in order.
    let x = if shape.rank() > 2 { importer.network.contiguous(&node.name, x) } else { x };
    // Here it is held as outputs × inputs.
    let weight = importer.parameter(&weight.clone().turned())?;
    Ok(Item::Value(importer.network.linear_with(&node.name, x, outputs, weight, bias)?))
}

/// `MatMul`: a linear layer where the second operand is a weight, else a product of two values.
pub(super) fn matmul(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (a, b) = (importer.item(node, 0)?, importer.item(node, 1)?);
    if let Item::Weight(weight) = &b
        && weight.dims.len() == 2
    {
        let x = importer.value(node, &a)?;
        return linear(importer, node, x, weight);
    }
    let (left, right) = (importer.shape(&a), importer.shape(&b));
    let wrong = || Fault::mismatch(format!("{left} and {right}"), "…×M×K and …×K×N with the same axes in front");
    let ([front @ .., _, inner], [behind @ .., rows, columns]) = (left.0.as_slice(), right.0.as_slice()) else {
        return Err(wrong());
    };
    if front != behind || inner != rows || inner.batched || columns.batched {
        return Err(wrong());
    }
    let product = left.with_last(columns.size);
    importer.admit_product(&product, inner.size)?;
    Ok(if a.is_learned() || b.is_learned() {
        let (a, b) = (importer.value(node, &a)?, importer.value(node, &b)?);
        Item::Value(importer.network.matmul(&node.name, a, b)?)
    } else {
        let kind = a.kind();
        importer.computed(&[a, b], product, kind)?
    })
}

/// `Softmax` over the last axis.
pub(super) fn softmax(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let x = importer.input(node, 0)?;
    let shape = importer.network.shape(x);
    // Until operator set 13 the axis was the second one by default.
    let default = if importer.graph.opset < 13 { 1 } else { -1 };
    if place(node.int("axis")?.unwrap_or(default), shape.rank())? + 1 != shape.rank() {
        return Err(Fault::mismatch(format!("{shape} over another axis"), "the last axis"));
    }
    Ok(Item::Value(importer.network.softmax(&node.name, x)))
}

/// `LogSoftmax` before the output: the loss computes it.
pub(super) fn log_softmax(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let item = importer.item(node, 0)?;
    let made = node.outputs.first().filter(|made| importer.graph.outputs.contains(made));
    if made.is_none_or(|made| importer.readers(made) != 1) {
        return Err(Fault::mismatch("a place inside the network", "the output, where the loss computes it"));
    }
    importer.notes.push(format!("node '{}' (LogSoftmax) is left to the loss, which computes it", node.name));
    Ok(item)
}

/// `Dropout`; its input as it is if its ratio is zero or its training mode is false.
pub(super) fn dropout(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    const DEFAULT: f64 = 0.5;
    let item = importer.item(node, 0)?;
    let mut settings = [None, None];
    for (index, setting) in settings.iter_mut().enumerate() {
        *setting = match importer.optional(node, index + 1)? {
            Some(Item::Constant(constant)) => constant.single(),
            _ => None,
        };
    }
    let [ratio, training] = settings;
    let ratio = ratio.and_then(Number::real).or_else(|| node.float("ratio")).unwrap_or(DEFAULT);
    let drops = ratio > 0.0 && training.is_none_or(Number::is_true);
    Ok(match item {
        Item::Value(x) if drops => Item::Value(importer.network.dropout(&node.name, x, ratio as f32)),
        same => same,
    })
}
