//! Pressure-stall information of a phone's memory.

use haversack_devices::units::Nanos;
use haversack_memory::phone::Psi;

/// Pressure-stall information (`/proc/pressure/memory`), summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Somebody stalled.
    pub some: Nanos,
    /// Somebody stalled, and nobody worked who did not.
    pub full: Nanos,
}

impl Pressure {
    /// What it has summed up to.
    pub(crate) fn of(psi: &Psi) -> Self {
        Self { some: psi.some.total, full: psi.full.total }
    }
}
