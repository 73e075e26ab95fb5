//! How much may be in memory.

use haversack_devices::units::Bytes;
use haversack_policies::policy::ComputingBudget;

/// What bounds memory: all of it, saved tensors alone, and what is left in use after an operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of everything; `None` if memory is not bounded.
    pub(crate) memory: Option<Bytes>,
    /// Bytes of saved tensors.
    pub(crate) activations: Option<Bytes>,
    /// What of that which `state` leaves of the memory budget is left in use after an operator; `None` if all is.
    pub(crate) computing: Option<ComputingBudget>,
    /// Bytes of weights, buffers and the optimiser's state.
    pub(crate) state: Bytes,
    /// Whether `activations` was cut since anybody asked.
    pub(crate) cut: bool,
}

impl Limits {
    /// A budget for saved tensors that replaces the one before while an iteration is under way.
    pub(crate) fn cut(&mut self, activations: Bytes) {
        (self.activations, self.cut) = (Some(activations), true);
    }

    /// The budget for saved tensors, if it was cut since this was last asked.
    pub(crate) fn take_cut(&mut self) -> Option<Bytes> {
        self.activations.filter(|_| std::mem::take(&mut self.cut))
    }

    /// Bytes that may be left in use after an operator of `samples` samples; `None` if all may be.
    pub(crate) fn after_an_operator(&self, samples: u64) -> Option<Bytes> {
        let (computing, budget) = self.computing.zip(self.memory)?;
        Some(self.state + computing.of(budget.saturating_sub(self.state), samples))
    }
}
