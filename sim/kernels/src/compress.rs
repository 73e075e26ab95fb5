//! Lossy compression of feature maps within an error bound: `FedHybrid`'s channel-wise mixed compression (MobiSys '25,
//! section 4.4.1 and figure 10).
//!
//! A [`FeatureMap`] is compressed channel by channel:
//!
//! 1. The 3σ rule sorts channels into normal ones and salient ones, which have more outliers than a
//!    normal distribution would.
//! 2. A normal channel is quantised in groups of 256 by [`crate::quantise`], with the configured number of bits or the
//!    fewest that keep the bound.
//! 3. A salient channel is cut into blocks of n × n. Those whose share of non-zero elements is below τ are kept exactly,
//!    in compressed sparse rows. The rest is predicted by Lorenzo's predictor from decompressed values; what the
//!    prediction misses, in steps of twice the bound, is Huffman-coded.
//!
//! Every element stays within the bound: a channel that 8 bits do not keep within it is predicted, and one that cannot
//! be predicted within it is stored exactly. (Where the number of bits is configured, the bound is half a step of the
//! group.) Exact zeros of predicted channels stay exact zeros, and so do those of quantised channels without negative
//! values; NaN and infinities keep their bits. Every instruction set writes the same bytes and reads the same values.
//!
//! The bytes describe themselves; [`decompress`] accepts any bytes and returns an error for those that
//! [`Codec::compress`] cannot have written, without allocating more than a small multiple of its output.
//!
//! ```
//! use haversack_kernels::Isa;
//! use haversack_kernels::compress::{Bound, Codec, FeatureMap, Mode, decompress};
//!
//! let values: Vec<f32> = (0..2 * 16 * 16).map(|i| (i as f32 * 0.05).sin().max(0.0)).collect();
//! let codec = Codec::new(Mode::mixed(Bound::OfChannel(1e-3)), Isa::Scalar)?;
//! let mut bytes = Vec::new();
//! let summary = codec.compress(FeatureMap { values: &values, channels: 2, height: 16, width: 16 }, &mut bytes)?;
//! let mut restored = vec![0.0; values.len()];
//! decompress(&bytes, Isa::Scalar, &mut restored)?;
//! assert!(values.iter().zip(&restored).all(|(x, y)| (x - y).abs() <= 1e-3));
//! assert_eq!(summary.bytes as usize, bytes.len());
//! # Ok::<(), haversack_kernels::compress::CodecError>(())
//! ```

mod blocks;
mod channel;
mod decode;
mod encode;
mod error;
mod extras;
mod frame;
mod huffman;
mod lorenzo;
mod streams;
mod synthetic;
mod wire;

pub use blocks::Blocks;
pub use decode::decompress;
pub use error::CodecError;
pub use synthetic::Kind;

use crate::{Bits, Isa};
use blocks::Mask;
use channel::{Statistics, ThreeSigma};
use extras::{BitReader, BitWriter};
use frame::{FrameReader, FrameWriter};
use huffman::{LONGEST, TABLE};
use lorenzo::Steps;
use streams::{Code, Emit, Read, STREAMS};
use wire::{Reader, Record, Sections};

/// The shape of one tensor: maps of `height` × `width`, one a channel, one after the other (NCHW without the N).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Channels.
    pub channels: usize,
    /// Rows of a channel.
    pub height: usize,
    /// Elements of a row.
    pub width: usize,
}

impl Shape {
    /// Elements of a channel, or `None` if there are more than can be counted.
    pub const fn plane(self) -> Option<usize> {
        self.height.checked_mul(self.width)
    }

    /// Elements, or `None` if there are more than can be counted.
    pub fn elements(self) -> Option<usize> {
        self.plane()?.checked_mul(self.channels)
    }
}

/// A tensor to be compressed. A batch is compressed sample by sample. Activations of a transformer, in which a feature
/// is a column, are to be transposed first: a channel is a feature, and its map one row of tokens.
#[derive(Clone, Copy, Debug)]
pub struct FeatureMap<'a> {
    /// The elements: channel after channel, row after row.
    pub values: &'a [f32],
    /// Channels.
    pub channels: usize,
    /// Rows of a channel.
    pub height: usize,
    /// Elements of a row.
    pub width: usize,
}

impl FeatureMap<'_> {
    /// Its shape.
    pub const fn shape(&self) -> Shape {
        Shape { channels: self.channels, height: self.height, width: self.width }
    }
}

/// How far a decompressed element may be from the original. A range is that of the finite elements, the
/// largest less the smallest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// This distance, in the unit of the elements.
    Absolute(f32),
    /// This share of the tensor's range.
    OfTensor(f32),
    /// This share of the channel's own range.
    OfChannel(f32),
}

/// How channels are compressed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub enum Mode {
    /// `FedHybrid`'s: normal channels are quantised, salient ones cut into sparse and dense blocks.
    Mixed {
        /// Bits of an element of a normal channel; half a step of its group is then its bound. Without it, the fewest
        /// bits that keep `bound`; a channel that 8 bits do not keep within it is predicted.
        bits: Option<Bits>,
        /// The bound of every element of a salient channel and, without `bits`, of every element.
        bound: Bound,
        /// How salient channels are cut.
        blocks: Blocks,
    },
    /// Every channel is quantised in groups of 256. The bits bound the error: half a step of the group. A channel that
    /// has no finite range is stored exactly.
    Quantise {
        /// Bits of an element.
        bits: Bits,
    },
    /// Every channel is predicted, as SZ does it (Tao et al., IPDPS 2017).
    ErrorBounded {
        /// The bound of every element.
        bound: Bound,
    },
}

impl Mode {
    /// The mixed mode that keeps a bound on every element, with the default [`Blocks`].
    pub const fn mixed(bound: Bound) -> Self {
        Self::Mixed { bits: None, bound, blocks: Blocks::DEFAULT }
    }

    /// The bound, unless the bits alone bound the error.
    pub const fn bound(&self) -> Option<Bound> {
        match self {
            Self::Mixed { bound, .. } | Self::ErrorBounded { bound } => Some(*bound),
            Self::Quantise { .. } => None,
        }
    }
}

/// A compressor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Codec {
    mode: Mode,
    isa: Isa,
}

/// The outcome of a compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Channels that the 3σ rule calls normal; outside the mixed mode, all that are quantised.
    pub normal: usize,
    /// Channels that the 3σ rule calls salient; outside the mixed mode, all that are not quantised.
    pub salient: usize,
    /// Channels that are stored as quantised codes: normal ones, unless 8 bits do not keep their bound.
    pub quantised: usize,
    /// Blocks of salient channels that are kept exactly.
    pub sparse_blocks: usize,
    /// Blocks of salient channels that are predicted.
    pub dense_blocks: usize,
    /// Elements that are kept exactly because no step came within the bound, channels stored whole included.
    pub exact: usize,
    /// Length of the compressed tensor in bytes.
    pub bytes: u64,
}

impl Codec {
    /// A compressor.
    ///
    /// # Errors
    /// [`CodecError::Setting`] on a bound that is negative or not finite, on blocks without an edge, and on a threshold
    /// outside 0 to 1.
    pub fn new(mode: Mode, isa: Isa) -> Result<Self, CodecError> {
        if let Some(Bound::Absolute(bound) | Bound::OfTensor(bound) | Bound::OfChannel(bound)) = mode.bound()
            && !(bound >= 0.0 && bound.is_finite())
        {
            return Err(CodecError::setting("the bound", bound, "a finite number that is not negative"));
        }
        if let Mode::Mixed { blocks, .. } = mode {
            blocks.check()?;
        }
        Ok(Self { mode, isa })
    }

    /// The instruction set.
    pub const fn isa(&self) -> Isa {
        self.isa
    }

    /// Compresses a tensor into `out`, whose contents it replaces.
    ///
    /// # Errors
    /// [`CodecError::Shape`] unless the values fill the shape, and the shape fits 32 bits a dimension.
    pub fn compress(&self, map: FeatureMap<'_>, out: &mut Vec<u8>) -> Result<Summary, CodecError> {
        encode::compress(self, map, out)
    }

    /// The variance of the error that compression adds to the elements, in their unit squared: of the decompressed less
    /// the original, over the finite elements.
    ///
    /// The gradient of a weight is a sum of products of saved elements and output gradients, which do not depend on
    /// the compression, so the gradient's additional variance is proportional to it (figure 18b of the paper).
    ///
    /// # Errors
    /// As [`compress`](Self::compress).
    pub fn error_variance(&self, map: FeatureMap<'_>) -> Result<f64, CodecError> {
        let (mut bytes, mut restored) = (Vec::new(), vec![0.0; map.values.len()]);
        self.compress(map, &mut bytes)?;
        decompress(&bytes, self.isa, &mut restored)?;
        let differences = || {
            let pairs = map.values.iter().zip(&restored).filter(|(x, _)| x.is_finite());
            pairs.map(|(&x, &y)| f64::from(y) - f64::from(x))
        };
        let count = differences().count().max(1) as f64;
        let mean = differences().sum::<f64>() / count;
        Ok(differences().map(|difference| (difference - mean).powi(2)).sum::<f64>() / count)
    }
}
