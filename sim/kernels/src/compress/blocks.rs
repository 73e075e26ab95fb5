//! Sparse and dense blocks of a salient channel (the paper's figure 10), and the sparse ones in compressed sparse rows.

use std::ops::Range;

use super::{CodecError, Reader, Shape};
use crate::Isa;
use crate::simd::{Loops, compiled};

/// How a salient channel is cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blocks {
    /// Rows and columns of a block, the paper's n; blocks at the right and lower edges may be smaller.
    pub edge: u8,
    /// The paper's τ: a block is sparse whose share of non-zero elements, the average-pooled binary mask, is below it.
    pub threshold: f32,
}

impl Blocks {
    /// Blocks of 8 × 8, sparse up to one element in sixteen. The paper gives neither number. An element that is kept
    /// exactly takes 5 bytes, and a predicted one about half a byte: beyond a tenth, prediction takes less.
    pub const DEFAULT: Self = Self { edge: 8, threshold: 1.0 / 16.0 };

    /// Fails on settings that cut nothing.
    pub(super) fn check(self) -> Result<(), CodecError> {
        if self.edge == 0 {
            return Err(CodecError::setting("the edge of a block", self.edge, "1 to 255"));
        }
        if !(0.0..=1.0).contains(&self.threshold) {
            return Err(CodecError::setting("the threshold of sparse blocks", self.threshold, "0 to 1"));
        }
        Ok(())
    }
}

/// Which blocks of a channel are sparse, row by row of blocks.
#[derive(Debug, Default)]
pub(super) struct Mask {
    edge: usize,
    width: usize,
    sparse: Vec<bool>,
    /// Of sparse blocks, those that are not all zero. Unknown in a mask that was read.
    occupied: Vec<bool>,
}

impl Mask {
    /// Cuts a channel into blocks.
    pub(super) fn of(channel: &[f32], shape: Shape, blocks: Blocks, isa: Isa) -> Self {
        let edge = usize::from(blocks.edge);
        let mut mask = Self { edge, width: shape.width, ..Self::default() };
        let mut counts = vec![0; mask.across()];
        for rows in channel.chunks(shape.width * edge) {
            counts.fill(0);
            compiled(isa, Count { rows, width: shape.width, edge, counts: &mut counts });
            let height = rows.len() / shape.width;
            for (block, &count) in counts.iter().enumerate() {
                let area = height * edge.min(shape.width - block * edge);
                let is_sparse = (count as f32) < blocks.threshold * area as f32;
                mask.sparse.push(is_sparse);
                mask.occupied.push(is_sparse && count > 0);
            }
        }
        mask
    }

    /// Blocks side by side.
    fn across(&self) -> usize {
        self.width.div_ceil(self.edge)
    }

    /// The numbers of sparse and of dense blocks.
    pub(super) fn counts(&self) -> (usize, usize) {
        let sparse = self.sparse.iter().filter(|sparse| **sparse).count();
        (sparse, self.sparse.len() - sparse)
    }

    /// The columns of those blocks in a row of blocks that `which` marks.
    fn segments(&self, which: &[bool], band: usize) -> impl Iterator<Item = Range<usize>> {
        let blocks = which.iter().skip(band * self.across()).take(self.across()).enumerate();
        blocks.filter(|(_, marked)| **marked).map(|(block, _)| {
            let first = block * self.edge;
            first..(first + self.edge).min(self.width)
        })
    }

    /// Sets the steps of sparse blocks to 0, which most are, so that prediction passes over them.
    pub(super) fn clear(&self, steps: &mut [i32]) {
        for (band, rows) in steps.chunks_mut(self.width * self.edge).enumerate() {
            for segment in self.segments(&self.occupied, band) {
                for row in rows.chunks_mut(self.width) {
                    row[segment.clone()].fill(0);
                }
            }
        }
    }

    /// Writes the mask, a bit a block, and the non-zero elements of sparse blocks in compressed sparse rows: of each row
    /// their number, their columns, and themselves.
    pub(super) fn write(&self, channel: &[f32], out: &mut Vec<u8>) {
        for bits in self.sparse.chunks(8) {
            out.push(bits.iter().rev().fold(0, |byte, &sparse| byte << 1 | u8::from(sparse)));
        }
        let index = Index::of(self.width);
        let (mut segments, mut elements) = (Vec::new(), Vec::new());
        for (band, rows) in channel.chunks(self.width * self.edge).enumerate() {
            segments.clear();
            segments.extend(self.segments(&self.occupied, band));
            if segments.is_empty() {
                out.resize(out.len() + rows.len() / self.width * index.bytes(), 0);
                continue;
            }
            for row in rows.chunks(self.width) {
                elements.clear();
                for segment in &segments {
                    let values = segment.clone().zip(&row[segment.clone()]);
                    elements.extend(values.filter(|(_, x)| **x != 0.0));
                }
                index.write(elements.len(), out);
                elements.iter().for_each(|(column, _)| index.write(*column, out));
                elements.iter().for_each(|(_, x)| out.extend(x.to_le_bytes()));
            }
        }
    }

    /// Reads the output of [`write`](Self::write), and sets the elements of sparse blocks that are not zero. Prediction
    /// has set the others to zero.
    pub(super) fn read(shape: Shape, edge: u8, reader: &mut Reader<'_>, channel: &mut [f32]) -> Result<(), CodecError> {
        if edge == 0 {
            return Err(reader.damaged("a block has no edge"));
        }
        let mut mask = Self { edge: usize::from(edge), width: shape.width, ..Self::default() };
        let blocks = mask.across() * shape.height.div_ceil(mask.edge);
        let bytes = reader.take(blocks.div_ceil(8))?;
        mask.sparse.extend((0..blocks).map(|block| bytes[block / 8] >> (block % 8) & 1 == 1));
        let index = Index::of(shape.width);
        for (row, values) in channel.chunks_mut(shape.width).enumerate() {
            let count = index.read(reader)?;
            let columns = reader.take(count.saturating_mul(index.bytes()))?;
            for (column, word) in columns.chunks(index.bytes()).zip(reader.words(count)?) {
                let column = column.iter().rev().fold(0, |column, &byte| column << 8 | usize::from(byte));
                let block = row / mask.edge * mask.across() + column / mask.edge;
                if column >= shape.width || !mask.sparse[block] {
                    return Err(reader.damaged("an element lies outside the sparse blocks"));
                }
                values[column] = f32::from_bits(word);
            }
        }
        Ok(())
    }
}

/// How many bytes a column, or a number of them, takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Index(usize);

impl Index {
    /// The fewest for 0 to `width`.
    const fn of(width: usize) -> Self {
        match width {
            0..=0xFF => Self(1),
            0x100..=0xFFFF => Self(2),
            _ => Self(4),
        }
    }

    const fn bytes(self) -> usize {
        self.0
    }

    fn write(self, index: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&(index as u32).to_le_bytes()[..self.0]);
    }

    fn read(self, reader: &mut Reader<'_>) -> Result<usize, CodecError> {
        Ok(reader.take(self.0)?.iter().rev().fold(0, |index, &byte| index << 8 | usize::from(byte)))
    }
}

/// Adds up, for each block of a row of blocks, its elements that are not zero.
struct Count<'a> {
    rows: &'a [f32],
    width: usize,
    edge: usize,
    counts: &'a mut [u32],
}

impl Loops for Count<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { rows, width, edge, counts } = self;
        for row in rows.chunks(width) {
            if edge == 8 {
                let (eights, rest) = row.as_chunks::<8>();
                let rest = rest.iter().map(|x| u32::from(*x != 0.0)).sum::<u32>();
                for (count, eight) in counts.iter_mut().zip(eights) {
                    *count += (0..8).map(|i| u32::from(eight[i] != 0.0)).sum::<u32>();
                }
                if let Some(count) = counts.get_mut(eights.len()) {
                    *count += rest;
                }
            } else {
                for (count, block) in counts.iter_mut().zip(row.chunks(edge)) {
                    *count += block.iter().map(|x| u32::from(*x != 0.0)).sum::<u32>();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { channels: 1, height: 5, width: 10 };

    /// 5 × 10 in blocks of 4: the second block has one element, the third, of two columns, is full; below them a row.
    fn channel() -> Vec<f32> {
        let mut channel = vec![0.0; 50];
        (0..4).for_each(|row| channel[row * 10..row * 10 + 4].fill(1.0 + row as f32));
        channel[2 * 10 + 5] = f32::NAN;
        (0..5).for_each(|row| channel[row * 10 + 8..row * 10 + 10].fill(7.0));
        channel[4 * 10 + 1] = -2.5;
        channel
    }

    #[test]
    fn pooling_tells_sparse_blocks_from_dense_ones() {
        for isa in Isa::available() {
            // Shares 1, 1/16, 1 in the first row of blocks and 1/4, 0, 1 in the second, which is one row high.
            let sparse = |threshold| Mask::of(&channel(), SHAPE, Blocks { edge: 4, threshold }, isa).sparse;
            assert_eq!(sparse(0.2), [false, true, false, false, true, false], "{isa}");
            assert_eq!(sparse(0.3), [false, true, false, true, true, false], "{isa}");
            assert_eq!(sparse(1.0 / 16.0), [false, false, false, false, true, false], "{isa}");
            let eight = Mask::of(&channel(), SHAPE, Blocks { edge: 8, threshold: 0.5 }, isa);
            // 18 of 40, and 10 of 10.
            assert_eq!((eight.sparse.as_slice(), eight.counts()), ([true, false].as_slice(), (1, 1)), "{isa}");
        }
    }

    #[test]
    fn sparse_rows_by_hand() {
        let mask = Mask::of(&channel(), SHAPE, Blocks { edge: 4, threshold: 0.3 }, Isa::Scalar);
        let mut bytes = Vec::new();
        mask.write(&channel(), &mut bytes);
        // Blocks 1, 3 and 4 are sparse. Row 2 has one element in column 5, row 4 one in column 1.
        let mut expected = vec![0b01_1010, 0, 0, 1, 5];
        expected.extend(f32::NAN.to_le_bytes());
        expected.extend([0, 1, 1]);
        expected.extend((-2.5_f32).to_le_bytes());
        assert_eq!(bytes, expected);
    }

    #[test]
    fn indices_take_the_fewest_bytes() {
        assert_eq!([255, 256, 65_535, 65_536].map(|width| Index::of(width).bytes()), [1, 2, 2, 4]);
    }
}
