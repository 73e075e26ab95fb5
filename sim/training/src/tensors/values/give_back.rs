//! What a store gives back, for those who train without an executor: the same kernels, and nothing of time or memory.

use haversack_numerics::Program;
use haversack_numerics::memory::{Contents, Memory};
use haversack_policies::Storage;
use haversack_policies::quantised::WHOLE;
use haversack_workloads::TensorId;

use super::coding::{Coding, StoreError, mark};
use crate::record::StoredForms;

/// The tensors that a run stores between forward and backward, of which something else comes back than was stored.
#[derive(Clone, Debug)]
pub struct GivesBack {
    forms: StoredForms,
}

impl GivesBack {
    /// What comes back of tensors that are stored so; `None` where all of them come back as they were.
    pub fn of(mut forms: StoredForms) -> Option<Self> {
        forms.tensors.retain(|(_, storage)| !matches!(storage, Storage::Flash | Storage::Quantised(WHOLE)));
        (!forms.tensors.is_empty()).then_some(Self { forms })
    }

    /// The tensors, and how they are stored.
    pub fn tensors(&self) -> &[(TensorId, Storage)] {
        &self.forms.tensors
    }

    /// Between forward and backward: values become what comes back of them. What a ReLU or a mask lets through is kept beside
    /// quantised ones, and positions within windows come back as they were. Rounding at random is drawn by `draw`.
    ///
    /// # Errors
    /// Values that cannot be stored, such as those that are not finite.
    pub fn give_back(&self, program: &Program, memory: &mut dyn Memory, draw: u64) -> Result<(), StoreError> {
        let mut coding = Coding::new(None, self.forms.rounding)?;
        coding.draw_by(draw);
        let meter = memory.meter().clone();
        for &(tensor, storage) in &self.forms.tensors {
            let Some(mut contents) = memory.take(tensor) else { continue };
            if let Contents::Floats(values) = &mut contents {
                if matches!(storage, Storage::Quantised(_)) {
                    let mut bits = meter.bytes(values.len().div_ceil(8));
                    mark(values.iter().copied(), program.passes(tensor), &mut bits);
                    memory.keep_signs(tensor, bits);
                }
                coding.give_back((tensor, storage), values, program, &meter)?;
            }
            memory.put(tensor, contents);
        }
        Ok(())
    }
}
