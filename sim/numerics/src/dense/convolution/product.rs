//! Sums of products of rows at given distances: each output row is Σ over k of `weight[k] · source[distance[k]..]`.
//!
//! Tiles of a few rows by a few vectors stay in registers over all k. Whatever the tile, an element's products are added
//! in the order of k, so that every instruction set gives the same bits.

use haversack_kernels::Isa;
use haversack_kernels::simd::{Kernel, LANES, Simd, dispatch};

/// Rows of the widest tile: as many sums as fit in registers.
pub(super) const fn most_rows(isa: Isa) -> usize {
    match isa {
        Isa::Avx512 => 8,
        _ => 4,
    }
}

/// The tiles that `rows` rows are cut into: (first row, number of rows), in the order of rows.
pub(super) fn tiles(rows: usize, isa: Isa) -> impl Iterator<Item = (usize, usize)> {
    let mut first = 0;
    std::iter::from_fn(move || {
        let mut tile = most_rows(isa);
        while tile > rows - first {
            tile /= 2;
        }
        first += tile;
        (tile > 0).then_some((first - tile, tile))
    })
}

/// Writes the weights of `rows` rows in the order that tiles read them: for each tile, k after k, a weight of each row.
pub(super) fn pack(rows: usize, depth: usize, isa: Isa, weight: impl Fn(usize, usize) -> f32, panel: &mut [f32]) {
    for (first, tile) in tiles(rows, isa) {
        for (k, panel) in panel[first * depth..][..tile * depth].chunks_exact_mut(tile).enumerate() {
            panel.iter_mut().enumerate().for_each(|(i, w)| *w = weight(first + i, k));
        }
    }
}

/// One tile of rows over all positions.
pub(super) struct Product<'a> {
    /// The factor that is read at the distances: at least `positions` elements after every distance,
    /// rounded up to whole vectors.
    pub(super) source: &'a [f32],
    /// Distance of each k's row.
    pub(super) distances: &'a [usize],
    /// Weights of the tile, as [`pack`] lays them.
    pub(super) panel: &'a [f32],
    /// Number of rows.
    pub(super) rows: usize,
    /// Rows of sums, each of a whole number of vectors.
    pub(super) sums: &'a mut [f32],
}

impl Product<'_> {
    /// Computes it.
    pub(super) fn run(self, isa: Isa) {
        dispatch(isa, self);
    }

    #[inline(always)]
    fn rows<S: Simd, const ROWS: usize, const WIDE: usize>(self, simd: S) {
        let vectors = self.sums.len() / ROWS / LANES;
        let panel = self.panel.as_chunks::<ROWS>().0;
        let sums = self.sums.as_chunks_mut::<LANES>().0;
        let (source, distances) = (self.source, self.distances);
        let mut at = 0;
        while at + WIDE <= vectors {
            tile::<S, ROWS, WIDE>(simd, source, distances, panel, sums, at);
            at += WIDE;
        }
        if at + 2 <= vectors {
            tile::<S, ROWS, 2>(simd, source, distances, panel, sums, at);
            at += 2;
        }
        if at < vectors {
            tile::<S, ROWS, 1>(simd, source, distances, panel, sums, at);
        }
    }
}

impl Kernel for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match (self.rows, S::REGISTER) {
            (8, _) => self.rows::<S, 8, 3>(simd),
            (4, LANES) => self.rows::<S, 4, 3>(simd),
            (2, LANES) => self.rows::<S, 2, 3>(simd),
            (_, LANES) => self.rows::<S, 1, 3>(simd),
            (4, _) => self.rows::<S, 4, 1>(simd),
            (2, _) => self.rows::<S, 2, 2>(simd),
            _ => self.rows::<S, 1, 2>(simd),
        }
    }
}

/// `ROWS` rows of `WIDE` vectors from vector `at` on.
#[inline(always)]
fn tile<S: Simd, const ROWS: usize, const WIDE: usize>(
    simd: S,
    source: &[f32],
    distances: &[usize],
    panel: &[[f32; ROWS]],
    sums: &mut [[f32; LANES]],
    at: usize,
) {
    let vectors = sums.len() / ROWS;
    let mut tile = [[simd.splat(0.0); WIDE]; ROWS];
    for (&distance, weights) in distances.iter().zip(panel) {
        let from = &source[distance + at * LANES..][..WIDE * LANES];
        let from = from.as_chunks::<LANES>().0;
        let mut x = [simd.splat(0.0); WIDE];
        for v in 0..WIDE {
            x[v] = simd.load(&from[v]);
        }
        for r in 0..ROWS {
            let weight = simd.splat(weights[r]);
            for v in 0..WIDE {
                tile[r][v] = simd.fused(x[v], weight, tile[r][v]);
            }
        }
    }
    for r in 0..ROWS {
        for v in 0..WIDE {
            simd.store(tile[r][v], &mut sums[r * vectors + at + v]);
        }
    }
}
