//! How much may be in memory.

use haversack_devices::units::Bytes;

/// What bounds memory: all of it, saved tensors alone, and what is left in use after an operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of everything; `None` if memory is not bounded.
    pub(crate) memory: Option<Bytes>,
    /// Bytes of saved tensors.
    pub(crate) activations: Option<Bytes>,
    /// Percent of what `state` leaves of the memory budget that are left in use after an operator; `None` if all are.
    pub(crate) computing: Option<u64>,
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

    /// Bytes that may be left in use after an operator; `None` if all may be.
    pub(crate) fn after_an_operator(&self) -> Option<Bytes> {
        let (percent, budget) = self.computing.zip(self.memory)?;
        let covered = budget.saturating_sub(self.state);
        Some(self.state + Bytes(covered.0 / 100 * percent))
    }
}
