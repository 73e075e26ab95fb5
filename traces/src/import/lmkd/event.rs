//! The fields of the event `killinfo`, in their order (`event.logtags` of lmkd, AOSP).
//!
//! Newer versions have only ever added fields at the end, so that a shorter event is an older one's.

use crate::row::OomAdj;

/// What a field counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Memory: kB in the event, bytes in the row.
    Kilobytes,
    /// Anything else, which stays as it is.
    Plain,
    /// Part of the row of apps, no counter.
    None,
}

impl Unit {
    /// What a value is multiplied by, where it is a counter.
    pub(super) fn factor(self) -> Option<f64> {
        match self {
            Self::Kilobytes => Some(1024.0),
            Self::Plain => Some(1.0),
            Self::None => None,
        }
    }
}

/// A field.
pub(super) struct Field {
    /// Its name in the event.
    pub(super) name: &'static str,
    /// The counter that it becomes: `/proc/meminfo`'s name where it is one of its, else lmkd's.
    pub(super) counter: &'static str,
    pub(super) unit: Unit,
}

const fn field(name: &'static str, counter: &'static str, unit: Unit) -> Field {
    Field { name, counter, unit }
}

/// The fields.
pub(super) const FIELDS: [Field; 38] = [
    field("Pid", "", Unit::None),
    field("Uid", "", Unit::None),
    field("OomAdj", "", Unit::None),
    field("MinOomAdj", "lmkd/min_oom_adj", Unit::Plain),
    field("TaskSize", "lmkd/task_size", Unit::Kilobytes),
    field("reason", "lmkd/reason", Unit::Plain),
    field("MemFree", "MemFree", Unit::Kilobytes),
    field("Cached", "Cached", Unit::Kilobytes),
    field("SwapCached", "SwapCached", Unit::Kilobytes),
    field("Buffers", "Buffers", Unit::Kilobytes),
    field("Shmem", "Shmem", Unit::Kilobytes),
    field("Unevictable", "Unevictable", Unit::Kilobytes),
    field("SwapTotal", "SwapTotal", Unit::Kilobytes),
    field("SwapFree", "SwapFree", Unit::Kilobytes),
    field("ActiveAnon", "Active(anon)", Unit::Kilobytes),
    field("InactiveAnon", "Inactive(anon)", Unit::Kilobytes),
    field("ActiveFile", "Active(file)", Unit::Kilobytes),
    field("InactiveFile", "Inactive(file)", Unit::Kilobytes),
    field("SReclaimable", "SReclaimable", Unit::Kilobytes),
    field("SUnreclaim", "SUnreclaim", Unit::Kilobytes),
    field("KernelStack", "KernelStack", Unit::Kilobytes),
    field("PageTables", "PageTables", Unit::Kilobytes),
    field("IonHeap", "ION_heap", Unit::Kilobytes),
    field("IonHeapPool", "ION_heap_pool", Unit::Kilobytes),
    field("CmaFree", "CmaFree", Unit::Kilobytes),
    field("MsSinceEvent", "lmkd/ms_since_event", Unit::Plain),
    field("MsSincePrevWakeup", "lmkd/ms_since_prev_wakeup", Unit::Plain),
    field("WakeupsSinceEvent", "lmkd/wakeups_since_event", Unit::Plain),
    field("SkippedWakeups", "lmkd/skipped_wakeups", Unit::Plain),
    field("TaskSwapSize", "lmkd/task_swap_size", Unit::Kilobytes),
    field("GPU", "lmkd/gpu", Unit::Kilobytes),
    field("Thrashing", "lmkd/thrashing", Unit::Plain),
    field("MaxThrashing", "lmkd/max_thrashing", Unit::Plain),
    field("PsiMemSome", "lmkd/psi_mem_some", Unit::Plain),
    field("PsiMemFull", "lmkd/psi_mem_full", Unit::Plain),
    field("PsiIoSome", "lmkd/psi_io_some", Unit::Plain),
    field("PsiIoFull", "lmkd/psi_io_full", Unit::Plain),
    field("PsiCpuSome", "lmkd/psi_cpu_some", Unit::Plain),
];

/// The least number of fields that an event needs to be one: up to `MemFree`.
const LEAST: usize = 7;

/// The process and its value.
pub(super) fn head(values: &[&str]) -> Result<(u32, OomAdj), (&'static str, &'static str)> {
    if values.len() < LEAST {
        return Err(("killinfo", "at least Pid, Uid, OomAdj, MinOomAdj, TaskSize, reason, MemFree"));
    }
    let number = |place: usize| values.get(place).and_then(|value| value.parse::<i64>().ok());
    let pid = number(0).and_then(|pid| u32::try_from(pid).ok()).ok_or(("Pid", "the number of a process"))?;
    let adj = number(2).and_then(OomAdj::new).ok_or(("OomAdj", "a whole number from -1000 to 1000"))?;
    Ok((pid, adj))
}
