//! Memory reduced per second (equation 5): MPS = SM × FLT / (PC + RC).

use haversack_devices::units::{Bytes, Nanos};

use crate::restore::worth;

/// What giving a tensor up in one way saves and costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// SM: memory saved.
    pub saved: Bytes,
    /// FLT: how long it stays saved.
    pub lifetime: Nanos,
    /// PC: the time of giving the tensor up.
    pub purge: Nanos,
    /// RC: the time of getting it back.
    pub regain: Nanos,
}

impl Terms {
    /// RW: memory saved times how long, in byte-nanoseconds.
    pub fn reward(&self) -> f64 {
        self.saved.as_f64() * self.lifetime.0 as f64
    }

    /// MPS: bytes saved for as long as is spent on it (byte-seconds a second). Nothing where nothing is saved; without
    /// bound where it costs nothing.
    pub fn mps(&self) -> f64 {
        worth(self.reward(), self.purge + self.regain)
    }
}
