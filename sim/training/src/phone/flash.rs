//! The phone's one flash, as its kernel uses it: a fault reads one page after another, reclaim writes runs of pages, and both
//! stand in one queue with what apps do.

use haversack_devices::storage::{Direction, Driver, FlashQueue, Request};
use haversack_devices::units::{Bytes, Nanos};
use haversack_memory::phone::{Flash, Transfer};

/// Reads of a page at a time: what a fault waits for.
const ONE_AT_A_TIME: u32 = 1;
/// The largest command that the block layer makes of neighbouring pages.
const WRITE_COMMAND: Bytes = Bytes(64 << 10);

/// The flash of a phone in use.
pub(super) struct PhoneFlash {
    pub(super) queue: FlashQueue,
    /// Its driver, on a core that trains.
    pub(super) driver: Driver,
}

impl PhoneFlash {
    fn submit(&mut self, now: Nanos, request: Request, driver: Driver) -> Transfer {
        Transfer(self.queue.submit(now, request, driver).number())
    }
}

impl Flash for PhoneFlash {
    fn read(&mut self, now: Nanos, bytes: Bytes, requests: u64) -> Transfer {
        let command = Bytes(bytes.0 / requests.max(1));
        let request = Request { direction: Direction::Read, bytes, command, depth: ONE_AT_A_TIME };
        self.submit(now, request, self.driver)
    }

    fn write(&mut self, now: Nanos, bytes: Bytes) -> Transfer {
        let request = Request { direction: Direction::Write, bytes, command: WRITE_COMMAND, depth: u32::MAX };
        self.submit(now, request, self.driver.in_place())
    }

    fn advance(&mut self, until: Nanos) -> Option<(Transfer, Nanos)> {
        let done = self.queue.advance(until)?;
        Some((Transfer(done.request.number()), done.time))
    }
}
