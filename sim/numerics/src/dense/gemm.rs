//! Products of matrices, one thread a product: how many threads there are changes no bit.
//!
//! The crate `gemm` computes them with the widest vectors that the processor has, and cannot be told otherwise. Where
//! plain Rust was asked for, so that every machine computes the same bits, they are computed by loops of it.

use gemm_common::Parallelism;
use haversack_kernels::Isa;

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

    const fn holds(&self, rows: usize, columns: usize) -> bool {
        rows == 0 || columns == 0 || (rows - 1) * self.row + (columns - 1) * self.column < self.data.len()
    }
}

/// `c = a b`, or `c += a b` if `add`: a is m × k, b is k × n, c is row-major m × n.
pub(super) fn multiply([m, k, n]: [usize; 3], a: Matrix, b: Matrix, c: &mut [f32], add: bool, isa: Isa) {
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 {
        if !add {
            c.fill(0.0);
        }
        return;
    }
    // Callers have checked the lengths; without them the product would read what is not there.
    assert!(a.holds(m, k) && b.holds(k, n) && m * n <= c.len(), "operands of a product are too short");
    if isa == Isa::Scalar {
        return multiply_in_order([m, k, n], a, b, &mut c[..m * n], add);
    }
    // Column-major is what the crate is fastest at: the transpose, cᵀ = bᵀ aᵀ, of a row-major product.
    // SAFETY: the assertion says that every element that the sizes and strides reach lies in its slice; `c` is borrowed
    // mutably and so overlaps neither operand.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            n,
            m,
            k,
            c.as_mut_ptr(),
            n as isize,
            1,
            add,
            b.data.as_ptr(),
            b.row as isize,
            b.column as isize,
            a.data.as_ptr(),
            a.row as isize,
            a.column as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// The same, a product after the other in the order of the depth, each rounded before it is added.
fn multiply_in_order([m, k, n]: [usize; 3], a: Matrix, b: Matrix, c: &mut [f32], add: bool) {
    if !add {
        c.fill(0.0);
    }
    let mut row = vec![0.0; n];
    for depth in 0..k {
        for (column, value) in row.iter_mut().enumerate() {
            *value = b.data[depth * b.row + column * b.column];
        }
        for (place, sums) in c.chunks_exact_mut(n).enumerate().take(m) {
            let factor = a.data[place * a.row + depth * a.column];
            sums.iter_mut().zip(&row).for_each(|(sum, value)| *sum += factor * value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_in_plain_rust_is_the_crates_but_for_rounding() {
        let values = |len: usize| (0..len).map(|i| (i as f32 * 0.7).sin()).collect::<Vec<_>>();
        let (m, k, n) = (5, 33, 9);
        let (a, b) = (values(m * k), values(k * n));
        for (a, b) in [
            (Matrix::rows(&a, k), Matrix::rows(&b, n)),
            (Matrix::transposed(&a, m), Matrix::rows(&b, n)),
            (Matrix::rows(&a, k), Matrix::transposed(&b, k)),
        ] {
            for add in [false, true] {
                let (mut scalar, mut best) = (vec![0.5; m * n], vec![0.5; m * n]);
                multiply([m, k, n], a, b, &mut scalar, add, Isa::Scalar);
                multiply([m, k, n], a, b, &mut best, add, Isa::Avx2);
                // 33 terms of at most 1, each rounded to 24 bits.
                let off = scalar.iter().zip(&best).map(|(s, b)| (s - b).abs()).fold(0.0, f32::max);
                assert!(off < 33.0 * f32::EPSILON, "{off}");
            }
        }
        // 1·3 + 2·4 on top of 0.5.
        let mut sum = [0.5];
        multiply([1, 2, 1], Matrix::rows(&[1.0, 2.0], 2), Matrix::rows(&[3.0, 4.0], 1), &mut sum, true, Isa::Scalar);
        assert_eq!(sum, [11.5]);
    }
}
