//! Loops that are compiled twice: as plain Rust, and with the instructions of AVX2 and BMI2.

use crate::isa::Isa;

/// Work that is written once. Nothing in it may depend on `WIDE` but how fast it goes: the answer is the same, because
/// integers wrap and single float operations round alike, in registers of any width.
pub(super) trait Work {
    /// What it answers.
    type Output;
    /// Does the work; `WIDE` where the processor has AVX2 and BMI2. Implementations are `#[inline(always)]`, so that
    /// they take on the caller's instructions.
    fn run<const WIDE: bool>(self) -> Self::Output;
}

/// Runs some work with the instructions of `isa`, as far as this processor has them.
pub(super) fn dispatch<W: Work>(isa: Isa, work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512) && isa.is_available() && has_bmi() {
        // SAFETY: the processor has just said that it has these instructions.
        return unsafe { wide(work) };
    }
    let _ = isa;
    work.run::<false>()
}

#[cfg(target_arch = "x86_64")]
fn has_bmi() -> bool {
    is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn wide<W: Work>(work: W) -> W::Output {
    work.run::<true>()
}
