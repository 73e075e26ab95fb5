//! Products of square matrices as one would write them.

use haversack_kernels::Isa;

/// A triple loop over i8, a sum at a time.
pub(crate) fn triple_loop(left: &[i8], right: &[i8], edge: usize, out: &mut [i32]) {
    for row in 0..edge {
        for column in 0..edge {
            let products = (0..edge).map(|k| i32::from(left[row * edge + k]) * i32::from(right[k * edge + column]));
            out[row * edge + column] = products.sum();
        }
    }
}

/// Columns of a tile.
pub(crate) const COLUMNS: usize = 16;
/// Rows of a tile: their sums take twelve of sixteen registers of eight.
const ROWS: usize = 6;

/// A product in f32, whose edge is a multiple of [`COLUMNS`]: tiles that registers hold, over a `panel` of the right
/// matrix's columns that was copied together, with fused multiply-adds. What a sum of i8 products competes with.
pub(crate) fn in_f32(left: &[f32], right: &[f32], panel: &mut [[f32; COLUMNS]], out: &mut [f32], isa: Isa) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has just said that it has AVX-512.
        Isa::Avx512 if isa.is_available() => unsafe { x86::in_f32_avx512(left, right, panel, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has just said that it has AVX2 and FMA.
        Isa::Avx2 if isa.is_available() => unsafe { x86::in_f32_avx2(left, right, panel, out) },
        Isa::Neon => in_blocks::<true>(left, right, panel, out),
        _ => in_blocks::<false>(left, right, panel, out),
    }
}

#[inline(always)]
fn in_blocks<const FUSED: bool>(left: &[f32], right: &[f32], panel: &mut [[f32; COLUMNS]], out: &mut [f32]) {
    let edge = panel.len();
    for first in (0..edge).step_by(COLUMNS) {
        for (slot, row) in panel.iter_mut().zip(right.chunks_exact(edge)) {
            slot.copy_from_slice(&row[first..first + COLUMNS]);
        }
        let whole = edge / ROWS * ROWS;
        for row in (0..whole).step_by(ROWS) {
            let rows: [&[f32]; ROWS] = std::array::from_fn(|r| &left[(row + r) * edge..][..edge]);
            tile::<FUSED, ROWS>(rows, panel, &mut out[row * edge + first..], edge);
        }
        for row in whole..edge {
            tile::<FUSED, 1>([&left[row * edge..][..edge]], panel, &mut out[row * edge + first..], edge);
        }
    }
}

#[inline(always)]
fn tile<const FUSED: bool, const HEIGHT: usize>(
    rows: [&[f32]; HEIGHT],
    panel: &[[f32; COLUMNS]],
    out: &mut [f32],
    edge: usize,
) {
    let mut sums = [[0.0_f32; COLUMNS]; HEIGHT];
    for (k, slot) in panel.iter().enumerate() {
        for (sums, row) in sums.iter_mut().zip(rows) {
            let factor = row[k];
            for (sum, &value) in sums.iter_mut().zip(slot) {
                // Without the instruction a fused multiply-add would be a call.
                *sum = if FUSED { factor.mul_add(value, *sum) } else { factor * value + *sum };
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        out[row * edge..][..COLUMNS].copy_from_slice(sums);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! The same loops, compiled for wider vectors.

    use super::{COLUMNS, in_blocks};

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn in_f32_avx2(left: &[f32], right: &[f32], panel: &mut [[f32; COLUMNS]], out: &mut [f32]) {
        in_blocks::<true>(left, right, panel, out);
    }

    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) fn in_f32_avx512(left: &[f32], right: &[f32], panel: &mut [[f32; COLUMNS]], out: &mut [f32]) {
        in_blocks::<true>(left, right, panel, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_multiply() {
        // Small integers, whose sums both types hold exactly: left[i, k] = i − k, right[k, j] = k + 2j, modulo 7 less 3.
        let edge = 2 * COLUMNS;
        let value = |at: usize, by: usize| ((at / edge + by * (at % edge)) % 7) as i8 - 3;
        let left: Vec<i8> = (0..edge * edge).map(|at| value(at, 6)).collect();
        let right: Vec<i8> = (0..edge * edge).map(|at| value(at, 2)).collect();
        let mut sums = vec![0; edge * edge];
        triple_loop(&left, &right, edge, &mut sums);
        // Row 0 by column 0: the sum over k of (6k mod 7 − 3)(k mod 7 − 3); seven k in a row give 0·… worked out:
        // (−3)(−3) + 3(−2) + 2(−1) + 1·0 + 0·1 + (−1)·2 + (−2)·3 = −7; of 32, four sevens and k = 28 to 31: 9 − 6 − 2 + 0.
        assert_eq!(sums[0], 4 * -7 + 1);
        let float = |values: &[i8]| values.iter().copied().map(f32::from).collect::<Vec<_>>();
        for isa in Isa::available() {
            let (mut panel, mut out) = (vec![[9.0; COLUMNS]; edge], vec![9.0; edge * edge]);
            in_f32(&float(&left), &float(&right), &mut panel, &mut out, isa);
            assert!(out.iter().zip(&sums).all(|(&float, &sum)| float == sum as f32), "{isa}");
        }
    }
}
