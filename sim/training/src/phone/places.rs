//! Where the trainer's tensors lie in its process: a region of the pool's pieces, and a slab of what is smaller.

use haversack_devices::units::Bytes;
use haversack_memory::phone::{Access, Backing, Part, PhoneError, PhoneMemory, ProcessId, RegionId};
use haversack_workloads::TensorId;

use super::Phone;
use super::pool::{Pool, PoolPlace};
use crate::tensors::Change;

/// The memory of the process that trains.
pub(super) struct Places {
    pub(super) process: ProcessId,
    pool: Pool,
    piece: u64,
    pieces: RegionId,
    slab: RegionId,
    /// Where tensors lie, whole and in another form.
    whole: Vec<PoolPlace>,
    stored: Vec<PoolPlace>,
}

impl Places {
    /// Of a new process that trains with `tensors` tensors, of which it has none yet.
    pub(super) fn new(memory: &mut PhoneMemory, phone: &Phone, tensors: usize) -> Result<Self, PhoneError> {
        let process = memory.spawn("trainer", phone.trainer.adj)?;
        let mut region = || memory.map(process, Bytes::ZERO, Backing::Anonymous(phone.trainer.pages));
        let (pieces, slab) = (region()?, region()?);
        let piece = phone.memory.extent.0;
        let [whole, stored] = [(); 2].map(|()| vec![PoolPlace::None; tensors]);
        Ok(Self { process, pool: Pool::new(piece), piece, pieces, slab, whole, stored })
    }

    /// The number of tensors.
    pub(super) fn tensors(&self) -> usize {
        self.whole.len()
    }

    /// Tensors came and went.
    pub(super) fn follow(&mut self, changes: Vec<Change>, memory: &mut PhoneMemory) -> Result<(), PhoneError> {
        for change in changes {
            let (place, bytes) = match change {
                Change::Whole(tensor, bytes) => (&mut self.whole[tensor as usize], bytes),
                Change::Stored(tensor, bytes) => (&mut self.stored[tensor as usize], bytes),
            };
            self.pool.give(std::mem::take(place));
            *place = self.pool.take(bytes.0);
        }
        self.resize(memory)
    }

    /// The process unmaps the memory that no tensor is in.
    pub(super) fn give_back(&mut self, memory: &mut PhoneMemory) -> Result<(), PhoneError> {
        self.pool.trim();
        self.resize(memory)
    }

    fn resize(&self, memory: &mut PhoneMemory) -> Result<(), PhoneError> {
        memory.resize(self.pieces, Bytes(self.pool.bytes()))?;
        memory.resize(self.slab, Bytes(self.pool.slab_size))
    }

    /// What touching a tensor touches.
    pub(super) fn parts(&self, tensor: TensorId, access: Access) -> impl Iterator<Item = Part> {
        let places = [&self.whole[tensor as usize], &self.stored[tensor as usize]];
        places.into_iter().flat_map(move |place| {
            let (region, ranges) = match place {
                PoolPlace::None => (self.slab, Vec::new()),
                PoolPlace::Slab(_) => (self.slab, vec![Bytes::ZERO..Bytes(self.pool.slab_size)]),
                PoolPlace::Runs(runs) => {
                    let bytes = |piece: u64| Bytes(piece * self.piece);
                    (self.pieces, runs.iter().map(|run| bytes(run.start)..bytes(run.end)).collect())
                }
            };
            ranges.into_iter().map(move |bytes| Part { region, bytes, access })
        })
    }
}
