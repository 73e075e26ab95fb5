//! Exponential, hyperbolic tangent and error function, in loops that the compiler vectorises, and logarithm and power:
//! without calls into a system's library, so the results have the same bits on every system.
// Coefficients are as published.
#![allow(clippy::excessive_precision)]

/// e^x within 2 units in the last place; 0 below −87.3 or so, infinite from 88.8 on.
///
/// Cephes' `expf`: x = n ln 2 + r with |r| ≤ ln 2 / 2, a polynomial of r, and n in the exponent.
#[inline(always)]
#[must_use]
pub fn exp(x: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let clamped = x.clamp(-104.0, 89.0);
    let n = (clamped * std::f32::consts::LOG2_E + ROUND) - ROUND;
    let r = clamped - n * LN2_HIGH - n * LN2_LOW;
    let mut p = 1.987_569_1e-4;
    for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5.000_000_3e-1] {
        p = p * r + c;
    }
    let y = p * r * r + r + 1.0;
    // Two factors, because neither 2^128 nor a subnormal fits in one exponent.
    let half = (n * 0.5 + ROUND) - ROUND;
    let y = y * power_of_two(half) * power_of_two(n - half);
    if x.is_nan() { x } else { y }
}

/// The natural logarithm, within half a unit in the last place except for one value in millions.
#[must_use]
pub fn ln(x: f32) -> f32 {
    libm::log(f64::from(x)) as f32
}

/// x to the power of `exponent`, with the same accuracy.
pub(super) fn power(x: f32, exponent: f32) -> f32 {
    libm::pow(f64::from(x), f64::from(exponent)) as f32
}

/// Added and subtracted, it rounds to the nearest integer: from 2^23 on an f32 has no fraction.
const ROUND: f32 = 12_582_912.0;

/// 2^n for an integral n in −126..=127.
#[inline(always)]
fn power_of_two(n: f32) -> f32 {
    // The lowest bits of the sum are n; a conversion to an integer would not be vectorised.
    f32::from_bits((n + ROUND).to_bits().wrapping_add(127) << 23)
}

/// The hyperbolic tangent within 4 units in the last place: the rational approximation of Eigen and XLA.
#[inline(always)]
#[must_use]
pub fn tanh(x: f32) -> f32 {
    let x = x.clamp(-7.905_311, 7.905_311);
    let square = x * x;
    let mut p = -2.760_768_477_423_55e-16;
    for c in [
        2.000_187_904_824_77e-13,
        -8.604_671_522_137_35e-11,
        5.122_297_090_371_14e-8,
        1.485_722_357_179_79e-5,
        6.372_619_288_754_36e-4,
        4.893_524_558_917_86e-3,
    ] {
        p = p * square + c;
    }
    let mut q = 1.198_258_394_667_02e-6;
    for c in [1.185_347_056_866_54e-4, 2.268_434_632_439e-3, 4.893_525_185_543_85e-3] {
        q = q * square + c;
    }
    x * p / q
}

/// The error function within 1e-6: the rational approximation of Eigen and XLA.
#[inline(always)]
#[must_use]
pub fn erf(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let square = x * x;
    let mut p = -2.726_142_258_013_06e-10;
    for c in [
        2.770_681_424_959_02e-8,
        -2.101_024_020_825_08e-6,
        -5.692_506_394_623_46e-5,
        -7.349_906_303_268_55e-4,
        -2.954_599_808_540_25e-3,
        -1.609_603_332_624_15e-2,
    ] {
        p = p * square + c;
    }
    let mut q = -1.456_607_184_649_96e-5;
    for c in [-2.133_740_552_789_05e-4, -1.682_826_974_382_03e-3, -7.373_329_167_204_68e-3, -1.426_473_905_141_89e-2] {
        q = q * square + c;
    }
    x * p / q
}
