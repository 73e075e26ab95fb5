//! Sums of products of a few rows with a few others at given distances, over all positions: the gradient of a weight.

use haversack_kernels::Isa;
use haversack_kernels::simd::{Kernel, LANES, Simd, dispatch};

/// Filters of the widest tile.
pub(super) const FILTERS: usize = 4;

/// Adds to `weight[f][k]` the Σ over samples and positions of `gradient[f][position] · source[distance[k] + position]`.
pub(super) struct Correlation<'a> {
    /// Samples in their frame, one after the other.
    pub(super) source: &'a [f32],
    /// Elements from one sample to the next.
    pub(super) source_len: usize,
    /// Distance of each k's row.
    pub(super) distances: &'a [usize],
    /// Added to all distances.
    pub(super) base: usize,
    /// Gradients in the same frame, zero at positions without an output.
    pub(super) gradient: &'a [f32],
    /// Elements from one sample's gradients to the next.
    pub(super) gradient_len: usize,
    /// First element of the tile's first filter, and elements from one filter to the next.
    pub(super) filter: [usize; 2],
    /// Number of samples.
    pub(super) samples: usize,
    /// Vectors of positions.
    pub(super) vectors: usize,
    /// Gradients of the weights of the tile's filters: a row for each row of the tile, each with an
    /// element for every distance.
    pub(super) weight: &'a mut [f32],
}

impl Correlation<'_> {
    /// Computes it.
    pub(super) fn run(self, isa: Isa) {
        dispatch(isa, self);
    }

    #[inline(always)]
    fn rows<S: Simd, const ROWS: usize, const DEEP: usize>(&mut self, simd: S, first: usize) {
        let depth = self.distances.len();
        let mut k = 0;
        while k < depth {
            // The last tile repeats its last row to fill up, and stores it once.
            let mut distances = [0; DEEP];
            for (d, distance) in distances.iter_mut().enumerate() {
                *distance = self.base + self.distances[(k + d).min(depth - 1)];
            }
            let sums = self.tile::<S, ROWS, DEEP>(simd, first, distances);
            for (r, sums) in sums.into_iter().enumerate() {
                for (d, sum) in sums.into_iter().enumerate().take(depth - k) {
                    let mut lanes = [0.0; LANES];
                    simd.store(sum, &mut lanes);
                    self.weight[(first + r) * depth + k + d] += total(lanes);
                }
            }
            k += DEEP;
        }
    }

    /// Sums of every filter with every distance, lane by lane.
    #[inline(always)]
    fn tile<S: Simd, const ROWS: usize, const DEEP: usize>(
        &self,
        simd: S,
        first: usize,
        distances: [usize; DEEP],
    ) -> [[S::Floats; DEEP]; ROWS] {
        let mut sums = [[simd.splat(0.0); DEEP]; ROWS];
        let len = self.vectors * LANES;
        for sample in 0..self.samples {
            let mut rows: [&[[f32; LANES]]; ROWS] = [&[]; ROWS];
            for (r, row) in rows.iter_mut().enumerate() {
                let at = sample * self.gradient_len + self.filter[0] + (first + r) * self.filter[1];
                *row = self.gradient[at..at + len].as_chunks::<LANES>().0;
            }
            let mut sources: [&[[f32; LANES]]; DEEP] = [&[]; DEEP];
            for d in 0..DEEP {
                let at = sample * self.source_len + distances[d];
                sources[d] = self.source[at..at + len].as_chunks::<LANES>().0;
            }
            for v in 0..self.vectors {
                let mut dy = [simd.splat(0.0); ROWS];
                for r in 0..ROWS {
                    dy[r] = simd.load(&rows[r][v]);
                }
                for d in 0..DEEP {
                    let x = simd.load(&sources[d][v]);
                    for r in 0..ROWS {
                        sums[r][d] = simd.fused(x, dy[r], sums[r][d]);
                    }
                }
            }
        }
        sums
    }
}

impl Kernel for Correlation<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let rows = self.weight.len().checked_div(self.distances.len()).unwrap_or(0);
        match (rows, S::REGISTER) {
            (FILTERS, LANES) => self.rows::<S, FILTERS, 6>(simd, 0),
            (_, LANES) => (0..rows).for_each(|first| self.rows::<S, 1, 9>(simd, first)),
            (FILTERS, _) => (0..FILTERS).step_by(2).for_each(|first| self.rows::<S, 2, 2>(simd, first)),
            _ => (0..rows).for_each(|first| self.rows::<S, 1, 3>(simd, first)),
        }
    }
}

/// The sum of the lanes, halves first.
#[inline(always)]
fn total(mut lanes: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}
