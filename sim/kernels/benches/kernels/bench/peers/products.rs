//! Products of square matrices as a user would write them.

use haversack_kernels::Isa;

/// A triple loop over i8, one sum at a time.
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

/// A product in f32, whose edge is a multiple of [`COLUMNS`]: tiles that fit in registers, over a `panel` of the right
/// matrix's columns that was copied together, with fused multiply-adds. The baseline for a sum of i8 products.
pub(crate) fn in_f32(left: &[f32], right: &[f32], panel: &mut [[f32; COLUMNS]], out: &mut [f32], isa: Isa) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the guard has checked that the processor has AVX-512.
        Isa::Avx512 if isa.is_available() => unsafe { x86::in_f32_avx512(left, right, panel, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the guard has checked that the processor has AVX2 and FMA.
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
