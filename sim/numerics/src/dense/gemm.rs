//! Products of matrices by the crate `gemm`, one thread a product: how many threads there are changes no bit.

use gemm_common::Parallelism;

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
pub(super) fn multiply([m, k, n]: [usize; 3], a: Matrix, b: Matrix, c: &mut [f32], add: bool) {
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
