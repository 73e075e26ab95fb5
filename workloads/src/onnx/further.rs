//! Operators of pictures and sequences beyond the classical ones: reductions, group normalisation, other sizes,
//! transposed convolutions, contractions and recurrent layers.

use super::evaluate::{described, inputs};
use super::layers::{epsilon, image, like, pair, window};
use super::rearrange::{axes, place};
use super::{Fault, Importer, Item, Kind, Number, OnnxNode, Result};
use crate::operator::{Cell, Part};
use crate::{Dim, Extent, Reducing, Shape, Taking, ValueId};
use haversack_devices::ensure;

/// `shape` without the axes `reduced`, or with size one there.
fn left_of(shape: &Shape, reduced: &[usize], keeps: bool) -> Shape {
    let dims = shape.0.iter().enumerate().filter_map(|(axis, &dim)| match (reduced.contains(&axis), keeps) {
        (false, _) => Some(dim),
        (true, true) => Some(Dim::ONE),
        (true, false) => None,
    });
    Shape(dims.collect())
}

/// A reduction over fixed axes: the mean, or `how`.
pub(super) fn reduce(importer: &mut Importer<'_>, node: &OnnxNode, how: Option<Reducing>) -> Result<Item> {
    let (item, shape) = importer.shaped(node, 0)?;
    let reduced = match axes(importer, node)?.filter(|axes| !axes.is_empty()) {
        Some(axes) => axes.iter().map(|&axis| place(axis, shape.rank())).collect::<Result<Vec<_>, _>>()?,
        None => (0..shape.rank()).collect(),
    };
    let left = left_of(&shape, &reduced, node.int("keepdims")?.unwrap_or(1) != 0);
    if !item.is_learned() {
        let kind = item.kind();
        return importer.computed(&[item], left, kind);
    }
    if reduced.iter().any(|&axis| shape.dim(axis).batched) {
        return Err(Fault::mismatch(format!("{shape} over the axes {reduced:?}"), "axes other than the batch"));
    }
    let x = importer.value(node, &item)?;
    Ok(Item::Value(match how {
        None => importer.network.mean(&node.name, x, reduced, left),
        Some(how) => importer.network.reduce(&node.name, x, how, reduced, left),
    }))
}

/// The largest along an axis with their places, like PyTorch's `max`: the places are saved.
pub(super) fn largest(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (item, shape) = importer.shaped(node, 0)?;
    let axis = axes(importer, node)?.and_then(|axes| axes.first().copied()).unwrap_or(0);
    let left = left_of(&shape, &[place(axis, shape.rank())?], node.int("keepdims")?.unwrap_or(1) != 0);
    importer.take(node, item, Taking::LookUp, left.elements(), left)
}

/// `ArgMax` and `ArgMin`: places, through which no gradient flows.
pub(super) fn arg(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (item, shape) = importer.shaped(node, 0)?;
    let axis = place(node.int("axis")?.unwrap_or(0), shape.rank())?;
    let left = left_of(&shape, &[axis], node.int("keepdims")?.unwrap_or(1) != 0);
    importer.computed(&[item], left, Kind::Whole)
}

/// `TopK`: the largest along an axis, and their places.
pub(super) fn top(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (item, count) = (importer.item(node, 0)?, importer.item(node, 1)?);
    let mut shape = importer.shape(&item);
    let axis = place(node.int("axis")?.unwrap_or(-1), shape.rank())?;
    let count = importer.ints(&count)?.first().and_then(|&count| u64::try_from(count).ok());
    match (count, shape.0.get_mut(axis)) {
        (Some(count), Some(dim)) if !dim.batched && count <= dim.size => dim.size = count,
        _ => return Err(Fault::mismatch(&shape, "a number of places that its axis has, other than the batch")),
    }
    let places = importer.computed(std::slice::from_ref(&item), shape.clone(), Kind::Whole)?;
    importer.set(node, 1, places);
    importer.take(node, item, Taking::LookUp, shape.elements(), shape)
}

/// `GatherElements` and `GatherND`: as many elements as there are indices.
pub(super) fn gather_elements(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (item, indices) = (importer.item(node, 0)?, importer.item(node, 1)?);
    let (shape, mut picked) = (importer.shape(&item), importer.shape(&indices));
    let elements = picked.elements();
    if node.operator == "GatherND" {
        let depth = usize::try_from(picked.0.pop().map_or(0, |dim| dim.size)).unwrap_or(usize::MAX);
        picked.0.extend(shape.0.get(depth..).unwrap_or_default());
    }
    importer.take(node, item, Taking::LookUp, elements, picked)
}

/// `ScatterND` and `ScatterElements` of values that need no gradient; if they are written over a tensor that needs one,
/// their places are saved.
pub(super) fn scatter(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let items = inputs(importer, node)?;
    let shape = items.first().map(|item| importer.shape(item)).unwrap_or_default();
    if let [data, indices, updates] = items.as_slice()
        && data.is_learned()
        && !updates.is_learned()
    {
        let places = importer.shape(indices).elements();
        return importer.take(node, data.clone(), Taking::LookUp, places, shape);
    }
    ensure!(!items.iter().any(Item::is_learned), Fault::mismatch(&shape, "values to write that need no gradient"));
    let kind = items.first().map_or(Kind::Real, Item::kind);
    importer.computed(&items, shape, kind)
}

/// `Tile`.
pub(super) fn tile(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (item, repeats) = (importer.item(node, 0)?, importer.item(node, 1)?);
    let (repeats, mut shape) = (importer.numbers(&repeats)?, importer.shape(&item));
    for (dim, repeat) in shape.0.iter_mut().zip(&repeats) {
        let wide = repeat.dim().filter(|times| !(times.batched && dim.batched));
        let wide = wide.and_then(|times| Some((times.batched, dim.size.checked_mul(times.size)?)));
        let (batched, size) = wide.ok_or_else(|| Fault::new("the repeats are not sizes; expected numbers of times"))?;
        (dim.size, dim.batched) = (size, dim.batched || batched);
    }
    if shape == importer.shape(&item) {
        return Ok(item);
    }
    importer.take(node, item, Taking::Repeat, Extent::ZERO, shape)
}

/// `Resize` and `Upsample`: a picture of another size.
pub(super) fn resize(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let item = importer.item(node, 0)?;
    let mut shape = importer.shape(&item);
    let scales = importer.optional(node, if node.operator == "Upsample" { 1 } else { 2 })?;
    let sizes = importer.optional(node, 3)?;
    let wrong = || Fault::new("neither 'sizes' nor 'scales' is a constant for each axis; expected one of them");
    if let Some(sizes) = sizes {
        let target = described(importer, &sizes)?;
        ensure!(target.rank() == shape.rank(), wrong());
        // In a file with a fixed batch, that number in front means the batch.
        shape.0.iter_mut().zip(&target.0).filter(|(dim, _)| !dim.batched).for_each(|(dim, &size)| *dim = size);
    } else {
        let scales = importer.numbers(&scales.ok_or_else(wrong)?)?;
        ensure!(scales.len() == shape.rank(), wrong());
        for (dim, scale) in shape.0.iter_mut().zip(&scales).filter(|(dim, _)| !dim.batched) {
            let scale = scale.real().filter(|scale| scale.is_finite() && *scale > 0.0).ok_or_else(wrong)?;
            dim.size = (dim.size as f64 * scale).floor() as u64;
        }
    }
    let moved = shape.0.iter().zip(&importer.shape(&item).0).filter(|(a, b)| a != b).count() as u32;
    if moved == 0 {
        return Ok(item);
    }
    let taps = match node.text("mode").as_deref() {
        Some("linear") => 2_u64.pow(moved.min(3)),
        Some("cubic") => 4_u64.pow(moved.min(3)),
        _ => 1,
    };
    importer.take(node, item, Taking::Resize { taps }, Extent::ZERO, shape)
}

/// `DepthToSpace` and `SpaceToDepth`: blocks of a picture become channels or the other way round, by one copy.
pub(super) fn blocks(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let x = importer.input(node, 0)?;
    let shape = importer.network.shape(x).clone();
    let block = u64::try_from(node.required_int("blocksize")?).unwrap_or(0);
    let &[batch, channels, height, width] = shape.0.as_slice() else {
        return Err(Fault::mismatch(&shape, "a B×C×H×W tensor"));
    };
    let [c, h, w] = [channels.size, height.size, width.size];
    let to_space = node.operator == "DepthToSpace";
    let area = block.checked_mul(block).filter(|&area| area > 0);
    let divided = area.is_some_and(|area| {
        if to_space { c.is_multiple_of(area) } else { h.is_multiple_of(block) && w.is_multiple_of(block) }
    });
    let Some(area) = area.filter(|_| divided) else {
        return Err(Fault::mismatch(&shape, format!("a tensor that blocks of {block}x{block} divide")));
    };
    let by_columns = node.text("mode").as_deref() == Some("CRD");
    let (inner, order, outer): ([u64; 5], [usize; 6], [u64; 3]) = match (to_space, by_columns) {
        (true, false) => ([block, block, c / area, h, w], [0, 3, 4, 1, 5, 2], [c / area, h * block, w * block]),
        (true, true) => ([c / area, block, block, h, w], [0, 1, 4, 2, 5, 3], [c / area, h * block, w * block]),
        (false, _) => {
            let outer = [c * area, h / block, w / block];
            ([c, h / block, block, w / block, block], [0, 3, 5, 1, 2, 4], outer)
        }
    };
    let under =
        |sizes: &[u64]| Shape(std::iter::once(batch).chain(sizes.iter().map(|&size| Dim::fixed(size))).collect());
    let network = &mut importer.network;
    let apart = network.reshape(&node.name, x, under(&inner))?;
    let turned = network.permute(&node.name, apart, &order)?;
    Ok(Item::Value(network.reshape(&node.name, turned, under(&outer))?))
}

/// `InstanceNormalization` and `GroupNormalization`.
pub(super) fn group_norm(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let x = importer.input(node, 0)?;
    let channels = importer.network.shape(x).size(1);
    let groups = if node.operator == "InstanceNormalization" {
        channels
    } else {
        u64::try_from(node.required_int("num_groups")?).unwrap_or(0)
    };
    let mut parameters = Vec::new();
    for index in [1, 2] {
        match importer.item(node, index)? {
            Item::Weight(weight) => parameters.push(importer.parameter(&weight)?),
            // A constant weight of ones or bias of zeros means a normalisation without weights.
            Item::Constant(_) | Item::Opaque(_) => {}
            Item::Value(_) => return Err(Fault::mismatch("a computed weight", "a weight or a constant")),
        }
    }
    let parameters = if let &[weight, bias] = parameters.as_slice() { Some([weight, bias]) } else { None };
    Ok(Item::Value(importer.network.group_norm(&node.name, x, groups, parameters, epsilon(node))?))
}

/// `ConvTranspose` with one or two spatial axes.
pub(super) fn transposed_convolution(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let original = importer.input(node, 0)?;
    let x = image(importer, node)?;
    let rank = importer.network.shape(original).rank();
    let weight = importer.weight(node, 1, rank)?;
    let &[inputs, outputs, ref kernel @ ..] = weight.dims.as_slice() else {
        return Err(Fault::mismatch("a weight", "four dimensions, or three"));
    };
    let kernel: Vec<i64> = kernel.iter().map(|&size| i64::try_from(size).unwrap_or(-1)).collect();
    let kernel = pair("weight", &kernel, 1, 1)?;
    let (window, asymmetric) = window(node, kernel)?;
    let groups = u64::try_from(node.int("group")?.unwrap_or(1)).unwrap_or(0);
    let channels = outputs.saturating_mul(groups);
    let shape = importer.network.shape(x).clone();
    if asymmetric.is_some() || shape.size(1) != inputs {
        return Err(Fault::mismatch(&shape, format!("{inputs} channels, and the same padding on both sides")));
    }
    let more = pair("output_padding", node.ints("output_padding"), 0, 0)?;
    let side = |axis: usize| {
        let reach = window.dilation[axis].checked_mul(window.kernel[axis].checked_sub(1)?)?.checked_add(1)?;
        let steps = shape.size(2 + axis).checked_sub(1)?.checked_mul(window.stride[axis])?;
        (steps + reach + more[axis]).checked_sub(2 * window.padding[axis]).filter(|&size| size > 0)
    };
    let (Some(height), Some(width)) = (side(0), side(1)) else {
        return Err(Fault::mismatch(&shape, "a tensor that is larger than the padding"));
    };
    let made = Shape(vec![shape.dim(0), Dim::fixed(channels), Dim::fixed(height), Dim::fixed(width)]);
    importer.admit_product(&made, inputs.saturating_mul(window.taps()))?;
    let bias = match importer.optional(node, 2)? {
        Some(Item::Weight(weight)) if weight.dims == [channels] => Some(importer.parameter(&weight)?),
        None => None,
        Some(other) => return Err(Fault::mismatch(importer.shape(&other), format!("a bias of {channels}"))),
    };
    let weight = importer.parameter(&weight)?;
    let y = importer.network.transposed_convolution(&node.name, x, window, groups, made, weight, bias)?;
    like(importer, node, original, y)
}

/// `Einsum` of two operands, as a batched product: `torch.einsum` permutes, multiplies and permutes back.
pub(super) fn einsum(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let equation: String = node.text("equation").unwrap_or_default().chars().filter(|c| !c.is_whitespace()).collect();
    let expected =
        "an equation of two operands without an ellipsis, each letter once in an operand, and summed over in both";
    let wrong = || Fault::mismatch(format!("'{equation}'"), expected);
    let (operands, result) = equation.split_once("->").ok_or_else(wrong)?;
    let (left, right) = operands.split_once(',').ok_or_else(wrong)?;
    let letters = [left, right, result].map(|side| side.chars().collect::<Vec<_>>());
    let once =
        |side: &[char]| side.iter().all(|c| c.is_ascii_alphabetic() && side.iter().filter(|d| *d == c).count() == 1);
    let [a, b, made] = &letters;
    let within = |letter: &char, sides: [bool; 3]| [a, b, made].map(|side| side.contains(letter)) == sides;
    let of = |side: &[char], sides: [bool; 3]| side.iter().copied().filter(|c| within(c, sides)).collect::<Vec<_>>();
    let batch = of(made, [true, true, true]);
    let (rows, columns) = (of(made, [true, false, true]), of(made, [false, true, true]));
    let inner = of(a, [true, true, false]);
    let complete =
        |side: &[char], parts: [&[char]; 3]| parts.iter().map(|part| part.len()).sum::<usize>() == side.len();
    let whole = complete(a, [&batch, &rows, &inner])
        && complete(b, [&batch, &columns, &inner])
        && complete(made, [&batch, &rows, &columns]);
    ensure!(letters.iter().all(|side| once(side)) && whole, wrong());
    let (x, y) = (importer.input(node, 0)?, importer.input(node, 1)?);
    let shapes = [x, y].map(|operand| importer.network.shape(operand).clone());
    let size = |letter: char| {
        let in_side = |side: &[char], shape: &Shape| side.iter().position(|&c| c == letter).map(|axis| shape.dim(axis));
        in_side(a, &shapes[0]).or_else(|| in_side(b, &shapes[1])).unwrap_or(Dim::ONE)
    };
    if shapes[0].rank() != a.len() || shapes[1].rank() != b.len() {
        return Err(Fault::mismatch(format!("{} and {} by '{equation}'", shapes[0], shapes[1]), expected));
    }
    let folded = |part: &[char]| Dim {
        size: part.iter().map(|&c| size(c).size).product(),
        batched: part.iter().any(|&c| size(c).batched),
    };
    let mut matrix = |operand: ValueId, side: &[char], order: [&[char]; 3]| -> Result<ValueId> {
        let places: Vec<usize> =
            order.iter().flat_map(|part| part.iter()).filter_map(|c| side.iter().position(|d| d == c)).collect();
        let turned = importer.network.permute(&node.name, operand, &places)?;
        let shape = Shape(order.iter().map(|part| folded(part)).collect());
        importer.admit(&shape)?;
        Ok(importer.network.reshape(&node.name, turned, shape)?)
    };
    let p = matrix(x, a, [&batch, &rows, &inner])?;
    let q = matrix(y, b, [&batch, &inner, &columns])?;
    let front = importer.network.shape(p).clone();
    importer.admit_product(&front.with_last(folded(&columns).size), folded(&inner).size)?;
    let product = importer.network.matmul(&node.name, p, q)?;
    let computed: Vec<char> = [batch.as_slice(), &rows, &columns].concat();
    let apart = Shape(computed.iter().map(|&c| size(c)).collect());
    let apart = importer.network.reshape(&node.name, product, apart)?;
    let order: Vec<usize> = made.iter().filter_map(|c| computed.iter().position(|d| d == c)).collect();
    Ok(Item::Value(importer.network.permute(&node.name, apart, &order)?))
}

/// `LSTM`, `GRU` and `RNN` over a sequence of known length, from states of zeros. Inputs from 1 on are the initialisers
/// that its weights are made of, as listed by [`super::refold`].
pub(super) fn recurrent(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let cell = match node.operator.as_str() {
        "LSTM" => Cell::Lstm,
        "GRU" => Cell::Gru,
        _ => Cell::Plain,
    };
    let x = importer.input(node, 0)?;
    let x = importer.network.contiguous(&node.name, x);
    let shape = importer.network.shape(x).clone();
    let units = u64::try_from(node.required_int("hidden_size")?).unwrap_or(0);
    let directions = if node.text("direction").as_deref() == Some("bidirectional") { 2 } else { 1 };
    let &[steps, samples, inputs] = shape.0.as_slice() else {
        return Err(Fault::mismatch(&shape, "steps × samples × features"));
    };
    if steps.batched || units == 0 || node.int("layout")?.unwrap_or(0) != 0 {
        return Err(Fault::mismatch(&shape, "a sequence of a known length along the first axis, and 'hidden_size'"));
    }
    let mut parameters = Vec::new();
    let mut elements = 0;
    for index in 1..node.inputs.len() {
        if let Item::Weight(weight) = importer.item(node, index)? {
            elements += weight.dims.iter().product::<u64>();
            parameters.push(importer.parameter(&weight)?);
        }
    }
    let rows = cell.gates() * units;
    let expected = directions * rows * (inputs.size + units);
    let biases = directions * rows * 2;
    if elements != expected && elements != expected + biases {
        let got = format!("weights of {elements} values for {} features and {units} units", inputs.size);
        return Err(Fault::mismatch(got, format!("{expected} values, or {biases} more with biases")));
    }
    importer.admit_product(&shape, directions.saturating_mul(rows))?;
    let flat = shape.with_last(directions * units);
    let y = importer.network.recurrent(&node.name, x, cell, [steps.size, units], directions, &parameters, flat);
    let apart = Shape(vec![steps, samples, Dim::fixed(directions), Dim::fixed(units)]);
    let apart = importer.network.reshape(&node.name, y, apart)?;
    let all = importer.network.permute(&node.name, apart, &[0, 2, 1, 3])?;
    for output in [1, 2] {
        if node.outputs.get(output).is_some_and(|name| importer.readers(name) > 0) {
            let last = Part::whole(4).at(0, steps.size - 1);
            let state = Shape(vec![Dim::fixed(directions), samples, Dim::fixed(units)]);
            let state = importer.network.slice(&node.name, all, last, state, false);
            importer.set(node, output, Item::Value(state));
        }
    }
    Ok(Item::Value(all))
}

/// Random numbers in the shape of a tensor, or in a given shape: no gradient flows to them.
pub(super) fn random(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let shape = if node.attribute("shape").is_some() {
        let sizes: Option<Vec<Dim>> = node.ints("shape").iter().map(|&size| Number::whole(size).dim()).collect();
        Shape(sizes.ok_or_else(|| Fault::new("attribute 'shape' has a size below zero; expected sizes"))?)
    } else {
        let item = importer.item(node, 0)?;
        importer.shape(&item)
    };
    importer.computed(&[], shape, Kind::Real)
}
