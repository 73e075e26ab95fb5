//! Batched products of matrices.

use haversack_kernels::Isa;
use rayon::prelude::*;

use super::gemm::{Matrix, multiply};
use crate::error::{Result, expect_length};

/// Sizes of a batched product: (batch × m × k) (batch × k × n) = batch × m × n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matmul {
    /// Number of products.
    pub batch: usize,
    /// Rows of the left operand.
    pub m: usize,
    /// Columns of the left operand, rows of the right one.
    pub k: usize,
    /// Columns of the right operand.
    pub n: usize,
}

impl Matmul {
    /// `product = left right`, for each of the batch.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn forward(&self, left: &[f32], right: &[f32], product: &mut [f32]) -> Result {
        let Self { m, k, n, .. } = *self;
        self.check(left.len(), right.len(), product.len())?;
        let operands = |i| (Matrix::rows(part(left, i, m * k), k), Matrix::rows(part(right, i, k * n), n));
        each([m, k, n], operands, product)
    }

    /// The gradient of the left operand: `gradient rightᵀ`.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn left_gradient(&self, gradient: &[f32], right: &[f32], left_gradient: &mut [f32]) -> Result {
        let Self { m, k, n, .. } = *self;
        self.check(left_gradient.len(), right.len(), gradient.len())?;
        let operands = |i| (Matrix::rows(part(gradient, i, m * n), n), Matrix::transposed(part(right, i, k * n), n));
        each([m, n, k], operands, left_gradient)
    }

    /// The gradient of the right operand: `leftᵀ gradient`.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn right_gradient(&self, left: &[f32], gradient: &[f32], right_gradient: &mut [f32]) -> Result {
        let Self { m, k, n, .. } = *self;
        self.check(left.len(), right_gradient.len(), gradient.len())?;
        let operands = |i| (Matrix::transposed(part(left, i, m * k), k), Matrix::rows(part(gradient, i, m * n), n));
        each([k, m, n], operands, right_gradient)
    }

    fn check(&self, left: usize, right: usize, product: usize) -> Result {
        expect_length("the left operand of a product", left, self.batch * self.m * self.k)?;
        expect_length("the right operand of a product", right, self.batch * self.k * self.n)?;
        expect_length("a product", product, self.batch * self.m * self.n)
    }
}

fn part(of: &[f32], i: usize, len: usize) -> &[f32] {
    &of[i * len..(i + 1) * len]
}

/// Multiplies the operands of each of a batch, of `sizes` rows, depth and columns.
fn each<'a>(
    sizes: [usize; 3],
    operands: impl Fn(usize) -> (Matrix<'a>, Matrix<'a>) + Sync,
    products: &mut [f32],
) -> Result {
    let isa = Isa::chosen()?;
    let len = (sizes[0] * sizes[2]).max(1);
    products.par_chunks_mut(len).enumerate().for_each(|(i, product)| {
        let (left, right) = operands(i);
        multiply(sizes, left, right, product, false, isa);
    });
    Ok(())
}
