//! Products of matrices: in blocks that fit in the caches, of tiles that fit in registers.

use std::fmt;
use std::ops::Range;

use super::matrix::{Lines, Matrix};
use super::panels::Panels;
use crate::simd::{LANES, Simd, Tiled, dispatch_tiled, words_mut};
use crate::{Isa, KernelError};

/// The most terms of a sum that is sure to fit in an i32: each is at most 128 · 128 = 2^14, and 2^17 of them would be
/// 2^31, one more than [`i32::MAX`].
pub const MOST_TERMS: usize = (i32::MAX >> 14) as usize;

/// Slots of a panel that are multiplied before the next panel's: sixteen columns of them are 16 KiB, half a first-level
/// cache, and leave room for a few KiB of rows.
pub const STRETCH: usize = 256;
/// Rows of a block, whose stretch of [`STRETCH`] slots is 192 KiB: it stays in a second-level
/// cache while columns pass by.
const BLOCK_ROWS: usize = 192;
/// Columns of a block, whose sums are 192 KiB if they have to wait for more than one stretch.
const BLOCK_COLUMNS: usize = 256;

/// Multiplies i8 matrices, and keeps its memory for the next product: 2 bytes for each value of both operands.
#[must_use]
pub struct Gemm {
    isa: Isa,
    workspace: Workspace,
}

/// Memory of a product.
#[derive(Default)]
struct Workspace {
    left: Panels,
    right: Panels,
    /// Tiles that wait for their next stretch; all zero between blocks.
    tiles: Vec<u32>,
    /// The amount that moving the left values up adds to the sums of each column, a vector a panel.
    excess: Vec<[u32; LANES]>,
}

impl Gemm {
    /// A multiplier for an instruction set.
    pub fn new(isa: Isa) -> Self {
        Self { isa, workspace: Workspace::default() }
    }

    /// `out[m, n] = sum over k of left[m, k] * right[k, n]`, in row-major order; all 0 if k has no values.
    ///
    /// # Errors
    /// [`KernelError::Shape`] where `left` does not have as many columns as `right` has rows, [`KernelError::Overflow`]
    /// where it has more than [`MOST_TERMS`], whatever the values are, and [`KernelError::Length`] for an output that
    /// is not as long as the product. Nothing is written then.
    pub fn multiply(&mut self, left: Matrix<'_>, right: Matrix<'_>, out: &mut [i32]) -> Result<(), KernelError> {
        check(left, right, out.len())?;
        let product = Product { left: left.by_rows(), right: right.by_columns(), workspace: &mut self.workspace, out };
        dispatch_tiled(self.isa, product);
        Ok(())
    }
}

impl fmt::Debug for Gemm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gemm").field("isa", &self.isa).finish_non_exhaustive()
    }
}

fn check(left: Matrix<'_>, right: Matrix<'_>, found: usize) -> Result<(), KernelError> {
    if left.columns() != right.rows() {
        return Err(KernelError::Shape {
            left_rows: left.rows(),
            left_columns: left.columns(),
            right_rows: right.rows(),
            right_columns: right.columns(),
        });
    }
    if left.columns() > MOST_TERMS {
        return Err(KernelError::Overflow { terms: left.columns(), most: MOST_TERMS });
    }
    KernelError::expect_length("the product", found, left.rows().saturating_mul(right.columns()))
}

/// A product of lines of equal length.
struct Product<'a> {
    left: Lines<'a>,
    right: Lines<'a>,
    workspace: &'a mut Workspace,
    out: &'a mut [i32],
}

impl Tiled for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const ROWS: usize>(self, simd: S) {
        let Self { left, right, workspace, out } = self;
        let (rows, columns) = (left.count.div_ceil(ROWS), right.count.div_ceil(LANES));
        let (row_panels, column_panels) = (BLOCK_ROWS / ROWS, BLOCK_COLUMNS / LANES);
        let (left_panels, right_panels) = if S::DEPTH == 4 {
            (workspace.left.pack::<ROWS, 4>(left, MOVED_UP), workspace.right.pack::<LANES, 4>(right, 0))
        } else {
            (workspace.left.pack::<ROWS, 2>(left, 0), workspace.right.pack::<LANES, 2>(right, 0))
        };
        let slots = left.depth.div_ceil(S::DEPTH);
        workspace.excess.clear();
        if S::DEPTH == 4 {
            workspace.excess.extend((0..columns).map(|panel| excess(simd, &right_panels[panel * slots..][..slots])));
        }
        let operands = Operands {
            left: left_panels,
            right: right_panels,
            excess: &workspace.excess,
            slots,
            rows: left.count,
            columns: right.count,
        };
        // With a single stretch, no tile has to wait.
        let waiting = if operands.slots > STRETCH { row_panels.min(rows) * column_panels.min(columns) } else { 1 };
        workspace.tiles.resize(waiting * ROWS * LANES, 0);
        let tiles = workspace.tiles.as_chunks_mut().0.as_chunks_mut().0;
        for block_rows in blocks(rows, row_panels) {
            for block_columns in blocks(columns, column_panels) {
                operands.multiply_block(simd, block_rows.clone(), block_columns, tiles, out);
            }
        }
    }
}

/// Four bytes moved up by 128, which makes the i8 -128 the u8 0.
const MOVED_UP: u32 = 0x8080_8080;

/// 128 times the sum of each of sixteen columns.
#[inline(always)]
fn excess<S: Simd>(simd: S, panel: &[[u32; LANES]]) -> [u32; LANES] {
    let mut sums = simd.no_products();
    for slots in panel {
        sums = simd.multiply_add(sums, simd.splat_word(MOVED_UP), simd.load_words(slots));
    }
    let mut excess = [0; LANES];
    simd.store_words(simd.finish(sums), &mut excess);
    excess
}

/// The operands: panels, one after the other, and how many lines they contain.
struct Operands<'a, const ROWS: usize> {
    left: &'a [[u32; ROWS]],
    right: &'a [[u32; LANES]],
    /// For each panel of columns; empty if the left values were not moved up.
    excess: &'a [[u32; LANES]],
    /// Slots of a line.
    slots: usize,
    rows: usize,
    columns: usize,
}

impl<const ROWS: usize> Operands<'_, ROWS> {
    /// Multiplies a block of panels, stretch by stretch. `tiles`, all zero before and after, has the sums that wait.
    #[inline(always)]
    fn multiply_block<S: Simd>(
        &self,
        simd: S,
        rows: Range<usize>,
        columns: Range<usize>,
        tiles: &mut [Tile<ROWS>],
        out: &mut [i32],
    ) {
        // Without slots there is still one stretch: its sums are 0, and have to be stored.
        for stretch in blocks(self.slots.max(1), STRETCH) {
            let stretch = stretch.start..stretch.end.min(self.slots);
            for (i, column) in columns.clone().enumerate() {
                let right = &self.right[column * self.slots..][stretch.clone()];
                for (j, row) in rows.clone().enumerate() {
                    let left = &self.left[row * self.slots..][stretch.clone()];
                    let tile = &mut tiles[if self.slots > STRETCH { i * rows.len() + j } else { 0 }];
                    add_products(simd, left, right, tile);
                    if stretch.end == self.slots {
                        self.finish(simd, row * ROWS, column * LANES, tile, out);
                    }
                }
            }
        }
    }

    /// Stores those sums of a tile that are within the matrix, and clears the tile.
    #[inline(always)]
    fn finish<S: Simd>(&self, simd: S, row: usize, column: usize, tile: &mut Tile<ROWS>, out: &mut [i32]) {
        if let Some(excess) = self.excess.get(column / LANES) {
            for sums in &mut *tile {
                for (sum, excess) in sums.iter_mut().zip(excess) {
                    *sum = sum.wrapping_sub(*excess);
                }
            }
        }
        let count = LANES.min(self.columns - column);
        let lines = out[row * self.columns + column..].chunks_mut(self.columns);
        for (sums, line) in tile[..ROWS.min(self.rows - row)].iter().zip(lines) {
            match (&mut line[..count]).try_into() {
                Ok(line) => simd.store_words(simd.load_words(sums), words_mut(line)),
                Err(_) => line[..count].iter_mut().zip(sums).for_each(|(out, &sum)| *out = sum as i32),
            }
        }
        *tile = [[0; LANES]; ROWS];
    }
}

/// `0..count` in steps.
fn blocks(count: usize, step: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(step).map(move |start| start..(start + step).min(count))
}

/// Sums of a tile.
pub type Tile<const ROWS: usize> = [[u32; LANES]; ROWS];

/// Adds the products of a stretch of two panels to a tile.
#[inline(always)]
pub fn add_products<S: Simd, const ROWS: usize>(
    simd: S,
    left: &[[u32; ROWS]],
    right: &[[u32; LANES]],
    tile: &mut Tile<ROWS>,
) {
    let mut sums = [simd.no_products(); ROWS];
    for (left, right) in left.iter().zip(right) {
        let right = simd.load_words(right);
        for row in 0..ROWS {
            sums[row] = simd.multiply_add(sums[row], simd.splat_word(left[row]), right);
        }
    }
    for (row, sums) in tile.iter_mut().zip(sums) {
        simd.store_words(simd.add(simd.load_words(row), simd.finish(sums)), row);
    }
}
