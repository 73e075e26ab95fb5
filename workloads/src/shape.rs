//! Shapes whose batch is not yet known, and counts that are linear in it.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};

/// A count that is linear in the batch: `fixed + per_sample × batch`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[must_use]
pub struct Extent {
    /// The part that does not depend on the batch.
    pub fixed: u64,
    /// The part that every sample adds.
    pub per_sample: u64,
}

impl Extent {
    /// Zero at any batch.
    pub const ZERO: Self = Self { fixed: 0, per_sample: 0 };

    /// A count that does not depend on the batch.
    pub const fn fixed(count: u64) -> Self {
        Self { fixed: count, per_sample: 0 }
    }

    /// A count that every sample adds.
    pub const fn per_sample(count: u64) -> Self {
        Self { fixed: 0, per_sample: count }
    }

    /// The count for a batch of `samples`.
    #[inline]
    pub const fn at(self, samples: u64) -> u64 {
        self.fixed + self.per_sample * samples
    }

    /// Whether it is zero at any batch.
    pub const fn is_zero(self) -> bool {
        self.fixed == 0 && self.per_sample == 0
    }

    /// The count times `numerator / denominator`, rounded down part by part.
    pub const fn times(self, numerator: u64, denominator: u64) -> Self {
        Self { fixed: self.fixed * numerator / denominator, per_sample: self.per_sample * numerator / denominator }
    }

    /// The difference to `part`; `None` if it is zero, or if `part` is larger in one of the two terms.
    pub(crate) fn less(self, part: Self) -> Option<Self> {
        let (fixed, per_sample) = (self.fixed.checked_sub(part.fixed)?, self.per_sample.checked_sub(part.per_sample)?);
        let left = Self { fixed, per_sample };
        (!left.is_zero()).then_some(left)
    }

    /// The larger of each part.
    pub fn max(self, other: Self) -> Self {
        Self { fixed: self.fixed.max(other.fixed), per_sample: self.per_sample.max(other.per_sample) }
    }
}

impl Add for Extent {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self { fixed: self.fixed + other.fixed, per_sample: self.per_sample + other.per_sample }
    }
}

impl AddAssign for Extent {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<u64> for Extent {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self { fixed: self.fixed * factor, per_sample: self.per_sample * factor }
    }
}

impl Sum for Extent {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

/// One dimension of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct Dim {
    /// Its size; for a batched dimension, the size that one sample adds.
    pub size: u64,
    /// Whether the batch multiplies it.
    pub batched: bool,
}

impl Dim {
    /// One position, for any batch.
    pub const ONE: Self = Self::fixed(1);

    /// A size that does not depend on the batch.
    pub const fn fixed(size: u64) -> Self {
        Self { size, batched: false }
    }

    /// A size that each sample adds.
    pub const fn batched(size: u64) -> Self {
        Self { size, batched: true }
    }
}

/// A shape whose leading dimension usually carries the batch; `[]` is a scalar.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[must_use]
pub struct Shape(pub Vec<Dim>);

impl Shape {
    /// A shape whose first dimension is the batch: `batched(&[3, 224, 224])` is `B×3×224×224`.
    pub fn batched(rest: &[u64]) -> Self {
        Self(std::iter::once(Dim::batched(1)).chain(rest.iter().map(|&size| Dim::fixed(size))).collect())
    }

    /// A shape without a batch.
    pub fn fixed(sizes: &[u64]) -> Self {
        Self(sizes.iter().map(|&size| Dim::fixed(size)).collect())
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The number of elements.
    pub fn elements(&self) -> Extent {
        let product = self.0.iter().map(|dim| dim.size).product();
        if self.is_batched() { Extent::per_sample(product) } else { Extent::fixed(product) }
    }

    /// Whether the batch multiplies one of the dimensions.
    pub fn is_batched(&self) -> bool {
        self.0.iter().any(|dim| dim.batched)
    }

    /// Dimension `axis`; [`Dim::ONE`] beyond the rank.
    pub fn dim(&self, axis: usize) -> Dim {
        self.0.get(axis).copied().unwrap_or(Dim::ONE)
    }

    /// The size of dimension `axis`, one sample's share if it is batched; 1 beyond the rank.
    pub fn size(&self, axis: usize) -> u64 {
        self.dim(axis).size
    }

    /// The sizes of all dimensions, one sample's share of a batched one.
    pub fn sizes(&self) -> Vec<u64> {
        self.0.iter().map(|dim| dim.size).collect()
    }

    /// The size of the last dimension; 1 for a scalar.
    pub fn last(&self) -> u64 {
        self.0.last().map_or(1, |dim| dim.size)
    }

    /// The shape to which both broadcast; `None` if they do not.
    pub(crate) fn broadcast(&self, other: &Self) -> Option<Self> {
        let (long, short) = if self.rank() >= other.rank() { (self, other) } else { (other, self) };
        let mut dims = long.0.clone();
        for (dim, &other) in dims.iter_mut().rev().zip(short.0.iter().rev()) {
            if *dim == Dim::ONE {
                *dim = other;
            } else if other != Dim::ONE && other != *dim {
                return None;
            }
        }
        Some(Self(dims))
    }

    /// The same shape with its last dimension replaced.
    pub(crate) fn with_last(&self, size: u64) -> Self {
        let mut dims = self.0.clone();
        if let Some(last) = dims.last_mut() {
            last.size = size;
        }
        Self(dims)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("scalar");
        }
        for (i, dim) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("x")?;
            }
            match (dim.batched, dim.size) {
                (true, 1) => f.write_str("B")?,
                (true, size) => write!(f, "{size}B")?,
                (false, size) => write!(f, "{size}")?,
            }
        }
        Ok(())
    }
}
