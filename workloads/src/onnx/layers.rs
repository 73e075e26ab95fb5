//! Operators with weights, products, pooling, normalisation, dropout and softmax.

use super::evaluate::broadcast;
use super::rearrange::{place, stretched};
use super::{Fault, Importer, Item, Number, OnnxNode, Result, Weight};
use crate::{Averaging, Dim, EPSILON, Extent, MOMENTUM, ParameterId, Reducing, Shape, Taking, Unary, ValueId, Window};
use haversack_devices::ensure;

/// Kernel sizes, strides and paddings beyond this are faults of the file.
const MOST_POSITIONS: u64 = 1 << 24;

/// Input 0 as a value of samples × channels × height × width; one spatial axis becomes the width of a height of one.
pub(super) fn image(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<ValueId> {
    let x = importer.input(node, 0)?;
    let shape = importer.network.shape(x).clone();
    let led = !shape.0.iter().skip(1).any(|dim| dim.batched);
    match shape.0.as_slice() {
        [_, _, _, _] if led => Ok(x),
        &[batch, channels, width] if led => {
            let shape = Shape(vec![batch, channels, Dim::ONE, width]);
            Ok(importer.network.reshape(&node.name, x, shape)?)
        }
        _ => Err(Fault::mismatch(shape, "a B×C×H×W tensor, or B×C×L")),
    }
}

/// `y`, which was made of an image of `x`, with as many spatial axes as `x` has.
pub(super) fn like(importer: &mut Importer<'_>, node: &OnnxNode, x: ValueId, y: ValueId) -> Result<Item> {
    let shape = importer.network.shape(y).clone();
    if importer.network.shape(x).rank() == shape.rank() {
        return Ok(Item::Value(y));
    }
    let row = Shape(vec![shape.dim(0), shape.dim(1), shape.dim(3)]);
    Ok(Item::Value(importer.network.reshape(&node.name, y, row)?))
}

/// The sizes of the attribute `name`, down and across; one size is across.
pub(super) fn pair(name: &str, values: &[i64], default: u64, least: u64) -> Result<[u64; 2]> {
    let sizes: Vec<Option<u64>> = values
        .iter()
        .map(|&value| u64::try_from(value).ok().filter(|size| (least..=MOST_POSITIONS).contains(size)))
        .collect();
    match sizes.as_slice() {
        [] => Ok([default, default]),
        &[Some(height), Some(width)] => Ok([height, width]),
        &[Some(width)] => Ok([default, width]),
        _ => {
            let expected = format!("one or two sizes of at least {least} (no third spatial axis)");
            Err(Fault::mismatch(format!("attribute '{name}' of {values:?}"), expected))
        }
    }
}

/// Zeros around a picture: above, to the left, below and to the right.
type Padding = [u64; 4];

/// The window of a convolution or pooling whose kernel is `kernel`. If the padding differs between the two sides of an
/// axis, it is returned separately and the window has none.
pub(super) fn window(node: &OnnxNode, kernel: [u64; 2]) -> Result<(Window, Option<Padding>)> {
    let stride = pair("strides", node.ints("strides"), 1, 1)?;
    let dilation = pair("dilations", node.ints("dilations"), 1, 1)?;
    let plain = |padding: [u64; 2]| Ok((Window { kernel, stride, padding, dilation }, None));
    let around = match (node.text("auto_pad").as_deref(), node.ints("pads")) {
        (Some("VALID"), _) | (None | Some("NOTSET"), []) => return plain([0, 0]),
        (None | Some("NOTSET"), &[top, left, bottom, right]) => [top, left, bottom, right],
        (None | Some("NOTSET"), &[left, right]) => [0, left, 0, right],
        // The output has as many positions as the input: with a stride of one, half the kernel on each side.
        (Some("SAME_UPPER" | "SAME_LOWER"), _)
            if (stride, dilation) == ([1, 1], [1, 1]) && kernel.iter().all(|k| k % 2 == 1) =>
        {
            return plain(kernel.map(|k| k / 2));
        }
        (automatic, pads) => {
            let got = format!("padding of {pads:?}{}", automatic.map(|a| format!(" ({a})")).unwrap_or_default());
            return Err(Fault::mismatch(got, "numbers of positions on the sides of one or two axes"));
        }
    };
    let [above, left] = pair("pads", &around[..2], 0, 0)?;
    let [below, right] = pair("pads", &around[2..], 0, 0)?;
    if (above, left) == (below, right) {
        return plain([above, left]);
    }
    Ok((Window { kernel, stride, padding: [0, 0], dilation }, Some([above, left, below, right])))
}

/// `x` with zeros around it, in new storage.
fn padded(importer: &mut Importer<'_>, node: &OnnxNode, x: ValueId, around: Option<Padding>) -> Result<ValueId> {
    let Some([above, left, below, right]) = around else { return Ok(x) };
    let mut shape = importer.network.shape(x).clone();
    for (axis, more) in [(2, above + below), (3, left + right)] {
        if let Some(dim) = shape.0.get_mut(axis) {
            dim.size += more;
        }
    }
    importer.admit(&shape)?;
    Ok(importer.network.take(&node.name, x, Taking::PadAround, Extent::ZERO, shape))
}

/// The shape of the output of `window` over `x`, with `channels`; refused where it does not fit or would overflow.
fn windowed(
    importer: &Importer<'_>,
    x: ValueId,
    window: Window,
    channels: u64,
    round_up: bool,
    terms: u64,
) -> Result<Shape> {
    let shape = importer.network.shape(x);
    let sides = [0, 1].map(|axis| window.output(axis, shape.size(2 + axis), round_up));
    let [Some(height), Some(width)] = sides else {
        let [high, wide] = window.kernel;
        return Err(Fault::mismatch(shape, format!("at least {high}x{wide} positions with the padding")));
    };
    let sizes = [channels, height, width].map(Dim::fixed);
    let made = Shape(std::iter::once(shape.dim(0)).chain(sizes).collect());
    importer.admit_product(&made, terms)?;
    Ok(made)
}

/// `Conv` with one or two spatial axes.
pub(super) fn convolution(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let original = importer.input(node, 0)?;
    let x = image(importer, node)?;
    let rank = importer.network.shape(original).rank();
    let mut normed = None;
    let weight = match importer.item(node, 1)? {
        Item::Value(computed) => {
            normed = importer.normed(computed);
            importer.weight_behind(computed, rank)?
        }
        Item::Constant(_) | Item::Opaque(_) => return filter(importer, node, original, x),
        Item::Weight(_) => importer.weight(node, 1, rank)?,
    };
    let &[channels, inner, ref kernel @ ..] = weight.dims.as_slice() else {
        return Err(Fault::mismatch("a weight", "four dimensions, or three"));
    };
    let sizes: Vec<i64> = kernel.iter().map(|&size| i64::try_from(size).unwrap_or(-1)).collect();
    let kernel = pair("weight", &sizes, 1, 1)?;
    let [height, width] = kernel;
    let said = node.ints("kernel_shape");
    if !said.is_empty() && said != sizes {
        let got = format!("a weight with a kernel of {height}x{width}");
        return Err(Fault::mismatch(got, format!("one of {said:?}, as 'kernel_shape' says")));
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
    let (window, around) = window(node, kernel)?;
    let x = padded(importer, node, x, around)?;
    let terms = inner.saturating_mul(height).saturating_mul(width);
    windowed(importer, x, window, channels, false, terms).map(drop)?;
    let bias = bias(importer, node, channels)?;
    let weight = importer.parameter(&weight)?;
    let y = importer.network.convolution_with(&node.name, x, channels, window, groups, weight, bias)?;
    if let (Some((length, whole)), Some(made)) = (normed, importer.network.nodes.last_mut()) {
        made.parameters.push(length);
        made.saved.push(whole);
    }
    like(importer, node, original, y)
}

/// A depthwise `Conv` with a constant weight: blurring, which saves nothing.
fn filter(importer: &mut Importer<'_>, node: &OnnxNode, original: ValueId, x: ValueId) -> Result<Item> {
    let (_, weight) = importer.shaped(node, 1)?;
    let shape = importer.network.shape(x).clone();
    let kernel: Vec<i64> = weight.0.iter().skip(2).map(|dim| i64::try_from(dim.size).unwrap_or(-1)).collect();
    let groups = node.int("group")?.unwrap_or(1);
    if u64::try_from(groups) != Ok(shape.size(1)) || weight.size(0) != shape.size(1) || node.input(2).is_some() {
        return Err(Fault::mismatch(weight, "a weight that is trained, or a constant one for each channel by itself"));
    }
    let (window, around) = window(node, pair("weight", &kernel, 1, 1)?)?;
    let x = padded(importer, node, x, around)?;
    let made = windowed(importer, x, window, shape.size(1), false, window.taps())?;
    let taking = Taking::Resize { taps: window.taps() };
    let y = importer.network.take(&node.name, x, taking, Extent::ZERO, made);
    like(importer, node, original, y)
}

/// Input 2 as a bias of `features`, if it is given.
fn bias(importer: &mut Importer<'_>, node: &OnnxNode, features: u64) -> Result<Option<ParameterId>> {
    if importer.optional(node, 2)?.is_none() { Ok(None) } else { row(importer, node, 2, features).map(Some) }
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
    if let Item::Value(scale) = importer.item(node, 1)? {
        return standardise(importer, node, x, scale);
    }
    let parameters = [row(importer, node, 1, channels)?, row(importer, node, 2, channels)?];
    // Here the momentum is the fraction of the old running statistics that is kept.
    let momentum = node.float("momentum").map_or(MOMENTUM, |kept| (1.0 - kept) as f32);
    let y = importer.network.batch_norm_with(&node.name, x, parameters, [epsilon(node), momentum])?;
    importer.hold_statistics(node);
    Ok(Item::Value(y))
}

/// `BatchNormalization` of a weight, as one sample whose channels are its outputs, by a computed scale: weight
/// standardisation.
fn standardise(importer: &mut Importer<'_>, node: &OnnxNode, x: ValueId, scale: ValueId) -> Result<Item> {
    let shape = importer.network.shape(x).clone();
    if shape.is_batched() || shape.size(0) != 1 {
        return Err(Fault::mismatch(&shape, "a trained scale, or a weight that is standardised as one sample"));
    }
    let normal = importer.network.group_norm(&node.name, x, shape.size(1), None, epsilon(node))?;
    let ones = Shape(shape.0.iter().enumerate().map(|(axis, &dim)| if axis == 1 { dim } else { Dim::ONE }).collect());
    let scale = importer.network.reshape(&node.name, scale, ones)?;
    Ok(Item::Value(importer.network.mul(&node.name, normal, scale)?))
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

/// The epsilon of a normalisation, added to the variance.
#[expect(clippy::cast_possible_truncation, reason = "the file has it in fp32")]
pub(super) fn epsilon(node: &OnnxNode) -> f32 {
    node.float("epsilon").map_or(EPSILON, |epsilon| epsilon as f32)
}

/// `MaxPool`.
pub(super) fn max_pool(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (original, x, window, round_up) = pool(importer, node)?;
    let y = importer.network.max_pool(&node.name, x, window, round_up)?;
    like(importer, node, original, y)
}

/// `AveragePool`.
pub(super) fn average_pool(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (original, x, window, round_up) = pool(importer, node)?;
    // A partial last window is averaged over the positions inside the input.
    let inside = window.padding != [0, 0] && node.int("count_include_pad")?.unwrap_or(0) == 0;
    let averaging = if inside || round_up { Averaging::Inside } else { Averaging::Padded };
    let y = importer.network.average_pool_over(&node.name, x, window, averaging, round_up)?;
    like(importer, node, original, y)
}

fn pool(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<(ValueId, ValueId, Window, bool)> {
    let original = importer.input(node, 0)?;
    let x = image(importer, node)?;
    let kernel = pair("kernel_shape", node.required_ints("kernel_shape")?, 1, 1)?;
    let (window, around) = window(node, kernel)?;
    let x = padded(importer, node, x, around)?;
    let asked = node.int("ceil_mode")?.unwrap_or(0) != 0;
    let shape = importer.network.shape(x).clone();
    let partial = |axis: usize| {
        window.output(axis, shape.size(2 + axis), true) != window.output(axis, shape.size(2 + axis), false)
    };
    let round_up = asked && (partial(0) || partial(1));
    windowed(importer, x, window, shape.size(1), round_up, 1).map(drop)?;
    Ok((original, x, window, round_up))
}

/// `GlobalAveragePool`: a mean over all positions, which saves nothing.
pub(super) fn global_average_pool(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (x, axes, shape) = positions(importer, node)?;
    Ok(Item::Value(importer.network.mean(&node.name, x, axes, shape)))
}

/// `GlobalMaxPool`: the largest of all positions.
pub(super) fn global_max_pool(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (x, axes, shape) = positions(importer, node)?;
    Ok(Item::Value(importer.network.reduce(&node.name, x, Reducing::Largest, axes, shape)))
}

/// Input 0, the axes of its positions, and its shape with one of them.
fn positions(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<(ValueId, Vec<usize>, Shape)> {
    let x = importer.input(node, 0)?;
    let mut shape = importer.network.shape(x).clone();
    if shape.rank() < 3 || shape.0.iter().skip(1).any(|dim| dim.batched) {
        return Err(Fault::mismatch(shape, "a B×C×H×W tensor, or B×C×L"));
    }
    shape.0.iter_mut().skip(2).for_each(|dim| *dim = Dim::ONE);
    Ok((x, (2..shape.rank()).collect(), shape))
}

/// `Gemm`: a linear layer where the second operand is a weight and nothing is scaled, else a product and a sum.
pub(super) fn gemm(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let [alpha, beta] = ["alpha", "beta"].map(|name| node.float(name).unwrap_or(1.0) as f32);
    let [turn_a, turn_b] = [node.int("transA")?.unwrap_or(0) != 0, node.int("transB")?.unwrap_or(0) != 0];
    let second = importer.item(node, 1)?;
    if let (Item::Weight(_), true) = (&second, (alpha, beta, turn_a) == (1.0, 1.0, false)) {
        let x = importer.input(node, 0)?;
        let weight = importer.weight(node, 1, 2)?;
        let weight = if turn_b { weight.turned() } else { weight };
        return linear(importer, node, x, &weight);
    }
    let (a, b) = (importer.input(node, 0)?, importer.value(node, &second)?);
    let mut turned =
        |x: ValueId, turns: bool| if turns { importer.network.permute(&node.name, x, &[1, 0]) } else { Ok(x) };
    let (a, b) = (turned(a, turn_a)?, turned(b, turn_b)?);
    let (left, right) = (importer.network.shape(a).clone(), importer.network.shape(b).clone());
    ensure!(
        left.rank() == 2 && right.rank() == 2 && left.dim(1) == right.dim(0) && !right.dim(0).batched,
        Fault::mismatch(format!("{left} and {right}"), "matrices of M×K and K×N")
    );
    let made = Shape(vec![left.dim(0), right.dim(1)]);
    importer.admit_product(&made, left.last())?;
    // If the columns are batched, the transposed product has batched rows.
    let product = if right.dim(1).batched {
        let [a, b] = [a, b].map(|x| importer.network.permute(&node.name, x, &[1, 0]));
        let (b, a) = (b?, a?);
        let product = importer.network.matmul(&node.name, b, a)?;
        importer.network.permute(&node.name, product, &[1, 0])?
    } else {
        importer.network.matmul(&node.name, a, b)?
    };
    let scaled = |importer: &mut Importer<'_>, x: ValueId, factor: f32| {
        if factor == 1.0 { x } else { importer.network.unary(&node.name, x, Unary::Scale(factor)) }
    };
    let product = scaled(importer, product, alpha);
    Ok(Item::Value(match importer.optional(node, 2)? {
        None => product,
        Some(bias) => {
            let bias = importer.value(node, &bias)?;
            let bias = scaled(importer, bias, beta);
            importer.network.add(&node.name, product, bias)?
        }
    }))
}

/// A weight made of a direction and a length, as `weight_norm` does.
pub(super) fn weight_norm(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let shape = importer.shaped(node, 0)?.1;
    let mut parameters = [0, 0];
    for (index, parameter) in parameters.iter_mut().enumerate() {
        let (Item::Weight(weight), _) = importer.shaped(node, index)? else {
            return Err(Fault::mismatch("a computed direction or length", "two weights"));
        };
        *parameter = importer.parameter(&weight)?;
    }
    let [direction, length] = parameters;
    Ok(Item::Value(importer.network.weight_norm(&node.name, direction, length, shape)))
}

/// `x W + b`, with `weight` as inputs × outputs and the bias as input 2.
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
    // The parameter is stored as outputs × inputs.
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
    if let (Item::Value(x), Item::Value(computed)) = (&a, &b)
        && left.rank() > 2
        && right.rank() == 2
        && !right.is_batched()
    {
        // As PyTorch folds the rows of all samples into one matrix.
        let (x, computed) = (importer.network.contiguous(&node.name, *x), *computed);
        let front = left.0.split_last().map_or(&[][..], |(_, front)| front);
        let size = front.iter().map(|dim| dim.size).product();
        let rows = Shape(vec![Dim { size, batched: left.is_batched() }, left.dim(left.rank() - 1)]);
        let rows = importer.network.reshape(&node.name, x, rows)?;
        importer.admit_product(&left.with_last(right.last()), left.last())?;
        let product = importer.network.matmul(&node.name, rows, computed)?;
        return Ok(Item::Value(importer.network.reshape(&node.name, product, left.with_last(right.last()))?));
    }
    let wrong = || Fault::mismatch(format!("{left} and {right}"), "…×M×K and …×K×N with the same axes in front");
    let ([front @ .., _, inner], [behind @ .., rows, columns]) = (left.0.as_slice(), right.0.as_slice()) else {
        return Err(wrong());
    };
    ensure!(inner == rows && !inner.batched && !columns.batched, wrong());
    let wide = broadcast(&Shape(front.to_vec()), &Shape(behind.to_vec())).map_err(|_| wrong())?;
    let under = |shape: &Shape| {
        let tail = shape.0.iter().skip(shape.rank() - 2);
        Shape(wide.0.iter().chain(tail).copied().collect())
    };
    let (left, right) = (under(&left), under(&right));
    let product = left.with_last(columns.size);
    importer.admit_product(&product, inner.size)?;
    Ok(if a.is_learned() || b.is_learned() {
        let operands = [stretched(importer, node, a, &left)?, stretched(importer, node, b, &right)?];
        let [a, b] = operands.map(|x| {
            let foldable = importer.foldable.contains(&x);
            if foldable { x } else { importer.network.contiguous(&node.name, x) }
        });
        Item::Value(importer.network.matmul_in_place(&node.name, a, b)?)
    } else {
        let kind = a.kind();
        importer.computed(&[a, b], product, kind)?
    })
}

/// `Softmax` over an axis.
pub(super) fn softmax(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let x = importer.input(node, 0)?;
    let rank = importer.network.shape(x).rank();
    // Until operator set 13 the axis was the second one by default.
    let default = if importer.graph.opset < 13 { 1 } else { -1 };
    let axis = place(node.int("axis")?.unwrap_or(default), rank)?;
    if importer.network.shape(x).dim(axis).batched {
        return Err(Fault::mismatch(importer.network.shape(x), "an axis other than the batch"));
    }
    let network = &mut importer.network;
    if axis + 1 == rank {
        return Ok(Item::Value(network.softmax(&node.name, x)));
    }
    // The axis is swapped with the last one, and back.
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(axis, rank - 1);
    let turned = network.permute(&node.name, x, &order)?;
    let shares = network.softmax(&node.name, turned);
    Ok(Item::Value(network.permute(&node.name, shares, &order)?))
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

/// `Dropout`; its input unchanged if its ratio is zero or its training mode is false.
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
