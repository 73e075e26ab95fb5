//! By what tensors are ranked: a metric that needs no data, or what a run with data has measured.

/// The metrics that need no data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metric {
    /// The trained values whose gradients a tensor enters, each weighted by how deep its layer lies, from 0 at the
    /// input to 1 at the loss: late layers change most in training and in fine-tuning.
    #[default]
    Depth,
    /// The same without the weights.
    Values,
    /// One for each tensor.
    Uniform,
    /// For bits the number of the tensor's own values, since what measures worth by the error that few bits add is about
    /// in proportion to it, whatever made the tensor (`experiments/measured/comparison-sensitivity.toml`: of ResNet-8's
    /// variance 63% by the 45% of the values that a ReLU made, 37% by the others). For weights as by depth.
    Stored,
}

/// What tensors are worth: by a metric that needs no data, or as a run with data has measured it.
///
/// What is measured is, of the gradient of a weight, the sum of its squares, by which the loss falls at a small step along
/// it (Huang et al., MobiSys 2023); of a saved tensor, the variance that storing it with one step over its range adds to
/// the gradients of the weights that read it (Liu et al., ICML 2022, section 4). A tensor that was never measured is worth
/// nothing.
#[derive(Clone, Copy, Debug)]
pub enum Worth<'a> {
    /// By a metric.
    Prior(Metric),
    /// By moving averages of what was measured, by tensor.
    Measured(&'a [f64]),
}
