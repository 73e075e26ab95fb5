//! Products of eight-bit codes whose sums stay integers of 32 bits: a layer's output, and the gradients of its input and
//! of its weight.
//!
//! A sum of 133,000 products fits in 32 bits whatever the codes are; sums of more saturate where they would overflow.

use haversack_kernels::{Gemm, Isa, Matrix};
use rayon::prelude::*;

use crate::dense::convolution::Convolution;
use crate::dense::linear::Linear;
use crate::error::{Result, expect_length};
use crate::meter::{Meter, Sums};

/// Rows of a linear layer that are multiplied at a time.
const ROWS: usize = 64;
/// Samples whose gradients of a weight are summed before those of the next ones, whatever the number of threads. At
/// least this many, and more if there would otherwise be more than `BLOCKS` blocks, each of which has its own sums.
const SAMPLES: usize = 8;
const BLOCKS: usize = 8;

/// The output of a linear layer, without its bias.
pub(crate) fn linear(of: Linear, input: &[i8], weight: &[i8], sums: &mut [i32]) -> Result {
    let Linear { inputs, outputs, rows } = of;
    expect_length("the input", input.len(), rows * inputs)?;
    multiply_rows(input, inputs, Matrix::new(weight, outputs, inputs)?.transposed(), sums)
}

/// The gradient of a linear layer's input.
pub(crate) fn linear_input_gradient(of: Linear, gradient: &[i8], weight: &[i8], sums: &mut [i32]) -> Result {
    let Linear { inputs, outputs, rows } = of;
    expect_length("the gradient", gradient.len(), rows * outputs)?;
    multiply_rows(gradient, outputs, Matrix::new(weight, outputs, inputs)?, sums)
}

/// The gradient of a linear layer's weight.
pub(crate) fn linear_weight_gradient(of: Linear, input: &[i8], gradient: &[i8], sums: &mut [i32]) -> Result {
    let Linear { inputs, outputs, rows } = of;
    let (gradient, input) = (Matrix::new(gradient, rows, outputs)?.transposed(), Matrix::new(input, rows, inputs)?);
    Ok(Gemm::new(Isa::chosen()?).multiply(gradient, input, sums)?)
}

/// Rows of `width` codes by `right`.
fn multiply_rows(left: &[i8], width: usize, right: Matrix<'_>, sums: &mut [i32]) -> Result {
    let (isa, columns) = (Isa::chosen()?, right.columns());
    let parts = sums.par_chunks_mut((ROWS * columns).max(1)).zip(left.par_chunks((ROWS * width).max(1)));
    parts.try_for_each(|(sums, left)| {
        let left = Matrix::new(left, left.len() / width.max(1), width)?;
        Ok(Gemm::new(isa).multiply(left, right, sums)?)
    })
}

/// The sum of the rows of `gradient`, each of `width` codes: the gradient of a linear layer's bias.
pub(crate) fn sum_of_rows(gradient: &[i8], width: usize, sums: &mut [i32]) {
    for row in gradient.chunks_exact(width.max(1)) {
        sums.iter_mut().zip(row).for_each(|(sum, &code)| *sum = sum.saturating_add(code.into()));
    }
}

/// The sum of each filter's planes over all samples: the gradient of a convolution's bias.
pub(crate) fn sum_of_planes(of: &Convolution, gradient: &[i8], sums: &mut [i32]) {
    let [_, filters, down, across] = of.output();
    for (plane, codes) in gradient.chunks_exact((down * across).max(1)).enumerate() {
        let sum: i32 = codes.iter().map(|&code| i32::from(code)).sum();
        sums[plane % filters] = sums[plane % filters].saturating_add(sum);
    }
}

/// A convolution of one group of channels, as a product of matrices.
struct Group {
    /// Channels and filters of a group.
    channels: usize,
    filters: usize,
    /// Terms of a sum: the taps of a group's channels.
    depth: usize,
    /// Positions of the output.
    positions: usize,
    /// Elements of an input plane.
    plane: usize,
    groups: usize,
    isa: Isa,
}

impl Group {
    fn new(of: &Convolution) -> Result<Self> {
        let (window, groups) = of.window();
        let ([_, channels, height, width], [_, filters, down, across]) = (of.input(), of.output());
        let channels = channels / groups;
        Ok(Self {
            channels,
            filters: filters / groups,
            depth: channels * window.taps() as usize,
            positions: down * across,
            plane: height * width,
            groups,
            isa: Isa::chosen()?,
        })
    }

    fn input_len(&self) -> usize {
        self.groups * self.channels * self.plane
    }

    fn output_len(&self) -> usize {
        self.groups * self.filters * self.positions
    }

    /// The input planes of a group of a sample.
    fn planes<'s>(&self, sample: &'s [i8], group: usize) -> &'s [i8] {
        &sample[group * self.channels * self.plane..][..self.channels * self.plane]
    }

    fn weight<'w>(&self, weight: &'w [i8], group: usize) -> Result<Matrix<'w>> {
        let len = self.filters * self.depth;
        Ok(Matrix::new(&weight[group * len..][..len], self.filters, self.depth)?)
    }

    fn gradient<'g>(&self, sample: &'g [i8], group: usize) -> Result<Matrix<'g>> {
        let len = self.filters * self.positions;
        Ok(Matrix::new(&sample[group * len..][..len], self.filters, self.positions)?)
    }
}

/// The output of a convolution, without its bias.
pub(crate) fn convolution(of: &Convolution, input: &[i8], weight: &[i8], meter: &Meter, sums: &mut [i32]) -> Result {
    let group = Group::new(of)?;
    check(of, input.len(), weight.len(), sums.len())?;
    let samples = sums.par_chunks_mut(group.output_len().max(1)).zip(input.par_chunks(group.input_len().max(1)));
    let scratch = || (Gemm::new(group.isa), meter.codes(group.depth * group.positions));
    samples.try_for_each_init(scratch, |(gemm, unfolded), (sums, input)| {
        for (place, sums) in sums.chunks_exact_mut((group.filters * group.positions).max(1)).enumerate() {
            unfold(of, group.planes(input, place), group.channels, unfolded);
            let unfolded = Matrix::new(unfolded, group.depth, group.positions)?;
            gemm.multiply(group.weight(weight, place)?, unfolded, sums)?;
        }
        Ok(())
    })
}

/// The gradient of a convolution's input.
pub(crate) fn convolution_input_gradient(
    of: &Convolution,
    gradient: &[i8],
    weight: &[i8],
    meter: &Meter,
    sums: &mut [i32],
) -> Result {
    let group = Group::new(of)?;
    check(of, sums.len(), weight.len(), gradient.len())?;
    let samples = sums.par_chunks_mut(group.input_len().max(1)).zip(gradient.par_chunks(group.output_len().max(1)));
    let scratch = || (Gemm::new(group.isa), meter.sums(group.depth * group.positions));
    samples.try_for_each_init(scratch, |(gemm, unfolded), (sums, gradient)| {
        for (place, sums) in sums.chunks_exact_mut((group.channels * group.plane).max(1)).enumerate() {
            gemm.multiply(group.weight(weight, place)?.transposed(), group.gradient(gradient, place)?, unfolded)?;
            sums.fill(0);
            for Line { unfolded: from, input: to, count, stride } in lines(of, group.channels) {
                let added = sums[to..].iter_mut().step_by(stride).zip(&unfolded[from..][..count]);
                added.for_each(|(sum, &more)| *sum = sum.saturating_add(more));
            }
        }
        Ok(())
    })
}

/// The gradient of a convolution's weight.
pub(crate) fn convolution_weight_gradient(
    of: &Convolution,
    input: &[i8],
    gradient: &[i8],
    meter: &Meter,
    sums: &mut [i32],
) -> Result {
    let group = Group::new(of)?;
    check(of, input.len(), sums.len(), gradient.len())?;
    let samples = of.input()[0].div_ceil(BLOCKS).max(SAMPLES);
    let blocks = input.par_chunks((samples * group.input_len()).max(1));
    let blocks = blocks.zip(gradient.par_chunks((samples * group.output_len()).max(1)));
    let blocks = blocks.map(|(input, gradient)| {
        let (mut gemm, mut total) = (Gemm::new(group.isa), meter.sums(sums.len()));
        let (mut unfolded, mut product) =
            (meter.codes(group.depth * group.positions), meter.sums(group.filters * group.depth));
        let samples =
            input.chunks_exact(group.input_len().max(1)).zip(gradient.chunks_exact(group.output_len().max(1)));
        for (input, gradient) in samples {
            for (place, total) in total.chunks_exact_mut(product.len().max(1)).enumerate() {
                unfold(of, group.planes(input, place), group.channels, &mut unfolded);
                let unfolded = Matrix::new(&unfolded, group.depth, group.positions)?.transposed();
                gemm.multiply(group.gradient(gradient, place)?, unfolded, &mut product)?;
                add(total, &product);
            }
        }
        Ok(total)
    });
    let blocks: Vec<Sums> = blocks.collect::<Result<_>>()?;
    sums.fill(0);
    blocks.iter().for_each(|block| add(sums, block));
    Ok(())
}

fn add(total: &mut [i32], more: &[i32]) {
    total.iter_mut().zip(more).for_each(|(total, &more)| *total = total.saturating_add(more));
}

fn check(of: &Convolution, input: usize, weight: usize, output: usize) -> Result {
    expect_length("the input", input, of.input_len())?;
    expect_length("the weight", weight, of.weight_len())?;
    expect_length("the output", output, of.output_len())
}

/// Positions of an output line at which a tap lies within the input.
struct Line {
    /// Where they begin in the unfolded matrix.
    unfolded: usize,
    /// Where the tap begins in the input's planes, and how far it moves from one position to the next.
    input: usize,
    stride: usize,
    count: usize,
}

/// The lines of each tap of each of `channels` planes.
fn lines(of: &Convolution, channels: usize) -> impl Iterator<Item = Line> {
    let ([.., height, width], [.., down, across]) = (of.input(), of.output());
    let (window, _) = of.window();
    let [stride, padding, kernel] =
        [window.stride, window.padding, window.kernel].map(|pair| pair.map(|side| side as usize));
    let taps = (0..channels * kernel[0] * kernel[1]).map(move |row| {
        let tap = row % (kernel[0] * kernel[1]);
        (row, row / (kernel[0] * kernel[1]), tap / kernel[1], tap % kernel[1])
    });
    // The first position at which a tap is inside, and the position after the last.
    let inside = move |axis: usize, tap: usize, size: usize, positions: usize| {
        let first = padding[axis].saturating_sub(tap).div_ceil(stride[axis]);
        let end = (size + padding[axis]).saturating_sub(tap).div_ceil(stride[axis]).min(positions);
        first..end.max(first)
    };
    taps.flat_map(move |(row, channel, tap_row, tap_column)| {
        let columns = inside(1, tap_column, width, across);
        let rows = if columns.is_empty() { 0..0 } else { inside(0, tap_row, height, down) };
        rows.map(move |y| {
            let line = channel * height + y * stride[0] + tap_row - padding[0];
            Line {
                unfolded: (row * down + y) * across + columns.start,
                input: (line * width + columns.start * stride[1] + tap_column).saturating_sub(padding[1]),
                stride: stride[1],
                count: columns.len(),
            }
        })
    })
}

/// The codes that each tap of each channel reads at every position: depth × positions, zeros for padding.
fn unfold(of: &Convolution, input: &[i8], channels: usize, unfolded: &mut [i8]) {
    unfolded.fill(0);
    for Line { unfolded: to, input: from, stride, count } in lines(of, channels) {
        let to = &mut unfolded[to..][..count];
        if stride == 1 {
            to.copy_from_slice(&input[from..][..count]);
        } else {
            to.iter_mut().zip(input[from..].iter().step_by(stride)).for_each(|(to, &code)| *to = code);
        }
    }
}

#[cfg(test)]
mod tests {
    use haversack_workloads::operator::Window;

    use super::*;

    fn codes(len: usize, k: usize) -> Vec<i8> {
        (0..len).map(|place| ((place * 97 + k * 31) % 255) as i8).map(|code| code.max(-127)).collect()
    }

    /// The output and the gradients of input and weight by a loop over every product, in 64 bits.
    fn naive(of: &Convolution, x: &[i8], w: &[i8], dy: &[i8]) -> [Vec<i64>; 3] {
        let ([_, channels, height, width], [_, filters, down, across]) = (of.input(), of.output());
        let (window, groups) = of.window();
        let [stride, padding, [rows, columns]] =
            [window.stride, window.padding, window.kernel].map(|pair| pair.map(|side| side as usize));
        let (inner, outer) = (channels / groups, filters / groups);
        let [mut y, mut dx, mut dw] = [dy.len(), x.len(), w.len()].map(|len| vec![0; len]);
        for n in 0..dy.len() {
            let (j, i) = (n % across, n / across % down);
            let (f, sample) = (n / across / down % filters, n / across / down / filters);
            for tap in 0..inner * rows * columns {
                let row = (i * stride[0] + tap / columns % rows).wrapping_sub(padding[0]);
                let column = (j * stride[1] + tap % columns).wrapping_sub(padding[1]);
                if row >= height || column >= width {
                    continue;
                }
                let channel = f / outer * inner + tap / columns / rows;
                let (at, k) =
                    (((sample * channels + channel) * height + row) * width + column, f * inner * rows * columns + tap);
                y[n] += i64::from(x[at]) * i64::from(w[k]);
                dx[at] += i64::from(dy[n]) * i64::from(w[k]);
                dw[k] += i64::from(dy[n]) * i64::from(x[at]);
            }
        }
        [y, dx, dw]
    }

    fn widened(sums: &[i32]) -> Vec<i64> {
        sums.iter().map(|&sum| sum.into()).collect()
    }

    #[test]
    fn convolutions_and_their_gradients_agree_with_a_loop_in_64_bits() {
        let meter = Meter::default();
        let window = |kernel, stride, padding| Window { kernel, stride, padding, dilation: [1, 1] };
        for (input, filters, window, groups) in [
            ([3, 3, 9, 7], 4, Window::square(3, 1, 1), 1),
            ([10, 2, 8, 8], 3, Window::square(5, 1, 2), 1),
            ([2, 4, 7, 7], 8, Window::square(1, 2, 0), 1),
            ([2, 6, 9, 8], 6, Window::square(3, 2, 1), 6),
            ([2, 6, 5, 6], 4, window([3, 2], [1, 3], [1, 0]), 2),
            // The last tap reads only padding.
            ([1, 1, 1, 1], 1, window([1, 3], [1, 3], [0, 1]), 1),
        ] {
            let of = Convolution::new(input, filters, window, groups).unwrap();
            let (x, w, dy) = (codes(of.input_len(), 1), codes(of.weight_len(), 2), codes(of.output_len(), 3));
            let [mut y, mut dx, mut dw] = [dy.len(), x.len(), w.len()].map(|len| vec![7; len]);
            convolution(&of, &x, &w, &meter, &mut y).unwrap();
            convolution_input_gradient(&of, &dy, &w, &meter, &mut dx).unwrap();
            convolution_weight_gradient(&of, &x, &dy, &meter, &mut dw).unwrap();
            assert_eq!([&y, &dx, &dw].map(|sums| widened(sums)), naive(&of, &x, &w, &dy), "{input:?}");
            let mut db = vec![0; filters];
            sum_of_planes(&of, &dy, &mut db);
            let plane = of.output()[2] * of.output()[3];
            let of_filter = |f| (0..dy.len()).filter(move |n| n / plane % filters == f);
            let expected: Vec<i32> = (0..filters).map(|f| of_filter(f).map(|n| i32::from(dy[n])).sum()).collect();
            assert_eq!(db, expected, "{input:?}");
        }
        assert_eq!(meter.live(), 0, "scratch space was not given back");
    }

    #[test]
    fn linear_layers_are_convolutions_of_one_position() {
        let (of, meter) = (Linear { rows: 70, inputs: 9, outputs: 5 }, Meter::default());
        let as_convolution = Convolution::new([70, 9, 1, 1], 5, Window::square(1, 1, 0), 1).unwrap();
        let (x, w, dy) = (codes(70 * 9, 1), codes(5 * 9, 2), codes(70 * 5, 3));
        let [mut y, mut dx, mut dw] = [dy.len(), x.len(), w.len()].map(|len| vec![7; len]);
        linear(of, &x, &w, &mut y).unwrap();
        linear_input_gradient(of, &dy, &w, &mut dx).unwrap();
        linear_weight_gradient(of, &x, &dy, &mut dw).unwrap();
        assert_eq!([&y, &dx, &dw].map(|sums| widened(sums)), naive(&as_convolution, &x, &w, &dy));
        let [mut rows, mut planes] = [vec![0; 5], vec![0; 5]];
        sum_of_rows(&dy, 5, &mut rows);
        sum_of_planes(&as_convolution, &dy, &mut planes);
        assert_eq!(rows, planes);
        assert!(convolution(&as_convolution, &x, &w[1..], &meter, &mut y).is_err());
    }
}
