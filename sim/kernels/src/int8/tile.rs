//! One tile of a product: some rows by sixteen columns, and what becomes of their sums.

use super::rescale::Rounder;
use crate::simd::{LANES, Simd, words_mut};

/// Sums of a tile.
pub(crate) type Tile<const ROWS: usize> = [[u32; LANES]; ROWS];

/// Adds the products of a stretch of two panels to a tile.
#[inline(always)]
pub(crate) fn add_products<S: Simd, const ROWS: usize>(
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

/// Where a tile stands in a row-major product.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The element of its first sum.
    pub(super) first: usize,
    /// Columns of the product.
    pub(super) columns: usize,
    /// Columns of the tile that are in the product.
    pub(super) count: usize,
}

impl Place {
    /// The tile's part of each row of the product, from its first row on.
    #[inline(always)]
    fn rows<T>(self, product: &mut [T]) -> impl Iterator<Item = &mut [T]> {
        product[self.first..].chunks_mut(self.columns).map(move |row| &mut row[..self.count])
    }
}

/// What becomes of the sums of a product.
pub(super) trait Epilogue {
    /// Takes the rows of a tile that are in the product. Sums beyond its columns are 0.
    fn take<S: Simd>(&mut self, simd: S, sums: &[[u32; LANES]], place: Place);
}

/// They are stored.
pub(super) struct Wide<'a>(pub(super) &'a mut [i32]);

impl Epilogue for Wide<'_> {
    #[inline(always)]
    fn take<S: Simd>(&mut self, simd: S, sums: &[[u32; LANES]], place: Place) {
        for (sums, out) in sums.iter().zip(place.rows(self.0)) {
            match out.try_into() {
                Ok(out) => simd.store_words(simd.load_words(sums), words_mut(out)),
                Err(_) => out.iter_mut().zip(sums).for_each(|(out, &sum)| *out = sum as i32),
            }
        }
    }
}

/// They are stored, and their magnitudes joined by OR on the way: the first loop of listing 1.
pub(super) struct Measured<'a> {
    pub(super) wide: Wide<'a>,
    pub(super) magnitudes: [u32; LANES],
}

impl Epilogue for Measured<'_> {
    #[inline(always)]
    fn take<S: Simd>(&mut self, simd: S, sums: &[[u32; LANES]], place: Place) {
        self.wide.take(simd, sums, place);
        let seen = simd.load_words(&self.magnitudes);
        let seen = sums.iter().fold(seen, |seen, sums| simd.or(seen, simd.magnitude(simd.load_words(sums))));
        simd.store_words(seen, &mut self.magnitudes);
    }
}

/// They are rounded to i8 by a shift that was known before.
pub(super) struct Shifted<'a> {
    pub(super) out: &'a mut [i8],
    pub(super) shift: u32,
}

impl Epilogue for Shifted<'_> {
    #[inline(always)]
    fn take<S: Simd>(&mut self, simd: S, sums: &[[u32; LANES]], place: Place) {
        let rounder = Rounder::new(simd, self.shift);
        for (sums, out) in sums.iter().zip(place.rows(self.out)) {
            let narrow = rounder.round(simd.load_words(sums));
            if let Ok(out) = out.try_into() {
                simd.narrow(narrow, out);
            } else {
                let mut all = [0; LANES];
                simd.narrow(narrow, &mut all);
                out.copy_from_slice(&all[..place.count]);
            }
        }
    }
}
