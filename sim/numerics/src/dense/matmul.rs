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
        let isa = Isa::chosen()?;
        self.check(left.len(), right.len(), product.len())?;
        self.each(product, m * n, |i, product| {
            let (left, right) = (part(left, i, m * k), part(right, i, k * n));
            multiply([m, k, n], Matrix::rows(left, k), Matrix::rows(right, n), product, false, isa);
        });
        Ok(())
    }

    /// The gradient of the left operand: `gradient rightᵀ`.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn left_gradient(&self, gradient: &[f32], right: &[f32], left_gradient: &mut [f32]) -> Result {
        let Self { m, k, n, .. } = *self;
        let isa = Isa::chosen()?;
        self.check(left_gradient.len(), right.len(), gradient.len())?;
        self.each(left_gradient, m * k, |i, into| {
            let (gradient, right) = (part(gradient, i, m * n), part(right, i, k * n));
            multiply([m, n, k], Matrix::rows(gradient, n), Matrix::transposed(right, n), into, false, isa);
        });
        Ok(())
    }

    /// The gradient of the right operand: `leftᵀ gradient`.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn right_gradient(&self, left: &[f32], gradient: &[f32], right_gradient: &mut [f32]) -> Result {
        let Self { m, k, n, .. } = *self;
        let isa = Isa::chosen()?;
        self.check(left.len(), right_gradient.len(), gradient.len())?;
        self.each(right_gradient, k * n, |i, into| {
            let (left, gradient) = (part(left, i, m * k), part(gradient, i, m * n));
            multiply([k, m, n], Matrix::transposed(left, k), Matrix::rows(gradient, n), into, false, isa);
        });
        Ok(())
    }

    fn each(&self, output: &mut [f32], len: usize, f: impl Fn(usize, &mut [f32]) + Sync) {
        if len > 0 {
            output.par_chunks_mut(len).enumerate().for_each(|(i, output)| f(i, output));
        }
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
