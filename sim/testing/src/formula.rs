//! Weights, samples and labels by a formula of integers, the same as in `python/training_steps.py`, so that two
//! programs can train the same network from the same start without exchanging a file.

/// 32-bit integers for a name and positions: a multiplicative hash of the position, from an offset that is the sum of
/// the name's bytes weighted by their positions.
pub fn mixed(name: &str, count: usize) -> impl Iterator<Item = u32> {
    let start = (1_u32..).zip(name.bytes()).fold(0_u32, |sum, (place, byte)| sum + place * u32::from(byte));
    let first = 65_537_u32.wrapping_mul(start).wrapping_add(1);
    (0..count as u32).map(move |place| {
        let stirred = |x: u32, (multiplier, shift)| {
            let x = x.wrapping_mul(multiplier);
            x ^ (x >> shift)
        };
        [(2_654_435_761, 15), (2_246_822_519, 13)].into_iter().fold(first.wrapping_add(place), stirred)
    })
}

/// Numbers from −1 to below 1: the samples, of the name `input`.
pub fn even(name: &str, count: usize) -> Vec<f32> {
    mixed(name, count).map(|x| (x >> 8) as f32 / (1_u32 << 23) as f32 - 1.0).collect()
}

/// Integers from 0 to below `bound`: labels of the name `target`, tokens of the name `input` (below 64 there).
pub fn below(name: &str, count: usize, bound: u32) -> Vec<i64> {
    mixed(name, count).map(|x| i64::from(x % bound)).collect()
}

/// A weight of `dims`: of several dimensions it has the variance 1 / fan_in; others are near one (norms) or near zero
/// (biases).
pub fn weight(name: &str, dims: &[u64]) -> Vec<f32> {
    let mut values = even(name, dims.iter().product::<u64>() as usize);
    let scale = (3.0 / dims.iter().skip(1).product::<u64>() as f32).sqrt();
    let near = if name.ends_with("weight") { 1.0 } else { 0.0 };
    for value in &mut values {
        *value = if dims.len() > 1 { *value * scale } else { near + 0.1 * *value };
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_gives_what_python_gives() {
        let integers: Vec<u32> = mixed("conv1.weight", 4).collect();
        assert_eq!(integers, [2_153_459_192, 3_869_184_768, 2_311_584_156, 59_374_846]);
        assert_eq!(even("conv1.weight", 2), [0.002_782_464, 0.801_729_56]);
        assert_eq!(weight("conv1.weight", &[6, 3, 5, 5])[..2], [0.000_556_492_8, 0.160_345_91]);
        assert_eq!(weight("bn1.weight", &[16])[..2], [1.003_553_3, 0.928_802_13]);
        assert_eq!(weight("fc.bias", &[10])[0], -0.098_316_81);
        assert_eq!(below("conv1.weight", 2, 10), [2, 8]);
    }
}
