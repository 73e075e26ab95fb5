//! Which SIMD instructions a kernel uses: the best that the processor has, or the set that `HAVERSACK_SIMD` names.

use std::sync::OnceLock;

use strum::{Display, IntoStaticStr};

use crate::KernelError;

/// The environment variable that chooses an instruction set: `scalar`, `avx2`, `avx512` or `neon`.
const VARIABLE: &str = "HAVERSACK_SIMD";

/// An instruction set that kernels are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Isa {
    /// Plain Rust, the same on every machine.
    Scalar,
    /// 128-bit vectors of ARM.
    Neon,
    /// 256-bit vectors of x86-64, with fused multiply-add.
    Avx2,
    /// 512-bit vectors of x86-64: F, BW, DQ and VL.
    Avx512,
}

impl Isa {
    /// Every instruction set, narrow to wide.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Neon, Self::Avx2, Self::Avx512];

    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether this processor has it.
    pub fn is_available(self) -> bool {
        static AVAILABLE: OnceLock<[bool; Isa::ALL.len()]> = OnceLock::new();
        AVAILABLE.get_or_init(|| Self::ALL.map(Self::detect))[self as usize]
    }

    #[cfg(target_arch = "x86_64")]
    fn detect(self) -> bool {
        match self {
            Self::Scalar => true,
            Self::Neon => false,
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            Self::Avx512 => {
                Self::Avx2.detect()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn detect(self) -> bool {
        self == Self::Scalar || (self == Self::Neon && cfg!(target_arch = "aarch64"))
    }

    /// The sets that this processor has, the narrowest first.
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|isa| isa.is_available()).collect()
    }

    /// The set that kernels use by default: `HAVERSACK_SIMD` if it is set, otherwise the widest available.
    ///
    /// # Errors
    /// `HAVERSACK_SIMD` names a set that this processor does not have.
    pub fn chosen() -> Result<Self, KernelError> {
        static CHOSEN: OnceLock<Result<Isa, KernelError>> = OnceLock::new();
        CHOSEN.get_or_init(|| Self::from_setting(std::env::var(VARIABLE).ok().as_deref())).clone()
    }

    fn from_setting(setting: Option<&str>) -> Result<Self, KernelError> {
        let available = Self::available();
        let Some(name) = setting.filter(|name| !name.is_empty()) else {
            return Ok(available.last().copied().unwrap_or(Self::Scalar));
        };
        available.iter().copied().find(|isa| isa.name() == name).ok_or_else(|| KernelError::Isa {
            found: name.to_owned(),
            expected: available.iter().map(|isa| isa.name()).collect::<Vec<_>>().join(", "),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_wins_over_the_widest() {
        assert_eq!(Isa::from_setting(Some("scalar")), Ok(Isa::Scalar));
        assert_eq!(Isa::from_setting(None).ok(), Isa::available().last().copied());
    }

    #[test]
    fn an_unknown_set_is_an_error_that_lists_what_there_is() {
        let error = Isa::from_setting(Some("avx1024")).unwrap_err().to_string();
        assert!(error.contains("avx1024") && error.contains("scalar"), "{error}");
    }
}
