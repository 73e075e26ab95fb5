//! Figure 2a: what dynamic quantisation control adds to the operation that it watches, without DAF's kernels.

use haversack_devices::{Frequency, Precision, ProgramCounts};
use haversack_gpu::baseline::{framework, map_counts};
use haversack_gpu::profile::CONTROL;
use haversack_training::{Machine, Trains};
use haversack_workloads::autograd::differentiate;
use haversack_workloads::{EagerRules, Network, Phase, ValueId, Window};

use super::reductions::{OPERATIONS, micros, profiler, stack};
use super::setting::BOARD;
use crate::artefacts::prelude::*;

/// The two operations of [`OPERATIONS`], each a network of one product and a loss.
fn networks() -> Result<[Network; 2]> {
    let mut convolution = Network::new("conv2d");
    let image = convolution.input(&[256, 14, 14]);
    let made = convolution.convolution("conv2d", image, 256, Window::square(3, 1, 1), 1, false)?;
    with_loss(&mut convolution, made)?;
    let mut attention = Network::new("attention");
    let tokens = attention.input(&[512, 768]);
    let made = attention.linear("attention", tokens, 768, true)?;
    with_loss(&mut attention, made)?;
    Ok([convolution, attention])
}

/// No network is differentiated without a loss.
fn with_loss(network: &mut Network, made: ValueId) -> Result<()> {
    let scores = network.flatten("flatten", made)?;
    let target = network.target(1);
    network.cross_entropy("loss", scores, target)?;
    Ok(())
}

/// Microseconds of the product in forward, for one sample.
fn forward(machine: &Machine, network: &Network) -> Result<f64> {
    let graph = differentiate(network, EagerRules { dropout_mask_bytes: 1, ..EagerRules::default() })?;
    let product = graph.nodes.iter().position(|node| node.phase == Phase::Forward && node.work.kind.is_dense_product());
    let Some(id) = product else { bail!("{} has no product", network.name) };
    Ok(machine.cost(&graph, id, 1, Precision::Fp32).alone().seconds() * 1e6)
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let device = context.device(BOARD)?;
    let profiler = profiler(context, &device)?;
    let machine = Machine::new(device.clone(), stack(context, &device)?, Trains::Either, None, Frequency::Highest)?;
    let mut records = Records::of("operation,title,part,time_us,over_operation,control_over_operation");
    for (operation, network) in OPERATIONS.iter().zip(networks()?) {
        let alone = forward(&machine, &network)?;
        let mut parts = vec![("the operation", alone)];
        for statistic in CONTROL {
            let counts = framework(&[statistic], operation.elements, &profiler.machine)?;
            parts.push((statistic.name(), micros(&profiler.time_of(&counts))));
        }
        let kernels = vec![map_counts(operation.elements, &profiler.machine)?];
        parts.push(("quantising", micros(&profiler.time_of(&ProgramCounts { kernels, memsets: 0, operators: 1 }))));
        let control: f64 = parts.iter().skip(1).map(|(_, time)| time).sum();
        for (part, time) in parts {
            records.row((operation.name, operation.title, part, [time, time / alone, control / alone]))?;
        }
    }
    show(context, records, Outcome::default())
}
