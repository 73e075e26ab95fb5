//! Where in the words the code of an element lies.

use super::format::Bits;

/// Lanes of the interleaved order: part of the format, not of any instruction set.
pub const LANES: usize = crate::simd::LANES;

/// The order of codes in words (DAF, section 3.3.3 and figure 5). A word's codes fill it from its lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// What SIMD packing writes without a shuffle. A block of 16 words holds 16k consecutive elements (k codes a word):
    /// code i of word `lane` is element `16 * i + lane`. A last, shorter block of r elements has `ceil(r / k)` words,
    /// and so many lanes. Sixteen lanes belong to the format: every instruction set writes the same bytes.
    Interleaved,
    /// What a GPU thread that owns a word reads: word w holds elements `k * w` to `k * w + k - 1`.
    Sequential,
}

/// Where a code lies: `words[word] >> shift & (2^b - 1)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Which word.
    pub word: usize,
    /// How many bits up in it.
    pub shift: u32,
}

impl Layout {
    /// Words of which a reader of `run` consecutive elements needs a code: how much a tile's row has to load. In the order
    /// of a word after the other, as many as its codes fill; interleaved, every word of the blocks that the run lies in.
    pub fn words_of_run(&self, run: usize, bits: Bits) -> usize {
        let k = bits.per_word();
        match self {
            Self::Interleaved => run.div_ceil(LANES * k) * LANES.min(run),
            Self::Sequential => run.div_ceil(k),
        }
    }

    /// Where the code of `element` lies.
    pub(super) fn slot(&self, element: usize, len: usize, bits: Bits) -> Slot {
        match self {
            Self::Interleaved => interleaved(element, len, bits),
            Self::Sequential => {
                let k = bits.per_word();
                Slot { word: element / k, shift: bits.get() * (element % k) as u32 }
            }
        }
    }
}

/// The interleaved order.
fn interleaved(element: usize, len: usize, bits: Bits) -> Slot {
    let k = bits.per_word();
    let (block, inside) = (element / (LANES * k), element % (LANES * k));
    let lanes = (len - block * LANES * k).min(LANES * k).div_ceil(k);
    Slot { word: block * LANES + inside % lanes, shift: bits.get() * (inside / lanes) as u32 }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_run_in_the_interleaved_order_lies_in_many_words() {
        for bits in [1, 2, 4, 8].map(|bits| Bits::new(bits).unwrap()) {
            for layout in [Layout::Interleaved, Layout::Sequential] {
                let words: HashSet<usize> = (0..64).map(|at| layout.slot(at, 64 * 4096, bits).word).collect();
                assert_eq!(layout.words_of_run(64, bits), words.len(), "{layout:?} {bits:?}");
            }
        }
        // 64 elements of 2 bits fill 4 words, and lie in all 16 of a block.
        assert_eq!(Layout::Interleaved.words_of_run(64, Bits::new(2).unwrap()), 16);
    }
}
