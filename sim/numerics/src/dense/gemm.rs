//! Products of matrices. Each element is a sum over the depth in its order, by fused multiply-add, from zero or from
//! the previous value if the product is added: no instruction set, cache or number of threads changes a bit.

use std::array::from_fn;
use std::cell::Cell;
use std::mem;

use haversack_kernels::Isa;
use haversack_kernels::simd::{Kernel, LANES, Simd, dispatch};
use rayon::prelude::*;

use super::parallel::BLOCK;

/// Rows that one task computes: whole tiles of six and of twelve.
const TASK: usize = 96;
/// Rows of the widest tile.
const MOST_ROWS: usize = 12;
/// Multiplications from which on a product is split into several tasks.
const SMALL: usize = 1 << 22;
/// Rows up to which a product by a transpose is computed as its own transpose: fewer elements are packed.
const FEW: usize = 48;
/// Depth over which the rows of a tile stay in a first-level cache.
const STRETCH: usize = 512;
/// Depth that a tile computes in one step.
const STEP: usize = 4;
/// Columns of the right operand whose stretch stays in a second-level cache.
const BLOCK_COLUMNS: usize = 8 * LANES;

thread_local! {
    /// The packed operands of a thread's last product, whose memory the next one reuses.
    static LEFT: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
    static RIGHT: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// A matrix in a slice: element (i, j) is at `row * i + column * j`.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub(super) data: &'a [f32],
    pub(super) row: usize,
    pub(super) column: usize,
}

impl<'a> Matrix<'a> {
    /// Row-major, of rows of `columns` elements.
    pub(super) const fn rows(data: &'a [f32], columns: usize) -> Self {
        Self { data, row: columns, column: 1 }
    }

    /// The transpose of a row-major matrix of rows of `columns` elements.
    pub(super) const fn transposed(data: &'a [f32], columns: usize) -> Self {
        Self { data, row: 1, column: columns }
    }

    /// Its elements from (row, column) on.
    fn from(self, row: usize, column: usize) -> Self {
        Self { data: &self.data[row * self.row + column * self.column..], ..self }
    }

    const fn flipped(self) -> Self {
        Self { row: self.column, column: self.row, ..self }
    }

    /// Writes its first `rows` rows, at most `WIDE`, side by side, column after column; the contents for
    /// missing rows are unspecified.
    #[inline(always)]
    fn pack<const WIDE: usize>(self, rows: usize, into: &mut [[f32; WIDE]]) {
        if self.row == 1 {
            for (d, into) in into.iter_mut().enumerate() {
                let from = &self.data[d * self.column..];
                match from.first_chunk() {
                    Some(from) => *into = *from,
                    None => into.iter_mut().zip(from).for_each(|(into, x)| *into = *x),
                }
            }
            return;
        }
        if rows < WIDE {
            into.fill([0.0; WIDE]);
        }
        let len = into.len();
        // Squares of four by four become register shuffles.
        let squares = if self.column == 1 { rows / 4 * 4 } else { 0 };
        for row in (0..squares).step_by(4) {
            let four: [_; 4] = from_fn(|i| self.data[(row + i) * self.row..][..len].as_chunks::<4>());
            let [(a, ends_a), (b, ends_b), (c, ends_c), (d, ends_d)] = four;
            let (whole, ends) = into.as_chunks_mut::<4>();
            for ((((a, b), c), d), into) in a.iter().zip(b).zip(c).zip(d).zip(whole) {
                for i in 0..4 {
                    into[i][row..row + 4].copy_from_slice(&[a[i], b[i], c[i], d[i]]);
                }
            }
            for (i, into) in ends.iter_mut().enumerate() {
                into[row..row + 4].copy_from_slice(&[ends_a[i], ends_b[i], ends_c[i], ends_d[i]]);
            }
        }
        for row in squares..rows {
            let from = self.data[row * self.row..].iter().step_by(self.column);
            into.iter_mut().zip(from).for_each(|(into, x)| into[row] = *x);
        }
    }
}

/// `c = a b`, or `c += a b` if `add`: a is m × k, b is k × n, c is row-major m × n.
pub(super) fn multiply([m, k, n]: [usize; 3], a: Matrix, b: Matrix, c: &mut [f32], add: bool, isa: Isa) {
    let c = &mut c[..m * n];
    if c.is_empty() || k == 0 {
        if !add {
            c.fill(0.0);
        }
        return;
    }
    let flip = b.row == 1 && a.column == 1 && m <= FEW && m < n;
    let ([rows, columns], [left, right]) = if flip { ([n, m], [b.flipped(), a]) } else { ([m, n], [a, b.flipped()]) };
    let mut packed = RIGHT.take();
    packed.resize(columns.div_ceil(LANES) * k * LANES, 0.0);
    // A few rows of all panels of a block before the next rows: they share pages.
    let step = if right.row == 1 { LANES } else { k };
    let pack = |(block, into): (usize, &mut [f32])| {
        for start in (0..k).step_by(step) {
            for (panel, into) in into.chunks_exact_mut(k * LANES).enumerate() {
                let first = block * BLOCK_COLUMNS + panel * LANES;
                let into = &mut into.as_chunks_mut().0[start..k.min(start + step)];
                right.from(first, start).pack::<LANES>(LANES.min(columns - first), into);
            }
        }
    };
    if packed.len() <= BLOCK {
        packed.chunks_mut(k * BLOCK_COLUMNS).enumerate().for_each(pack);
    } else {
        packed.par_chunks_mut(k * BLOCK_COLUMNS).enumerate().for_each(pack);
    }
    let panels = packed.as_chunks().0;
    let product = |left, c, rows| Product { left, panels, c, depth: k, rows, columns, add, flip, isa }.compute();
    if flip || m <= TASK || m * k * n < SMALL {
        product(left, c, rows);
    } else {
        c.par_chunks_mut(TASK * n).enumerate().for_each(|(task, c)| {
            let rows = c.len() / n;
            product(left.from(task * TASK, 0), c, rows);
        });
    }
    RIGHT.set(packed);
}

/// Some rows of a product.
struct Product<'a> {
    left: Matrix<'a>,
    /// The right operand in panels of sixteen columns.
    panels: &'a [[f32; LANES]],
    c: &'a mut [f32],
    depth: usize,
    rows: usize,
    columns: usize,
    add: bool,
    /// Whether the transpose of the product is written.
    flip: bool,
    isa: Isa,
}

impl Product<'_> {
    fn compute(mut self) {
        let mut scratch = LEFT.take();
        if self.left.column != 1 {
            let len = (self.rows + MOST_ROWS) * STRETCH.min(self.depth);
            scratch.resize(scratch.len().max(len), 0.0);
        }
        for start in (0..self.depth).step_by(STRETCH) {
            for block in (0..self.columns).step_by(BLOCK_COLUMNS) {
                let mut row = 0;
                while row < self.rows {
                    // As many sums as fit in registers together with their operands.
                    row += match self.rows - row {
                        1 | 2 => self.tile::<2>(row, start, block, &mut scratch),
                        7.. if self.isa == Isa::Avx512 => self.tile::<MOST_ROWS>(row, start, block, &mut scratch),
                        _ => self.tile::<6>(row, start, block, &mut scratch),
                    };
                }
            }
        }
        LEFT.set(scratch);
    }

    /// Adds a stretch of the depth to up to `ROWS` rows of a block of columns; returns the number of rows.
    fn tile<const ROWS: usize>(&mut self, row: usize, start: usize, block: usize, scratch: &mut [f32]) -> usize {
        let rows = ROWS.min(self.rows - row);
        let columns = BLOCK_COLUMNS.min(self.columns - block);
        if rows == ROWS && columns.is_multiple_of(LANES) && !self.flip {
            let c = mem::take(&mut self.c);
            self.multiply_add::<ROWS>(row, start, block, scratch, &mut c[row * self.columns + block..], self.columns);
            self.c = c;
            return rows;
        }
        let mut copy = [[0.0; BLOCK_COLUMNS]; ROWS];
        let place = |i: usize, j: usize| {
            if self.flip { (block + j) * self.rows + row + i } else { (row + i) * self.columns + block + j }
        };
        if self.add || start > 0 {
            for (i, copy) in copy.iter_mut().enumerate().take(rows) {
                copy[..columns].iter_mut().enumerate().for_each(|(j, x)| *x = self.c[place(i, j)]);
            }
        }
        self.multiply_add::<ROWS>(row, start, block, scratch, copy.as_flattened_mut(), BLOCK_COLUMNS);
        for (i, copy) in copy.iter().enumerate().take(rows) {
            copy[..columns].iter().enumerate().for_each(|(j, x)| self.c[place(i, j)] = *x);
        }
        rows
    }

    /// The same in `c`, which has whole vectors and a row pitch of `pitch` elements.
    fn multiply_add<const ROWS: usize>(
        &self,
        row: usize,
        start: usize,
        block: usize,
        scratch: &mut [f32],
        c: &mut [f32],
        pitch: usize,
    ) {
        let (left, depth, stretch) = (self.left.from(row, start), self.depth, STRETCH.min(self.depth - start));
        let last = (self.rows - row).min(ROWS) - 1;
        let columns = BLOCK_COLUMNS.min(self.columns - block);
        let panels = &self.panels[block / LANES * depth..][..columns.div_ceil(LANES) * depth];
        let add = self.add || start > 0;
        if left.column == 1 {
            // Missing rows repeat the last one, and their sums are dropped.
            let lines = Lines(from_fn(|i| left.data[i.min(last) * left.row..][..stretch].as_chunks()));
            dispatch(self.isa, Tile::<_, ROWS> { left: lines, panels, depth, start, stretch, c, pitch, add });
        } else {
            let packed = &mut scratch[row * stretch..].as_chunks_mut().0[..stretch];
            if block == 0 {
                left.pack(last + 1, packed);
            }
            dispatch(self.isa, Tile::<_, ROWS> { left: Packed(packed), panels, depth, start, stretch, c, pitch, add });
        }
    }
}

/// Rows of a tile.
trait Left<const ROWS: usize> {
    /// Adds the products with a panel.
    fn multiply_add<S: Simd>(&self, simd: S, right: &[[f32; LANES]], sums: [S::Floats; ROWS]) -> [S::Floats; ROWS];
}

/// Unpacked rows, each in steps and the rest.
struct Lines<'a, const ROWS: usize>([(&'a [[f32; STEP]], &'a [f32]); ROWS]);

/// Rows side by side.
struct Packed<'a, const ROWS: usize>(&'a [[f32; ROWS]]);

impl<const ROWS: usize> Left<ROWS> for Lines<'_, ROWS> {
    #[inline(always)]
    fn multiply_add<S: Simd>(&self, simd: S, right: &[[f32; LANES]], mut sums: [S::Floats; ROWS]) -> [S::Floats; ROWS] {
        let (steps, rest) = right.as_chunks::<STEP>();
        for (step, right) in steps.iter().enumerate() {
            let lines: [&[f32; STEP]; ROWS] = from_fn(|i| &self.0[i].0[step]);
            for d in 0..STEP {
                let right = simd.load(&right[d]);
                for i in 0..ROWS {
                    sums[i] = simd.fused(simd.splat(lines[i][d]), right, sums[i]);
                }
            }
        }
        for (d, right) in rest.iter().enumerate() {
            let right = simd.load(right);
            for (sum, line) in sums.iter_mut().zip(&self.0) {
                *sum = simd.fused(simd.splat(line.1[d]), right, *sum);
            }
        }
        sums
    }
}

impl<const ROWS: usize> Left<ROWS> for Packed<'_, ROWS> {
    #[inline(always)]
    fn multiply_add<S: Simd>(&self, simd: S, right: &[[f32; LANES]], mut sums: [S::Floats; ROWS]) -> [S::Floats; ROWS] {
        for (left, right) in self.0.iter().zip(right) {
            let right = simd.load(right);
            for i in 0..ROWS {
                sums[i] = simd.fused(simd.splat(left[i]), right, sums[i]);
            }
        }
        sums
    }
}

/// A stretch of the depth of some rows and panels.
struct Tile<'a, L, const ROWS: usize> {
    left: L,
    panels: &'a [[f32; LANES]],
    depth: usize,
    start: usize,
    stretch: usize,
    c: &'a mut [f32],
    pitch: usize,
    add: bool,
}

impl<L: Left<ROWS>, const ROWS: usize> Kernel for Tile<'_, L, ROWS> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { left, panels, depth, start, stretch, c, pitch, add } = self;
        for (panel, right) in panels.chunks_exact(depth).enumerate() {
            let mut sums = [simd.splat(0.0); ROWS];
            if add {
                for (i, sum) in sums.iter_mut().enumerate() {
                    *sum = simd.load(&c[i * pitch + panel * LANES..].as_chunks().0[0]);
                }
            }
            let sums = left.multiply_add(simd, &right[start..][..stretch], sums);
            for (i, sum) in sums.into_iter().enumerate() {
                simd.store(sum, &mut c[i * pitch + panel * LANES..].as_chunks_mut().0[0]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every element separately, in order.
    fn defined([m, k, n]: [usize; 3], a: Matrix, b: Matrix, c: &mut [f32], add: bool) {
        for (at, c) in c.iter_mut().enumerate().take(m * n) {
            let (i, j) = (at / n, at % n);
            let terms = (0..k).map(|d| (a.data[i * a.row + d * a.column], b.data[d * b.row + j * b.column]));
            *c = terms.fold(if add { *c } else { 0.0 }, |sum, (a, b)| a.mul_add(b, sum));
        }
    }

    #[test]
    fn every_instruction_set_adds_in_the_order_of_the_depth() {
        let values = |len: usize| (0..len).map(|i| (i as f32 * 0.7).sin()).collect::<Vec<_>>();
        // One and two rows, ragged tiles and panels, two stretches, several blocks and tasks, and a flipped product.
        for (m, k, n) in [
            (1, 5, 1),
            (2, 33, 40),
            (5, 3, 17),
            (13, 514, 33),
            (7, 9, 150),
            (120, 300, 130),
            (64, 8, 16),
            (9, 1, 20),
            (20, 1, 9),
        ] {
            let (a, b) = (values(m * k), values(k * n));
            for (a, b) in [
                (Matrix::rows(&a, k), Matrix::rows(&b, n)),
                (Matrix::transposed(&a, m), Matrix::rows(&b, n)),
                (Matrix::rows(&a, k), Matrix::transposed(&b, k)),
            ] {
                for add in [false, true] {
                    let mut expected = vec![0.5; m * n];
                    defined([m, k, n], a, b, &mut expected, add);
                    for isa in Isa::available() {
                        let mut found = vec![0.5; m * n];
                        multiply([m, k, n], a, b, &mut found, add, isa);
                        assert!(found == expected, "{isa}, {m} × {k} × {n}");
                    }
                }
            }
        }
        // 1·3 + 2·4 on top of 0.5.
        let mut sum = [0.5];
        multiply([1, 2, 1], Matrix::rows(&[1.0, 2.0], 2), Matrix::rows(&[3.0, 4.0], 1), &mut sum, true, Isa::Scalar);
        assert_eq!(sum, [11.5]);
    }
}
