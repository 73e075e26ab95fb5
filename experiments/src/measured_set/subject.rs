//! What a row is of: a run, transfers of storage, or a window of a recording.

use haversack_devices::{Bytes, Direction};
use haversack_memory::phone::Counters;

use super::Cells;
use crate::{CommandError, Scenario};

/// What was measured.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    /// A run; with the batches that were tried, where the largest of them is asked for.
    Training {
        /// What runs.
        scenario: Box<Scenario>,
        /// In the order of the file.
        batches: Vec<u64>,
    },
    /// Transfers of a storage.
    Storage(Transfers),
    /// Counts of a window.
    Stall(Window),
}

/// Where transfers go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A file in flash.
    Flash,
    /// Compressed memory.
    Zram,
}

/// What compressed memory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    /// Pages of apps.
    Apps,
    /// Pages that stay as they are.
    Incompressible,
}

/// Threads that each have a number of transfers under way.
#[derive(Clone, Debug)]
pub(crate) struct Transfers {
    pub(crate) device: String,
    pub(crate) target: Target,
    pub(crate) direction: Direction,
    pub(crate) block: Bytes,
    pub(crate) threads: u64,
    pub(crate) depth: u64,
    pub(crate) data: Data,
    /// Whether the write cache is full before.
    pub(crate) behind_cache: bool,
}

impl Transfers {
    pub(super) const COLUMNS: [&str; 8] =
        ["device", "target", "operation", "block_kib", "threads", "depth", "data", "state"];
    pub(super) const FIGURES: [&str; 3] = ["bandwidth_bytes_per_s", "latency_mean_s", "completion_p99_s"];

    pub(super) fn read(cells: &Cells<'_>) -> Result<Self, CommandError> {
        let states = [("", false), ("cache", false), ("behind the cache", true)];
        let data = [("", Data::Apps), ("app-pages", Data::Apps), ("incompressible", Data::Incompressible)];
        Ok(Self {
            device: cells.get("device").to_owned(),
            target: cells.word("target", &[("ufs", Target::Flash), ("zram", Target::Zram)])?,
            direction: cells.word("operation", &[("read", Direction::Read), ("write", Direction::Write)])?,
            block: Bytes(cells.count("block_kib")? << 10),
            threads: cells.count("threads")?,
            depth: cells.count("depth")?,
            data: cells.word("data", &data)?,
            behind_cache: cells.word("state", &states)?,
        })
    }
}

/// What the kernel counted in a window, in pages of 4 KiB.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// The device that stands in.
    pub(crate) device: String,
    /// Seconds.
    pub(crate) duration: f64,
    pub(crate) counted: Counters,
}

impl Window {
    pub(super) const COLUMNS: [&str; 7] = [
        "duration_s",
        "swap_ins_pages",
        "other_refaults_pages",
        "swap_outs_pages",
        "direct_scans_pages",
        "direct_steals_pages",
        "allocation_stalls",
    ];
    pub(super) const FIGURES: [&str; 2] = ["some_s", "full_s"];

    pub(super) fn read(cells: &Cells<'_>, device: &str) -> Result<Self, CommandError> {
        let mut numbers = [0.0; Self::COLUMNS.len()];
        for (number, column) in numbers.iter_mut().zip(Self::COLUMNS) {
            *number = cells.number(column)?;
        }
        let [duration, rest @ ..] = numbers;
        // A float cast saturates: the kernel's shadow entries are not exact, and a difference may be negative.
        let [pswpin, workingset_refault_file, pswpout, pgscan_direct, pgsteal_direct, allocstall] =
            rest.map(|number| number as u64);
        let counted = Counters {
            pswpin,
            pswpout,
            workingset_refault_file,
            pgscan_direct,
            pgsteal_direct,
            allocstall,
            ..Counters::default()
        };
        Ok(Self { device: device.to_owned(), duration, counted })
    }
}
