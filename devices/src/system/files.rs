//! How long a file takes through the page cache, with apps in the background: FedHybrid, figure 4.

use crate::storage::{Direction, Flash, FlashQueue, ScalarSpeed, Stream};
use crate::system::System;
use crate::units::{Bytes, Nanos};

impl System {
    /// What `apps` apps in the background write to their caches.
    #[must_use]
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

    /// How long a thread on a core of this speed takes to read a file of `bytes` from its start to its end.
    ///
    /// The kernel reads ahead, a few commands at a time, so that driver and flash overlap only so far.
    #[must_use]
    pub fn read_file(&self, flash: &Flash, bytes: Bytes, speed: ScalarSpeed, apps: usize) -> Nanos {
        let (mut queue, start) = self.busy(flash, apps);
        let files = &self.constants.files;
        let windows = files.read_ahead_windows.value.0 as u32;
        queue.read(start, bytes, files.read_ahead.value, windows, flash.driver(speed))
    }

    /// How long a thread on a core of this speed takes to write a file of `bytes` and to see it on the flash (`fsync`).
    ///
    /// All pages are copied into the page cache first; their write-back then fills the queue.
    #[must_use]
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
