//! Quantisation and packing of f32 tensors: 1 to 8 bits an element, and back.
//!
//! A tensor (or each group of 256 of its elements) is mapped to the codes 0 to 2^b - 1 by equation (1) of DAF
//! (MobiCom '25): `scale = (max - min) / (2^b - 1)`, `q = round((x - min) / scale)`. The codes are packed into 32-bit
//! words in one of three [`Layout`]s. What is stored is [`Format::bytes`] long, not a byte more.
//!
//! - [`quantise_into`] and [`dequantise_into`] work in the caller's buffers and do not allocate; [`Packed`] owns its own.
//! - [`Format::slot`] defines where a code lies, and the tests what it is, one element at a time; every kernel is tested
//!   against both.
//! - [`mask`] holds one-bit masks, [`requantise`](mod@requantise) the way from more bits to fewer.
//!
//! Every instruction set gives the same bits, and so does every layout after unpacking. An instruction set that the
//! processor lacks is replaced by plain Rust.
//!
//! # Numbers that are not finite
//! A NaN element takes the code 0 and does not count in the range. A tensor (or a group) whose range is not finite, be
//! it because it holds an infinity, nothing but NaN, or spans more than f32 does, is [`KernelError::Range`]. An empty
//! tensor packs into no words, and unpacks from them.
//!
//! [`KernelError::Range`]: crate::KernelError::Range

mod block;
mod extremes;
mod format;
mod layout;
pub mod mask;
mod pack;
mod packed;
pub mod requantise;
mod rounding;
mod scale;
mod unpack;

pub use format::{Bits, Format, GROUP, Grouping, packed_bytes};
pub use layout::{LANES, Layout, Slot, TiledMatrix};
pub use pack::quantise_into;
pub use packed::Packed;
pub use requantise::requantise;
pub use rounding::{Rounding, draw};
pub use scale::Scale;
pub use unpack::dequantise_into;
