//! GPT-2 medium (Radford et al., "Language models are unsupervised multitask learners", 2019) as Hugging
//! Face builds it with eager attention, with peft's low-rank adapters on the fused projection (Hu et
//! al., ICLR 2022). The base is frozen; the last layer is the table of embeddings.
//!
//! At a batch of one, PyTorch's products read queries, keys and values in the fused projection instead
//! of copying them: as many bytes, in one storage a block where here are three.

use super::Built;
use super::transformer::{Dense, fused_heads, gelu_new, join_heads, rows, scores};
use crate::operator::Part;
use crate::{Copying, INT64, Initial, Mask, Network, Shape, Unary, ValueId};

/// Rows of the position table.
pub(super) const POSITIONS: u64 = 1024;
const VOCABULARY: u64 = 50257;
const WIDTH: u64 = 1024;
const HEADS: u64 = 16;
const INNER: u64 = 4 * WIDTH;
const LAYERS: u64 = 24;
const RANK: u64 = 4;
/// What the adapters' updates are multiplied by: alpha of 32 (Hu et al., table 11) over the rank.
const SCALING: f32 = 8.0;
const DROPOUT: f32 = 0.1;

pub(super) fn gpt2_medium_lora(n: &mut Network, input: &[u64]) -> Built {
    let tokens = input[0];
    let initial = Initial::of_transformer();
    let words = n.weight("transformer.wte.weight", &[VOCABULARY, WIDTH], initial, false);
    let positions = n.weight("transformer.wpe.weight", &[POSITIONS, WIDTH], initial, false);
    let ids = n.token_input(tokens);
    let x = n.embedding("transformer.wte", ids, WIDTH, words);
    let ids = n.id_buffer("transformer.position_ids", &[1, tokens], tokens, Initial::Counting { first: 0 });
    let y = n.embedding("transformer.wpe", ids, WIDTH, positions);
    let x = n.add("transformer.add", x, y)?;
    let mut x = n.dropout("transformer.drop", x, DROPOUT);
    for layer in 0..LAYERS {
        x = block(n, &format!("transformer.h.{layer}"), x)?;
    }
    let x = n.layer_norm("transformer.ln_f", x, false);
    let scores = n.linear_with("lm_head", x, VOCABULARY, words, None)?;

    // Each token's scores meet the next token: both sides are cut by one and copied.
    let predicted = tokens - 1;
    let seen = Shape::batched(&[predicted, VOCABULARY]);
    let scores = n.slice("shift_logits", scores, Part::whole(3), seen, false);
    let scores = n.contiguous("shift_logits", scores);
    let scores = n.reshape("shift_logits", scores, rows(predicted, &[VOCABULARY]))?;
    let target = n.target(tokens);
    let later = Copying::Part(Part::whole(2).from(1, 1, 1));
    let target = n.computed("shift_labels", target, later, Shape::batched(&[predicted]), INT64);
    n.cross_entropy("loss", scores, target)?;
    Ok(())
}

fn block(n: &mut Network, name: &str, x: ValueId) -> Built<ValueId> {
    let y = n.layer_norm(&format!("{name}.ln_1"), x, false);
    let y = attention(n, &format!("{name}.attn"), y)?;
    let x = n.add(&format!("{name}.add_attention"), y, x)?;
    let y = n.layer_norm(&format!("{name}.ln_2"), x, false);
    let y = dense(n, &format!("{name}.mlp.c_fc"), y, INNER)?;
    let y = gelu_new(n, &format!("{name}.mlp.act"), y)?;
    let y = dense(n, &format!("{name}.mlp.c_proj"), y, WIDTH)?;
    let y = n.dropout(&format!("{name}.mlp.dropout"), y, DROPOUT);
    n.add(&format!("{name}.add_mlp"), x, y)
}

fn attention(n: &mut Network, name: &str, x: ValueId) -> Built<ValueId> {
    let fused = format!("{name}.c_attn");
    let fused_weights = Dense::new(n, &fused, WIDTH, 3 * WIDTH, false).adapted(n, WIDTH, RANK, SCALING);
    let fused_output = fused_weights.apply(n, &fused, x)?;
    // The thirds of the fused projection are split into heads in place and copied by the products.
    let mut third = |part: &str, third| fused_heads(n, &format!("{name}.{part}"), fused_output, third, HEADS);
    let (query, key, value) = (third("query", 0), third("key", 1), third("value", 2));
    let causal = n.buffer(&format!("{name}.bias"), POSITIONS * POSITIONS);
    let weights = scores(n, &format!("{name}.scores"), query, key)?;
    let weights = n.unary(&format!("{name}.scale"), weights, Unary::DivideByElement(((WIDTH / HEADS) as f32).sqrt()));
    let weights = n.masked(&format!("{name}.mask"), weights, causal, Mask::Causal);
    let weights = n.softmax(&format!("{name}.softmax"), weights);
    let weights = n.dropout(&format!("{name}.attn_dropout"), weights, DROPOUT);
    let context = n.matmul(&format!("{name}.context"), weights, value)?;
    let context = join_heads(n, &format!("{name}.context"), context)?;
    let y = dense(n, &format!("{name}.c_proj"), context, WIDTH)?;
    Ok(n.dropout(&format!("{name}.resid_dropout"), y, DROPOUT))
}

/// A frozen dense layer.
fn dense(n: &mut Network, name: &str, x: ValueId, features: u64) -> Built<ValueId> {
    let width = n.shape(x).last();
    Dense::new(n, name, width, features, false).apply(n, name, x)
}
