//! What ZRAM makes of pages: it takes each by itself (`drivers/block/zram/zram_drv.c` of Linux 5.10).

use crate::system::PageCosts;
use crate::units::{Bytes, Factor, Fraction, Nanos};

/// A page of the kernel, in bytes.
const PAGE: f64 = 4096.0;
/// What compresses to more bytes than this is kept as it is: zsmalloc would give it a page anyway
/// (`zs_huge_class_size`).
const MOST_COMPRESSED: f64 = 3257.0;

/// What pages of anonymous memory are like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageMix {
    /// The share that one word fills: ZRAM notes the word, and keeps no byte.
    pub same_filled: Fraction,
    /// The share that shrinks to more than 3,257 of 4,096 bytes: kept whole.
    pub incompressible: Fraction,
    /// Bytes of the others for each byte that they compress to: at least 4,096 / 3,257.
    pub ratio: Factor,
}

impl PageMix {
    /// Pages that all shrink by `ratio`.
    pub const fn all(ratio: Factor) -> Self {
        Self { same_filled: Fraction(0.0), incompressible: Fraction(0.0), ratio }
    }

    /// The share that is kept compressed.
    fn others(&self) -> f64 {
        (1.0 - self.same_filled.0 - self.incompressible.0).max(0.0)
    }

    /// What is wrong with it, in words; `None` where nothing is.
    pub fn contradiction(&self) -> Option<&'static str> {
        let Self { same_filled, incompressible, ratio } = *self;
        let share = |share: Fraction| (0.0..=1.0).contains(&share.0);
        if !share(same_filled) || !share(incompressible) || same_filled.0 + incompressible.0 > 1.0 {
            return Some("same_filled and incompressible are more than all pages, or fewer than none");
        }
        let shrinks = ratio.0.is_finite() && ratio.0 >= PAGE / MOST_COMPRESSED;
        if self.others() > 0.0 && !shrinks {
            return Some("ratio is below 4,096 to 3,257: such pages count as incompressible");
        }
        None
    }

    /// DRAM that `pages` of them take in ZRAM.
    pub fn kept(&self, pages: u64) -> Bytes {
        let others = if self.others() > 0.0 { self.others() / self.ratio.0 } else { 0.0 };
        // A float cast saturates.
        Bytes((pages as f64 * PAGE * (self.incompressible.0 + others)).ceil() as u64)
    }

    /// Bytes for each byte that they take in ZRAM, all together.
    pub fn mean_ratio(&self) -> Factor {
        Factor(PAGE / self.kept(1).as_f64().max(1.0))
    }

    /// Putting one into ZRAM: same-filled ones are read to their end, as long as clearing one takes; the others go
    /// through the compressor, and those that it cannot shrink are copied after it.
    pub fn store(&self, costs: &PageCosts) -> Nanos {
        mean([(self.same_filled.0 + self.incompressible.0, costs.zero), (1.0 - self.same_filled.0, costs.compress)])
    }

    /// Bringing one back: filled, copied or decompressed.
    pub fn load(&self, costs: &PageCosts) -> Nanos {
        mean([(self.same_filled.0 + self.incompressible.0, costs.zero), (self.others(), costs.decompress)])
    }
}

/// Times of shares of pages, together.
fn mean(parts: [(f64, Nanos); 2]) -> Nanos {
    let time: f64 = parts.iter().map(|&(share, time)| share * time.0 as f64).sum();
    Nanos(time.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: PageCosts = PageCosts {
        fault: Nanos(0),
        zero: Nanos(200),
        walk: Nanos(0),
        scan: Nanos(0),
        unmap: Nanos(0),
        compress: Nanos(8000),
        decompress: Nanos(3000),
        submit: Nanos(0),
        wake_up: Nanos(0),
    };

    #[test]
    fn pages_are_kept_by_what_each_is_like() {
        let mix = PageMix { same_filled: Fraction(0.25), incompressible: Fraction(0.25), ratio: Factor(2.0) };
        // Of 8 pages 2 take nothing, 2 take 4,096 and 4 take 2,048: 16,384, half of all.
        assert_eq!((mix.kept(8), mix.mean_ratio()), (Bytes(16_384), Factor(2.0)));
        // Stored: 2 × 200 + 6 × 8,000 + 2 × 200 = 48,800 for 8; loaded: 4 × 200 + 4 × 3,000 = 12,800 for 8.
        assert_eq!((mix.store(&COSTS), mix.load(&COSTS)), (Nanos(6100), Nanos(1600)));
        let all = PageMix::all(Factor(2.0));
        assert_eq!((all.kept(3), all.store(&COSTS), all.load(&COSTS)), (Bytes(6144), Nanos(8000), Nanos(3000)));
    }

    #[test]
    fn what_no_page_is_like_is_said() {
        let mix = |same: f64, incompressible: f64, ratio: f64| {
            let [same_filled, incompressible] = [same, incompressible].map(Fraction);
            PageMix { same_filled, incompressible, ratio: Factor(ratio) }.contradiction().is_some()
        };
        assert!(
            [mix(0.6, 0.6, 2.0), mix(-0.1, 0.0, 2.0), mix(0.0, 0.0, 1.25), mix(0.0, 0.5, f64::NAN)]
                .iter()
                .all(|&wrong| wrong)
        );
        // Where there are no others their ratio does not matter.
        assert!([mix(0.0, 1.0, 1.0), mix(0.2, 0.3, 1.26)].iter().all(|&wrong| !wrong));
    }
}
