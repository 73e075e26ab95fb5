//! The encoders after BERT, as Hugging Face builds them with eager attention: BERT itself (Devlin et
//! al., NAACL 2019), ALBERT (Lan et al., ICLR 2020) and RoBERTa (Liu et al., 2019) with the low-rank
//! adapters of peft (Hu et al., ICLR 2022), each with its head.

use super::Built;
use super::blocks::Width;
use super::blocks::loss;
use super::transformer::{Dense, gelu_new, join_heads, rows, scores, split_heads};
use crate::operator::Part;
use crate::{Addend, EPSILON, Initial, Network, ParameterId, Shape, Unary, ValueId};

/// The probability of every dropout.
const DROPOUT: f32 = 0.1;

/// What tells one encoder from another.
pub(super) struct Encoder {
    name: &'static str,
    vocabulary: u64,
    /// The most tokens.
    pub(super) positions: u64,
    /// Rows of the position table before the first token's.
    position_offset: u64,
    types: u64,
    /// Features of a token's embedding; a projection follows where the encoder is wider.
    embedding: u64,
    width: u64,
    heads: u64,
    inner: u64,
    layers: u64,
    /// Dropout inside the encoder; a probability of zero makes no operator.
    dropout: bool,
    /// Dropout before the classifier.
    head_dropout: bool,
    /// GELU in single steps instead of the fused function.
    stepwise_gelu: bool,
    /// One layer's weights for all layers.
    shared: bool,
    /// The adapters on query and value, their rank and alpha; the weights that they adapt are then frozen.
    adapter: Option<(u64, f32)>,
    /// Whether everything else but the head and the adapters is frozen, too.
    frozen: bool,
    /// Added to the variance of every layer normalisation.
    epsilon: f32,
    /// The standard deviation of its first weights; tables have a transformer's 0.02.
    deviation: f32,
}

impl Encoder {
    /// What its weights hold before training.
    const fn initial(&self) -> Initial {
        Initial::Normal { deviation: self.deviation }
    }
}

const BERT: Encoder = Encoder {
    name: "bert",
    vocabulary: 30522,
    positions: 512,
    position_offset: 0,
    types: 2,
    embedding: 768,
    width: 768,
    heads: 12,
    inner: 3072,
    layers: 12,
    dropout: true,
    head_dropout: true,
    stepwise_gelu: false,
    shared: false,
    adapter: None,
    frozen: false,
    epsilon: 1e-12,
    deviation: 0.02,
};

pub(super) const BERT_BASE: Encoder = BERT;
pub(super) const BERT_SMALL: Encoder = Encoder { embedding: 512, width: 512, heads: 8, inner: 2048, layers: 4, ..BERT };
pub(super) const ALBERT_BASE: Encoder = Encoder {
    name: "albert",
    vocabulary: 30000,
    embedding: 128,
    dropout: false,
    stepwise_gelu: true,
    shared: true,
    ..BERT
};
pub(super) const ROBERTA_BASE_LORA: Encoder =
    // Alpha is Hu et al.'s (table 9), the epsilon Hugging Face's for RoBERTa.
    Encoder {
        name: "roberta",
        vocabulary: 50265,
        position_offset: 2,
        types: 1,
        adapter: Some((8, 8.0)),
        frozen: true,
        epsilon: EPSILON,
        ..BERT
    };
/// A small encoder over bytes, without dropout, for training with data.
///
/// It starts from random weights, and adapters need features to adapt: with them and the head alone, it stays at chance on
/// `phrases`. So only the matrices that have an adapter are frozen; tables, other layers and norms are trained.
pub(super) const TRANSFORMER2_LORA: Encoder = Encoder {
    name: "transformer",
    vocabulary: 256,
    positions: 64,
    types: 1,
    embedding: 64,
    width: 64,
    heads: 4,
    inner: 256,
    layers: 2,
    dropout: false,
    head_dropout: false,
    adapter: Some((4, 8.0)),
    epsilon: EPSILON,
    // 0.02 √(768/64): products as large as at BERT's width. With 0.02 it is slow to learn the second of the two things that
    // `phrases` say.
    deviation: 0.07,
    ..BERT
};

/// A single layer that is trained in full.
pub(super) const TRANSFORMER1: Encoder = Encoder {
    embedding: 32,
    width: 32,
    heads: 2,
    inner: 64,
    layers: 1,
    adapter: None,
    deviation: 0.1,
    ..TRANSFORMER2_LORA
};

impl Encoder {
    /// A narrower one: fewer heads, each as wide, and fewer features within a layer.
    pub(super) fn narrowed(&self, width: Width) -> Self {
        let heads = width.of(self.heads);
        let features = self.width / self.heads * heads;
        // ALBERT's tables are narrower than its layers.
        let embedding = if self.embedding == self.width { features } else { width.of(self.embedding) };
        Self { embedding, width: features, heads, inner: width.of(self.inner), ..*self }
    }
}

/// A classifier on the first token's pooled features: BERT's and ALBERT's.
pub(super) fn classifier(n: &mut Network, input: &[u64], classes: u64, e: &Encoder) -> Built {
    if e.adapter.is_some() {
        return adapted_classifier(n, input, classes, e);
    }
    let (x, _) = encode(n, input, e)?;
    let x = first_token(n, x);
    let x = dense(n, &format!("{}.pooler.dense", e.name), x, e.width, e)?;
    let x = n.unary(&format!("{}.pooler.activation", e.name), x, Unary::Tanh);
    let x = dropout(n, "dropout", x, e.head_dropout);
    let x = dense(n, "classifier", x, classes, e)?;
    loss(n, x)
}

/// A classifier on the first token with a dense layer of its own: RoBERTa's, trained in full beside the adapters.
fn adapted_classifier(n: &mut Network, input: &[u64], classes: u64, e: &Encoder) -> Built {
    let (x, _) = encode(n, input, e)?;
    // peft trains a copy of the head and keeps the original, frozen and unused.
    for (part, elements) in [("dense", e.width * (e.width + 1)), ("out_proj", classes * (e.width + 1))] {
        n.weight(&format!("classifier.original_module.{part}"), &[elements], Initial::of_transformer(), false);
    }
    let x = first_token(n, x);
    let x = dropout(n, "classifier.dropout", x, e.head_dropout);
    let x = dense(n, "classifier.dense", x, e.width, e)?;
    let x = n.unary("classifier.tanh", x, Unary::Tanh);
    let x = dropout(n, "classifier.dropout", x, e.head_dropout);
    let x = dense(n, "classifier.out_proj", x, classes, e)?;
    loss(n, x)
}

/// A head that predicts every token from its features, with the embedding as its last weight.
pub(super) fn masked_language_model(n: &mut Network, input: &[u64], e: &Encoder) -> Built {
    let (x, table) = encode(n, input, e)?;
    let name = "cls.predictions";
    let x = dense(n, &format!("{name}.transform.dense"), x, e.embedding, e)?;
    let x = activation(n, &format!("{name}.transform.activation"), x, e)?;
    let x = layer_norm(n, &format!("{name}.transform.LayerNorm"), x, e)?;
    let bias = n.parameter_of(&format!("{name}.bias"), e.vocabulary, true);
    let scores = n.linear_with(&format!("{name}.decoder"), x, e.vocabulary, table, Some(bias))?;
    let tokens = input[0];
    let scores = n.reshape("scores", scores, rows(tokens, &[e.vocabulary]))?;
    let target = n.target(tokens);
    n.cross_entropy("loss", scores, target)?;
    Ok(())
}

/// The features of all tokens, `B×T×width`, and the table of the tokens' embeddings.
fn encode(n: &mut Network, input: &[u64], e: &Encoder) -> Built<(ValueId, ParameterId)> {
    let (mut x, table) = embed(n, input[0], e)?;
    if e.embedding != e.width {
        x = dense(n, &format!("{}.encoder.embedding_hidden_mapping_in", e.name), x, e.width, e)?;
    }
    let mut weights = LayerWeights::new(n, &layer_name(e, 0), e);
    for layer in 0..e.layers {
        if layer > 0 && !e.shared {
            weights = LayerWeights::new(n, &layer_name(e, layer), e);
        }
        x = encoder_layer(n, &layer_name(e, layer), x, &weights, e)?;
    }
    Ok((x, table))
}

fn layer_name(e: &Encoder, layer: u64) -> String {
    format!("{}.encoder.layer.{layer}", e.name)
}

/// The sum of token, type and position embeddings, normalised.
fn embed(n: &mut Network, tokens: u64, e: &Encoder) -> Built<(ValueId, ParameterId)> {
    let name = format!("{}.embeddings", e.name);
    let trainable = !e.frozen;
    let rows = e.positions + e.position_offset;
    let table = |n: &mut Network, part: &str, rows: u64| {
        n.weight(&format!("{name}.{part}.weight"), &[rows, e.embedding], Initial::of_transformer(), trainable)
    };
    let words = table(n, "word_embeddings", e.vocabulary);
    let positions = table(n, "position_embeddings", rows);
    let types = table(n, "token_type_embeddings", e.types);

    let ids = n.token_input(tokens);
    let x = n.embedding(&format!("{name}.word_embeddings"), ids, e.embedding, words);
    // One row of type ids, as long as there are positions, is cut to the tokens and seen once a sample.
    let ids = n.stored_ids(&format!("{name}.token_type_ids"), rows, Initial::ZEROS);
    let ids = n.look_at(ids, Shape::batched(&[tokens]));
    let y = n.embedding(&format!("{name}.token_type_embeddings"), ids, e.embedding, types);
    let first = Initial::Counting { first: e.position_offset.cast_signed() };
    let ids = n.id_buffer(&format!("{name}.position_ids"), &[1, tokens], rows, first);
    let z = n.embedding(&format!("{name}.position_embeddings"), ids, e.embedding, positions);
    let x = n.add(&format!("{name}.add_types"), x, y)?;
    let x = n.add(&format!("{name}.add_positions"), x, z)?;
    let x = layer_norm(n, &format!("{name}.LayerNorm"), x, e)?;
    Ok((dropout(n, &format!("{name}.dropout"), x, e.dropout), words))
}

/// The weights of one encoder layer.
struct LayerWeights {
    query: Dense,
    key: Dense,
    value: Dense,
    output: Dense,
    attention_norm: [ParameterId; 2],
    inner: Dense,
    outer: Dense,
    norm: [ParameterId; 2],
}

impl LayerWeights {
    fn new(n: &mut Network, name: &str, e: &Encoder) -> Self {
        let trainable = !e.frozen;
        let dense = |n: &mut Network, part: &str, width, features| {
            Dense::drawn(n, &format!("{name}.{part}"), [features, width], e.initial(), trainable)
        };
        let norm = |n: &mut Network, part: &str| n.norm_weights(&format!("{name}.{part}"), e.width, trainable);
        let adapted = |n: &mut Network, part: &str| {
            let dims = [e.width, e.width];
            let base = Dense::drawn(n, &format!("{name}.{part}"), dims, e.initial(), e.adapter.is_none());
            match e.adapter {
                Some((rank, alpha)) => base.adapted(n, e.width, rank, alpha / rank as f32),
                None => base,
            }
        };
        Self {
            query: adapted(n, "attention.self.query"),
            key: dense(n, "attention.self.key", e.width, e.width),
            value: adapted(n, "attention.self.value"),
            output: dense(n, "attention.output.dense", e.width, e.width),
            attention_norm: norm(n, "attention.output.LayerNorm"),
            inner: dense(n, "intermediate.dense", e.width, e.inner),
            outer: dense(n, "output.dense", e.inner, e.width),
            norm: norm(n, "output.LayerNorm"),
        }
    }
}

fn encoder_layer(n: &mut Network, name: &str, x: ValueId, weights: &LayerWeights, e: &Encoder) -> Built<ValueId> {
    let y = attention(n, &format!("{name}.attention.self"), x, weights, e)?;
    let y = weights.output.apply(n, &format!("{name}.attention.output.dense"), y)?;
    let y = dropout(n, &format!("{name}.attention.output.dropout"), y, e.dropout);
    let y = n.add(&format!("{name}.attention.output.add"), y, x)?;
    let x = n.layer_norm_with(&format!("{name}.attention.output.LayerNorm"), y, weights.attention_norm, e.epsilon)?;

    let y = weights.inner.apply(n, &format!("{name}.intermediate.dense"), x)?;
    let y = activation(n, &format!("{name}.intermediate.activation"), y, e)?;
    let y = weights.outer.apply(n, &format!("{name}.output.dense"), y)?;
    let y = dropout(n, &format!("{name}.output.dropout"), y, e.dropout);
    let y = n.add(&format!("{name}.output.add"), y, x)?;
    n.layer_norm_with(&format!("{name}.output.LayerNorm"), y, weights.norm, e.epsilon)
}

fn attention(n: &mut Network, name: &str, x: ValueId, weights: &LayerWeights, e: &Encoder) -> Built<ValueId> {
    let mut project = |part: &str, dense: &Dense| {
        let module = format!("{name}.{part}");
        let y = dense.apply(n, &module, x)?;
        split_heads(n, &module, y, e.heads)
    };
    let query = project("query", &weights.query)?;
    let key = project("key", &weights.key)?;
    let value = project("value", &weights.value)?;
    let weights = scores(n, &format!("{name}.scores"), query, key)?;
    let weights = n.unary(&format!("{name}.scale"), weights, Unary::Scale(1.0 / ((e.width / e.heads) as f32).sqrt()));
    let weights = n.unary(&format!("{name}.mask"), weights, Unary::AddConstant(Addend::Value(0.0)));
    let weights = n.softmax(&format!("{name}.softmax"), weights);
    let weights = dropout(n, &format!("{name}.dropout"), weights, e.dropout);
    let context = n.matmul(&format!("{name}.context"), weights, value)?;
    join_heads(n, &format!("{name}.context"), context)
}

fn activation(n: &mut Network, name: &str, x: ValueId, e: &Encoder) -> Built<ValueId> {
    if e.stepwise_gelu { gelu_new(n, name, x) } else { Ok(n.unary(name, x, Unary::Gelu)) }
}

fn dropout(n: &mut Network, name: &str, x: ValueId, on: bool) -> ValueId {
    if on { n.dropout(name, x, DROPOUT) } else { x }
}

/// A trained dense layer.
fn dense(n: &mut Network, name: &str, x: ValueId, features: u64, e: &Encoder) -> Built<ValueId> {
    let width = n.shape(x).last();
    Dense::drawn(n, name, [features, width], e.initial(), true).apply(n, name, x)
}

/// Layer normalisation with weights of its own, trained unless the encoder is frozen.
fn layer_norm(n: &mut Network, name: &str, x: ValueId, e: &Encoder) -> Built<ValueId> {
    let (width, trainable) = (n.shape(x).last(), !e.frozen);
    let parameters = n.norm_weights(name, width, trainable);
    n.layer_norm_with(name, x, parameters, e.epsilon)
}

/// The features of the first token, seen in place: whoever saves them keeps those of all tokens.
fn first_token(n: &mut Network, x: ValueId) -> ValueId {
    let width = n.shape(x).last();
    n.slice("first_token", x, Part::whole(3).at(1, 0), Shape::batched(&[width]), false)
}
