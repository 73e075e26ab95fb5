//! Which elements a look at a tensor shows, and what a copy makes of them.

/// Another look at all elements of a tensor, in the same storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// The elements in the same order, under the output's shape.
    Reshape,
    /// Axis `order[i]` of the tensor is axis `i` of the output.
    Permute(Vec<usize>),
}

/// One axis of a part: where its neighbours lie in the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Along {
    /// The axis of the whole that it runs along.
    pub axis: usize,
    /// The positions of the whole between two of its own; zero if it has one position and stands for no axis.
    pub step: u64,
}

/// A part of a tensor, as the positions in the whole that it shows.
///
/// The element of the part at the index `i` is the whole's at `start + Σ i[d] · axes[d].step` along `axes[d].axis`; the
/// sizes are the output's. Two axes of a part may run along one of the whole: a fused projection seen by heads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The place of the first element, along each axis of the whole.
    pub start: Vec<u64>,
    /// The axes of the part.
    pub axes: Vec<Along>,
}

impl Part {
    /// The whole of a tensor of `rank` axes.
    pub fn whole(rank: usize) -> Self {
        Self { start: vec![0; rank], axes: (0..rank).map(|axis| Along { axis, step: 1 }).collect() }
    }

    /// Every `step`-th position from `start` on along `axis` of the whole, which the part still shows.
    #[must_use]
    pub fn from(mut self, axis: usize, start: u64, step: u64) -> Self {
        self.start[axis] = start;
        for along in self.axes.iter_mut().filter(|along| along.axis == axis) {
            along.step = step;
        }
        self
    }

    /// The position `at` of `axis` of the whole, which the part shows no more.
    #[must_use]
    pub fn at(mut self, axis: usize, at: u64) -> Self {
        self.start[axis] = at;
        self.axes.retain(|along| along.axis != axis);
        self
    }
}

/// What a copy makes of its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copying {
    /// The same elements, in row-major order.
    Plain,
    /// Zeros behind the elements of each axis, up to the output's size.
    Pad,
    /// Every element moved by so many positions along each axis, from the end back to the front (`torch.roll`).
    Roll(Vec<u64>),
    /// A part.
    Part(Part),
    /// Something that is computed of integers and is not described here: positions and masks of an imported file.
    Computed,
}
