//! Where in the words the code of an element is stored.

use strum::IntoStaticStr;

use super::format::Bits;
use crate::KernelError;

/// Lanes of the interleaved order: part of the format, not of any instruction set.
pub const LANES: usize = crate::simd::LANES;

/// The order of codes in words (DAF, section 3.3.3 and figure 5). A word's codes fill it from its lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Layout {
    /// The order that SIMD packing writes without a shuffle. A block of 16 words has 16k consecutive elements (k codes
    /// a word): code i of word `lane` is element `16 * i + lane`. A last, shorter block of r elements has `ceil(r / k)`
    /// words, and as many lanes. Sixteen lanes belong to the format: every instruction set writes the same bytes.
    Interleaved,
    /// The order for a GPU thread that owns a word: word w has elements `k * w` to `k * w + k - 1`.
    Sequential,
    /// Coarse order by GPU tile, and within each tile the interleaved order.
    Unified(TiledMatrix),
}

/// A tensor seen as a row-major matrix that a GPU works on tile by tile.
///
/// Tiles are stored in row-major order; those at the right and bottom edges may be smaller. Each starts at a new word,
/// and its elements are packed in row-major order within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TiledMatrix {
    columns: usize,
    tile_rows: usize,
    tile_columns: usize,
}

/// Where a code is stored: `words[word] >> shift & (2^b - 1)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// The index of the word.
    pub word: usize,
    /// How many bits above the lowest.
    pub shift: u32,
}

/// Elements that are packed separately: `rows` runs of `columns` consecutive elements, `stride` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Its first word.
    pub(super) word: usize,
    /// Its first element.
    pub(super) first: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) stride: usize,
}

impl Segment {
    pub(super) const fn len(&self) -> usize {
        self.rows * self.columns
    }
}

impl TiledMatrix {
    /// A matrix of `columns` columns in tiles of `tile_rows` x `tile_columns`.
    ///
    /// # Errors
    /// [`KernelError::Length`] if any of them is 0.
    pub fn new(columns: usize, tile_rows: usize, tile_columns: usize) -> Result<Self, KernelError> {
        for (what, found) in
            [("the matrix's row", columns), ("the tile's column", tile_rows), ("the tile's row", tile_columns)]
        {
            if found == 0 {
                return Err(KernelError::Length { what, found, expected: 1 });
            }
        }
        Ok(Self { columns, tile_rows, tile_columns })
    }

    /// Tiles that cover `len` elements.
    pub const fn tiles(&self, len: usize) -> usize {
        len.div_ceil(self.columns).div_ceil(self.tile_rows) * self.across()
    }

    /// Tiles side by side.
    const fn across(&self) -> usize {
        self.columns.div_ceil(self.tile_columns)
    }

    /// Words of a band of tiles, `rows` rows high.
    fn band_words(&self, rows: usize, per_word: usize) -> usize {
        let (full, rest) = (self.columns / self.tile_columns, self.columns % self.tile_columns);
        full * (rows * self.tile_columns).div_ceil(per_word) + (rows * rest).div_ceil(per_word)
    }

    /// A tile of a tensor of `len` elements.
    pub(super) fn tile(&self, index: usize, len: usize, bits: Bits) -> Segment {
        let (band, place) = (index / self.across(), index % self.across());
        let (row, column) = (band * self.tile_rows, place * self.tile_columns);
        let rows = self.tile_rows.min(len.div_ceil(self.columns).saturating_sub(row));
        let columns = self.tile_columns.min(self.columns - column);
        let k = bits.per_word();
        let word = band * self.band_words(self.tile_rows, k) + place * (rows * self.tile_columns).div_ceil(k);
        let first = row * self.columns + column;
        if columns == self.columns {
            return Segment { word, first, rows: 1, columns: rows * columns, stride: rows * columns };
        }
        Segment { word, first, rows, columns, stride: self.columns }
    }
}

impl Layout {
    /// The unified layout.
    ///
    /// # Errors
    /// As [`TiledMatrix::new`].
    pub fn unified(columns: usize, tile_rows: usize, tile_columns: usize) -> Result<Self, KernelError> {
        TiledMatrix::new(columns, tile_rows, tile_columns).map(Self::Unified)
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// Words that `len` codes take (a last row that is not whole counts as whole).
    pub(super) fn words(&self, len: usize, bits: Bits) -> usize {
        let k = bits.per_word();
        match self {
            Self::Interleaved | Self::Sequential => len.div_ceil(k),
            Self::Unified(matrix) => {
                let rows = len.div_ceil(matrix.columns);
                rows / matrix.tile_rows * matrix.band_words(matrix.tile_rows, k)
                    + matrix.band_words(rows % matrix.tile_rows, k)
            }
        }
    }

    /// Words that a reader of `run` consecutive elements has to load, such as a row of a tile. In the sequential
    /// order, and in that of tiles that are read whole, as many as the codes fill; interleaved, every word of the
    /// blocks that contain the run.
    pub fn words_of_run(&self, run: usize, bits: Bits) -> usize {
        let k = bits.per_word();
        match self {
            Self::Interleaved => run.div_ceil(LANES * k) * LANES.min(run),
            Self::Sequential | Self::Unified(_) => run.div_ceil(k),
        }
    }

    /// Fails unless the last row is whole.
    pub(super) fn check(&self, len: usize) -> Result<(), KernelError> {
        match self {
            Self::Unified(matrix) if !len.is_multiple_of(matrix.columns) => Err(KernelError::Length {
                what: "the matrix's last row",
                found: len % matrix.columns,
                expected: matrix.columns,
            }),
            _ => Ok(()),
        }
    }

    /// The pieces that are packed separately, in stored order.
    pub(super) fn segments(self, len: usize, bits: Bits) -> impl Iterator<Item = Segment> {
        let count = match self {
            Self::Unified(matrix) => matrix.tiles(len),
            Self::Interleaved | Self::Sequential => usize::from(len > 0),
        };
        (0..count).map(move |index| match self {
            Self::Unified(matrix) => matrix.tile(index, len, bits),
            Self::Interleaved | Self::Sequential => Segment { word: 0, first: 0, rows: 1, columns: len, stride: len },
        })
    }

    /// Where the code of `element` is stored.
    pub(super) fn slot(&self, element: usize, len: usize, bits: Bits) -> Slot {
        match self {
            Self::Interleaved => interleaved(element, len, bits),
            Self::Sequential => {
                let k = bits.per_word();
                Slot { word: element / k, shift: bits.get() * (element % k) as u32 }
            }
            Self::Unified(matrix) => {
                let (row, column) = (element / matrix.columns, element % matrix.columns);
                let index = row / matrix.tile_rows * matrix.across() + column / matrix.tile_columns;
                let tile = matrix.tile(index, len, bits);
                let width =
                    matrix.tile_columns.min(matrix.columns - column / matrix.tile_columns * matrix.tile_columns);
                let inside = row % matrix.tile_rows * width + column % matrix.tile_columns;
                let slot = interleaved(inside, tile.len(), bits);
                Slot { word: tile.word + slot.word, ..slot }
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
        let matrix = Layout::unified(4096, 64, 64).unwrap();
        for bits in [1, 2, 4, 8].map(|bits| Bits::new(bits).unwrap()) {
            for (layout, run) in [(Layout::Interleaved, 64), (Layout::Sequential, 64), (matrix, 64 * 64)] {
                // A tile of the matrix lies in its first 64 rows and columns.
                let place = |at: usize| if layout == matrix { at / 64 * 4096 + at % 64 } else { at };
                let words: HashSet<usize> = (0..run).map(|at| layout.slot(place(at), 64 * 4096, bits).word).collect();
                assert_eq!(layout.words_of_run(run, bits), words.len(), "{} {bits:?}", layout.name());
            }
        }
        // 64 elements of 2 bits fill 4 words, and lie in all 16 of a block.
        assert_eq!(Layout::Interleaved.words_of_run(64, Bits::new(2).unwrap()), 16);
    }
}
