//! Quantisation and packing of f32 tensors: 1 to 8 bits an element, and back.
//!
//! A tensor (or each group of 256 of its elements) is mapped to the codes 0 to 2^b - 1 by equation (1) of DAF (MobiCom
//! '25): `scale = (max - min) / (2^b - 1)`, `q = round((x - min) / scale)`. The codes are packed into 32-bit words in
//! one of three [`Layout`]s. The result is exactly [`Format::bytes`] long.
//!
//! - [`quantise_into`] and [`dequantise_into`] work in the caller's buffers and do not allocate; [`Packed`] owns its own.
//! - [`Format::slot`] defines where a code is stored, and the tests define its value, one element at a time; every
//!   kernel is tested against both.
//! - [`mask`] has one-bit masks, [`requantise`](mod@requantise) reduces the bits of a packed tensor.
//!
//! Every instruction set gives the same bits, and so does every layout after unpacking. An instruction set that the
//! processor lacks is replaced by plain Rust.
//!
//! # Numbers that are not finite
//! A NaN element takes the code 0 and does not count in the range. A tensor (or a group) whose range is not finite,
//! because it has an infinity, only NaN, or a span beyond f32, is [`KernelError::Range`]. An empty tensor packs into no
//! words, and unpacks from them.
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
