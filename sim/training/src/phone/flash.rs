//! The phone's only flash: a fault reads one page after another, reclaim writes runs of pages, the trainer writes and
//! reads whole tensors, and all share one queue with the I/O of apps.
//!
//! A tensor's transfer time is computed when its transfer begins, from the queue at that time; it delays later
//! transfers, which do not delay it. The app in front reads files at a steady rate in addition to its faults, without
//! an effect on the page cache.

use haversack_devices::{Bytes, Direction, Driver, FlashQueue, Nanos, Request};
use haversack_memory::phone::{Flash, Transfer};

/// A fault waits for reads of one page at a time.
const ONE_AT_A_TIME: u32 = 1;
/// The largest command that the block layer makes of neighbouring pages.
const COMMAND: Bytes = Bytes(64 << 10);

/// The flash of a phone in use.
#[derive(Clone, Debug)]
pub(super) struct PhoneFlash {
    pub(super) queue: FlashQueue,
    /// Its driver, on a core that trains, and on one that sleeps between faults.
    pub(super) driver: Driver,
    pub(super) faulting: Driver,
}

impl PhoneFlash {
    /// How long the flash takes from `now` on to write or read `bytes` of contiguous data.
    pub(super) fn transfer(&mut self, now: Nanos, direction: Direction, bytes: Bytes) -> Nanos {
        let request = Request { direction, bytes, command: COMMAND, depth: u32::MAX };
        let own = self.queue.submit(now, request, self.driver.in_place());
        let mut ahead = self.queue.clone();
        while let Some(done) = ahead.advance(Nanos::MAX) {
            if done.request == own {
                return done.time.saturating_sub(now);
            }
        }
        Nanos::ZERO
    }
}

impl Flash for PhoneFlash {
    fn read(&mut self, now: Nanos, bytes: Bytes, requests: u64) -> Transfer {
        let command = Bytes(bytes.0 / requests.max(1));
        let request = Request { direction: Direction::Read, bytes, command, depth: ONE_AT_A_TIME };
        Transfer(self.queue.submit_in_turn(now, request, self.faulting).number())
    }

    fn work(&self, bytes: Bytes, requests: u64) -> Nanos {
        self.faulting.time(Bytes(bytes.0 / requests.max(1))) * requests
    }

    fn write(&mut self, now: Nanos, bytes: Bytes) -> Transfer {
        let request = Request { direction: Direction::Write, bytes, command: COMMAND, depth: u32::MAX };
        Transfer(self.queue.submit(now, request, self.driver.in_place()).number())
    }

    fn advance(&mut self, until: Nanos) -> Option<(Transfer, Nanos)> {
        let done = self.queue.advance(until)?;
        Some((Transfer(done.request.number()), done.time))
    }
}

#[cfg(test)]
mod tests {
    use haversack_devices::load;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn flash() -> PhoneFlash {
        let device = load("galaxy-s22").unwrap();
        let (driver, faulting) = (Driver::default(), Driver::default());
        PhoneFlash { queue: FlashQueue::new(device.flash().unwrap()), driver, faulting }
    }

    /// When the page of a fault at `now` arrives.
    fn fault(flash: &mut PhoneFlash, now: Nanos) -> Nanos {
        let page = flash.read(now, Bytes(4096), 1);
        loop {
            match flash.advance(Nanos::MAX) {
                Some((other, at)) if other == page => return at - now,
                Some(_) => {}
                None => panic!("the page never came"),
            }
        }
    }

    #[test]
    fn a_tensor_and_a_fault_wait_for_each_other() {
        let alone = [flash().transfer(Nanos::ZERO, Direction::Read, Bytes(8 * MIB)), fault(&mut flash(), Nanos::ZERO)];
        // A tensor that shares the queue with 8 MiB of reclaim writes takes about as much longer as those take.
        let mut behind = flash();
        let writes = behind.transfer(Nanos::ZERO, Direction::Write, Bytes(8 * MIB));
        let read = behind.transfer(Nanos::ZERO, Direction::Read, Bytes(8 * MIB));
        assert!(read > writes && read > alone[0] * 2, "{read}: {writes} and {}", alone[0]);
        // A fault during the transfer waits, too, until earlier commands have been accepted.
        let waits = fault(&mut behind, Nanos::ZERO);
        assert!(waits > alone[1] * 10 && waits <= read, "{waits}: {} alone", alone[1]);
        // After everything has been read, nothing waits.
        let mut after = flash();
        let read = after.transfer(Nanos::ZERO, Direction::Read, Bytes(8 * MIB));
        assert_eq!(fault(&mut after, read), alone[1]);
    }
}
