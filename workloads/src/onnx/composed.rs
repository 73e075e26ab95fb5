//! Functions that are one node in a file and that PyTorch runs in parts: normalisations, attention, rotary
//! positions, similarity.

use super::rearrange::place;
use super::{Fault, Importer, Item, Kind, OnnxNode, Result};
use crate::operator::Part;
use crate::{Addend, Dim, Extent, Pairing, Pointwise, Reducing, Shape, Taking, Unary, ValueId};
use haversack_devices::ensure;

/// `x` and its norms over `axis`; derivatives keep both.
fn norms(importer: &mut Importer<'_>, node: &OnnxNode, x: ValueId, axis: usize) -> ValueId {
    let mut rows = importer.network.shape(x).clone();
    if let Some(dim) = rows.0.get_mut(axis) {
        *dim = Dim::ONE;
    }
    importer.network.reduce(&node.name, x, Reducing::Norm, vec![axis], rows)
}

/// Input `index`, and the axis of `node` in it, which must not be the batch.
fn along(importer: &mut Importer<'_>, node: &OnnxNode, index: usize) -> Result<(ValueId, usize)> {
    let x = importer.input(node, index)?;
    let shape = importer.network.shape(x);
    let axis = place(node.int("axis")?.unwrap_or(-1), shape.rank())?;
    ensure!(!shape.dim(axis).batched, Fault::mismatch(shape, "an axis other than the batch"));
    Ok((x, axis))
}

/// `LpNormalization`, as `normalize`: norms, a bound below them, a quotient.
pub(super) fn lp_norm(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (x, axis) = along(importer, node, 0)?;
    let norms = norms(importer, node, x, axis);
    let network = &mut importer.network;
    let bounded = network.unary(&node.name, norms, Unary::Clip { low: f32::MIN_POSITIVE, high: f32::INFINITY });
    Ok(Item::Value(network.pairwise(&node.name, x, bounded, Pairing::Quotient)?))
}

/// The cosine of the angle between two tensors along an axis: quotients of each by a clone of its norms, and the sum of
/// their product.
pub(super) fn cosine_similarity(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let mut quotients = Vec::new();
    let mut axis = 0;
    for index in 0..2 {
        let (x, along) = along(importer, node, index)?;
        let norms = norms(importer, node, x, along);
        let clone = importer.network.copy(&node.name, norms);
        quotients.push(importer.network.pairwise(&node.name, x, clone, Pairing::Quotient)?);
        axis = along;
    }
    let product = importer.network.mul(&node.name, quotients[0], quotients[1])?;
    let shape = importer.network.shape(product);
    let left = Shape(shape.0.iter().enumerate().filter(|(place, _)| *place != axis).map(|(_, &dim)| dim).collect());
    Ok(Item::Value(importer.network.reduce(&node.name, product, Reducing::Sum, vec![axis], left)))
}

/// `LRN`, as `local_response_norm`: the squares of neighbouring channels, a power, a quotient.
pub(super) fn local_response(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let x = importer.input(node, 0)?;
    let size = u64::try_from(node.required_int("size")?).unwrap_or(0);
    let number = |name: &str, default: f64| node.float(name).unwrap_or(default) as f32;
    let (alpha, beta, bias) = (number("alpha", 1e-4), number("beta", 0.75), number("bias", 1.0));
    let shape = importer.network.shape(x).clone();
    let (network, name) = (&mut importer.network, &node.name);
    let square = network.mul(name, x, x)?;
    let mean = network.take(name, square, Taking::Resize { taps: size }, Extent::ZERO, shape);
    let scaled = network.unary(name, mean, Unary::Scale(alpha));
    let raised = network.unary(name, scaled, Unary::AddConstant(Addend::Value(bias)));
    let divisor = network.unary(name, raised, Unary::Power(beta));
    Ok(Item::Value(network.pairwise(name, x, divisor, Pairing::Quotient)?))
}

/// `RMSNormalization` over the last axis: the mean of squares, its inverse root, and two products; in ONNX Runtime's operators
/// also of a sum, which is another output.
pub(super) fn rms_norm(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let (mut x, axis) = along(importer, node, 0)?;
    let shape = importer.network.shape(x).clone();
    ensure!(axis + 1 == shape.rank(), Fault::mismatch(format!("{shape} over more than an axis"), "the last axis only"));
    let mut weight = importer.input(node, 1)?;
    if node.operator.starts_with("Skip") {
        x = importer.network.add(&node.name, x, weight)?;
        importer.set(node, 3, Item::Value(x));
        weight = importer.input(node, 2)?;
    }
    let (network, name) = (&mut importer.network, &node.name);
    let square = network.unary(name, x, Unary::Power(2.0));
    let mean = network.mean(name, square, vec![axis], shape.with_last(1));
    let epsilon = Addend::Value(super::layers::epsilon(node));
    let safe = network.unary(name, mean, Unary::AddConstant(epsilon));
    let inverse = network.unary(name, safe, Unary::Other(Pointwise::InverseRoot));
    let normal = network.mul(name, x, inverse)?;
    Ok(Item::Value(network.mul(name, normal, weight)?))
}

/// Input `index` as samples × heads × rows × features; a packed input is split into the heads that
/// attribute `name` counts.
fn heads(importer: &mut Importer<'_>, node: &OnnxNode, index: usize, name: &str) -> Result<ValueId> {
    let x = importer.input(node, index)?;
    let shape = importer.network.shape(x).clone();
    let &[batch, rows, width] = shape.0.as_slice() else {
        ensure!(shape.rank() == 4, Fault::mismatch(&shape, "samples × rows × features, or with heads"));
        return Ok(x);
    };
    let count = u64::try_from(node.required_int(name)?).unwrap_or(0);
    let size = width.size.checked_div(count).filter(|size| size * count == width.size && !width.batched);
    let size = size.ok_or_else(|| Fault::mismatch(&shape, format!("features that {count} heads divide")))?;
    let apart = Shape(vec![batch, rows, Dim::fixed(count), Dim::fixed(size)]);
    let apart = importer.network.reshape(&node.name, x, apart)?;
    Ok(importer.network.permute(&node.name, apart, &[0, 2, 1, 3])?)
}

/// `Attention`, or ONNX Runtime's causal `GroupQueryAttention`: queries and keys, both scaled, their product, a mask, a softmax,
/// and a product with the values, as
/// `scaled_dot_product_attention` runs them one by one.
pub(super) fn attention(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let grouped = node.operator == "GroupQueryAttention";
    ensure!(node.input(4).is_none(), Fault::mismatch("keys of earlier steps", "attention over one sequence"));
    ensure!(
        !grouped || node.int("do_rotary")? != Some(1) && node.input(1).is_some(),
        Fault::mismatch(
            "packed queries, or a rotation in it",
            "queries, keys and values, and a RotaryEmbedding before it"
        )
    );
    let flat = importer.shaped(node, 0)?.1.rank() == 3;
    let q = heads(importer, node, 0, if grouped { "num_heads" } else { "q_num_heads" })?;
    let [mut k, mut v] = [heads(importer, node, 1, "kv_num_heads")?, heads(importer, node, 2, "kv_num_heads")?];
    let shape = importer.network.shape(q).clone();
    for shared in [&mut k, &mut v] {
        // Heads that share keys and values get copies of them.
        let mut wide = importer.network.shape(*shared).clone();
        if wide.size(1) != shape.size(1) {
            wide.0[1] = shape.dim(1);
            importer.admit(&wide)?;
            *shared = importer.network.take(&node.name, *shared, Taking::Repeat, Extent::ZERO, wide);
        }
    }
    let scale = node.float("scale").filter(|scale| *scale > 0.0).unwrap_or(1.0 / (shape.last() as f64).sqrt());
    let root = Unary::Scale(scale.sqrt() as f32);
    let columns = importer.network.shape(k).size(2);
    let scores = Shape(shape.0.iter().take(3).copied().chain([Dim::fixed(columns)]).collect());
    importer.admit_product(&scores, shape.last().max(importer.network.shape(v).last()))?;
    let q = importer.network.unary(&node.name, q, root);
    let turned = importer.network.permute(&node.name, k, &[0, 1, 3, 2])?;
    let turned = importer.network.unary(&node.name, turned, root);
    let mut scores = importer.network.matmul(&node.name, q, turned)?;
    if let Some(cap) = node.float("softcap").filter(|cap| *cap > 0.0) {
        let small = importer.network.unary(&node.name, scores, Unary::Scale(1.0 / cap as f32));
        let bounded = importer.network.unary(&node.name, small, Unary::Tanh);
        scores = importer.network.unary(&node.name, bounded, Unary::Scale(cap as f32));
    }
    scores = match importer.optional(node, 3)? {
        Some(mask) if mask.is_learned() => {
            let mask = importer.value(node, &mask)?;
            importer.network.add(&node.name, scores, mask)?
        }
        None if !grouped && node.int("is_causal")?.unwrap_or(0) == 0 => scores,
        _ => importer.network.unary(&node.name, scores, Unary::AddConstant(Addend::Tensor)),
    };
    let network = &mut importer.network;
    let shares = network.softmax(&node.name, scores);
    let made = network.matmul(&node.name, shares, v)?;
    if !flat {
        return Ok(Item::Value(made));
    }
    let turned = network.permute(&node.name, made, &[0, 2, 1, 3])?;
    let shape = network.shape(turned).clone();
    let joined = Shape(vec![shape.dim(0), shape.dim(1), Dim::fixed(shape.size(2) * shape.size(3))]);
    Ok(Item::Value(network.reshape(&node.name, turned, joined)?))
}

/// `RotaryEmbedding`: both halves of the features, rotated by the angles of their rows. ONNX Runtime's operator has the
/// numbers of the rows before the tables.
pub(super) fn rotary(importer: &mut Importer<'_>, node: &OnnxNode) -> Result<Item> {
    let partial = node.int("rotary_embedding_dim")?.unwrap_or(0) != 0;
    ensure!(!partial, Fault::mismatch("a part of the features", "all features turned"));
    let original = importer.shaped(node, 0)?.1;
    let x = heads(importer, node, 0, "num_heads")?;
    let shape = importer.network.shape(x).clone();
    let half = shape.last() / 2;
    let mut angles = Vec::new();
    let (tables, ids) = if importer.item(node, 1)?.kind() == Kind::Whole { ([2, 3], 1) } else { ([1, 2], 3) };
    for index in tables {
        let (table, mut rows) = importer.shaped(node, index)?;
        if let Some(ids) = importer.optional(node, ids)? {
            rows = Shape(importer.shape(&ids).0.into_iter().chain([Dim::fixed(half)]).collect());
        }
        let mut angle = match table {
            Item::Value(value) => value,
            table => {
                let table = importer.computed(&[table], rows.clone(), Kind::Real)?;
                importer.value(node, &table)?
            }
        };
        if rows.rank() == 3 {
            rows.0.insert(1, Dim::ONE);
            angle = importer.network.reshape(&node.name, angle, rows)?;
        }
        angles.push(angle);
    }
    let (network, name, last) = (&mut importer.network, &node.name, shape.rank() - 1);
    let step = if node.int("interleaved")?.unwrap_or(0) != 0 { 2 } else { 1 };
    let halves = [0, if step == 2 { 1 } else { half }].map(|start| {
        let part = Part::whole(shape.rank()).from(last, start, step);
        network.slice(name, x, part, shape.with_last(half), false)
    });
    let mut turn = |a: usize, b: usize| -> Result<[ValueId; 2]> {
        Ok([network.mul(name, halves[0], angles[a])?, network.mul(name, halves[1], angles[b])?])
    };
    let ([a, b], [c, d]) = (turn(0, 1)?, turn(1, 0)?);
    let parts = [network.subtract(name, a, b)?, network.add(name, c, d)?];
    let whole = network.concat(name, &parts, last)?;
    if original.rank() == shape.rank() {
        return Ok(Item::Value(whole));
    }
    let turned = network.permute(name, whole, &[0, 2, 1, 3])?;
    Ok(Item::Value(network.reshape(name, turned, original)?))
}
