//! `actnn`: every tensor that a module keeps is quantised to two bits, group by group (Chen et al., ICML 2021, level
//! L3).
//!
//! Each module quantises its own copy; a ReLU and a dropout keep a bit an element, a max-pooling a byte. The bits are
//! L3's target: it moves bits between samples of a tensor so that their mean stays two, which changes no size. The
//! statistics run in separate kernels, the packed blocks lie wherever the framework's allocator puts them.

use haversack_workloads::TensorId;

use crate::quantised::{Control, Copies, Packing, Quantisation, Quantised, Reach, Rounding};
use crate::{Holding, MemoryView, Policy, PolicyError, Schedule, Setting};

/// ActNN's rules of storage.
pub const RULES: Quantisation = Quantisation {
    reach: Reach::Modules,
    copies: Copies::PerModule,
    redraw_masks: false,
    // Its layers replace the framework's (Chen et al., section 5).
    writes_signs: true,
    control: Control::OwnKernels,
    packing: Packing::Gpu,
    rounding: Rounding::Stochastic,
    arena: None,
};

/// ActNN at level L3.
#[derive(Clone, Debug)]
#[must_use]
pub struct ActNn {
    bits: u8,
    stored: Option<Quantised>,
}

impl ActNn {
    /// With `bits` a value on average.
    pub const fn new(bits: u8) -> Self {
        Self { bits, stored: None }
    }
}

impl Policy for ActNn {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        self.stored = Some(Quantised::new(setting.graph, &RULES, setting.elements));
        Ok(Schedule { quantisation: Some(RULES), ..Schedule::plain(setting.batch) })
    }

    fn hold(&mut self, tensor: TensorId, _memory: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        let within_reach = self.stored.as_ref().is_some_and(|stored| stored.reaches(tensor));
        Ok(if within_reach { Holding::Quantise(self.bits) } else { Holding::Keep })
    }
}
