//! The format of a packed tensor: how many bits, how many ranges, in which order.

use super::layout::{Layout, Segment, Slot};
use crate::KernelError;

/// Elements that share a range under [`Grouping::Group256`], as in `ActNN` (Chen et al., ICML 2021).
pub const GROUP: usize = 256;

/// Bits of a code, 1 to 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bits(u8);

impl Bits {
    /// Every width.
    pub const ALL: [Self; 8] = [Self(1), Self(2), Self(3), Self(4), Self(5), Self(6), Self(7), Self(8)];

    /// A width.
    ///
    /// # Errors
    /// [`KernelError::Bits`] outside 1 to 8.
    pub const fn new(bits: u8) -> Result<Self, KernelError> {
        if matches!(bits, 1..=8) { Ok(Self(bits)) } else { Err(KernelError::Bits(bits)) }
    }

    /// The number of bits.
    pub const fn get(self) -> u32 {
        self.0 as u32
    }

    /// The greatest code, 2^b - 1.
    pub const fn top(self) -> u32 {
        (1 << self.0) - 1
    }

    /// Codes in a 32-bit word: 32, 16, 10, 8, 6, 5, 4 and 4 for 1 to 8 bits.
    ///
    /// No code straddles two words: one load, one shift and one mask read it, on the CPU as on the GPU. Widths that do
    /// not divide 32 leave the top 2 (3, 5 and 6 bits) or 4 bits (7 bits) of each word zero, so that an element costs
    /// 3.2, 5.33 and 6.4 bits, and 7 bits cost as much as 8.
    pub(crate) const fn per_word(self) -> usize {
        32 / self.0 as usize
    }
}

impl TryFrom<u8> for Bits {
    type Error = KernelError;

    fn try_from(bits: u8) -> Result<Self, KernelError> {
        Self::new(bits)
    }
}

/// Which elements share a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grouping {
    /// All of them. The minimum and the scale are stored as two f32.
    Tensor,
    /// Each [`GROUP`] consecutive elements (in the tensor's own order, whatever the layout; the last group may be
    /// shorter). The minimum and the scale are stored as two bf16, rounded outwards: the minimum down, the scale up.
    Group256,
}

/// The format of a packed tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct Format {
    /// Bits of a code.
    pub bits: Bits,
    /// Which elements share a range.
    pub grouping: Grouping,
    /// Where codes are stored.
    pub layout: Layout,
}

impl Format {
    /// A format.
    pub const fn new(bits: Bits, grouping: Grouping, layout: Layout) -> Self {
        Self { bits, grouping, layout }
    }

    /// 32-bit words for the codes of `len` elements.
    pub fn words(&self, len: usize) -> usize {
        self.layout.words(len, self.bits)
    }

    /// 32-bit words for the ranges of `len` elements: two for a tensor, one a group; none for an empty tensor.
    pub fn params(&self, len: usize) -> usize {
        match self.grouping {
            Grouping::Tensor => 2 * usize::from(len > 0),
            Grouping::Group256 => len.div_ceil(GROUP),
        }
    }

    /// Bytes that `len` elements take, codes and ranges.
    pub fn bytes(&self, len: usize) -> u64 {
        4 * (self.words(len) as u64 + self.params(len) as u64)
    }

    /// Where the code of `element` of a tensor of `len` elements is stored; `None` outside the tensor.
    pub fn slot(&self, element: usize, len: usize) -> Option<Slot> {
        (element < len).then(|| self.layout.slot(element, len, self.bits))
    }

    /// Fails on buffers that do not fit `len` elements, and on a matrix that `len` elements do not fill.
    pub(super) fn check(&self, len: usize, words: usize, params: usize) -> Result<(), KernelError> {
        self.layout.check(len)?;
        KernelError::expect_length("the buffer of words", words, self.words(len))?;
        KernelError::expect_length("the buffer of ranges", params, self.params(len))
    }

    /// The pieces that are packed separately, in stored order.
    pub(super) fn segments(&self, len: usize) -> impl Iterator<Item = Segment> {
        self.layout.segments(len, self.bits)
    }
}

/// Bytes that a tensor of `len` elements takes, codes and ranges.
pub fn packed_bytes(len: usize, bits: Bits, grouping: Grouping, layout: Layout) -> u64 {
    Format::new(bits, grouping, layout).bytes(len)
}

/// Calls a function with the width and the number of codes in a word as constants.
macro_rules! with_width {
    ($bits:expr, $function:ident $(<$($type:ty),+>)?, $($argument:expr),+) => {
        match $bits.get() {
            1 => $function::<$($($type,)+)? 1, 32>($($argument),+),
            2 => $function::<$($($type,)+)? 2, 16>($($argument),+),
            3 => $function::<$($($type,)+)? 3, 10>($($argument),+),
            4 => $function::<$($($type,)+)? 4, 8>($($argument),+),
            5 => $function::<$($($type,)+)? 5, 6>($($argument),+),
            6 => $function::<$($($type,)+)? 6, 5>($($argument),+),
            7 => $function::<$($($type,)+)? 7, 4>($($argument),+),
            _ => $function::<$($($type,)+)? 8, 4>($($argument),+),
        }
    };
}
pub(super) use with_width;
