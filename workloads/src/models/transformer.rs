//! What the transformers share: dense layers with frozen weights and low-rank adapters, attention heads,
//! and the activation that GPT-2 and ALBERT compute in steps.

use super::Built;
use crate::operator::{Along, Part};
use crate::{Addend, Dim, Initial, Network, ParameterId, Shape, Unary, ValueId};

/// The weights of a dense layer, which may be frozen, shared or adapted.
pub(super) struct Dense {
    name: String,
    features: u64,
    weight: ParameterId,
    bias: Option<ParameterId>,
    adapter: Option<Adapter>,
}

/// The two factors of a low-rank update (Hu et al., "LoRA", ICLR 2022).
struct Adapter {
    rank: u64,
    /// What the update is multiplied by: alpha over the rank.
    scaling: f32,
    down: ParameterId,
    up: ParameterId,
}

impl Dense {
    /// Weights and a bias from `width` into `features`, drawn as transformers draw them.
    pub(super) fn new(n: &mut Network, name: &str, width: u64, features: u64, trainable: bool) -> Self {
        Self::drawn(n, name, [features, width], Initial::of_transformer(), trainable)
    }

    /// The same with weights of `dims`, outputs then inputs, drawn from `initial`.
    pub(super) fn drawn(n: &mut Network, name: &str, dims: [u64; 2], initial: Initial, trainable: bool) -> Self {
        let [features, _] = dims;
        let weight = n.weight(&format!("{name}.weight"), &dims, initial, trainable);
        let bias = Some(n.weight(&format!("{name}.bias"), &[features], Initial::ZEROS, trainable));
        Self { name: name.to_owned(), features, weight, bias, adapter: None }
    }

    /// The same with a trained update of `rank`, times `scaling`, beside it, as peft builds it.
    pub(super) fn adapted(mut self, n: &mut Network, width: u64, rank: u64, scaling: f32) -> Self {
        let down = n.weight(&format!("{}.lora_A.weight", self.name), &[rank, width], Initial::of_layer(width), true);
        // The update is zero at first.
        let up = n.weight(&format!("{}.lora_B.weight", self.name), &[self.features, rank], Initial::ZEROS, true);
        self.adapter = Some(Adapter { rank, scaling, down, up });
        self
    }

    /// `x Wᵀ + b`, plus the scaled update if there is an adapter.
    pub(super) fn apply(&self, n: &mut Network, module: &str, x: ValueId) -> Built<ValueId> {
        let y = n.linear_with(module, x, self.features, self.weight, self.bias)?;
        let Some(adapter) = &self.adapter else { return Ok(y) };
        let update = n.linear_with(&format!("{module}.lora_A"), x, adapter.rank, adapter.down, None)?;
        let update = n.linear_with(&format!("{module}.lora_B"), update, self.features, adapter.up, None)?;
        let update = n.unary(&format!("{module}.scaling"), update, Unary::Scale(adapter.scaling));
        n.add(&format!("{module}.add"), y, update)
    }
}

/// A shape of `per_sample` rows a sample.
pub(super) fn rows(per_sample: u64, rest: &[u64]) -> Shape {
    let mut shape = Shape::fixed(rest);
    shape.0.insert(0, Dim::batched(per_sample));
    shape
}

/// `B×T×W` seen as `B×heads×T×(W/heads)`.
pub(super) fn split_heads(n: &mut Network, module: &str, x: ValueId, heads: u64) -> Built<ValueId> {
    let (tokens, width) = (n.shape(x).size(1), n.shape(x).last());
    let x = n.reshape(module, x, Shape::batched(&[tokens, heads, width / heads]))?;
    n.permute(module, x, &[0, 2, 1, 3])
}

/// A third of a fused projection `B×T×3W` (query 0, key 1, value 2) seen in place as `B×heads×T×(W/heads)`.
pub(super) fn fused_heads(n: &mut Network, module: &str, fused: ValueId, third: u64, heads: u64) -> ValueId {
    let shape = n.shape(fused);
    let (tokens, width) = (shape.size(1), shape.last() / 3);
    let seen = rows(shape.size(0), &[heads, tokens, width / heads]);
    let axes = [(0, 1), (2, width / heads), (1, 1), (2, 1)].map(|(axis, step)| Along { axis, step });
    let part = Part { start: vec![0, 0, third * width], axes: axes.to_vec() };
    n.slice(module, fused, part, seen, false)
}

/// `rows×heads×T×D` copied into `rows×T×(heads·D)`.
pub(super) fn join_heads(n: &mut Network, module: &str, x: ValueId) -> Built<ValueId> {
    let x = n.permute(module, x, &[0, 2, 1, 3])?;
    let [count, tokens, heads, width] = [0, 1, 2, 3].map(|axis| n.shape(x).size(axis));
    n.reshape(module, x, rows(count, &[tokens, heads * width]))
}

/// The product of queries and transposed keys.
pub(super) fn scores(n: &mut Network, module: &str, query: ValueId, key: ValueId) -> Built<ValueId> {
    let key = n.permute(module, key, &[0, 1, 3, 2])?;
    n.matmul(module, query, key)
}

/// GELU by its tanh approximation in single steps: it saves the input, the tanh and both factors of the product.
pub(super) fn gelu_new(n: &mut Network, module: &str, x: ValueId) -> Built<ValueId> {
    let half = n.unary(&format!("{module}.half"), x, Unary::Scale(0.5));
    let cube = n.unary(&format!("{module}.pow"), x, Unary::Power(3.0));
    let cube = n.unary(&format!("{module}.coefficient"), cube, Unary::Scale(0.044_715));
    let inner = n.add(&format!("{module}.sum"), x, cube)?;
    let inner = n.unary(&format!("{module}.scale"), inner, Unary::Scale((2.0 / std::f32::consts::PI).sqrt()));
    let tanh = n.unary(&format!("{module}.tanh"), inner, Unary::Tanh);
    let outer = n.unary(&format!("{module}.one_plus"), tanh, Unary::AddConstant(Addend::Value(1.0)));
    n.mul(module, half, outer)
}
