//! Every tensor of a run: its form, its memory, and its remaining uses.
//!
//! All changes of a tensor's form happen here, by one of the methods below; no other module stores a form.
//!
//! ```text
//! Absent ─admit→ Whole ─store→ InFlight ─drop_whole→ Stored ─admit→ InFlight ─drop_stored→ Whole
//!                  └─evict→ Dropped ─admit→ Whole            any ─evict→ Absent
//! ```

mod forms;
mod values;

use std::ops::{Deref, DerefMut};

use haversack_devices::{Bytes, Nanos};
use haversack_memory::pages::{ArenaConfig, Effects, Fragmentation, PageArena, PageError};
use haversack_memory::{Allocation, AllocationError, Allocator};
use haversack_policies::{ArenaPlan, ComputingBudget, MemoryView, Register, Storage};
use haversack_workloads::{Extent, Phase, TensorId, TrainingGraph};

pub(crate) use self::values::{Carried, Values};
pub use self::values::{GivesBack, StoreError};

/// The tensors of a run.
pub(crate) struct Tensors<'g> {
    register: Register<'g>,
    /// The memory of each tensor.
    slots: Vec<Slot>,
    pub(crate) limits: Limits,
    allocator: Box<dyn Allocator>,
    /// Where quantised tensors lie; `None` if they are in the allocator's memory.
    arena: Option<PageArena>,
    /// Whether the policy quantises: saved tensors then count once the policy has decided how to hold them.
    quantises: bool,
    /// Saved tensors that stay whole until they are stored with fewer bits.
    pub(crate) to_pack: Vec<TensorId>,
    totals: Totals,
    /// Memory use when forward first began in this iteration.
    pub(crate) baseline: Bytes,
    /// Changes since the last call; `None` if they are not recorded.
    pub(crate) changes: Option<Vec<Change>>,
    /// The values of tensors; `None` if only their sizes are known.
    values: Option<Values<'g>>,
}

/// The memory of a tensor.
///
/// In a run that carries data, the tensor's values come and go with the blocks, see [`Values`].
#[derive(Clone, Copy, Default)]
struct Slot {
    /// The block of the tensor as it was made.
    whole: Option<Allocation>,
    stored: Option<Stored>,
    /// Whether the policy has decided to keep it whole.
    kept: bool,
    /// Whether this gradient of a parameter is given up in this iteration.
    given_up: bool,
}

/// A tensor that is not stored whole.
#[derive(Clone, Copy, Debug)]
struct Stored {
    storage: Storage,
    bytes: Bytes,
    /// Its block; `None` if it lies in the arena's pages, or takes no memory.
    block: Option<Allocation>,
}

/// Sums over all tensors.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    whole: Extent,
    saved_whole: Extent,
    kept: Extent,
    stored: Bytes,
    given_up: u64,
}

/// The limits of memory: of all of it, of saved tensors, and of the memory left in use after an operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of everything; `None` if memory is not bounded.
    pub(crate) memory: Option<Bytes>,
    /// Bytes of saved tensors.
    pub(crate) activations: Option<Bytes>,
    /// The share of the memory budget, less `state`, that may be in use after an operator; `None` for all of it.
    pub(crate) computing: Option<ComputingBudget>,
    /// Bytes of weights, buffers and the optimiser's state.
    pub(crate) state: Bytes,
    /// Whether `activations` was cut since the last check.
    pub(crate) cut: bool,
}

impl Limits {
    /// Bytes that may be left in use after an operator of `samples` samples; `None` if all may be.
    pub(crate) fn after_an_operator(&self, samples: u64) -> Option<Bytes> {
        let (computing, budget) = self.computing.zip(self.memory)?;
        Some(self.state + computing.of(budget.saturating_sub(self.state), samples))
    }
}

/// A change of a tensor's memory, for the code that manages its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Its whole form has this number of bytes now: zero if it left memory.
    Whole(TensorId, Bytes),
    /// The same of the form in which it is stored.
    Stored(TensorId, Bytes),
}

/// Why a tensor finds no place.
pub(crate) enum NoPlace {
    /// The budget is exceeded by this number of bytes.
    Short(Bytes),
    /// The arena refuses it.
    Refused(PageError),
    /// Its values cannot be stored, or not be restored.
    Lost(StoreError),
}

impl From<AllocationError> for NoPlace {
    fn from(error: AllocationError) -> Self {
        let AllocationError::OutOfMemory { wanted, available, .. } = error;
        Self::Short(wanted.saturating_sub(available))
    }
}

impl From<StoreError> for NoPlace {
    fn from(error: StoreError) -> Self {
        Self::Lost(error)
    }
}

impl<'g> Deref for Tensors<'g> {
    type Target = Register<'g>;

    fn deref(&self) -> &Register<'g> {
        &self.register
    }
}

impl DerefMut for Tensors<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.register
    }
}

impl<'g> Tensors<'g> {
    /// The tensors of `graph`, none of which is in memory yet.
    pub(crate) fn new(graph: &'g TrainingGraph, allocator: Box<dyn Allocator>, limits: Limits) -> Self {
        let mut tensors = Self {
            register: Register::new(graph, 1),
            slots: vec![Slot::default(); graph.tensors.len()],
            limits,
            allocator,
            arena: None,
            quantises: false,
            to_pack: Vec::new(),
            totals: Totals::default(),
            baseline: Bytes::ZERO,
            changes: None,
            values: None,
        };
        tensors.set_budget(limits.memory);
        tensors
    }

    /// The policy quantises: into an arena if it plans one, of at most `budget`.
    pub(crate) fn quantise(&mut self, arena: Option<ArenaPlan>, budget: Option<Bytes>) -> Result<(), PageError> {
        self.quantises = true;
        let open = |plan: ArenaPlan| {
            let config = ArenaConfig { page: plan.page, step: plan.step, budget: budget.unwrap_or(Bytes::MAX) };
            if self.values.is_some() { PageArena::with_data(config) } else { PageArena::new(config) }
        };
        self.arena = arena.map(open).transpose()?;
        self.bound_allocator();
        Ok(())
    }

    /// Tensors have values from now on; to be called before any is in memory.
    pub(crate) fn carry(&mut self, values: Values<'g>) {
        self.values = Some(values);
    }

    /// The values of tensors; `None` if only their sizes are known.
    pub(crate) fn values(&mut self) -> Option<&mut Values<'g>> {
        self.values.as_mut()
    }

    /// The same, as nodes read and write them.
    pub(crate) fn carried(&mut self) -> Option<Carried<'_, 'g>> {
        self.values.as_mut().map(|values| Carried::new(values, self.arena.as_ref()))
    }

    // Queries of policies and the rest of the executor.

    /// The number of bits a value with which a tensor is stored; 0 if it is not quantised.
    pub(crate) fn bits(&self, tensor: TensorId) -> u8 {
        let Some(Storage::Quantised(bits)) = self.storage(tensor) else { return 0 };
        bits
    }

    /// Bytes of the form in which a tensor is stored; `None` if it is not.
    pub(crate) fn stored_size(&self, tensor: TensorId) -> Option<Bytes> {
        self.slots[tensor as usize].stored.map(|stored| stored.bytes)
    }

    pub(crate) fn is_kept(&self, tensor: TensorId) -> bool {
        self.slots[tensor as usize].kept
    }

    /// Memory as a policy sees it at a time of a phase, while `wanted` more is to fit into `budget`.
    pub(crate) fn view(&self, wanted: Extent, budget: Bytes, now: Nanos, phase: Phase) -> MemoryView<'_> {
        MemoryView { needed: self.totals.whole + wanted, budget, now, ..self.register.view(phase) }
    }

    // Memory use and its limits.

    /// The budget for saved tensors, if it was cut since the last call.
    pub(crate) fn take_cut(&mut self) -> Option<Bytes> {
        self.limits.activations.filter(|_| std::mem::take(&mut self.limits.cut))
    }

    /// Bounds the total memory use.
    pub(crate) fn set_budget(&mut self, memory: Option<Bytes>) {
        self.limits.memory = memory;
        self.bound_allocator();
    }

    /// Limits the allocator to the part of the budget that the arena does not use.
    pub(crate) fn bound_allocator(&mut self) {
        let arena = self.reserved_by_arena();
        self.allocator.set_budget(self.limits.memory.map_or(Bytes::MAX, |budget| budget.saturating_sub(arena)));
    }

    /// Bytes allocated to tensors, the arena's pages included.
    pub(crate) fn allocated(&self) -> Bytes {
        self.allocator.allocated() + self.arena.as_ref().map_or(Bytes::ZERO, PageArena::used)
    }

    /// Bytes that are in memory for tensors, the arena's pages included.
    pub(crate) fn resident(&self) -> Bytes {
        self.allocator.resident() + self.arena.as_ref().map_or(Bytes::ZERO, PageArena::used)
    }

    /// Forward begins; records memory use if it is the first time in the iteration.
    pub(crate) fn note_baseline(&mut self) {
        if self.baseline == Bytes::ZERO {
            self.baseline = self.allocated();
        }
    }

    /// Bytes that count against a budget: those allocated, and all of the arena.
    pub(crate) fn footprint(&self) -> Bytes {
        self.allocator.allocated() + self.reserved_by_arena()
    }

    /// Bytes reserved from the system.
    pub(crate) fn reserved(&self) -> Bytes {
        self.allocator.reserved() + self.reserved_by_arena()
    }

    /// Bytes of saved tensors in their stored form.
    pub(crate) fn held_bytes(&self) -> Bytes {
        let whole = if self.quantises { self.totals.kept } else { self.totals.saved_whole };
        self.totals.stored + Bytes(whole.at(self.samples))
    }

    /// The excess over the budget of saved tensors if `tensor` is admitted whole.
    pub(crate) fn activation_shortfall(&self, tensor: TensorId) -> Bytes {
        match self.limits.activations {
            // A tensor to be quantised is whole only briefly; its stored form counts.
            Some(budget) if self.uses.is_saved(tensor) && !self.quantises => {
                (self.held_bytes() + self.size(tensor)).saturating_sub(budget)
            }
            _ => Bytes::ZERO,
        }
    }

    /// Gives back the steps of the arena that exceed a smaller `budget`.
    ///
    /// # Errors
    /// The bytes that have to be requantised or given up first.
    pub(crate) fn bound_arena(&mut self, budget: Bytes) -> Result<Effects, Bytes> {
        self.arena.as_mut().map_or(Ok(Effects::default()), |arena| arena.set_budget(budget).map_err(|over| over.bytes))
    }

    /// Bytes that the arena has reserved from the system.
    pub(crate) fn reserved_by_arena(&self) -> Bytes {
        self.arena.as_ref().map_or(Bytes::ZERO, PageArena::reserved)
    }

    /// How well the arena is filled; `None` if there is none.
    pub(crate) fn fragmentation(&self) -> Option<Fragmentation> {
        self.arena.as_ref().map(PageArena::fragmentation)
    }

    /// A temporary of a library, if the budget has room for it.
    pub(crate) fn borrow(&mut self, bytes: Bytes) -> Option<Allocation> {
        if bytes == Bytes::ZERO { None } else { self.allocator.allocate(bytes).ok() }
    }

    pub(crate) fn give_back(&mut self, temporary: Allocation) {
        self.allocator.free(temporary);
    }

    /// The changes since the last call, in order.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn note(&mut self, change: Change) {
        if let Some(changes) = &mut self.changes {
            changes.push(change);
        }
    }
}
