//! Operating systems: how a kernel manages a phone's memory, what that costs, and whom its killer kills.
//!
//! A system is a property of the run, as a software stack is. What is here are numbers and the formulas that turn a
//! device's memory into reserves and sizes; pages move elsewhere.

mod memory;
mod pages;
mod schema;

pub use memory::{Killer, PageCosts, Resident, Watermarks};
pub use pages::PageMix;
pub use schema::*;

use crate::calibration::{BuiltIn, Calibrated, Contradiction, SYSTEMS, Schema, against};
use crate::storage::{Direction, Flash, FlashQueue, ScalarSpeed, Stream};
use crate::units::{Bytes, Nanos};

/// An operating system: what its calibration holds, and the file that this is from.
pub type System = Calibrated<SystemConstants>;

/// The highest swappiness that a kernel takes.
const MOST_SWAPPINESS: f64 = 200.0;
/// Generations that are simulated: what is young, what was, and some that may go.
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
    /// What `apps` apps in the background write to their caches.
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

    /// What the app in front reads beside its faults, if anything.
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
    /// The kernel reads ahead, a few commands at a time, so that driver and flash overlap only so far.
    pub fn read_file(&self, flash: &Flash, bytes: Bytes, speed: ScalarSpeed, apps: usize) -> Nanos {
        let (mut queue, start) = self.busy(flash, apps);
        let files = &self.constants.files;
        let windows = files.read_ahead_windows.value.0 as u32;
        queue.read(start, bytes, files.read_ahead.value, windows, flash.driver(speed))
    }

    /// How long a thread on a core of this speed takes to write a file of `bytes` and to see it on the flash (`fsync`).
    ///
    /// All pages are copied into the page cache first; their write-back then fills the queue.
    pub fn write_file(&self, flash: &Flash, bytes: Bytes, speed: ScalarSpeed, apps: usize) -> Nanos {
        let (mut queue, start) = self.busy(flash, apps);
        let driver = flash.driver(speed);
        let copied = driver.pages(bytes);
        let command = self.constants.files.write_back.value;
        let depth = u32::try_from(flash.slots()).unwrap_or(u32::MAX);
        copied + queue.write(start + copied, bytes, command, depth, driver.in_place())
    }

    /// A queue that apps in the background have used for a while, and the time.
    fn busy(&self, flash: &Flash, apps: usize) -> (FlashQueue, Nanos) {
        const A_WHILE: Nanos = Nanos(100_000_000);
        let mut queue = FlashQueue::new(flash.clone());
        queue.set_streams(Nanos::ZERO, &self.background(apps));
        (queue, A_WHILE)
    }
}
