//! Estimates how long tasks waited for memory in a time span of which only the kernel's counters are known.
//!
//! A simulation page by page knows which task waits when. A recording of a phone has only `/proc/vmstat`: this module
//! adds up the same costs per page, to be compared with the recording's `/proc/pressure/memory`.

use haversack_devices::{Factor, Nanos};

use super::{CLUSTER, Costs, Counters, PageMix};

/// The largest number of clusters per stalled allocation: reclaim continues until it has its pages, or
/// free memory is sufficient.
const CLUSTERS: u64 = 4;

/// The costs of pages for waiting tasks and for kswapd.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// Costs on the core of a waiting task, and on kswapd's.
    pub costs: Costs,
    /// Time per file page: its share of a read.
    pub read: Nanos,
    /// Compressibility of the swapped pages.
    pub pages: PageMix,
    /// The time of direct reclaim as a multiple of kswapd's for the same pages.
    pub direct: Factor,
}

impl Waits {
    /// The waits of all tasks together, kswapd's work included (`balance_pgdat` stalls, too).
    ///
    /// All evicted pages other than swapped ones are assumed to have returned. Pages that were taken directly, but
    /// without a stalled allocation, were reclaimed ahead of need (`process_madvise`), without any task waiting.
    pub fn total(&self, counted: &Counters) -> Nanos {
        let Costs { scan, unmap, fault, .. } = self.costs;
        let [scan, unmap] = [scan, unmap].map(Nanos::seconds);
        let [swapped, files] = [counted.pswpout, counted.workingset_refault_file].map(|pages| pages as f64);
        let evicted = swapped + files;
        let evict = scan + unmap + self.pages.store(&self.costs).seconds() * swapped / evicted.max(1.0);
        let (taken, scanned) = (counted.pgsteal_direct as f64, counted.pgscan_direct as f64);
        let own = taken.min((CLUSTERS * CLUSTER * counted.allocstall) as f64);
        let in_vain = (scanned - taken).max(0.0) * own / taken.max(1.0);
        let direct = (own * evict + in_vain * scan) * self.direct.0;
        let back = (fault + self.pages.load(&self.costs)).seconds() * counted.pswpin as f64;
        let read = self.read.seconds() * files;
        Nanos::from_seconds(back + read + direct + (evicted - taken).max(0.0) * evict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 µs to scan a page, 2 to unmap it, 10 to compress, 4 to decompress, 1 for a fault.
    fn waits() -> Waits {
        let us = |us: u64| Nanos(us * 1000);
        let costs =
            Costs { fault: us(1), scan: us(1), unmap: us(2), compress: us(10), decompress: us(4), ..Costs::default() };
        Waits { costs, read: us(20), pages: PageMix::all(Factor(2.0)), direct: Factor(3.0) }
    }

    #[test]
    fn waits_are_those_of_pages_and_of_who_reclaims() {
        let of = |counted: Counters| waits().total(&counted).0 / 1000;
        // 5 µs for a page that returns from ZRAM; 20 + 3 for a file page that is read after kswapd had dropped it.
        assert_eq!(of(Counters { pswpin: 100, ..Counters::default() }), 500);
        assert_eq!(of(Counters { workingset_refault_file: 100, ..Counters::default() }), 2300);
        // kswapd compresses 100 pages at 13 µs; a task that reclaims 40 of them itself, scanning 20 more, takes three
        // times as long for its own.
        let swapped = Counters { pswpout: 100, ..Counters::default() };
        assert_eq!(of(swapped), 1300);
        let direct = Counters { pgsteal_direct: 40, pgscan_direct: 60, allocstall: 1, ..swapped };
        assert_eq!(of(direct), 60 * 13 + 3 * (40 * 13 + 20));
        // Reclaim ahead of need makes no task wait.
        assert_eq!(of(Counters { allocstall: 0, ..direct }), 60 * 13);
    }
}
