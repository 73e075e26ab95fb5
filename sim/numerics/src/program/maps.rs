//! Properties of a tensor that storing it in another form needs: its maps, which elements let a gradient through, and
//! the windows of positions.

use haversack_workloads::{Network, Op, OperatorNode, Unary, Window};

/// The maps of one sample of a tensor: `height` × `width` a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Map {
    /// Channels; of tokens, features.
    pub channels: usize,
    /// Rows of a channel; 1 for tokens.
    pub height: usize,
    /// Elements of a row; for tokens, the number of them.
    pub width: usize,
    /// Whether features are stored side by side, token by token, so that a channel is a column.
    pub are_tokens: bool,
}

impl Map {
    /// A channel of one row.
    pub const fn row(width: usize) -> Self {
        Self { channels: 1, height: 1, width, are_tokens: false }
    }

    /// Elements of a sample.
    pub const fn elements(&self) -> usize {
        self.channels * self.height * self.width
    }

    /// A sample channel by channel.
    pub fn channels_first(&self, sample: &[f32]) -> Vec<f32> {
        if self.are_tokens { transposed(sample, self.channels) } else { sample.to_vec() }
    }

    /// Undoes [`channels_first`](Self::channels_first).
    pub fn channels_back(&self, sample: Vec<f32>) -> Vec<f32> {
        if self.are_tokens { transposed(&sample, self.width) } else { sample }
    }
}

/// The columns of a matrix of `columns` columns, one after the other.
fn transposed(values: &[f32], columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|column| values.iter().skip(column).step_by(columns.max(1)).copied()).collect()
}

/// Which elements of a saved tensor let the gradient through to the operator's input.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Passes {
    /// Those that are positive (ReLU).
    #[default]
    Positive,
    /// Those between two values (ReLU6).
    Between(f32, f32),
    /// Those that are not zero (the mask of a dropout).
    NotZero,
}

/// The scale in which a tensor is stored with fewer bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Its own values.
    #[default]
    Linear,
    /// The exponentials: the backward pass reads only those of log-probabilities, and they are bounded; a step between
    /// logarithms would instead be a factor between probabilities.
    Exponential,
}

impl Passes {
    /// Whether a gradient passes this element.
    pub fn lets(self, value: f32) -> bool {
        match self {
            Self::Positive => value > 0.0,
            Self::Between(low, high) => value > low && value < high,
            Self::NotZero => value != 0.0,
        }
    }
}

/// The positions of maxima: PyTorch's 64-bit index within a plane, and a byte with the position within its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Positions {
    window: Window,
    input: [usize; 2],
    output: [usize; 2],
}

impl Positions {
    /// The position of each maximum within its window, row by row.
    pub fn within(&self, positions: &[i64], bytes: &mut [u8]) {
        for (place, (&position, byte)) in positions.iter().zip(bytes).enumerate() {
            let (corner, width) = (self.corner(place), self.input[1] as i64);
            let (row, column) = (position / width - corner[0], position % width - corner[1]);
            *byte = (row * self.window.kernel[1] as i64 + column) as u8;
        }
    }

    /// The index of each maximum in its plane.
    pub fn in_plane(&self, bytes: &[u8], positions: &mut [i64]) {
        let columns = self.window.kernel[1].max(1) as i64;
        for (place, (&byte, position)) in bytes.iter().zip(positions).enumerate() {
            let corner = self.corner(place);
            let (row, column) = (i64::from(byte) / columns, i64::from(byte) % columns);
            *position = (corner[0] + row) * self.input[1] as i64 + corner[1] + column;
        }
    }

    /// Where the window of the output at `place` begins, padding included.
    fn corner(&self, place: usize) -> [i64; 2] {
        let [height, width] = self.output;
        let at = [place / width.max(1) % height.max(1), place % width.max(1)];
        [0, 1].map(|axis| at[axis] as i64 * self.window.stride[axis] as i64 - self.window.padding[axis] as i64)
    }
}

/// Properties of a tensor that storing it in another form needs; nothing by default.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) map: Map,
    pub(super) passes: Passes,
    pub(super) positions: Option<Positions>,
    pub(super) scale: Scale,
}

/// The properties of each of `tensors` tensors, of which the first are the network's storages.
pub(super) fn of(network: &Network, tensors: usize) -> Vec<Known> {
    let mut known = vec![Known::default(); tensors];
    for node in &network.nodes {
        let map = &mut known[network.value(node.output).storage as usize].map;
        if *map == Map::default() {
            *map = map_of(network, node);
        }
        match (&node.op, &node.saved[..]) {
            (Op::Unary { function: Unary::Relu6, .. }, &[saved]) => {
                known[saved as usize].passes = Passes::Between(0.0, 6.0);
            }
            (&Op::Unary { function: Unary::Clip { low, high }, .. }, &[saved]) => {
                known[saved as usize].passes = Passes::Between(low, high);
            }
            (Op::CrossEntropy, &[log_probabilities, ..]) => {
                known[log_probabilities as usize].scale = Scale::Exponential
            }
            (Op::Dropout(_), &[mask]) => known[mask as usize].passes = Passes::NotZero,
            (&Op::MaxPool(window), &[_, indices]) if window.taps() <= 256 => {
                let plane = |value| [2, 3].map(|axis| network.shape(value).size(axis) as usize);
                let (input, output) = (plane(node.inputs[0]), plane(node.output));
                known[indices as usize].positions = Some(Positions { window, input, output });
            }
            _ => {}
        }
    }
    known
}

/// With four axes, channels of images; otherwise the last axis has the features, and the axes before it the tokens.
fn map_of(network: &Network, node: &OperatorNode) -> Map {
    let sizes: Vec<usize> = network.shape(node.output).sizes().into_iter().map(|size| size as usize).collect();
    match sizes[..] {
        [_, channels, height, width] if !matches!(node.op, Op::Matmul | Op::Softmax) => {
            Map { channels, height, width, are_tokens: false }
        }
        [ref tokens @ .., channels] => Map { channels, height: 1, width: tokens.iter().product(), are_tokens: true },
        [] => Map { channels: 1, height: 1, width: 1, are_tokens: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_is_told_by_a_byte_within_its_window() {
        // A plane of 4×5 under windows of 3×3, two apart, with a rim of one: outputs of 2×3.
        let positions = Positions { window: Window::square(3, 2, 1), input: [4, 5], output: [2, 3] };
        // Output (1, 2) sees rows 1 to 3 and columns 3 to 5; the index of row 3, column 4 is 19: row 2, column 1 of it.
        let mut bytes = [0; 6];
        let maxima = [0, 2, 4, 5, 7, 19];
        positions.within(&maxima, &mut bytes);
        assert_eq!(bytes[5], 2 * 3 + 1);
        let mut back = [0; 6];
        positions.in_plane(&bytes, &mut back);
        assert_eq!(back, maxima);
    }

    #[test]
    fn tokens_are_compressed_feature_by_feature() {
        let map = Map { channels: 2, height: 1, width: 3, are_tokens: true };
        let channelled = map.channels_first(&[1.0, 10.0, 2.0, 20.0, 3.0, 30.0]);
        assert_eq!(channelled, [1.0, 2.0, 3.0, 10.0, 20.0, 30.0]);
        assert_eq!(map.channels_back(channelled), [1.0, 10.0, 2.0, 20.0, 3.0, 30.0]);
    }
}
