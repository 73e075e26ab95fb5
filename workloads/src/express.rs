//! The graph that MNN trains: its expressions, forward and gradient, with their layout transformations.
//!
//! MNN has no fused normalisation, activation or loss in training: a module is written in expressions, and every
//! expression is an operator with its own output, whose gradient is again written in expressions. So more tensors stay
//! alive until backward than in an eager framework, and a map is swept more often. Convolutions and poolings work on
//! blocks of four channels (NC4HW4), everything else on rows (NCHW): the conversions are operators of
//! [`OperatorKind::Layout`]. A product with a weight is a convolution too, of one position, as MNN's converter writes
//! it (`ConvertMatMulToConv2D.cpp`), so that a transformer converts on both sides of every linear layer; a tensor that
//! several layers read is converted once (`AddTensorFormatConverter.cpp`). A rearrangement is a view until a kernel
//! reads it. The kernel's command then copies a whole chain of views, as long as each is one box of at most three axes
//! (`GeometryComputer.cpp`): reshapes are free, a permutation costs one copy, and parts of maps that are joined again
//! cost one copy more than the joint.
//!
//! Source: alibaba/MNN 2.3, `tools/train/source/nn/NN.cpp` for the modules, `tools/train/source/grad` for the
//! gradients, `tools/train/source/optimizer` for losses and updates; [`commands`](self) has the commands that the
//! geometry makes of each.
//!
//! [`OperatorKind::Layout`]: haversack_devices::work::OperatorKind::Layout

mod commands;
mod expression;
mod forward;
mod gradient;
mod writer;

use crate::{MapKind, Network, Op, Optimiser, TrainingGraph, WorkloadError};
use expression::{DataFormat, Expression, Function, Layout, Operation, Variable, VariableId};
use writer::{ExpressionWriter, Shown};

/// Which of MNN's versions trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// 1.1 (2020); Mandheling builds on a fork of it. Broadcast operands are written out, and the forward of a
    /// convolution is a product of gathered windows.
    V1,
    /// 2.3 (2022); FedHybrid builds on it. Loops broadcast, and the forward of a convolution has its own kernel.
    V2,
}

/// The graph of expressions that MNN trains on a CPU.
///
/// Gradients that no trained weight needs are never evaluated and are left out, as are conversions to the order that a
/// tensor already has. Operators that MNN lacks are composed of those that it has.
///
/// # Errors
/// A network without a loss.
pub fn express(network: &Network, optimiser: Optimiser, version: Version) -> Result<TrainingGraph, WorkloadError> {
    let loss = network.loss()?;
    if let Some(node) = network.nodes.iter().find(|node| matches!(node.op, Op::Recurrent { .. })) {
        let module = node.module.clone();
        let translated = "layers without steps".to_owned();
        let (algorithm, operator) = ("MNN's training".to_owned(), node.op.name());
        return Err(WorkloadError::NoTranslation { algorithm, operator, module, translated });
    }
    let mut expressions = ExpressionWriter::new(network, version)?;
    for (id, node) in (0..).zip(&network.nodes) {
        (expressions.writer.origin, expressions.writer.makes) = (Some(id), MapKind::made_by(&node.op));
        expressions.forward(node);
    }
    expressions.backward(loss);
    expressions.update(optimiser);
    Ok(expressions.writer.graph)
}
