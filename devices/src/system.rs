//! Operating systems: how a kernel manages a phone's memory, the cost of that, and which processes its killer kills.
//!
//! A system is a property of the run, like a software stack. This module has numbers, and the formulas that turn a
//! device's memory into reserves and sizes; it does not simulate pages.

mod memory;
mod schema;

use crate::calibration::{BuiltIn, Constant, Contradiction, SYSTEMS, against};
use crate::storage::Stream;
use crate::{Bytes, Calibrated, Direction, Factor, Flash, FlashQueue, Fraction, Nanos, ScalarSpeed, Schema};

pub use memory::{Killer, PageCosts, Resident, Watermarks};
pub use schema::*;

/// An operating system: the constants of its calibration, and the file that they come from.
pub type System = Calibrated<SystemConstants>;

/// More memory than any phone has.
const MOST_RESIDENT: f64 = 64e9;
/// More apps than any phone has.
const MOST_APPS: f64 = 1000.0;
/// The highest swappiness that a kernel accepts.
const MOST_SWAPPINESS: f64 = 200.0;
/// Simulated generations: a young one, the one before, and some that may be reclaimed.
const GENERATIONS: std::ops::RangeInclusive<f64> = 3.0..=8.0;
/// The largest power of two that a kernel reads ahead from swap.
const MOST_PAGE_CLUSTER: f64 = 31.0;

impl Schema for SystemConstants {
    const WHAT: &'static str = "operating system";
    const BUILT_IN: &'static [BuiltIn] = SYSTEMS;

    fn line(&self) -> String {
        self.name.clone()
    }

    fn contradiction(&self) -> Option<Contradiction> {
        let reclaim = &self.reclaim;
        let (lowest, highest) = (reclaim.min_free_lowest.value, reclaim.min_free_highest.value);
        if lowest > highest {
            return against("reclaim", format!("min_free_lowest, {lowest}, is above min_free_highest, {highest}"));
        }
        if reclaim.swappiness.value.0 > MOST_SWAPPINESS {
            return against("reclaim", format!("swappiness is at most {MOST_SWAPPINESS}"));
        }
        if reclaim.page_cluster.value.0 > MOST_PAGE_CLUSTER {
            return against("reclaim", format!("page_cluster is at most {MOST_PAGE_CLUSTER}"));
        }
        let generations = reclaim.generations.as_ref().map_or(0.0, |most| most.value.0);
        if reclaim.lists == PageLists::Generations && !GENERATIONS.contains(&generations) {
            return against("reclaim", "lists of generations need `generations`, 3 to 8");
        }
        let resident = &self.resident;
        let ResidentConstants { kernel, anonymous, file, cache, cached, most, .. } = resident;
        let parts =
            [("kernel", kernel), ("anonymous", anonymous), ("file", file), ("cache", cache), ("cached", cached)];
        let is_above = |(_, part): &(_, &Constant<Bytes>)| part.value.as_f64() > MOST_RESIDENT;
        if let Some((name, part)) = parts.into_iter().chain([("most", most)]).find(is_above) {
            return against("resident", format!("{name}, {}, is more than a phone has", part.value));
        }
        if resident.cached_apps.value.0 > MOST_APPS {
            return against("resident", format!("cached_apps is at most {MOST_APPS}"));
        }
        let killer = &self.killer;
        for (name, span) in [
            ("psi_window", &killer.psi_window),
            ("poll_short", &killer.poll_short),
            ("poll_long", &killer.poll_long),
            ("thrashing_reset", &killer.thrashing_reset),
        ] {
            if span.value.0 == 0 {
                return against("killer", format!("{name} is zero: it would never end"));
            }
        }
        if self.zram.as_ref().is_some_and(|zram| zram.size.is_none() && zram.share.is_none()) {
            return against("zram", "needs a `size` or a `share` of memory");
        }
        if self.zram.as_ref().is_some_and(|zram| zram.algorithm == Compressor::Zstd) && self.zstd.is_none() {
            return against("zram", "the algorithm zstd needs the table [zstd]");
        }
        let zram = self.zram.iter().map(|zram| ("zram", zram.mix()));
        let trainer = self.trainer.mix();
        let apps = self.zram.iter().zip(&self.zstd).map(|(zram, zstd)| ("zstd", zstd.apps(zram.mix())));
        let of_trainer = self.zstd.iter().map(|zstd| ("zstd", zstd.trainer(trainer)));
        let mut mixes = zram.chain([("trainer", trainer)]).chain(apps).chain(of_trainer);
        let (section, wrong) = mixes.find_map(|(section, mix)| Some((section, mix.contradiction()?)))?;
        against(section, wrong)
    }
}

impl System {
    /// The cache writes of `apps` apps in the background.
    pub fn background(&self, apps: usize) -> Vec<Stream> {
        let background = &self.constants.background;
        let stream = Stream {
            direction: Direction::Write,
            rate: background.rate.value,
            command: background.command.value,
            // A float cast saturates.
            depth: background.depth.value.0 as u32,
        };
        vec![stream; apps]
    }

    /// The foreground app's reads other than faults, if any.
    pub fn foreground(&self) -> Option<Stream> {
        self.constants.foreground.as_ref().map(|app| Stream {
            direction: Direction::Read,
            rate: app.read_rate.value,
            command: app.read_command.value,
            // A float cast saturates.
            depth: app.read_depth.value.0 as u32,
        })
    }

    /// How long a thread on a core of this speed takes to read a file of `bytes` from its start to its end.
    ///
    /// The kernel reads ahead a few commands at a time, so driver and flash overlap only partly.
    pub fn read_file(&self, flash: &Flash, bytes: Bytes, speed: ScalarSpeed, apps: usize) -> Nanos {
        let (mut queue, start) = self.busy(flash, apps);
        let files = &self.constants.files;
        let windows = files.read_ahead_windows.value.0 as u32;
        queue.read(start, bytes, files.read_ahead.value, windows, self.driver(speed))
    }

    /// How long a thread on a core of this speed takes to write a file of `bytes` and to see it on the flash (`fsync`).
    ///
    /// All pages are copied into the page cache first; their write-back then fills the queue.
    pub fn write_file(&self, flash: &Flash, bytes: Bytes, speed: ScalarSpeed, apps: usize) -> Nanos {
        let (mut queue, start) = self.busy(flash, apps);
        let driver = self.driver(speed);
        let copied = driver.pages(bytes);
        let command = self.constants.files.write_back.value;
        let depth = u32::try_from(flash.slots()).unwrap_or(u32::MAX);
        copied + queue.write(start + copied, bytes, command, depth, driver.in_place())
    }

    /// A queue that apps in the background have used for a while, and its time.
    fn busy(&self, flash: &Flash, apps: usize) -> (FlashQueue, Nanos) {
        const A_WHILE: Nanos = Nanos(100_000_000);
        let mut queue = FlashQueue::new(flash.clone());
        queue.set_streams(Nanos::ZERO, &self.background(apps));
        (queue, A_WHILE)
    }
}

// Page sizes in ZRAM, which compresses each page separately (`drivers/block/zram/zram_drv.c` of Linux 5.10).

/// Size of a page in bytes.
const PAGE: f64 = 4096.0;
/// A page that compresses to more bytes than this is stored uncompressed, since zsmalloc would give it a whole page
/// anyway (`zs_huge_class_size`).
const MOST_COMPRESSED: f64 = 3257.0;

/// The compressibility of pages of anonymous memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageMix {
    /// The share of pages filled with one repeated word: ZRAM stores only the word, in its table.
    pub same_filled: Fraction,
    /// The share of pages that compress to more than 3,257 of 4,096 bytes and are stored whole.
    pub incompressible: Fraction,
    /// Compression ratio of the other pages: at least 4,096 / 3,257.
    pub ratio: Factor,
}

impl PageMix {
    /// Pages that all shrink by `ratio`.
    pub const fn all(ratio: Factor) -> Self {
        Self { same_filled: Fraction(0.0), incompressible: Fraction(0.0), ratio }
    }

    /// The share of pages stored compressed.
    fn others(&self) -> f64 {
        (1.0 - self.same_filled.0 - self.incompressible.0).max(0.0)
    }

    /// A contradiction in the mix, in words; `None` if there is none.
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

    /// DRAM that ZRAM uses for `pages` of them.
    pub fn kept(&self, pages: u64) -> Bytes {
        let others = if self.others() > 0.0 { self.others() / self.ratio.0 } else { 0.0 };
        // A float cast saturates.
        Bytes((pages as f64 * PAGE * (self.incompressible.0 + others)).ceil() as u64)
    }

    /// Mean compression ratio of all pages in ZRAM.
    pub fn mean_ratio(&self) -> Factor {
        Factor(PAGE / self.kept(1).as_f64().max(1.0))
    }

    /// Time to store a page in ZRAM. Same-filled pages are read to their end, which takes as long as clearing a page;
    /// the others go through the compressor, and those that it cannot shrink are copied afterwards.
    pub fn store(&self, costs: &PageCosts) -> Nanos {
        mean([(self.same_filled.0, costs.zero), (1.0 - self.same_filled.0, costs.compress)])
    }

    /// Time to load a page from ZRAM: filled, copied or decompressed.
    pub fn load(&self, costs: &PageCosts) -> Nanos {
        let kept = [(self.same_filled.0, costs.zero), (self.incompressible.0, costs.copy)];
        mean(kept.into_iter().chain([(self.others(), costs.decompress)]))
    }
}

/// The mean time, given the shares of pages and their times.
fn mean(parts: impl IntoIterator<Item = (f64, Nanos)>) -> Nanos {
    let time: f64 = parts.into_iter().map(|(share, time)| share * time.0 as f64).sum();
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
        copy: Nanos(1000),
        submit: Nanos(0),
        wake_up: Nanos(0),
    };

    #[test]
    fn pages_are_kept_by_what_each_is_like() {
        let mix = PageMix { same_filled: Fraction(0.25), incompressible: Fraction(0.25), ratio: Factor(2.0) };
        // Of 8 pages 2 take nothing, 2 take 4,096 and 4 take 2,048: 16,384, half of all.
        assert_eq!((mix.kept(8), mix.mean_ratio()), (Bytes(16_384), Factor(2.0)));
        // Stored: 2 × 200 + 6 × 8,000 = 48,400 for 8; loaded: 2 × 200 + 2 × 1,000 + 4 × 3,000 = 14,400 for 8.
        assert_eq!((mix.store(&COSTS), mix.load(&COSTS)), (Nanos(6050), Nanos(1800)));
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
        // Without other pages their ratio is ignored.
        assert!([mix(0.0, 1.0, 1.0), mix(0.2, 0.3, 1.26)].iter().all(|&wrong| !wrong));
    }
}
