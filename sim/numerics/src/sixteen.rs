//! Tensors of sixteen-bit values, in two planes of eight bits, so that products of them are products of eight bits.

use crate::meter::{Codes, Floats, Meter};

/// The largest code: that of the largest codes of both planes.
pub const LARGEST: i32 = 127 * 256 + 127;

/// A tensor of sixteen-bit values: a value is (256 · high + low) · step.
#[derive(Clone, Debug)]
pub struct Sixteen {
    /// The upper plane.
    pub high: Codes,
    /// The lower plane.
    pub low: Codes,
    /// What a code is multiplied by.
    pub step: f32,
}

impl Sixteen {
    /// Those codes of `len` elements, none beyond [`LARGEST`].
    #[must_use]
    pub fn new(codes: impl Iterator<Item = i32>, len: usize, step: f32, meter: &Meter) -> Self {
        let (mut high, mut low) = (meter.codes(len), meter.codes(len));
        for ((high, low), code) in high.iter_mut().zip(low.iter_mut()).zip(codes) {
            let code = code.clamp(-LARGEST, LARGEST);
            // Rounded, so that what is left lies between -128 and 127.
            *high = ((code + 128) >> 8) as i8;
            *low = (code - (i32::from(*high) << 8)) as i8;
        }
        Self { high, low, step }
    }

    /// Zeros.
    #[must_use]
    pub fn zeros(len: usize, meter: &Meter) -> Self {
        Self::new(std::iter::repeat_n(0, len), len, 0.0, meter)
    }

    /// The values.
    #[must_use]
    pub fn values(&self, meter: &Meter) -> Floats {
        let mut values = meter.floats(self.high.len());
        for ((value, &high), &low) in values.iter_mut().zip(&*self.high).zip(&*self.low) {
            *value = ((i32::from(high) << 8) + i32::from(low)) as f32 * self.step;
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_planes_together_are_the_code() {
        let codes = [0, 1, -1, 127, 128, -128, -129, 255, 256, -32_639, 32_639, 40_000];
        let held = Sixteen::new(codes.into_iter(), codes.len(), 0.5, &Meter::new());
        let values = held.values(&Meter::new());
        let expected = codes.map(|code: i32| code.clamp(-LARGEST, LARGEST) as f32 * 0.5);
        assert_eq!(&*values, expected);
        // 128 is 256 less 128; 40,000 is out of range.
        assert_eq!((held.high[4], held.low[4], held.high[11], held.low[11]), (1, -128, 127, 127));
    }
}
