//! The values of tensors in a run that carries data.
//!
//! Values come and go with the blocks of [`Tensors`](super::Tensors): a whole tensor has its values here, any other its
//! stored bytes, in the arena's pages if there is an arena. Restored values are those that the store returns.

mod coding;

use std::collections::HashMap;

use haversack_devices::units::Bytes as Size;
use haversack_memory::pages::PageArena;
use haversack_numerics::{Bytes, Contents, Eight, Memory, Meter, Program, ProgramError, Seen, SeenIntegers, Signs};
use haversack_policies::{Quantised, Rounding, WHOLE};
use haversack_workloads::{Element, Role, TensorId, TrainingGraph};

use self::coding::{Coding, Parts, Result, mark};
pub use self::coding::{GivesBack, StoreError};

/// The values of tensors.
pub(crate) struct Values<'g> {
    graph: &'g TrainingGraph,
    program: &'g Program,
    coding: Coding<'g>,
    pub(crate) meter: Meter,
    /// Counts bytes on flash, which do not count as memory.
    on_flash: Meter,
    slots: Vec<Slot>,
    /// Whether each tensor is stored in eight bits: the policy's graph gives it a byte an element.
    in_eight_bits: Vec<bool>,
    /// The scale factor of each tensor that was last shifted to eight bits by one.
    factors: Vec<Option<u32>>,
    /// Whether the rescaling of each tensor does not run in this iteration, so that its product keeps its factors.
    keeps_factor: Vec<bool>,
    /// Gradients of weights that this micro-batch has written, as they were before; `None` for zeros.
    before_part: Vec<(TensorId, Option<Contents>)>,
    /// Whether the micro-batch is the first of its mini-batch.
    is_first_part: bool,
    /// Statistics of the whole mini-batch, by the tensors that a batch normalisation writes its own to.
    statistics: HashMap<TensorId, Contents>,
}

#[derive(Debug, Default)]
struct Slot {
    whole: Option<Contents>,
    stored: Option<Stored>,
    /// Whether this micro-batch has written it.
    written: bool,
}

/// The stored form of a tensor.
#[derive(Debug)]
enum Stored {
    /// In the arena's pages: with a number of bits a value, for a number of samples.
    Paged(Parts),
    /// The same in its own bytes.
    Packed(Parts, Bytes),
    /// The codec's output.
    Compressed(Bytes),
    /// On flash.
    Flash(Contents),
}

impl<'g> Values<'g> {
    pub(crate) fn new(
        graph: &'g TrainingGraph,
        program: &'g Program,
        quantised: Option<Quantised>,
        rounding: Rounding,
        meter: Meter,
    ) -> Result<Self> {
        let slots = (0..graph.tensors.len()).map(|_| Slot::default()).collect();
        let in_eight_bits = (0..).zip(&graph.tensors).map(|(id, tensor)| {
            let elements = program.elements(id, 1) as u64;
            !program.is_integer(id)
                && tensor.element != Element::Whole
                && elements > 0
                && tensor.bytes.at(1) == elements
        });
        let in_eight_bits = in_eight_bits.collect();
        Ok(Self {
            graph,
            program,
            coding: Coding::new(program, quantised, rounding, meter.clone())?,
            meter,
            on_flash: Meter::default(),
            slots,
            before_part: Vec::new(),
            is_first_part: true,
            statistics: HashMap::new(),
            in_eight_bits,
            factors: vec![None; graph.tensors.len()],
            keeps_factor: vec![false; graph.tensors.len()],
        })
    }

    /// A tensor comes into memory: with its stored contents, otherwise without values to read before it is written.
    pub(super) fn admit(&mut self, tensor: TensorId, samples: u64, arena: Option<&PageArena>) -> Result {
        let slot = &self.slots[tensor as usize];
        let contents = match &slot.stored {
            Some(_) => self.decode(tensor, arena)?,
            None if self.in_eight_bits[tensor as usize] => {
                Contents::Eight(Eight::zeros(self.program.elements(tensor, samples), &self.meter))
            }
            None if self.graph.tensor(tensor).role == Role::ParameterGradient => {
                Contents::Floats(self.meter.zeros(self.program.elements(tensor, samples)))
            }
            None => self.program.blank(tensor, samples, &self.meter),
        };
        self.slots[tensor as usize].whole = Some(contents);
        Ok(())
    }

    pub(super) fn drop_whole(&mut self, tensor: TensorId) {
        self.slots[tensor as usize].whole = None;
    }

    pub(super) fn drop_stored(&mut self, tensor: TensorId) {
        self.slots[tensor as usize].stored = None;
    }

    /// Continues with the first `samples` samples of a tensor.
    pub(super) fn shrink(&mut self, tensor: TensorId, samples: u64) {
        let len = self.program.elements(tensor, samples);
        if let Some(contents) = &mut self.slots[tensor as usize].whole {
            contents.truncate(len);
        }
    }

    /// Stores a tensor that is whole with `bits` bits a value; the bytes for the arena, if there is one.
    pub(super) fn pack(&mut self, tensor: TensorId, bits: u8, samples: u64, paged: bool) -> Result<Bytes> {
        let Some(whole) = &self.slots[tensor as usize].whole else { return Ok(self.meter.bytes(0)) };
        let form = Parts { tensor, bits, samples };
        let bytes = self.coding.encode(form, whole)?;
        if paged {
            self.slots[tensor as usize].stored = Some(Stored::Paged(form));
            return Ok(bytes);
        }
        self.slots[tensor as usize].stored = Some(Stored::Packed(form, bytes));
        Ok(self.meter.bytes(0))
    }

    /// Requantises a tensor to fewer bits; returns the new bytes for the arena, if there is one.
    pub(super) fn requantise(
        &mut self,
        tensor: TensorId,
        bits: u8,
        arena: Option<&PageArena>,
    ) -> Result<Option<Bytes>> {
        let (form, held) = match &self.slots[tensor as usize].stored {
            Some(Stored::Paged(form)) => (*form, self.paged(tensor, arena)?),
            Some(Stored::Packed(form, bytes)) => (*form, bytes.clone()),
            _ => return Ok(None),
        };
        let bytes = self.coding.requantise(form, &held, bits)?;
        let form = Parts { bits, ..form };
        let slot = &mut self.slots[tensor as usize].stored;
        if arena.is_some() {
            *slot = Some(Stored::Paged(form));
            return Ok(Some(bytes));
        }
        *slot = Some(Stored::Packed(form, bytes));
        Ok(None)
    }

    /// Compresses a tensor that is whole; returns the compressed size.
    pub(super) fn compress(&mut self, tensor: TensorId) -> Result<Size> {
        let bytes = match &self.slots[tensor as usize].whole {
            Some(Contents::Floats(values)) => self.coding.compress(tensor, values)?,
            Some(Contents::Integers(integers)) => self.coding.compress_integers(tensor, integers),
            _ => return Err(StoreError::NoValues),
        };
        let size = Size(bytes.len() as u64);
        self.slots[tensor as usize].stored = Some(Stored::Compressed(bytes));
        Ok(size)
    }

    /// Copies a whole tensor to flash.
    pub(crate) fn swap(&mut self, tensor: TensorId) {
        let slot = &mut self.slots[tensor as usize];
        slot.stored = slot.whole.as_ref().map(|whole| Stored::Flash(whole.copied(&self.on_flash)));
    }

    /// A micro-batch begins, the first of its mini-batch or a later one; rounding at random is drawn by `draw`.
    pub(crate) fn begin_part(&mut self, is_first: bool, draw: u64) {
        self.is_first_part = is_first;
        self.coding.draw = draw;
        self.before_part.clear();
        self.slots.iter_mut().for_each(|slot| slot.written = false);
    }

    /// The current micro-batch is lost: gradients of weights get their values from before it.
    pub(crate) fn undo_part(&mut self) {
        for (tensor, before) in self.before_part.drain(..) {
            let slot = &mut self.slots[tensor as usize];
            slot.written = false;
            match (before, &mut slot.whole) {
                (Some(before), whole) => *whole = Some(before),
                (None, Some(Contents::Floats(values))) => values.fill(0.0),
                (None, Some(Contents::Eight(held))) => *held = Eight::zeros(held.codes.len(), &self.meter),
                (None, _) => {}
            }
        }
    }

    /// The bytes of a tensor in the arena's pages.
    fn paged(&self, tensor: TensorId, arena: Option<&PageArena>) -> Result<Bytes> {
        let arena = arena.ok_or(StoreError::NoValues)?;
        let mut bytes = self.meter.bytes(arena.size(tensor).unwrap_or_default().0 as usize);
        arena.read(tensor, &mut bytes)?;
        Ok(bytes)
    }

    /// Decodes a tensor from its stored form.
    fn decode(&self, tensor: TensorId, arena: Option<&PageArena>) -> Result<Contents> {
        let (form, bytes) = match &self.slots[tensor as usize].stored {
            Some(Stored::Paged(form)) => (form, &self.paged(tensor, arena)?),
            Some(Stored::Packed(form, bytes)) => (form, bytes),
            Some(Stored::Compressed(bytes)) if self.program.is_integer(tensor) => {
                return Ok(Contents::Integers(self.coding.decompress_integers(tensor, bytes)));
            }
            Some(Stored::Compressed(bytes)) => {
                return Ok(Contents::Floats(self.coding.decompress(tensor, bytes)?));
            }
            Some(Stored::Flash(contents)) => return Ok(contents.copied(&self.meter)),
            None => return Err(StoreError::NoValues),
        };
        self.coding.decode(*form, bytes)
    }

    /// The signs of a stored tensor, for a gradient that passes where an output was positive; `None` if it is read
    /// whole.
    fn stored_signs(&self, tensor: TensorId, arena: Option<&PageArena>) -> Result<Option<Bytes>> {
        let (form, bytes) = match &self.slots[tensor as usize].stored {
            Some(Stored::Paged(form)) if form.bits != WHOLE => (form, &self.paged(tensor, arena)?),
            Some(Stored::Packed(form, bytes)) if form.bits != WHOLE => (form, bytes),
            _ => return Ok(None),
        };
        Ok(self.coding.signs(*form, bytes))
    }

    /// The same for a tensor in eight bits: a bit for each code, where values would be four bytes.
    fn signs_of(&self, tensor: TensorId, held: &Eight) -> Bytes {
        let mut bits = self.meter.bytes(held.codes.len().div_ceil(8));
        let values = held.codes.iter().map(|&code| f32::from(code) * held.step);
        mark(values, self.program.passes(tensor), &mut bits);
        bits
    }

    /// Saves the values of `tensors`, which are whole, computed over the whole mini-batch.
    pub(crate) fn keep_statistics(&mut self, tensors: &[TensorId]) {
        for &tensor in tensors {
            if let Some(contents) = self.slots[tensor as usize].whole.clone() {
                self.statistics.insert(tensor, contents);
            }
        }
    }

    /// Sets `tensors` to the values saved for the whole mini-batch.
    pub(crate) fn give_statistics(&mut self, tensors: &[TensorId]) {
        for &tensor in tensors {
            let kept = self.statistics.get(&tensor).cloned();
            if let (Some(whole), Some(kept)) = (&mut self.slots[tensor as usize].whole, kept) {
                *whole = kept;
            }
        }
    }

    /// An iteration begins in which the rescalings of tensors that `keeps` accepts do not run.
    pub(crate) fn keep_factors(&mut self, keeps: impl Fn(TensorId) -> bool) {
        (0..).zip(&mut self.keeps_factor).for_each(|(tensor, kept)| *kept = keeps(tensor));
    }

    /// The scale factors of tensors, as they were last taken; to begin with, those of an earlier run.
    pub(crate) const fn factors(&mut self) -> &mut Vec<Option<u32>> {
        &mut self.factors
    }

    /// Whether all values of a tensor that is whole are finite; true of one that is not.
    pub(crate) fn is_finite(&self, tensor: TensorId) -> bool {
        let Some(Contents::Floats(values)) = &self.slots[tensor as usize].whole else { return true };
        values.iter().all(|value| value.is_finite())
    }

    /// Sets the values of a tensor that is whole, in eight bits if it is stored so.
    pub(crate) fn set(&mut self, tensor: TensorId, contents: Contents) {
        let contents = match contents {
            Contents::Floats(values) if self.in_eight_bits[tensor as usize] => {
                Contents::Eight(Eight::of(&values, &self.meter))
            }
            contents => contents,
        };
        self.slots[tensor as usize].whole = Some(contents);
    }

    /// The tensors of the training state, with their contents.
    pub(crate) fn state(&self) -> Vec<(TensorId, Contents)> {
        let states = (0..).zip(&self.graph.tensors).filter(|(_, tensor)| tensor.role.is_state());
        states.filter_map(|(id, _)| Some((id, self.slots[id as usize].whole.clone()?))).collect()
    }

    /// Takes the contents out of a whole tensor: values, unless the graph itself is one of integers.
    pub(crate) fn take(&mut self, tensor: TensorId) -> Option<Contents> {
        match self.slots[tensor as usize].whole.take()? {
            Contents::Eight(held) if !self.program.is_in_integers() => Some(Contents::Floats(held.values(&self.meter))),
            contents => Some(contents),
        }
    }
}

/// The values as a node reads and writes them.
pub(crate) struct Carried<'t, 'g> {
    values: &'t mut Values<'g>,
    arena: Option<&'t PageArena>,
}

impl<'t, 'g> Carried<'t, 'g> {
    pub(super) const fn new(values: &'t mut Values<'g>, arena: Option<&'t PageArena>) -> Self {
        Self { values, arena }
    }

    fn missing(&self, tensor: TensorId) -> ProgramError {
        ProgramError::Missing(self.values.graph.tensor(tensor).name.clone())
    }

    fn decode(&self, tensor: TensorId) -> Result<Contents, ProgramError> {
        self.values.decode(tensor, self.arena).map_err(|_| self.missing(tensor))
    }

    /// The sum of the squares of a tensor's values.
    pub(crate) fn squares(&self, tensor: TensorId) -> Result<f64, ProgramError> {
        Ok(self.values.coding.squares(&self.floats(tensor)?))
    }

    /// How far the values of a tensor that is whole spread: the mean variance that one step over their range adds.
    pub(crate) fn spread(&self, tensor: TensorId) -> Option<f64> {
        let Some(Contents::Floats(values)) = &self.values.slots[tensor as usize].whole else { return None };
        Some(self.values.coding.spread(values))
    }
}

impl Memory for Carried<'_, '_> {
    fn floats(&self, tensor: TensorId) -> Result<Seen<'_>, ProgramError> {
        match &self.values.slots[tensor as usize].whole {
            Some(Contents::Floats(values)) => Ok(Seen::Held(values)),
            Some(held) => held.decoded(&self.values.meter).map(Seen::Copy).ok_or_else(|| self.missing(tensor)),
            None => match self.decode(tensor)? {
                Contents::Floats(values) => Ok(Seen::Copy(values)),
                held => held.decoded(&self.values.meter).map(Seen::Copy).ok_or_else(|| self.missing(tensor)),
            },
        }
    }

    fn integers(&self, tensor: TensorId) -> Result<SeenIntegers<'_>, ProgramError> {
        match &self.values.slots[tensor as usize].whole {
            Some(Contents::Integers(values)) => Ok(SeenIntegers::Held(values)),
            Some(_) => Err(self.missing(tensor)),
            None => match self.decode(tensor)? {
                Contents::Integers(values) => Ok(SeenIntegers::Copy(values)),
                _ => Err(self.missing(tensor)),
            },
        }
    }

    fn signs(&self, tensor: TensorId) -> Result<Signs<'_>, ProgramError> {
        if let Some(held) = self.eight(tensor).filter(|_| !self.values.program.is_in_integers()) {
            return Ok(Signs::Bits(self.values.signs_of(tensor, held)));
        }
        match self.values.stored_signs(tensor, self.arena) {
            Ok(Some(bits)) => Ok(Signs::Bits(bits)),
            Ok(None) => self.floats(tensor).map(Signs::Values),
            Err(_) => Err(self.missing(tensor)),
        }
    }

    fn eight(&self, tensor: TensorId) -> Option<&Eight> {
        let Some(Contents::Eight(held)) = &self.values.slots[tensor as usize].whole else { return None };
        Some(held)
    }

    fn kept_factor(&self, rescaled: TensorId, tensor: TensorId) -> Option<u32> {
        let Values { keeps_factor, factors, .. } = &*self.values;
        if keeps_factor[rescaled as usize] { factors[tensor as usize] } else { None }
    }

    fn note_factor(&mut self, tensor: TensorId, factor: u32) {
        self.values.factors[tensor as usize] = Some(factor);
    }

    fn take(&mut self, tensor: TensorId) -> Option<Contents> {
        let values = &mut *self.values;
        let slot = &mut values.slots[tensor as usize];
        let contents = slot.whole.take()?;
        if values.graph.tensor(tensor).role == Role::ParameterGradient && !std::mem::replace(&mut slot.written, true) {
            values.before_part.push((tensor, (!values.is_first_part).then(|| contents.clone())));
        }
        Some(contents)
    }

    fn put(&mut self, tensor: TensorId, contents: Contents) {
        self.values.set(tensor, contents);
    }

    fn meter(&self) -> &Meter {
        &self.values.meter
    }
}
