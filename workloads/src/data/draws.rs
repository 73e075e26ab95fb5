//! Random integers of one purpose, the same on every machine.

use haversack_devices::calibration::fnv1a;
use haversack_devices::stream::Stream;
use rand::Rng;

/// The random numbers of one item (a sample, an epoch) for one purpose.
///
/// What is drawn for one item changes nothing for another, so that items may be made in any order and by any number of
/// threads.
pub(crate) struct Draws(Stream);

impl Draws {
    pub(crate) fn new(seed: u64, purpose: &str, item: u64) -> Self {
        Self(Stream::of_item(seed, purpose, item))
    }

    /// The same for an item that has a name.
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
