//! Section 3.2.2: how often threads that update a cell of their block beat a tree within the block on mobile GPUs, and
//! whether block-level atomics pay on 8 units and contend on 82.
//!
//! The section does not say what its cases are. Here a case is an operation whose output is to be reduced in its
//! epilogue: a phone, one of the three statistics, the size of a tensor whose values forward saves for backward in one
//! of the paper's networks, and a block size of the kernel that makes the tensor, which the reduction has to take as it
//! finds it. Each distinct size counts once. This was settled before any share was computed.

use std::collections::BTreeSet;

use haversack_gpu::Strategy;
use haversack_gpu::profile::{CONTROL, Profiler, Setting, block_against_passes};
use haversack_kernels::reduce::Statistic;
use haversack_workloads::{Need, Phase, TrainingGraph};

use super::reductions::{OPERATIONS, Operation, profiler};
use super::setting::{BOARD, NETWORKS, scenario};
use crate::artefacts::prelude::*;

const SHARE: &str = "daf/section3.2/mobile-gpu/atomic-thread-then-block/share-of-cases-fastest";
const CONTENTION: &str = "daf/section3.2/rtx-3090-vs-jetson-agx-xavier/block-atomic/contention";
/// The paper's phones.
const PHONES: [&str; 2] = ["iqoo-neo3", "redmagic-7"];
/// The GPU that contends.
const SERVER: &str = "rtx-3090";
/// Threads of a block: CUB's.
const THREADS: u32 = 256;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of("claim,device,statistic,elements,threads,quantity,value");
    let share = share_of_cases(context, &mut outcome)?;
    outcome.number(SHARE, 100.0 * share);
    let (mut board, mut server) = (Vec::new(), Vec::new());
    for operation in OPERATIONS {
        board.push(over_passes(context, &mut outcome, BOARD, operation)?);
        server.push(over_passes(context, &mut outcome, SERVER, operation)?);
    }
    outcome.quantity("block atomics over a second launch on the Xavier", "", board);
    outcome.quantity("block atomics over a second launch on the RTX 3090", "", server);
    context.judge(&mut outcome, CONTENTION)?;
    let words = "settled before the first run: both phones, each of the three statistics alone, every distinct size of a tensor whose values ResNet-18 (both inputs), RoBERTa-base and GPT-2 medium save at their declared batches, and blocks of 64 to 1024 threads, in an epilogue of as many outputs a thread as the stack has";
    outcome.remark(SHARE, format!("the cases, {words}"));
    outcome.remark(
        CONTENTION,
        "blocks of 256 threads, settled before the first run; section3.2.csv has those of 64 to 1024",
    );
    Ok(outcome)
}

/// The distinct sizes, in elements, of the tensors whose values are saved.
fn sizes(graph: &TrainingGraph, batch: u64) -> BTreeSet<u64> {
    let backward = || graph.nodes.iter().filter(|node| node.phase == Phase::Backward);
    let valued = |id: &u32| backward().any(|node| node.inputs.contains(id) && node.need_of(*id) == Need::Values);
    let elements = |id: u32| graph.tensor(id).bytes.at(batch) / size_of::<f32>() as u64;
    graph.saved().into_iter().filter(valued).map(elements).collect()
}

/// The share of cases, from 0 to 1, in which threads-then-blocks beat the tree within the block.
fn share_of_cases(context: &Context<'_>, outcome: &mut Outcome) -> Result<f64> {
    let mut all = BTreeSet::new();
    for network in NETWORKS {
        let plan = context.plan(&scenario(context, BOARD, network)?)?;
        all.extend(sizes(&plan.graph, plan.scenario().batch));
    }
    let (mut sum, mut rows) = (0.0, 0_u32);
    for phone in PHONES {
        let profiler = profiler(context, &context.device(phone)?)?;
        let Setting::Epilogue { outputs } = profiler.epilogue() else { continue };
        for statistic in CONTROL {
            for &elements in &all {
                let (ours, other) = (Strategy::ThreadThenBlock, Strategy::Hybrid);
                // Over the block sizes, of which there are as many for every tensor.
                let won = profiler.share_won(ours, other, &[statistic], &[elements], &[outputs])?.0;
                let case = ("share", phone, statistic.name(), elements, None::<u64>);
                outcome.row((case, "share of block sizes with atomics fastest", won))?;
                sum += won;
                rows += 1;
            }
        }
    }
    Ok(sum / f64::from(rows.max(1)))
}

/// The time of block-level atomics over that of a second launch, in the blocks of [`THREADS`]; the table gets all
/// block sizes.
fn over_passes(context: &Context<'_>, outcome: &mut Outcome, id: &str, operation: Operation) -> Result<f64> {
    let device = context.device(id)?;
    let Some(profiler) = Profiler::of(&device) else { bail!("{id} has no modelled GPU") };
    let statistic = Statistic::Minimum;
    let mut found = None;
    for &threads in &profiler.search.threads {
        let [block, passes] = block_against_passes(threads);
        let block = profiler.time(block, &[statistic], operation.elements)?.time;
        let passes = profiler.time(passes, &[statistic], operation.elements)?.time;
        let whole = block.total().seconds() / passes.total().seconds();
        let case = ("contention", id, statistic.name(), operation.elements, Some(u64::from(threads)));
        outcome.row((case, "time over that of a second launch", whole))?;
        outcome.row((case, "the same without launches", block.busy.0 / passes.busy.0))?;
        found = found.or((threads == THREADS).then_some(whole));
    }
    found.with_context(|| format!("the profile tries no blocks of {THREADS} threads"))
}

#[cfg(test)]
mod tests {
    use haversack_workloads::Network;
    use haversack_workloads::autograd::{EagerRules, differentiate};
    use haversack_workloads::operator::Unary;

    use super::*;

    #[test]
    fn sizes_are_of_tensors_whose_values_are_needed() {
        let mut network = Network::new("two layers");
        let x = network.input(&[7]);
        let hidden = network.linear("first", x, 5, false).unwrap();
        let hidden = network.unary("act", hidden, Unary::Relu);
        let scores = network.linear("second", hidden, 3, false).unwrap();
        let target = network.target(1);
        network.cross_entropy("loss", scores, target).unwrap();
        let graph = differentiate(&network, EagerRules::default()).unwrap();
        // Two samples: 2 x 5 activations for the second layer's weight, 2 x 3 log-probabilities for the loss. Samples
        // are no activations, and the loss' total weight is a statistic.
        assert_eq!(sizes(&graph, 2), BTreeSet::from([6, 10]));
    }
}
