//! The gradient of many filters' weights: at each position, the source at a few distances times the gradients of
//! sixteen filters side by side. A sum over positions needs no sum over lanes.

use haversack_kernels::Isa;
use haversack_kernels::simd::{Kernel, LANES, Simd, dispatch};

/// Distances of the widest tile.
pub(super) const DISTANCES: usize = 24;
/// Positions of a row that are processed together.
const TOGETHER: usize = 4;

/// Elements of a sample's gradients with filters side by side.
pub(super) const fn transposed_len(groups: usize, filters: usize, positions: usize) -> usize {
    groups * filters.next_multiple_of(LANES) * positions
}

/// Lays the gradients of a sample out as group × sixteen filters × position × filter; missing filters are zero.
pub(super) fn transpose(gradient: &[f32], filters: usize, positions: usize, into: &mut [f32]) {
    let vectors = filters.div_ceil(LANES);
    for (i, into) in into.chunks_exact_mut((positions * LANES).max(1)).enumerate() {
        let first = i / vectors * filters + i % vectors * LANES;
        let lanes = LANES.min(filters - i % vectors * LANES);
        let rows = &gradient[first * positions..(first + lanes) * positions];
        // Sixteen positions at a time stay in the first-level cache.
        for (block, into) in into.as_chunks_mut::<LANES>().0.chunks_mut(LANES).enumerate() {
            for (lane, row) in rows.chunks_exact(positions).enumerate() {
                let row = &row[block * LANES..][..into.len()];
                into.iter_mut().zip(row).for_each(|(into, x)| into[lane] = *x);
            }
        }
    }
}

/// Adds to `sums[k][f]` the Σ over samples and positions of `source[distance[k] + position] · gradient[position][f]`.
pub(super) struct Outer<'a> {
    /// Samples in their frame, one after the other.
    pub(super) source: &'a [f32],
    /// Elements from one sample to the next.
    pub(super) source_len: usize,
    /// Elements from one row of positions to the next in the frame.
    pub(super) pitch: usize,
    /// Distance of each k's row, at most [`DISTANCES`] of them.
    pub(super) distances: &'a [usize],
    /// Added to all distances.
    pub(super) base: usize,
    /// Gradients as [`transpose`] lays them, one sample after the other.
    pub(super) gradient: &'a [f32],
    /// Elements from one sample's gradients to the next.
    pub(super) gradient_len: usize,
    /// First element of the group's gradients.
    pub(super) group: usize,
    /// Number of samples.
    pub(super) samples: usize,
    /// Rows and columns of positions.
    pub(super) grid: [usize; 2],
    /// As many rows as there are distances, of the group's filters rounded up to whole vectors.
    pub(super) sums: &'a mut [f32],
}

impl Outer<'_> {
    /// Computes it.
    pub(super) fn run(self, isa: Isa) {
        dispatch(isa, self);
    }

    /// The tile of `DEEP` distances from `k` on; missing distances repeat the last one, and their sums are dropped.
    #[inline(always)]
    fn tile<S: Simd, const DEEP: usize>(&mut self, simd: S, k: usize) {
        let depth = self.distances.len();
        let mut distances = [0; DEEP];
        for (d, distance) in distances.iter_mut().enumerate() {
            *distance = self.base + self.distances[(k + d).min(depth - 1)];
        }
        let vectors = self.sums.len() / depth / LANES;
        for vector in 0..vectors {
            let sums = self.sums_of::<S, DEEP>(simd, vector, distances);
            let kept = self.sums.as_chunks_mut::<LANES>().0;
            for d in 0..DEEP.min(depth - k) {
                let kept = &mut kept[(k + d) * vectors + vector];
                simd.store(simd.plus(simd.load(kept), sums[d]), kept);
            }
        }
    }

    #[inline(always)]
    fn sums_of<S: Simd, const DEEP: usize>(
        &self,
        simd: S,
        vector: usize,
        distances: [usize; DEEP],
    ) -> [S::Floats; DEEP] {
        let [rows, columns] = self.grid;
        let mut sums = [simd.splat(0.0); DEEP];
        for sample in 0..self.samples {
            let at = sample * self.gradient_len + self.group + vector * rows * columns * LANES;
            let gradient = self.gradient[at..at + rows * columns * LANES].as_chunks::<LANES>().0;
            let source = &self.source[sample * self.source_len..][..self.source_len];
            for (row, gradient) in gradient.chunks_exact(columns).enumerate() {
                let (fours, rest) = gradient.as_chunks::<TOGETHER>();
                let mut at = row * self.pitch;
                for four in fours {
                    let mut dy = [simd.splat(0.0); TOGETHER];
                    for i in 0..TOGETHER {
                        dy[i] = simd.load(&four[i]);
                    }
                    for d in 0..DEEP {
                        let x = &source[at + distances[d]..][..TOGETHER];
                        for i in 0..TOGETHER {
                            sums[d] = simd.fused(simd.splat(x[i]), dy[i], sums[d]);
                        }
                    }
                    at += TOGETHER;
                }
                for dy in rest {
                    let dy = simd.load(dy);
                    for d in 0..DEEP {
                        sums[d] = simd.fused(simd.splat(source[at + distances[d]]), dy, sums[d]);
                    }
                    at += 1;
                }
            }
        }
        sums
    }
}

impl Kernel for Outer<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let (depth, mut k) = (self.distances.len(), 0);
        if S::REGISTER < LANES {
            while k < depth {
                self.tile::<S, 4>(simd, k);
                k += 4;
            }
            return;
        }
        if depth == DISTANCES {
            return self.tile::<S, DISTANCES>(simd, 0);
        }
        while k + 8 <= depth {
            self.tile::<S, 8>(simd, k);
            k += 8;
        }
        while k < depth {
            self.tile::<S, 4>(simd, k);
            k += 4;
        }
    }
}
