//! The limits on resident blocks and threads of a GPU, and the width of its warps.

use haversack_devices::{Bytes, Device, Gpu, GpuLimits};
use haversack_kernels::KernelError;

/// The largest block in CUDA and in the OpenCL of the modelled GPUs, in threads.
const MOST_THREADS: u32 = 1024;

/// The machine that runs a kernel: its limits on resident blocks and threads, and the width of its warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Machine {
    /// Limits on resident blocks and threads.
    pub limits: GpuLimits,
    /// Lanes of a warp: 32 on NVIDIA's GPUs, 64 or 128 on Adreno, 8 or 16 on Mali.
    pub lanes: u32,
    /// Whether the memory system adds floats natively, as CUDA's does; OpenCL 2 needs a compare-and-swap.
    pub adds_natively: bool,
}

impl Machine {
    /// The machine of a GPU with warps of 32 lanes that adds floats by compare-and-swap.
    pub fn of(gpu: &Gpu) -> Self {
        Self { limits: gpu.limits(), lanes: 32, adds_natively: false }
    }

    /// The machine of a device's GPU, if it has one, with the lanes and the float atomics from the device's file.
    pub fn of_device(device: &Device) -> Option<Self> {
        let constants = device.constants.gpu.as_ref()?;
        let machine = Self { adds_natively: constants.native_float_atomics, ..Self::of(&device.gpu()?) };
        let lanes = constants.lanes.as_ref().map_or(machine.lanes, |lanes| lanes.value.0 as u32);
        Some(machine.with_lanes(lanes))
    }

    /// The same machine with `lanes` lanes per warp.
    pub fn with_lanes(self, lanes: u32) -> Self {
        Self { lanes, ..self }
    }

    /// Resident blocks per unit, for blocks of `threads` threads and `shared` bytes of shared memory.
    ///
    /// # Errors
    /// No threads; more than a block may have; more shared memory than a unit has; a warp width other than
    /// a power of two up to 128.
    pub fn blocks_per_unit(&self, kernel: &'static str, threads: u32, shared: Bytes) -> Result<u32, KernelError> {
        let refuse = |reason: String| Err(KernelError::Launch { kernel, reason });
        if !self.lanes.is_power_of_two() || self.lanes > 128 {
            return refuse(format!("warps of {} lanes; expected a power of two up to 128", self.lanes));
        }
        if threads == 0 {
            return refuse("a block of no threads".to_owned());
        }
        let most = self.limits.threads.min(MOST_THREADS);
        if threads > most {
            return refuse(format!("a block of {threads} threads; this GPU runs at most {most}"));
        }
        if shared > self.limits.shared {
            return refuse(format!("a block with {shared} of shared memory; a unit has {}", self.limits.shared));
        }
        if self.limits.blocks == 0 {
            return refuse("no block is resident on a unit".to_owned());
        }
        Ok(self.limits.blocks_per_unit(threads, shared).max(1))
    }

    /// The number of `blocks` blocks that are resident on all units, at `blocks_per_unit` per unit.
    pub fn resident(&self, blocks_per_unit: u32, blocks: u64) -> u64 {
        (u64::from(self.limits.units) * u64::from(blocks_per_unit)).min(blocks)
    }
}
