//! Images shifted and mirrored differently in every epoch, so that a network cannot memorise them.
//!
//! Also random integers per purpose, the same on every machine.

use haversack_devices::calibration::fnv1a;
use haversack_devices::stream::Stream;
use rand::Rng;

use super::set::ImageForm;

/// How the images of an epoch are changed; sequences of tokens are left as they are.
///
/// Each image is shifted by up to `shift` pixels in each direction (the edge is repeated into the gap) and, with
/// `mirror`, mirrored left to right half of the time. The change of an image depends on the seed, the epoch and the
/// number of the image, not on the mini-batch that it is drawn into.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Augmentation {
    /// The largest shift, in pixels.
    pub shift: u8,
    /// Whether images may be mirrored; not if left and right distinguish classes.
    pub mirror: bool,
    /// The seed of the run.
    pub seed: u64,
    /// The number of the epoch.
    pub epoch: u64,
}

/// Where the pixels of one changed image come from.
pub(super) struct Change {
    down: i32,
    right: i32,
    mirrored: bool,
}

impl Augmentation {
    /// The change of image number `sample`.
    pub(super) fn of(&self, sample: usize) -> Change {
        // One epoch's purpose each, so that the sample can be the item.
        let mut draws = Draws::new(self.seed, &format!("augmentation of epoch {}", self.epoch), sample as u64);
        let shift = i32::from(self.shift);
        Change {
            down: draws.between(-shift, shift),
            right: draws.between(-shift, shift),
            mirrored: self.mirror && draws.chance(50),
        }
    }
}

impl Change {
    /// The place, within a plane of the image, of the pixel that is shown at (`row`, `column`).
    pub(super) fn source(&self, form: &ImageForm, row: usize, column: usize) -> usize {
        let column = if self.mirrored { form.width - 1 - column } else { column };
        inside(row, self.down, form.height) * form.width + inside(column, self.right, form.width)
    }
}

fn inside(place: usize, shift: i32, size: usize) -> usize {
    (place as i64 - i64::from(shift)).clamp(0, size as i64 - 1) as usize
}

/// The random numbers of one item (a sample, an epoch) for one purpose.
///
/// The draws for one item do not affect those for another, so that items may be made in any order and by any
/// number of threads.
pub(crate) struct Draws(Stream);

impl Draws {
    pub(crate) fn new(seed: u64, purpose: &str, item: u64) -> Self {
        Self(Stream::of_item(seed, purpose, item))
    }

    /// The same for a named item.
    pub(crate) fn of_name(seed: u64, purpose: &str, name: &str) -> Self {
        Self::new(seed, purpose, fnv1a(name.bytes()))
    }

    /// A number from 0 to below 1, one of 2²⁴.
    pub(crate) fn unit(&mut self) -> f32 {
        (self.0.next_u32() >> 8) as f32 / (1_u32 << 24) as f32
    }

    /// A number from the normal distribution of deviation 1: the sum of twelve even ones less six.
    ///
    /// Sums are the same on every machine, which logarithms are not; the tails end at 6.
    pub(crate) fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.unit()).sum::<f32>() - 6.0
    }

    /// An integer from 0 to `bound` − 1, by the upper half of a product (Lemire): for the small bounds here the
    /// bias is below 2⁻²⁰.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.0.next_u32()) * u64::from(bound)) >> 32) as u32
    }

    /// An integer from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: i32, high: i32) -> i32 {
        low + self.below((high - low + 1).unsigned_abs()).cast_signed()
    }

    /// True in `percent` of 100 draws.
    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// Puts `items` into a random order (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u32 + 1) as usize);
        }
    }
}
