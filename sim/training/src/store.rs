//! The tensors of a run: which are in memory, in which form and at what size, and who still reads them.

use haversack_devices::units::{Bytes, Nanos};
use haversack_memory::pages::{ArenaConfig, Effects, Fragmentation, PageArena, PageError};
use haversack_memory::{Allocation, AllocationError, Allocator, CachingAllocator, ExactAllocator};
use haversack_policies::quantised::ArenaPlan;
use haversack_policies::{Form, Storage, TensorSet, TensorState};
use haversack_workloads::{Extent, NodeId, Phase, Role, TensorId, TrainingGraph};

use crate::job::AllocatorKind;

/// What never changes during a run: who makes and who reads each tensor.
pub(crate) struct Uses {
    /// Nodes that read or write each tensor in the schedule, in order, one range of `nodes` a tensor.
    ranges: Vec<(u32, u32)>,
    nodes: Vec<NodeId>,
    /// Nodes that write each tensor, in order; more than one where it is written in place.
    pub(crate) writers: Vec<Vec<NodeId>>,
    /// The first writer of each tensor, for policies.
    pub(crate) producers: Vec<NodeId>,
    /// The last forward node that uses each tensor.
    pub(crate) last_forward: Vec<Option<NodeId>>,
    /// Whether forward makes the tensor and backward reads it.
    pub(crate) saved: Vec<bool>,
    /// Whether the tensor can be computed again.
    rematerialisable: Vec<bool>,
}

impl Uses {
    pub(crate) fn new(graph: &TrainingGraph) -> Self {
        let count = graph.tensors.len();
        let mut lists = vec![Vec::new(); count];
        let mut writers = vec![Vec::new(); count];
        let mut last_forward = vec![None; count];
        for (id, node) in (0..).zip(&graph.nodes) {
            for tensor in node.uses() {
                let list: &mut Vec<NodeId> = &mut lists[tensor as usize];
                if list.last() != Some(&id) {
                    list.push(id);
                }
                if node.phase == Phase::Forward {
                    last_forward[tensor as usize] = Some(id);
                }
            }
            for &tensor in &node.outputs {
                writers[tensor as usize].push(id);
            }
        }
        let mut nodes = Vec::new();
        let ranges = lists
            .into_iter()
            .map(|list| {
                let start = nodes.len() as u32;
                nodes.extend(list);
                (start, nodes.len() as u32)
            })
            .collect();
        let mut saved = vec![false; count];
        for tensor in graph.saved() {
            saved[tensor as usize] = true;
        }
        let rematerialisable = graph
            .tensors
            .iter()
            .zip(&writers)
            // A gradient is not: what it was computed from is gone by then.
            .map(|(tensor, writers)| tensor.role == Role::Activation && !writers.is_empty())
            .collect();
        let producers = writers.iter().map(|list: &Vec<NodeId>| list.first().copied().unwrap_or(NodeId::MAX)).collect();
        Self { ranges, nodes, writers, producers, last_forward, saved, rematerialisable }
    }
}

/// The tensors of a run.
pub(crate) struct Store<'g> {
    pub(crate) graph: &'g TrainingGraph,
    pub(crate) uses: Uses,
    pub(crate) states: Vec<TensorState>,
    /// Resident tensors that may be dropped.
    pub(crate) candidates: TensorSet,
    /// Tensors whose state or candidature has changed since the policy was last asked for memory.
    pub(crate) changed: TensorSet,
    /// The schedule's node that is under way, or the next where one has ended.
    pub(crate) at: NodeId,
    pub(crate) samples: u64,
    allocations: Vec<Option<Allocation>>,
    locks: Vec<u32>,
    /// Position of the next use of each tensor in its list.
    cursors: Vec<u32>,
    allocator: Box<dyn Allocator>,
    /// Quantised tensors, by where they lie.
    packed: Vec<Option<Packed>>,
    packed_bytes: Bytes,
    /// Whether the policy quantises; saved tensors are then counted once it has said how it holds them.
    pub(crate) quantises: bool,
    /// Saved tensors that it holds whole.
    kept: Vec<bool>,
    kept_whole: Extent,
    /// Where quantised tensors lie; nothing where the allocator holds them.
    arena: Option<PageArena>,
    /// Bytes of everything resident whole, by how they depend on the micro-batch.
    pub(crate) resident: Extent,
    saved_resident: Extent,
    /// What changed since it was last asked; nothing where nobody asks.
    changes: Option<Vec<Change>>,
}

/// A tensor that is held otherwise than whole.
#[derive(Clone, Copy, Debug)]
struct Packed {
    storage: Storage,
    bytes: Bytes,
    /// Its block; nothing where it lies in the arena's pages.
    allocation: Option<Allocation>,
}

/// What became of the memory of a tensor, for whoever manages its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Its whole form has that many bytes now: nought where it left memory.
    Whole(TensorId, Bytes),
    /// The same of the form that is not whole.
    Aside(TensorId, Bytes),
}

/// Why a quantised tensor finds no place.
pub(crate) enum NoPlace {
    /// The budget has no room: so much is missing.
    Short(Bytes),
    /// The arena refuses it.
    Refused(PageError),
}

impl<'g> Store<'g> {
    pub(crate) fn new(graph: &'g TrainingGraph, kind: AllocatorKind) -> Self {
        let count = graph.tensors.len();
        let allocator: Box<dyn Allocator> = match kind {
            AllocatorKind::Exact => Box::new(ExactAllocator::new(Bytes::MAX)),
            AllocatorKind::Caching => Box::new(CachingAllocator::new(Bytes::MAX)),
        };
        Self {
            graph,
            uses: Uses::new(graph),
            states: vec![TensorState { next_use: NodeId::MAX, ..TensorState::default() }; count],
            candidates: TensorSet::new(),
            changed: TensorSet::new(),
            at: 0,
            samples: 1,
            allocations: vec![None; count],
            locks: vec![0; count],
            cursors: vec![0; count],
            allocator,
            packed: vec![None; count],
            packed_bytes: Bytes::ZERO,
            quantises: false,
            kept: vec![false; count],
            kept_whole: Extent::ZERO,
            arena: None,
            resident: Extent::ZERO,
            saved_resident: Extent::ZERO,
            changes: None,
        }
    }

    /// Has every change of a tensor's memory noted from now on.
    pub(crate) fn note_changes(&mut self) {
        self.changes = Some(Vec::new());
    }

    /// What has changed since the last call, in order.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn note(&mut self, change: Change) {
        if let Some(changes) = &mut self.changes {
            changes.push(change);
        }
    }

    /// Bytes given out to tensors, the arena's pages included.
    pub(crate) fn allocated(&self) -> Bytes {
        self.allocator.allocated() + self.arena.as_ref().map_or(Bytes::ZERO, PageArena::used)
    }

    /// Bytes that count against a budget: those given out, and all of the arena.
    pub(crate) fn footprint(&self) -> Bytes {
        self.allocator.allocated() + self.reserved_by_arena()
    }

    /// Bytes of saved tensors in the form in which they are stored.
    pub(crate) fn held_bytes(&self) -> Bytes {
        let whole = if self.quantises { Bytes(self.kept_whole.at(self.samples)) } else { self.saved_bytes() };
        self.packed_bytes + whole
    }

    /// Bytes held from the system.
    pub(crate) fn reserved(&self) -> Bytes {
        self.allocator.reserved() + self.reserved_by_arena()
    }

    /// Bounds what the allocator may hold, beside the arena.
    pub(crate) fn set_budget(&mut self, budget: Option<Bytes>) {
        let arena = self.reserved_by_arena();
        self.allocator.set_budget(budget.map_or(Bytes::MAX, |budget| budget.saturating_sub(arena)));
    }

    /// Opens an arena for quantised tensors.
    pub(crate) fn open_arena(&mut self, plan: ArenaPlan, budget: Option<Bytes>) -> Result<(), PageError> {
        let config = ArenaConfig { page: plan.page, step: plan.step, budget: budget.unwrap_or(Bytes::MAX) };
        self.arena = Some(PageArena::new(config)?);
        Ok(())
    }

    /// Gives the steps of the arena back that a smaller `budget` leaves no room for; so much has to be requantised or
    /// given up first where it does not fit.
    pub(crate) fn bound_arena(&mut self, budget: Bytes) -> Result<Effects, Bytes> {
        self.arena.as_mut().map_or(Ok(Effects::default()), |arena| arena.set_budget(budget).map_err(|over| over.bytes))
    }

    /// Bytes of the tensors in the arena.
    pub(crate) fn stored_in_arena(&self) -> Bytes {
        self.arena.as_ref().map_or(Bytes::ZERO, PageArena::stored)
    }

    /// Bytes that the arena holds from the system.
    pub(crate) fn reserved_by_arena(&self) -> Bytes {
        self.arena.as_ref().map_or(Bytes::ZERO, PageArena::reserved)
    }

    /// How well the arena is filled.
    pub(crate) fn fragmentation(&self) -> Option<Fragmentation> {
        self.arena.as_ref().map(PageArena::fragmentation)
    }

    /// A temporary of a library, where the budget has room for it.
    pub(crate) fn borrow(&mut self, bytes: Bytes) -> Option<Allocation> {
        if bytes == Bytes::ZERO { None } else { self.allocator.allocate(bytes).ok() }
    }

    pub(crate) fn give_back(&mut self, allocation: Allocation) {
        self.allocator.free(allocation);
    }

    /// Bytes of saved tensors that are whole in memory.
    pub(crate) fn saved_bytes(&self) -> Bytes {
        Bytes(self.saved_resident.at(self.samples))
    }

    /// A saved tensor stays whole.
    pub(crate) fn keep(&mut self, tensor: TensorId) {
        if !std::mem::replace(&mut self.kept[tensor as usize], true) {
            self.kept_whole += self.graph.tensor(tensor).bytes;
        }
    }

    pub(crate) fn is_kept(&self, tensor: TensorId) -> bool {
        self.kept[tensor as usize]
    }

    /// Bytes of the quantised form of a tensor, where it has one.
    pub(crate) fn packed_size(&self, tensor: TensorId) -> Option<Bytes> {
        self.packed[tensor as usize].map(|packed| packed.bytes)
    }

    pub(crate) fn is_packed(&self, tensor: TensorId) -> bool {
        self.packed[tensor as usize].is_some()
    }

    /// Makes room for the quantised form of a tensor of `bits` bits a value.
    pub(crate) fn pack(&mut self, tensor: TensorId, bits: u8, bytes: Bytes) -> Result<Effects, NoPlace> {
        let (allocation, effects) = match &mut self.arena {
            Some(arena) => {
                let effects = arena.insert(tensor, bytes).map_err(|error| match error {
                    PageError::Full { missing, .. } => NoPlace::Short(missing),
                    other => NoPlace::Refused(other),
                })?;
                (None, effects)
            }
            None => {
                let allocation = self.allocator.allocate(bytes).map_err(
                    |AllocationError::OutOfMemory { wanted, available, .. }| {
                        NoPlace::Short(wanted.saturating_sub(available))
                    },
                )?;
                (Some(allocation), Effects::default())
            }
        };
        if std::mem::take(&mut self.kept[tensor as usize]) {
            subtract(&mut self.kept_whole, self.graph.tensors[tensor as usize].bytes);
        }
        self.packed[tensor as usize] = Some(Packed { storage: Storage::Quantised(bits), bytes, allocation });
        self.packed_bytes += bytes;
        self.reform(tensor);
        self.note(Change::Aside(tensor, bytes));
        self.withdraw(tensor);
        Ok(effects)
    }

    /// Makes room for another form of a tensor that takes `bytes` of memory, nought on flash.
    pub(crate) fn set_aside(
        &mut self,
        tensor: TensorId,
        storage: Storage,
        bytes: Bytes,
    ) -> Result<(), AllocationError> {
        let allocation = if bytes == Bytes::ZERO { None } else { Some(self.allocator.allocate(bytes)?) };
        self.packed[tensor as usize] = Some(Packed { storage, bytes, allocation });
        self.packed_bytes += bytes;
        self.reform(tensor);
        self.note(Change::Aside(tensor, bytes));
        self.withdraw(tensor);
        Ok(())
    }

    /// How a tensor is stored otherwise than whole; `None` if it is not.
    pub(crate) fn storage(&self, tensor: TensorId) -> Option<Storage> {
        self.states[tensor as usize].form.storage()
    }

    /// The number of bits a value with which a tensor is stored; 0 if it is not quantised.
    pub(crate) fn bits(&self, tensor: TensorId) -> u8 {
        match self.storage(tensor) {
            Some(Storage::Quantised(bits)) => bits,
            _ => 0,
        }
    }

    /// The tensor's form after what it takes of memory has changed.
    fn reform(&mut self, tensor: TensorId) {
        let id = tensor as usize;
        let storage = self.packed[id].map(|packed| packed.storage);
        self.states[id].form = Form::of(self.allocations[id].is_some(), storage);
        self.changed.insert(tensor);
    }

    /// What it took to make the tensor, or to make it again.
    pub(crate) fn set_cost(&mut self, tensor: TensorId, cost: Nanos) {
        self.states[tensor as usize].cost = cost;
        self.changed.insert(tensor);
    }

    /// The tensor was used beside the schedule.
    pub(crate) fn note_use(&mut self, tensor: TensorId, now: Nanos) {
        self.states[tensor as usize].last_use = now;
        self.changed.insert(tensor);
    }

    /// The quantised form of a tensor gets smaller in place.
    pub(crate) fn requantise(&mut self, tensor: TensorId, bits: u8, bytes: Bytes) -> Result<(), PageError> {
        let Some(packed) = &mut self.packed[tensor as usize] else { return Ok(()) };
        match (packed.allocation, &mut self.arena) {
            (Some(allocation), _) => self.allocator.shrink(allocation, bytes),
            (None, Some(arena)) => arena.shrink(tensor, bytes)?,
            (None, None) => {}
        }
        self.packed_bytes = self.packed_bytes + bytes - packed.bytes;
        (packed.bytes, packed.storage) = (bytes, Storage::Quantised(bits));
        self.reform(tensor);
        self.note(Change::Aside(tensor, bytes));
        Ok(())
    }

    /// Gives up the quantised form of a tensor.
    pub(crate) fn unpack_for_good(&mut self, tensor: TensorId) {
        let Some(packed) = self.packed[tensor as usize].take() else { return };
        match (packed.allocation, &mut self.arena) {
            (Some(allocation), _) => self.allocator.free(allocation),
            // It is there: nothing else takes it out.
            (None, Some(arena)) => drop(arena.evict(tensor)),
            (None, None) => {}
        }
        self.packed_bytes -= packed.bytes;
        if self.states[tensor as usize].form != Form::Dropped {
            self.reform(tensor);
        }
        self.note(Change::Aside(tensor, Bytes::ZERO));
        self.offer(tensor);
    }

    pub(crate) fn is_resident(&self, tensor: TensorId) -> bool {
        self.states[tensor as usize].form.is_whole()
    }

    pub(crate) fn size(&self, tensor: TensorId) -> Bytes {
        Bytes(self.graph.tensor(tensor).bytes.at(self.samples))
    }

    /// Brings a tensor into memory, without contents.
    pub(crate) fn admit(&mut self, tensor: TensorId) -> Result<(), AllocationError> {
        let size = self.size(tensor);
        let allocation = self.allocator.allocate(size)?;
        let id = tensor as usize;
        self.allocations[id] = Some(allocation);
        self.states[id].bytes = size;
        self.reform(tensor);
        self.resident += self.graph.tensors[id].bytes;
        if self.uses.saved[id] {
            self.saved_resident += self.graph.tensors[id].bytes;
        }
        self.note(Change::Whole(tensor, size));
        self.offer(tensor);
        Ok(())
    }

    /// Takes a tensor out of memory, in every form; `dropped` if it will be computed again.
    pub(crate) fn evict(&mut self, tensor: TensorId, dropped: bool) {
        self.evict_whole(tensor, dropped);
        self.unpack_for_good(tensor);
    }

    /// Takes the whole form of a tensor out of memory.
    pub(crate) fn evict_whole(&mut self, tensor: TensorId, dropped: bool) {
        let id = tensor as usize;
        if let Some(allocation) = self.allocations[id].take() {
            self.allocator.free(allocation);
            let bytes = self.graph.tensors[id].bytes;
            subtract(&mut self.resident, bytes);
            if std::mem::take(&mut self.kept[id]) {
                subtract(&mut self.kept_whole, bytes);
            }
            if self.uses.saved[id] {
                subtract(&mut self.saved_resident, bytes);
            }
            self.note(Change::Whole(tensor, Bytes::ZERO));
        }
        self.reform(tensor);
        if dropped {
            self.states[id].form = Form::Dropped;
        }
        self.withdraw(tensor);
    }

    /// A tensor in use by an operator cannot be dropped.
    pub(crate) fn lock(&mut self, tensor: TensorId) {
        self.locks[tensor as usize] += 1;
        self.withdraw(tensor);
    }

    pub(crate) fn unlock(&mut self, tensor: TensorId) {
        let locks = &mut self.locks[tensor as usize];
        *locks = locks.saturating_sub(1);
        self.offer(tensor);
    }

    pub(crate) fn is_locked(&self, tensor: TensorId) -> bool {
        self.locks[tensor as usize] > 0
    }

    pub(crate) fn unlock_all(&mut self) {
        for tensor in 0..self.locks.len() as TensorId {
            self.locks[tensor as usize] = 0;
            self.offer(tensor);
        }
    }

    pub(crate) fn is_rematerialisable(&self, tensor: TensorId) -> bool {
        self.uses.rematerialisable[tensor as usize]
    }

    /// The schedule has come to `node`.
    pub(crate) fn come_to(&mut self, node: NodeId) {
        self.at = node;
    }

    /// Notes that the schedule's node `node` has used `tensor`.
    pub(crate) fn advance(&mut self, tensor: TensorId, node: NodeId, now: Nanos) {
        let id = tensor as usize;
        let (start, end) = self.uses.ranges[id];
        let mut at = start + self.cursors[id];
        while at < end && self.uses.nodes[at as usize] <= node {
            at += 1;
        }
        self.cursors[id] = at - start;
        self.changed.insert(tensor);
        self.states[id].last_use = now;
        self.states[id].next_use = if at < end { self.uses.nodes[at as usize] } else { NodeId::MAX };
    }

    /// Whether the schedule will not use the tensor again in this micro-batch.
    pub(crate) fn is_dead(&self, tensor: TensorId) -> bool {
        let id = tensor as usize;
        self.states[id].next_use == NodeId::MAX
            && matches!(self.graph.tensors[id].role, Role::Activation | Role::Gradient | Role::ParameterGradient)
    }

    /// Sets every tensor's next use to its first: a micro-batch begins.
    pub(crate) fn rewind(&mut self) {
        self.at = 0;
        for id in 0..self.states.len() {
            let (start, end) = self.uses.ranges[id];
            self.changed.insert(id as TensorId);
            self.cursors[id] = 0;
            self.states[id].next_use = if start < end { self.uses.nodes[start as usize] } else { NodeId::MAX };
            if self.states[id].form == Form::Dropped {
                self.states[id].form = Form::Absent;
            }
        }
    }

    /// Drops the columns of all samples beyond `samples` from everything in memory.
    pub(crate) fn shrink(&mut self, samples: u64) {
        self.samples = samples;
        for id in 0..self.states.len() {
            if self.graph.tensors[id].bytes.per_sample == 0 {
                continue;
            }
            if let Some(allocation) = self.allocations[id] {
                let size = self.size(id as TensorId);
                self.allocator.shrink(allocation, size);
                self.states[id].bytes = size;
                self.changed.insert(id as TensorId);
                self.note(Change::Whole(id as TensorId, size));
            }
        }
    }

    fn offer(&mut self, tensor: TensorId) {
        let id = tensor as usize;
        let offered = self.locks[id] == 0 && self.states[id].form == Form::Whole && self.uses.rematerialisable[id];
        if offered && self.candidates.insert(tensor) {
            self.changed.insert(tensor);
        }
    }

    fn withdraw(&mut self, tensor: TensorId) {
        if self.candidates.remove(tensor) {
            self.changed.insert(tensor);
        }
    }
}

fn subtract(total: &mut Extent, part: Extent) {
    total.fixed = total.fixed.saturating_sub(part.fixed);
    total.per_sample = total.per_sample.saturating_sub(part.per_sample);
}
