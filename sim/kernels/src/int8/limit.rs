//! The arithmetic limit: how fast products can be added up at all, beside which [`Gemm`](super::Gemm) is measured.

use std::hint::black_box;

use super::gemm::DEPTH;
use super::lanes::{self, Kernel, LANES, Lanes};
use super::tile::{Tile, add_products};
use crate::isa::Isa;

/// Does at least so many multiply-adds on a tile that the registers hold and panels that the first cache holds:
/// nothing is packed, and nothing handed on. Answers a sum.
#[must_use]
pub fn multiply_adds(count: usize, isa: Isa) -> i32 {
    lanes::dispatch(isa, Limit(count))
}

struct Limit(usize);

/// At the start of a cache line, as panels are.
#[repr(align(64))]
struct Aligned<T>(T);

impl Kernel for Limit {
    type Output = i32;

    #[inline(always)]
    fn run<S: Lanes, const ROWS: usize>(self, simd: S) -> i32 {
        let (left, right) = (Aligned([[[1, -1]; ROWS]; DEPTH]), Aligned([[[2, 1]; LANES]; DEPTH]));
        let mut tile: Tile<ROWS> = [[0; LANES]; ROWS];
        let each = 2 * DEPTH * ROWS * LANES;
        for _ in 0..self.0.div_ceil(each) {
            tile = [[0; LANES]; ROWS];
            add_products::<S, ROWS>(simd, &black_box(&left).0, &black_box(&right).0, black_box(&mut tile));
        }
        tile[0][0]
    }
}
