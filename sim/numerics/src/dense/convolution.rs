//! 2-D convolution: dense, grouped and depthwise, of any window.

use haversack_workloads::operator::Window;

use crate::error::{NumericsError, Result, expect_length};
use crate::meter::Meter;

/// Sizes of a convolution: the input is batch × channels × height × width, the weight filters × channels/groups × kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution {
    batch: usize,
    channels: usize,
    input: [usize; 2],
    filters: usize,
    output: [usize; 2],
    window: Window,
    groups: usize,
}

impl Convolution {
    /// A convolution of an input of batch × channels × height × width.
    ///
    /// # Errors
    /// A window that does not fit the input, or channels or filters that do not split into the groups.
    pub fn new(input: [usize; 4], filters: usize, window: Window, groups: usize) -> Result<Self> {
        let [batch, channels, height, width] = input;
        let side = |axis, input: usize| window.output(axis, input as u64, false);
        let (Some(down), Some(across)) = (side(0, height), side(1, width)) else {
            let [kernel_height, kernel_width] = window.kernel.map(|side| side as usize);
            return Err(NumericsError::Window { kernel_height, kernel_width, height, width });
        };
        if groups == 0 || !channels.is_multiple_of(groups) || !filters.is_multiple_of(groups) {
            return Err(NumericsError::Groups { channels, filters, groups });
        }
        let output = [down as usize, across as usize];
        Ok(Self { batch, channels, input: [height, width], filters, output, window, groups })
    }

    /// Batch, filters, height and width of the output.
    #[must_use]
    pub const fn output(&self) -> [usize; 4] {
        [self.batch, self.filters, self.output[0], self.output[1]]
    }

    /// Elements of the weight.
    #[must_use]
    pub const fn weight_len(&self) -> usize {
        self.filters * (self.channels / self.groups) * self.window.taps() as usize
    }

    /// Elements of the input.
    #[must_use]
    pub const fn input_len(&self) -> usize {
        self.batch * self.channels * self.input[0] * self.input[1]
    }

    /// Elements of the output.
    #[must_use]
    pub const fn output_len(&self) -> usize {
        self.batch * self.filters * self.output[0] * self.output[1]
    }

    /// The output.
    ///
    /// # Errors
    /// An operand whose length is not what the sizes say.
    pub fn forward(
        &self,
        input: &[f32],
        weight: &[f32],
        bias: Option<&[f32]>,
        _meter: &Meter,
        output: &mut [f32],
    ) -> Result {
        self.check(input.len(), weight.len(), output.len(), bias.map(<[f32]>::len))?;
        for (i, plane) in output.chunks_exact_mut(self.output[0] * self.output[1]).enumerate() {
            plane.fill(bias.map_or(0.0, |bias| bias[i % self.filters]));
        }
        self.each_product(|y, x, w| output[y] += input[x] * weight[w]);
        Ok(())
    }

    /// The gradient of the input, from that of the output.
    ///
    /// # Errors
    /// An operand whose length is not what the sizes say.
    pub fn input_gradient(
        &self,
        gradient: &[f32],
        weight: &[f32],
        _meter: &Meter,
        input_gradient: &mut [f32],
    ) -> Result {
        self.check(input_gradient.len(), weight.len(), gradient.len(), None)?;
        input_gradient.fill(0.0);
        self.each_product(|y, x, w| input_gradient[x] += gradient[y] * weight[w]);
        Ok(())
    }

    /// Adds the gradients of the weight and the bias.
    ///
    /// # Errors
    /// An operand whose length is not what the sizes say.
    pub fn weight_gradient(
        &self,
        input: &[f32],
        gradient: &[f32],
        _meter: &Meter,
        weight_gradient: &mut [f32],
        bias_gradient: Option<&mut [f32]>,
    ) -> Result {
        let bias = bias_gradient.as_deref().map(<[f32]>::len);
        self.check(input.len(), weight_gradient.len(), gradient.len(), bias)?;
        self.each_product(|y, x, w| weight_gradient[w] += gradient[y] * input[x]);
        if let Some(bias) = bias_gradient {
            for (i, plane) in gradient.chunks_exact(self.output[0] * self.output[1]).enumerate() {
                bias[i % self.filters] += plane.iter().sum::<f32>();
            }
        }
        Ok(())
    }

    /// Calls `f(output element, input element, weight element)` for each product of the convolution.
    fn each_product(&self, mut f: impl FnMut(usize, usize, usize)) {
        let [ky, kx] = self.window.kernel.map(|side| side as usize);
        let [sy, sx] = self.window.stride.map(|step| step.max(1) as usize);
        let [py, px] = self.window.padding.map(|side| side as usize);
        let ([h, w], [oh, ow]) = (self.input, self.output);
        let (inner, outer) = (self.channels / self.groups, self.filters / self.groups);
        for y in 0..self.output_len() {
            let (ox, oy, filter, b) = (y % ow, y / ow % oh, y / ow / oh % self.filters, y / ow / oh / self.filters);
            for tap in 0..inner * ky * kx {
                let (j, i, c) = (tap % kx, tap / kx % ky, tap / kx / ky);
                let (iy, ix) = ((oy * sy + i).wrapping_sub(py), (ox * sx + j).wrapping_sub(px));
                if iy < h && ix < w {
                    let channel = filter / outer * inner + c;
                    f(y, ((b * self.channels + channel) * h + iy) * w + ix, filter * inner * ky * kx + tap);
                }
            }
        }
    }

    fn check(&self, input: usize, weight: usize, output: usize, bias: Option<usize>) -> Result {
        expect_length("the input of a convolution", input, self.input_len())?;
        expect_length("the weight of a convolution", weight, self.weight_len())?;
        expect_length("the output of a convolution", output, self.output_len())?;
        bias.map_or(Ok(()), |bias| expect_length("the bias of a convolution", bias, self.filters))
    }
}
