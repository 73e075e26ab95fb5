//! One tile of a product: some rows by sixteen columns, and what becomes of their sums.

use super::lanes::{LANES, Lanes, Pair};
use super::rescale::Rounder;

/// Sums of a tile.
pub(super) type Tile<const ROWS: usize> = [[i32; LANES]; ROWS];

/// Adds the products of a stretch of two panels to a tile.
#[inline(always)]
pub(super) fn add_products<S: Lanes, const ROWS: usize>(
    simd: S,
    left: &[[Pair; ROWS]],
    right: &[[Pair; LANES]],
    tile: &mut Tile<ROWS>,
) {
    let mut sums = [simd.nothing(); ROWS];
    for (left, right) in left.iter().zip(right) {
        let right = simd.pairs(right);
        for row in 0..ROWS {
            sums[row] = simd.multiply_add(sums[row], simd.splat_pair(&left[row]), right);
        }
    }
    for (row, sums) in tile.iter_mut().zip(sums) {
        simd.store(simd.add(simd.load(row), simd.finish(sums)), row);
    }
}

/// What becomes of the sums of a product.
pub(super) trait Epilogue {
    /// Takes `count` sums, which stand in the product from its element `at` on; the others are 0.
    fn take<S: Lanes>(&mut self, simd: S, sums: &[i32; LANES], at: usize, count: usize);
}

/// They are stored.
pub(super) struct Wide<'a>(pub(super) &'a mut [i32]);

impl Epilogue for Wide<'_> {
    #[inline(always)]
    fn take<S: Lanes>(&mut self, simd: S, sums: &[i32; LANES], at: usize, count: usize) {
        let out = &mut self.0[at..][..count];
        match out.try_into() {
            Ok(out) => simd.store(simd.load(sums), out),
            Err(_) => out.copy_from_slice(&sums[..count]),
        }
    }
}

/// They are stored, and their magnitudes joined by OR on the way: the first loop of listing 1.
pub(super) struct Measured<'a> {
    pub(super) wide: Wide<'a>,
    pub(super) magnitudes: [i32; LANES],
}

impl Epilogue for Measured<'_> {
    #[inline(always)]
    fn take<S: Lanes>(&mut self, simd: S, sums: &[i32; LANES], at: usize, count: usize) {
        self.wide.take(simd, sums, at, count);
        let seen = simd.or(simd.load(&self.magnitudes), simd.magnitude(simd.load(sums)));
        simd.store(seen, &mut self.magnitudes);
    }
}

/// They are rounded to i8 by a shift that was known before.
pub(super) struct Shifted<'a> {
    pub(super) out: &'a mut [i8],
    pub(super) shift: u32,
}

impl Epilogue for Shifted<'_> {
    #[inline(always)]
    fn take<S: Lanes>(&mut self, simd: S, sums: &[i32; LANES], at: usize, count: usize) {
        let narrow = Rounder::new(simd, self.shift).round(simd.load(sums));
        let out = &mut self.out[at..][..count];
        if let Ok(out) = out.try_into() {
            simd.narrow(narrow, out);
        } else {
            let mut all = [0; LANES];
            simd.narrow(narrow, &mut all);
            out.copy_from_slice(&all[..count]);
        }
    }
}
