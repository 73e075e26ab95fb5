//! Sixteen lanes as an array: the definition that the instruction sets are held to.

use std::array::from_fn;

use super::{Kernel, LANES, Lanes, Pair};

/// Plain Rust.
#[derive(Clone, Copy)]
pub(super) struct Scalar;

impl Scalar {
    /// Runs a kernel, four rows at a time.
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run::<Self, 4>(self)
    }
}

impl Lanes for Scalar {
    type Words = [i32; LANES];
    type Shift = u32;
    /// The first values of all pairs, and the second ones.
    type Pairs = [[i16; LANES]; 2];
    type Sums = [i32; LANES];

    #[inline(always)]
    fn load(self, from: &[i32; LANES]) -> Self::Words {
        *from
    }
    #[inline(always)]
    fn store(self, value: Self::Words, to: &mut [i32; LANES]) {
        *to = value;
    }
    #[inline(always)]
    fn splat(self, value: i32) -> Self::Words {
        [value; LANES]
    }
    #[inline(always)]
    fn widen(self, from: &[i8; LANES]) -> Self::Words {
        from.map(i32::from)
    }
    #[inline(always)]
    fn narrow(self, value: Self::Words, to: &mut [i8; LANES]) {
        *to = value.map(|word| word as i8);
    }
    #[inline(always)]
    fn add(self, a: Self::Words, b: Self::Words) -> Self::Words {
        from_fn(|i| a[i].wrapping_add(b[i]))
    }
    #[inline(always)]
    fn or(self, a: Self::Words, b: Self::Words) -> Self::Words {
        from_fn(|i| a[i] | b[i])
    }
    #[inline(always)]
    fn magnitude(self, a: Self::Words) -> Self::Words {
        a.map(i32::wrapping_abs)
    }
    #[inline(always)]
    fn signed_as(self, a: Self::Words, sign: Self::Words) -> Self::Words {
        from_fn(|i| if sign[i] < 0 { a[i].wrapping_neg() } else { a[i] })
    }
    #[inline(always)]
    fn smaller_unsigned(self, a: Self::Words, b: Self::Words) -> Self::Words {
        from_fn(|i| (a[i] as u32).min(b[i] as u32) as i32)
    }
    #[inline(always)]
    fn shift(self, count: u32) -> Self::Shift {
        count
    }
    #[inline(always)]
    fn down(self, a: Self::Words, count: Self::Shift) -> Self::Words {
        a.map(|word| (word as u32 >> count) as i32)
    }

    #[inline(always)]
    fn pairs(self, from: &[Pair; LANES]) -> Self::Pairs {
        [from.map(|pair| pair[0]), from.map(|pair| pair[1])]
    }
    #[inline(always)]
    fn splat_pair(self, pair: &Pair) -> Self::Pairs {
        pair.map(|value| [value; LANES])
    }
    #[inline(always)]
    fn nothing(self) -> Self::Sums {
        [0; LANES]
    }
    #[inline(always)]
    fn multiply_add(self, mut sums: Self::Sums, a: Self::Pairs, b: Self::Pairs) -> Self::Sums {
        for (a, b) in a.iter().zip(&b) {
            for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
                *sum = sum.wrapping_add(i32::from(a) * i32::from(b));
            }
        }
        sums
    }
    #[inline(always)]
    fn finish(self, sums: Self::Sums) -> Self::Words {
        sums
    }
}
