//! What tasks have waited for memory in a span of which only the kernel's counters are known.
//!
//! A phone that is simulated page by page knows who waits when. Of a recording only `/proc/vmstat` is left: the same costs for
//! each page, added up, are held against its `/proc/pressure/memory`.

use haversack_devices::units::{Factor, Nanos};

use super::reclaim::CLUSTER;
use super::{Costs, Counters, PageMix};

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
