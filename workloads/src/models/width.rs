//! How wide the hidden layers of a stand-in are.

/// The share of a hidden layer's features that a narrower network has (HeteroFL: Diao et al., ICLR 2021): the first ones, so
/// that its weights are leading slices of the full network's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Width(f64);

impl Width {
    /// All features.
    pub const FULL: Self = Self(1.0);

    /// A share above 0 and up to 1; `None` for another number.
    pub fn new(share: f64) -> Option<Self> {
        (share > 0.0 && share <= 1.0).then_some(Self(share))
    }

    /// The share.
    pub const fn share(self) -> f64 {
        self.0
    }

    /// Of so many features, rounded up.
    pub(super) fn of(self, features: u64) -> u64 {
        ((features as f64 * self.0).ceil() as u64).max(1)
    }
}
