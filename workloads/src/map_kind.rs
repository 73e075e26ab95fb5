//! The kind of operator that made a forward tensor, which determines how well its values compress and how many
//! outliers they have.

use crate::{Op, Unary};

/// The kind of operator that made the values of a tensor. Poolings, views and copies keep the kind of their input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "lowercase")]
pub enum MapKind {
    /// A ReLU: many values are zero, none is below.
    Rectified,
    /// A product, a sum or a table: any values.
    Dense,
    /// A normalisation of a batch or of a layer.
    Normalised,
    /// A function without a kink: GELU and its like.
    Smooth,
    /// A softmax: shares of one.
    Attention,
}

impl MapKind {
    /// The kind that an operator makes; `None` if it keeps the kind of its input, or makes no map.
    pub const fn made_by(op: &Op) -> Option<Self> {
        Some(match op {
            Op::Unary { function: Unary::Relu | Unary::Relu6 | Unary::Clip { .. }, .. } => Self::Rectified,
            Op::Unary {
                function: Unary::Gelu | Unary::GeluTanh | Unary::Silu | Unary::Sigmoid | Unary::Tanh | Unary::Other(_),
                ..
            } => Self::Smooth,
            Op::Softmax => Self::Attention,
            Op::BatchNorm { .. } | Op::LayerNorm { .. } | Op::GroupNorm { .. } => Self::Normalised,
            Op::Convolution { .. }
            | Op::TransposedConvolution { .. }
            | Op::Recurrent { .. }
            | Op::Linear
            | Op::Matmul
            | Op::Add
            | Op::Subtract
            | Op::Mul
            | Op::Pairwise(_)
            | Op::Embedding
            | Op::IndexTable => Self::Dense,
            _ => return None,
        })
    }
}
