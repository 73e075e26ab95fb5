//! What tasks have waited for memory in a span of which only the kernel's counters are known.
//!
//! A phone that is simulated page by page knows who waits when. Of a recording only `/proc/vmstat` is left: the same costs for
//! each page, added up, are held against its `/proc/pressure/memory`.

use haversack_devices::{Factor, Nanos};

use super::{CLUSTER, Costs, Counters, PageMix};

/// Clusters that one stalled allocation takes at most: reclaim goes on until it has its pages, or free memory is enough.
const CLUSTERS: u64 = 4;

/// What a page costs whom.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// On the core of a task that waits, and on kswapd's.
    pub costs: Costs,
    /// A page of a file, its share of one read.
    pub read: Nanos,
    /// What is swapped.
    pub pages: PageMix,
    /// What a task that reclaims for itself takes of what kswapd takes for the same pages.
    pub direct: Factor,
}

impl Waits {
    /// The waits of all tasks together, kswapd's work included (`balance_pgdat` stalls, too).
    ///
    /// What was evicted beside swapped pages is taken to have come back. Pages that were taken directly without an allocation
    /// that waited were taken ahead of need (`process_madvise`), and nobody waited for that.
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

    /// 1 µs to look at a page, 2 to unmap it, 10 to compress, 4 to decompress, 1 for a fault.
    fn waits() -> Waits {
        let us = |us: u64| Nanos(us * 1000);
        let costs =
            Costs { fault: us(1), scan: us(1), unmap: us(2), compress: us(10), decompress: us(4), ..Costs::default() };
        Waits { costs, read: us(20), pages: PageMix::all(Factor(2.0)), direct: Factor(3.0) }
    }

    #[test]
    fn waits_are_those_of_pages_and_of_who_reclaims() {
        let of = |counted: Counters| waits().total(&counted).0 / 1000;
        // 5 µs a page that comes back from ZRAM, 20 + 3 a file's that is read and had been dropped by kswapd.
        assert_eq!(of(Counters { pswpin: 100, ..Counters::default() }), 500);
        assert_eq!(of(Counters { workingset_refault_file: 100, ..Counters::default() }), 2300);
        // kswapd compresses 100 pages at 13 µs; a task that takes 40 of them itself, looking at 20 more, pays three times for its own.
        let swapped = Counters { pswpout: 100, ..Counters::default() };
        assert_eq!(of(swapped), 1300);
        let direct = Counters { pgsteal_direct: 40, pgscan_direct: 60, allocstall: 1, ..swapped };
        assert_eq!(of(direct), 60 * 13 + 3 * (40 * 13 + 20));
        // Nobody waits for what is taken ahead of need.
        assert_eq!(of(Counters { allocstall: 0, ..direct }), 60 * 13);
    }
}
