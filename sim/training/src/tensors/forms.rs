//! Changing a tensor from one form to another.

use haversack_devices::Bytes;
use haversack_memory::Allocation;
use haversack_memory::pages::{Effects, PageError};
use haversack_policies::{Form, Storage};
use haversack_workloads::{Extent, Role, TensorId};

use super::{Change, NoPlace, StoreError, Stored, Tensors};

impl Tensors<'_> {
    /// Brings a tensor into memory whole: with its stored values, if it is stored.
    pub(crate) fn admit(&mut self, tensor: TensorId) -> Result<(), NoPlace> {
        let size = self.size(tensor);
        let is_map = matches!(self.graph.tensor(tensor).role, Role::Activation | Role::Gradient);
        let block = if is_map { self.allocator.allocate(size)? } else { self.allocator.allocate_apart(size)? };
        if let Some(values) = &mut self.values {
            values.admit(tensor, self.register.samples, self.arena.as_ref())?;
        }
        self.slots[tensor as usize].whole = Some(block);
        self.set_bytes(tensor, size);
        let bytes = self.graph.tensor(tensor).bytes;
        self.totals.whole += bytes;
        if self.uses.is_saved(tensor) {
            self.totals.saved_whole += bytes;
        }
        self.update_form(tensor);
        self.note(Change::Whole(tensor, size));
        self.offer(tensor);
        Ok(())
    }

    /// Takes a tensor out of memory, in every form; `dropped` if it will be computed again.
    pub(crate) fn evict(&mut self, tensor: TensorId, dropped: bool) {
        self.drop_whole(tensor);
        self.drop_stored(tensor);
        if dropped {
            self.reform(tensor, Form::Dropped);
        }
    }

    /// Takes the tensors of some roles out of memory.
    pub(crate) fn evict_all(&mut self, has_part: impl Fn(Role) -> bool) {
        for (id, tensor) in (0..).zip(&self.register.graph.tensors) {
            if has_part(tensor.role) && self.state(id).form != Form::Absent {
                self.evict(id, false);
            }
        }
    }

    /// Takes the whole form of a tensor out of memory.
    pub(crate) fn drop_whole(&mut self, tensor: TensorId) {
        if let Some(values) = &mut self.values {
            values.drop_whole(tensor);
        }
        let slot = &mut self.slots[tensor as usize];
        if let Some(block) = slot.whole.take() {
            let bytes = self.register.graph.tensor(tensor).bytes;
            if std::mem::take(&mut slot.kept) {
                subtract(&mut self.totals.kept, bytes);
            }
            self.allocator.free(block);
            subtract(&mut self.totals.whole, bytes);
            if self.uses.is_saved(tensor) {
                subtract(&mut self.totals.saved_whole, bytes);
            }
            self.note(Change::Whole(tensor, Bytes::ZERO));
        }
        self.update_form(tensor);
        self.withdraw(tensor);
    }

    /// Drops the stored form of a tensor.
    pub(crate) fn drop_stored(&mut self, tensor: TensorId) {
        let Some(stored) = self.slots[tensor as usize].stored.take() else { return };
        if let Some(values) = &mut self.values {
            values.drop_stored(tensor);
        }
        match (stored.block, &mut self.arena) {
            (Some(block), _) => self.allocator.free(block),
            // The arena has it: nothing else removes it.
            (None, Some(arena)) => drop(arena.evict(tensor)),
            (None, None) => {}
        }
        self.totals.stored -= stored.bytes;
        self.update_form(tensor);
        self.note(Change::Stored(tensor, Bytes::ZERO));
        self.offer(tensor);
    }

    /// Compresses a whole tensor immediately and returns its new size; `None` if only sizes are known.
    pub(crate) fn compress(&mut self, tensor: TensorId) -> Result<Option<Bytes>, StoreError> {
        self.values.as_mut().map(|values| values.compress(tensor)).transpose()
    }

    /// Stores a tensor in another form that takes `bytes` of memory, zero on flash.
    pub(crate) fn store(&mut self, tensor: TensorId, storage: Storage, bytes: Bytes) -> Result<(), NoPlace> {
        let block = if bytes == Bytes::ZERO { None } else { Some(self.allocator.allocate(bytes)?) };
        self.stored(tensor, Stored { storage, bytes, block });
        Ok(())
    }

    /// Stores a tensor with `bits` bits a value, in the arena if there is one.
    pub(crate) fn pack(&mut self, tensor: TensorId, bits: u8, bytes: Bytes) -> Result<Effects, NoPlace> {
        let (block, effects) = self.place(tensor, bytes)?;
        if let Some(values) = &mut self.values {
            let bytes = values.pack(tensor, bits, self.register.samples, self.arena.is_some())?;
            if let Some(arena) = &mut self.arena {
                arena.write(tensor, &bytes).map_err(NoPlace::Refused)?;
            }
        }
        if std::mem::take(&mut self.slots[tensor as usize].kept) {
            subtract(&mut self.totals.kept, self.register.graph.tensor(tensor).bytes);
        }
        self.stored(tensor, Stored { storage: Storage::Quantised(bits), bytes, block });
        Ok(effects)
    }

    /// The same for a tensor whose whole form is freed as its codes arrive.
    pub(crate) fn quantise_in_place(&mut self, tensor: TensorId, bits: u8, bytes: Bytes) -> Result<Effects, NoPlace> {
        let in_pages = self.arena.is_some();
        let values = self.values.as_mut();
        let codes = values.map(|values| values.pack(tensor, bits, self.register.samples, in_pages)).transpose()?;
        self.drop_whole(tensor);
        let (block, effects) = self.place(tensor, bytes)?;
        if let Some((arena, codes)) = self.arena.as_mut().zip(codes) {
            arena.write(tensor, &codes).map_err(NoPlace::Refused)?;
        }
        self.stored(tensor, Stored { storage: Storage::Quantised(bits), bytes, block });
        Ok(effects)
    }

    /// Room for a tensor's codes: in the arena, or else a block.
    fn place(&mut self, tensor: TensorId, bytes: Bytes) -> Result<(Option<Allocation>, Effects), NoPlace> {
        let Some(arena) = &mut self.arena else {
            return Ok((Some(self.allocator.allocate(bytes)?), Effects::default()));
        };
        // The arena grows in the memory budget left by the allocator, and keeps the memory it has.
        let left = self.limits.memory.unwrap_or(Bytes::MAX).saturating_sub(self.allocator.reserved());
        let own = arena.budget();
        let _nothing_is_given_back = arena.set_budget(own.min(left.max(arena.reserved())));
        let inserted = arena.insert(tensor, bytes);
        let _nor_here = arena.set_budget(own);
        let effects = inserted.map_err(|error| match error {
            PageError::Full { missing, .. } => NoPlace::Short(missing),
            other => NoPlace::Refused(other),
        })?;
        Ok((None, effects))
    }

    fn stored(&mut self, tensor: TensorId, stored: Stored) {
        self.slots[tensor as usize].stored = Some(stored);
        self.totals.stored += stored.bytes;
        self.update_form(tensor);
        self.note(Change::Stored(tensor, stored.bytes));
        self.withdraw(tensor);
    }

    /// The quantised form of a tensor gets smaller in place.
    pub(crate) fn requantise(&mut self, tensor: TensorId, bits: u8, bytes: Bytes) -> Result<(), StoreError> {
        let Some(stored) = &mut self.slots[tensor as usize].stored else { return Ok(()) };
        let values = self.values.as_mut();
        let narrow = values.map(|values| values.requantise(tensor, bits, self.arena.as_ref())).transpose()?;
        match (stored.block, &mut self.arena) {
            (Some(block), _) => self.allocator.shrink(block, bytes),
            (None, Some(arena)) => {
                arena.shrink(tensor, bytes)?;
                if let Some(narrow) = narrow.flatten() {
                    arena.write(tensor, &narrow)?;
                }
            }
            (None, None) => {}
        }
        self.totals.stored = self.totals.stored + bytes - stored.bytes;
        (stored.bytes, stored.storage) = (bytes, Storage::Quantised(bits));
        self.update_form(tensor);
        self.note(Change::Stored(tensor, bytes));
        Ok(())
    }

    /// A saved tensor stays whole, as the policy wants it.
    pub(crate) fn keep(&mut self, tensor: TensorId) {
        if !std::mem::replace(&mut self.slots[tensor as usize].kept, true) {
            self.totals.kept += self.graph.tensor(tensor).bytes;
        }
    }

    /// The next tensor that is to be packed after all, and is neither in use nor gone.
    pub(crate) fn next_to_pack(&mut self) -> Option<TensorId> {
        while let Some(tensor) = self.to_pack.pop() {
            if self.is_kept(tensor) && !self.is_locked(tensor) {
                return Some(tensor);
            }
        }
        None
    }

    /// A gradient of a parameter is given up in this iteration.
    pub(crate) fn give_up(&mut self, gradient: TensorId) {
        if !std::mem::replace(&mut self.slots[gradient as usize].given_up, true) {
            self.totals.given_up += 1;
        }
        self.evict(gradient, false);
    }

    pub(crate) fn is_given_up(&self, gradient: TensorId) -> bool {
        self.slots[gradient as usize].given_up
    }

    /// The number of gradients that are given up.
    pub(crate) const fn given_up(&self) -> u64 {
        self.totals.given_up
    }

    /// Every gradient is wanted again.
    pub(crate) fn want_all_gradients(&mut self) {
        self.totals.given_up = 0;
        self.slots.iter_mut().for_each(|slot| slot.given_up = false);
    }

    /// Unlocks all tensors; none is to be packed after all.
    pub(crate) fn release_all(&mut self) {
        self.to_pack.clear();
        self.unlock_all();
    }

    /// Updates the tensor's form after its memory has changed.
    fn update_form(&mut self, tensor: TensorId) {
        let slot = &self.slots[tensor as usize];
        let form = Form::of(slot.whole.is_some(), slot.stored.map(|stored| stored.storage));
        self.reform(tensor, form);
    }

    /// Continues with `samples` samples: the columns of all others are dropped from everything in memory.
    pub(crate) fn set_samples(&mut self, samples: u64) {
        self.samples = samples;
        for tensor in 0..self.slots.len() as TensorId {
            let id = tensor as usize;
            if let Some(block) = self.slots[id].whole.filter(|_| self.graph.tensors[id].bytes.per_sample > 0) {
                let size = self.size(tensor);
                self.allocator.shrink(block, size);
                if let Some(values) = &mut self.values {
                    values.shrink(tensor, samples);
                }
                self.set_bytes(tensor, size);
                self.note(Change::Whole(tensor, size));
            }
        }
    }
}

fn subtract(total: &mut Extent, part: Extent) {
    total.fixed = total.fixed.saturating_sub(part.fixed);
    total.per_sample = total.per_sample.saturating_sub(part.per_sample);
}
