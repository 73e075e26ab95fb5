//! What a vector register must do for the reductions: [`Lanes`], which each instruction set implements.

/// A register of f32 lanes. Every function needs the instruction set that the type belongs to.
pub(super) trait Lanes: Copy {
    /// Lanes in a register.
    const COUNT: usize;
    /// Registers that a sum is spread over, so that additions overlap and the fused triple fits the register file.
    const SUMS: usize;
    /// The f64 lanes that sums are emptied into.
    type Wide: Copy;

    /// All lanes `value`.
    unsafe fn splat(value: f32) -> Self;
    /// `COUNT` elements, of any alignment.
    unsafe fn load(from: *const f32) -> Self;
    /// Writes `COUNT` elements, of any alignment.
    unsafe fn store(self, to: *mut f32);
    /// The smaller of both, `self` where `next` is NaN. `self` is never NaN.
    unsafe fn smaller(self, next: Self) -> Self;
    /// The larger of both, `self` where `next` is NaN. `self` is never NaN.
    unsafe fn larger(self, next: Self) -> Self;
    /// Without signs.
    unsafe fn magnitude(self) -> Self;
    /// `self + next`.
    unsafe fn plus(self, next: Self) -> Self;
    /// `self + next * next`, rounded once.
    unsafe fn plus_square(self, next: Self) -> Self;
    /// No sum.
    unsafe fn nothing() -> Self::Wide;
    /// `total` and these lanes.
    unsafe fn empty_into(self, total: Self::Wide) -> Self::Wide;
    /// The sum of the f64 lanes.
    unsafe fn total(wide: Self::Wide) -> f64;
}

/// The most lanes of any register.
pub(super) const WIDEST: usize = 16;
/// The additions after which f32 lanes are emptied into f64: an error of at most 32 half units in the last place.
pub(super) const ADDITIONS: usize = 32;
/// The most registers that a sum is spread over.
pub(super) const MOST_SUMS: usize = 8;
