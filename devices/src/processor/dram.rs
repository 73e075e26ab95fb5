//! DRAM: one bandwidth for all processors of a device.

use crate::device::{Device, DramConstants};
use crate::units::{Bytes, BytesPerSecond, Joules, JoulesPerByte, Nanos, Watts};

/// The DRAM of a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dram {
    /// Bandwidth that well-shaped traffic reaches; what a shared resource divides.
    pub bandwidth: BytesPerSecond,
    /// Energy of a byte moved.
    pub energy_per_byte: JoulesPerByte,
    /// Power while nothing moves.
    pub power_idle: Watts,
}

impl Device {
    /// The DRAM that all processors share.
    #[must_use]
    pub fn dram(&self) -> Dram {
        Dram::new(&self.constants.dram)
    }
}

impl Dram {
    fn new(constants: &DramConstants) -> Self {
        Self {
            bandwidth: constants.peak.value * constants.achievable.value.0,
            energy_per_byte: constants.energy.value,
            power_idle: constants.power_idle.value,
        }
    }

    /// Energy of moving `bytes` within `span`.
    #[must_use]
    pub fn energy(&self, span: Nanos, bytes: Bytes) -> Joules {
        self.power_idle * span + self.energy_per_byte * bytes
    }
}
