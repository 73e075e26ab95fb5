//! Sixteen lanes of f32 or of integers, for any instructions that the processor has: the only place where
//! kernels meet instruction sets.
//!
//! Every kernel is written once, over [`Simd`], so that the instruction sets cannot disagree: each of them supplies
//! only single operations, all exactly rounded or exact. The sixteen lanes are one AVX-512 register, two of AVX2, four
//! of NEON, or an array. [`dispatch`] compiles a [`Kernel`] for each of them and runs the requested one; [`compiled`]
//! does the same for [`Loops`] in plain Rust, which the compiler vectorises.

/// Operations that are one expression each: functions that are compiled for their caller's instructions.
macro_rules! operations {
    ($(fn $name:ident($($argument:tt)*) $(-> $result:ty)? = $expression:expr;)+) => { $(
        #[inline(always)]
        fn $name($($argument)*) $(-> $result)? {
            $expression
        }
    )+ };
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use crate::Isa;

/// Lanes of one [`Simd`] vector, whatever the register width.
pub const LANES: usize = 16;

/// Operations on sixteen lanes. A value of an implementing type proves that the processor has the instructions.
pub trait Simd: Copy {
    /// Sixteen f32.
    type Floats: Copy;
    /// Sixteen integers of 32 bits: u32, i32, or slots of several smaller ones.
    type Words: Copy;
    /// Eight f64: sums that lose no digits.
    type Doubles: Copy;
    /// Sixteen sums of products that are being added up.
    type Products: Copy;
    /// Lanes of one register; 1 without registers.
    const REGISTER: usize;
    /// `lookup` finds entries by this many low bits.
    const TABLE_BITS: u32;
    /// i8 values that one lane of [`multiply_add`](Self::multiply_add) multiplies: two, each widened to i16, or four,
    /// of which those of the first operand are moved up by 128 to be unsigned.
    const DEPTH: usize = 2;

    fn load(self, from: &[f32; LANES]) -> Self::Floats;
    fn store(self, value: Self::Floats, to: &mut [f32; LANES]);
    /// Prefetches the data 2 KiB after `at`, which may be beyond the tensor, so that it arrives from the
    /// second-level cache in time.
    #[inline(always)]
    fn ask_ahead(self, _at: &[f32; LANES]) {}
    fn splat(self, value: f32) -> Self::Floats;
    fn plus(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn subtract(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a * b + c`, rounded once.
    fn fused(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    /// The smaller; `b` if `a` is NaN (`b` never is).
    fn smaller(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// The greater; `b` if `a` is NaN (`b` never is).
    fn greater(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// The smallest lane.
    fn smallest(self, a: Self::Floats) -> f32;
    /// The greatest lane.
    fn greatest(self, a: Self::Floats) -> f32;
    /// No lane is infinite or NaN.
    fn are_finite(self, a: Self::Floats) -> bool;
    /// Lane i of `a` if bit i of `mask` is set, otherwise +0.
    fn keep(self, a: Self::Floats, mask: u16) -> Self::Floats;
    /// The integer part of lanes in 0..2^24.
    fn truncate(self, a: Self::Floats) -> Self::Words;
    /// The bits of floats.
    fn bits(self, a: Self::Floats) -> Self::Words;
    /// The floats of bits.
    fn floats_of_bits(self, a: Self::Words) -> Self::Floats;
    /// Adds lanes to f64 sums: lanes i and i + 8, added in f32, go to the i-th.
    fn empty(self, a: Self::Floats, into: Self::Doubles) -> Self::Doubles;
    /// Empty f64 sums.
    fn no_doubles(self) -> Self::Doubles;
    /// The sum of the f64 sums: those four apart are added first, then those two apart, then both.
    fn total(self, a: Self::Doubles) -> f64;

    fn load_words(self, from: &[u32; LANES]) -> Self::Words;
    fn store_words(self, value: Self::Words, to: &mut [u32; LANES]);
    fn splat_word(self, value: u32) -> Self::Words;
    /// `a + b` modulo 2^32.
    fn add(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// `a * b` modulo 2^32.
    fn multiply(self, a: Self::Words, b: Self::Words) -> Self::Words;
    fn and(self, a: Self::Words, b: Self::Words) -> Self::Words;
    fn xor(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Every lane shifted up by `count` < 32; a constant count costs one instruction.
    fn up(self, a: Self::Words, count: u32) -> Self::Words;
    /// Every lane shifted down by `count` < 32.
    fn down(self, a: Self::Words, count: u32) -> Self::Words;
    /// Lanes below 2^24 as f32, exactly.
    fn to_floats(self, a: Self::Words) -> Self::Floats;
    /// `table[index mod 2^TABLE_BITS]` in each lane; `table` repeats itself with that period.
    fn lookup(self, table: Self::Floats, index: Self::Words) -> Self::Floats;

    /// Bytes as i32.
    fn widen(self, from: &[i8; LANES]) -> Self::Words;
    /// i32 in -128..=127 as bytes.
    fn narrow(self, value: Self::Words, to: &mut [i8; LANES]);
    /// i32 without their signs, as u32: the magnitude of [`i32::MIN`] is 2^31.
    fn magnitude(self, a: Self::Words) -> Self::Words;
    /// `a` or, if the i32 `sign` is negative, `-a`. If `sign` is 0, so is `a`.
    fn signed_as(self, a: Self::Words, sign: Self::Words) -> Self::Words;
    /// The smaller of two u32.
    fn smaller_unsigned(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Empty sums of products.
    fn no_products(self) -> Self::Products;
    /// Adds to each sum the products of the [`DEPTH`](Self::DEPTH) values in a lane of both, modulo 2^32.
    fn multiply_add(self, sums: Self::Products, a: Self::Words, b: Self::Words) -> Self::Products;
    /// The sums as i32.
    fn finish(self, sums: Self::Products) -> Self::Words;
    /// Runs tiled work with as many rows of sums as fit in the register file together with their operands.
    fn tiled<T: Tiled>(self, work: T) -> T::Output;
}

/// [`Simd::total`] of eight f64.
fn total([a, b, c, d, e, f, g, h]: [f64; 8]) -> f64 {
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// How many f32 [`Simd::ask_ahead`] prefetches ahead.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 512;

/// Work that is written once and compiled for every instruction set.
pub trait Kernel {
    /// Its result.
    type Output;
    /// Does the work. Implementations are `#[inline(always)]`, so that they are compiled for the caller's instructions.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Work on tiles of products, of as many rows as an instruction set has registers for.
pub trait Tiled {
    /// Its result.
    type Output;
    /// Does the work; `#[inline(always)]` as [`Kernel::run`] is.
    fn run<S: Simd, const ROWS: usize>(self, simd: S) -> Self::Output;
}

/// Loops of plain Rust that are compiled for every instruction set. `WIDE` may only change their speed: the result is
/// the same, because integers wrap and single float operations round the same way at any width.
pub trait Loops {
    /// Their result.
    type Output;
    /// Runs them; `WIDE` if the processor has AVX2 and BMI2. `#[inline(always)]` as [`Kernel::run`] is.
    fn run<const WIDE: bool>(self) -> Self::Output;
}

/// Runs a kernel under `isa`, or as plain Rust if this processor does not have it: the result is the same.
pub fn dispatch<K: Kernel>(isa: Isa, kernel: K) -> K::Output {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the guard has checked that the processor has these instructions.
        Isa::Avx512 if isa.is_available() => unsafe { avx512::run(kernel) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 if isa.is_available() => unsafe { avx2::run(kernel) },
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => kernel.run(neon::Neon),
        _ => kernel.run(scalar::Scalar),
    }
}

/// [`dispatch`] for tiles, with the instructions for bytes that only some processors of a set have.
pub fn dispatch_tiled<T: Tiled>(isa: Isa, work: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Avx512 && isa.is_available() && is_x86_feature_detected!("avx512vnni") {
        // SAFETY: the condition has checked that the processor has these instructions.
        return unsafe { avx512::run_vnni(Tiles(work)) };
    }
    dispatch(isa, Tiles(work))
}

/// Tiled work as a kernel.
struct Tiles<T>(T);

impl<T: Tiled> Kernel for Tiles<T> {
    type Output = T::Output;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> T::Output {
        simd.tiled(self.0)
    }
}

/// Runs loops with 256-bit vectors and the instructions for bits, if `isa` has them, and without them otherwise.
pub fn compiled<L: Loops>(isa: Isa, loops: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512) && isa.is_available() && avx2::has_bits() {
        // SAFETY: the condition has checked that the processor has these instructions.
        return unsafe { avx2::run_loops(loops) };
    }
    let _ = isa;
    loops.run::<false>()
}

/// The extremum of an empty tensor, hidden from the compiler: on ARM it would turn the first comparison with it into a
/// single instruction, and a signalling NaN into NaN.
#[inline(always)]
pub(crate) fn identity(of_nothing: f32) -> f32 {
    if cfg!(target_arch = "aarch64") { std::hint::black_box(of_nothing) } else { of_nothing }
}

/// i32 as words.
#[inline(always)]
pub fn words(of: &[i32; LANES]) -> &[u32; LANES] {
    // SAFETY: both have the same size and alignment, and every bit pattern is a value of both.
    unsafe { &*std::ptr::from_ref(of).cast() }
}

/// i32 as words to store to.
#[inline(always)]
pub fn words_mut(of: &mut [i32; LANES]) -> &mut [u32; LANES] {
    // SAFETY: as in `words`; `&mut` is the only access.
    unsafe { &mut *std::ptr::from_mut(of).cast() }
}

/// Places of a tensor that are read in parallel if it fits in no cache: memory serves eight faster than one.
pub const STREAMS: usize = 8;

/// Bytes from which a tensor fits in no cache, so that it is read as streams.
pub const STREAMED_FROM: usize = 16 << 20;

/// A tensor as streams of one length, and the elements after the last of them.
#[inline(always)]
pub fn streams<T>(data: &[T]) -> ([&[[T; LANES]]; STREAMS], &[T]) {
    let vectors = data.as_chunks::<LANES>().0;
    let each = vectors.len() / STREAMS;
    let streams = std::array::from_fn(|k| &vectors[k * each..(k + 1) * each]);
    (streams, &data[each * STREAMS * LANES..])
}
