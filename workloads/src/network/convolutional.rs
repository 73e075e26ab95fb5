//! Convolution, batch normalisation and pooling.

use super::{FP32, INT64, Initial, Network, OperatorNode, ParameterId, ValueId};
use crate::error::Result;
use crate::{Averaging, Dim, EPSILON, Element, Extent, MOMENTUM, Op, Shape, Window};
use haversack_devices::ensure;

impl Network {
    /// Convolution of `B×C×H×W` into `channels` channels, with a new weight and, if `bias`, a new bias.
    ///
    /// Saves its input (for the weight's gradient); the weight is a parameter and not counted.
    ///
    /// # Errors
    /// A shape of another rank, channels that the groups do not divide, or a window that does not fit.
    pub fn convolution(
        &mut self,
        module: &str,
        x: ValueId,
        channels: u64,
        window: Window,
        groups: u64,
        bias: bool,
    ) -> Result<ValueId> {
        let (inputs, [height, width]) = (self.shape(x).size(1) / groups.max(1), window.kernel);
        let initial = Initial::of_layer(inputs * height * width);
        let weight = self.weight(&format!("{module}.weight"), &[channels, inputs, height, width], initial, true);
        let bias = bias.then(|| self.weight(&format!("{module}.bias"), &[channels], initial, true));
        self.convolution_with(module, x, channels, window, groups, weight, bias)
    }

    /// Convolution with given weights, shared ones included.
    ///
    /// # Errors
    /// A shape of another rank, channels that the groups do not divide, a weight of another size, or a window that does
    /// not fit.
    #[expect(clippy::too_many_arguments, reason = "a convolution has as many parts")]
    pub fn convolution_with(
        &mut self,
        module: &str,
        x: ValueId,
        channels: u64,
        window: Window,
        groups: u64,
        weight: ParameterId,
        bias: Option<ParameterId>,
    ) -> Result<ValueId> {
        let op = Op::Convolution { window, groups };
        self.expect_rank(module, &op, x, 4, "a B×C×H×W tensor")?;
        let in_channels = self.shape(x).size(1);
        if groups == 0 || !in_channels.is_multiple_of(groups) || !channels.is_multiple_of(groups) {
            return Err(self.shape_error(module, &op, &[x], &format!("channels that {groups} groups divide")));
        }
        let taps = in_channels / groups * window.kernel[0] * window.kernel[1];
        if self.parameter(weight).elements != channels * taps {
            let expected =
                format!("a tensor whose channels suit a weight of {} values", self.parameter(weight).elements);
            return Err(self.shape_error(module, &op, &[x], &expected));
        }
        let [height, width] = self.window_output(module, &op, x, window, false)?;
        let parameters: Vec<_> = std::iter::once(weight).chain(bias).collect();
        let shape = self.picture(x, [channels, height, width]);
        let flops = shape.elements() * (2 * taps);
        let saved = self.trains(weight).then(|| self.storage_of(x));
        Ok(self.add_node(module, OperatorNode::new(op, &[x]).parameters(&parameters).saves(saved).flops(flops), shape))
    }

    /// Batch normalisation over the channels of `B×C×…`.
    ///
    /// Saves its input, the running statistics (buffers) and the batch's mean and inverse deviation.
    ///
    /// # Errors
    /// A tensor without channels.
    pub fn batch_norm(&mut self, module: &str, x: ValueId) -> Result<ValueId> {
        self.batch_norm_of(module, x, EPSILON)
    }

    /// Batch normalisation with new weights and another `epsilon`.
    ///
    /// # Errors
    /// A tensor without channels.
    pub(crate) fn batch_norm_of(&mut self, module: &str, x: ValueId, epsilon: f32) -> Result<ValueId> {
        let channels = self.shape(x).size(1);
        let parameters = self.norm_weights(module, channels, true);
        self.batch_norm_with(module, x, parameters, [epsilon, MOMENTUM])
    }

    /// Batch normalisation with a given weight and bias, and an epsilon and a momentum.
    ///
    /// # Errors
    /// A tensor without channels.
    pub(crate) fn batch_norm_with(
        &mut self,
        module: &str,
        x: ValueId,
        parameters: [ParameterId; 2],
        [epsilon, momentum]: [f32; 2],
    ) -> Result<ValueId> {
        let op = Op::BatchNorm { epsilon, momentum };
        ensure!(self.shape(x).rank() >= 2, self.shape_error(module, &op, &[x], "a B×C×… tensor"));
        let channels = self.shape(x).size(1);
        let running = [("running_mean", Initial::ZEROS), ("running_var", Initial::ONES)]
            .map(|(part, initial)| self.filled_buffer(&format!("{module}.{part}"), channels * FP32, initial));
        let statistics = ["mean", "inverse_deviation"]
            .map(|s| self.side_storage(&format!("{module}.{s}"), Extent::fixed(channels * FP32)));
        let mut node = OperatorNode::new(op, &[x])
            .parameters(&parameters)
            .saves([self.storage_of(x)])
            .saves(running)
            .saves(statistics);
        node.buffers = running.to_vec();
        let shape = self.shape(x).clone();
        Ok(self.add_node(module, node, shape))
    }

    /// Max-pooling; saves its input and a 64-bit index for each output. `round_up` keeps a partial last window.
    ///
    /// # Errors
    /// A shape of another rank or a window that does not fit.
    pub fn max_pool(&mut self, module: &str, x: ValueId, window: Window, round_up: bool) -> Result<ValueId> {
        let op = Op::MaxPool(window);
        self.expect_rank(module, &op, x, 4, "a B×C×H×W tensor")?;
        let [height, width] = self.window_output(module, &op, x, window, round_up)?;
        let shape = self.picture(x, [self.shape(x).size(1), height, width]);
        let indices = self.side_storage(&format!("{module}.indices"), shape.elements() * INT64);
        self.storages[indices as usize].element = Element::Whole;
        let node = OperatorNode::new(op, &[x]).saves([self.storage_of(x), indices]);
        Ok(self.add_node(module, node, shape))
    }

    /// Average pooling, padding counted as zeros; saves its input.
    ///
    /// # Errors
    /// A shape of another rank or a window that does not fit.
    pub fn average_pool(&mut self, module: &str, x: ValueId, window: Window) -> Result<ValueId> {
        self.average_pool_over(module, x, window, Averaging::Padded, false)
    }

    /// Average pooling over the positions that `averaging` defines; saves its input. `round_up` keeps a
    /// partial last window.
    ///
    /// # Errors
    /// A shape of another rank or a window that does not fit.
    pub(crate) fn average_pool_over(
        &mut self,
        module: &str,
        x: ValueId,
        window: Window,
        averaging: Averaging,
        round_up: bool,
    ) -> Result<ValueId> {
        let op = Op::AveragePool { window, averaging };
        self.expect_rank(module, &op, x, 4, "a B×C×H×W tensor")?;
        let [height, width] = self.window_output(module, &op, x, window, round_up)?;
        let shape = self.picture(x, [self.shape(x).size(1), height, width]);
        let node = OperatorNode::new(op, &[x]).saves([self.storage_of(x)]);
        Ok(self.add_node(module, node, shape))
    }

    /// Adaptive average pooling to `side`×`side`; to one position it is a mean and saves nothing.
    ///
    /// # Errors
    /// A shape of another rank, or an input smaller than the output.
    pub fn adaptive_average_pool(&mut self, module: &str, x: ValueId, side: u64) -> Result<ValueId> {
        let global = Op::GlobalAveragePool { axes: vec![2, 3] };
        self.expect_rank(module, &global, x, 4, "a B×C×H×W tensor")?;
        if side == 1 {
            let shape = Shape::batched(&[self.shape(x).size(1), 1, 1]);
            return Ok(self.add_node(module, OperatorNode::new(global, &[x]), shape));
        }
        let [height, width] = [self.shape(x).size(2), self.shape(x).size(3)];
        let stride = [(height / side.max(1)).max(1), (width / side.max(1)).max(1)];
        let window = Window {
            kernel: [height.div_ceil(side.max(1)), width.div_ceil(side.max(1))],
            stride,
            padding: [0, 0],
            dilation: [1, 1],
        };
        let op = Op::AveragePool { window, averaging: Averaging::Adaptive };
        let node = OperatorNode::new(op, &[x]).saves([self.storage_of(x)]);
        let shape = Shape::batched(&[self.shape(x).size(1), side, side]);
        Ok(self.add_node(module, node, shape))
    }

    /// The mean over `axes`, which `shape` lacks or shows as one; saves nothing.
    pub fn mean(&mut self, module: &str, x: ValueId, axes: Vec<usize>, shape: Shape) -> ValueId {
        self.add_node(module, OperatorNode::new(Op::GlobalAveragePool { axes }, &[x]), shape)
    }

    /// A shape with the batch of `x`, and these channels, height and width.
    fn picture(&self, x: ValueId, sizes: [u64; 3]) -> Shape {
        Shape(std::iter::once(self.shape(x).dim(0)).chain(sizes.map(Dim::fixed)).collect())
    }

    fn window_output(&self, module: &str, op: &Op, x: ValueId, window: Window, round_up: bool) -> Result<[u64; 2]> {
        let shape = self.shape(x);
        let fits = |axis: usize| window.output(axis, shape.size(2 + axis), round_up);
        match (fits(0), fits(1)) {
            (Some(height), Some(width)) => Ok([height, width]),
            _ => {
                let [h, w] = window.kernel;
                Err(self.shape_error(module, op, &[x], &format!("at least {h}x{w} positions with the padding")))
            }
        }
    }
}
