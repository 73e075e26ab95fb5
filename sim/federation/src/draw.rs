//! Numbers drawn for one phone and one purpose, in any order and without state.
//!
//! A federation has a million phones, each of which draws a few numbers for each of a few purposes: a separate stream
//! ([`haversack_engine::Stream`]) would cost more than the numbers. Here a number is the hash of the seed, the purpose,
//! the phone and a count (`SplitMix64`'s finaliser: Steele, Lea and Flood, OOPSLA 2014), so that no phone's numbers
//! depend on the draws of others.

/// The purpose of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The memory class of a phone.
    Memory = 1,
    /// The device within its class.
    Device,
    /// Its speed relative to the device's.
    Speed,
    /// Its link down, and up.
    Down,
    /// See [`Self::Down`].
    Up,
    /// Its number of samples.
    Samples,
    /// Its position in its sessions when the federation begins.
    Phase,
    /// Lengths of sessions, and of the gaps between them.
    Session,
    /// See [`Self::Session`].
    Gap,
    /// The user whose memory trace the phone follows, and the moment of that user's day in a round.
    User,
    /// See [`Self::User`].
    Moment,
}

/// The numbers of one phone for one purpose.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    key: u64,
}

impl Draws {
    /// Those of `phone` for `purpose`.
    pub const fn new(seed: u64, purpose: Purpose, phone: u32) -> Self {
        let purpose = mixed(purpose as u64);
        Self { key: mixed(mixed(seed ^ purpose).wrapping_add(phone as u64)) }
    }

    /// Number `count`, evenly from 0 to below 1.
    pub fn even(self, count: u32) -> f64 {
        (mixed(self.key.wrapping_add(GOLDEN.wrapping_mul(u64::from(count) + 1))) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Number `count` from the normal distribution of deviation 1 (Box and Muller).
    pub fn normal(self, count: u32) -> f64 {
        let (radius, angle) = (1.0 - self.even(2 * count), self.even(2 * count + 1));
        (-2.0 * libm::log(radius)).sqrt() * libm::cos(std::f64::consts::TAU * angle)
    }

    /// From the gamma distribution of this shape and scale one (Marsaglia and Tsang, TOMS 2000).
    pub fn gamma(self, shape: f64) -> f64 {
        let boosted = if shape < 1.0 { shape + 1.0 } else { shape };
        let scale = boosted - 1.0 / 3.0;
        let spread = 1.0 / (9.0 * scale).sqrt();
        // At least nineteen of twenty are accepted, so that a hundred rejections in a row do not happen.
        let accepted = (0..100).find_map(|attempt| {
            let (normal, even) = (self.normal(2 * attempt), self.even(4 * attempt + 2));
            let cube = (1.0 + spread * normal).powi(3);
            let likely = 0.5 * normal * normal + scale - scale * cube + scale * libm::log(cube.max(f64::MIN_POSITIVE));
            (cube > 0.0 && libm::log(1.0 - even) < likely).then_some(scale * cube)
        });
        let drawn = accepted.unwrap_or(boosted);
        if shape < 1.0 { drawn * libm::pow(1.0 - self.even(3), 1.0 / shape) } else { drawn }
    }
}

/// The index among `shares` at which their running sum first exceeds `left`; `None` if `left` is beyond their total.
pub(crate) fn place_of(mut left: f64, shares: impl IntoIterator<Item = f64>) -> Option<usize> {
    shares.into_iter().position(|share| {
        left -= share;
        left < 0.0
    })
}

/// 2⁶⁴ over the golden ratio, odd.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

const fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(GOLDEN);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_even_or_normal_and_no_two_purposes_share_them() {
        let count = 20_000;
        let even: Vec<f64> = (0..count).map(|phone| Draws::new(1, Purpose::Speed, phone).even(0)).collect();
        let mean = even.iter().sum::<f64>() / f64::from(count);
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        let normal: Vec<f64> = (0..count).map(|at| Draws::new(1, Purpose::Down, 7).normal(at)).collect();
        let mean = normal.iter().sum::<f64>() / f64::from(count);
        let square = normal.iter().map(|value| value * value).sum::<f64>() / f64::from(count);
        assert!(mean.abs() < 0.03 && (square - 1.0).abs() < 0.05, "{mean}, {square}");
        let [a, b] = [Purpose::Session, Purpose::Gap].map(|purpose| Draws::new(1, purpose, 3).even(0));
        assert!(
            a != b
                && a == Draws::new(1, Purpose::Session, 3).even(0)
                && a != Draws::new(2, Purpose::Session, 3).even(0)
        );
    }
}
