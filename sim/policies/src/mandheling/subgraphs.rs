//! Subgraphs of the DSP, and which of them stay prepared from one iteration to the next (section 3.6).

use std::ops::Range;

use haversack_devices::Bytes;
use thiserror::Error;

/// Which subgraphs are prepared in every iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReusePlan {
    /// Whether each is released after it ran, and prepared again in the next iteration.
    pub prepared_again: Vec<bool>,
    /// Bytes of the subgraphs that stay.
    pub kept: Bytes,
}

/// A subgraph that does not fit on its own.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("subgraph {place} takes {bytes}; expected at most {memory}")]
pub struct SubgraphTooLarge {
    /// Its place in the order of execution.
    pub place: usize,
    /// Its size.
    pub bytes: Bytes,
    /// The available memory.
    pub memory: Bytes,
}

/// The runs of nodes on the DSP that no node of the CPU interrupts, ignoring nodes marked in `absent`, which rarely
/// run. A range begins and ends with a node of the DSP.
pub fn runs(on_dsp: &[bool], absent: &[bool]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut open = false;
    for (node, (&on_dsp, &absent)) in on_dsp.iter().zip(absent).enumerate() {
        match runs.last_mut() {
            Some(run) if open && on_dsp => run.end = node + 1,
            _ if on_dsp => runs.push(node..node + 1),
            _ => {}
        }
        open = on_dsp || open && absent;
    }
    runs
}

/// Which subgraphs stay prepared in `memory`, so that as few as possible are prepared again. They take `bytes` each and
/// run one after the other in every iteration.
///
/// A subgraph must be completely in memory to run. One that does not fit next to those that stay replaces the most
/// recently used one marked for release: the one that ran before it and does not stay. So those that stay have to fit
/// together with the largest of the others. All cases are tried: for each choice of the largest one that does not stay,
/// all larger ones stay, and of the others as many as fit, the smallest first. That is exact in n² log n steps; among
/// plans with equally few preparations, the one found that keeps the most bytes wins.
///
/// # Errors
/// A subgraph that does not fit on its own.
pub fn plan(bytes: &[Bytes], memory: Bytes) -> Result<ReusePlan, SubgraphTooLarge> {
    if let Some((place, &bytes)) = bytes.iter().enumerate().find(|(_, bytes)| **bytes > memory) {
        return Err(SubgraphTooLarge { place, bytes, memory });
    }
    let all: Bytes = bytes.iter().copied().sum();
    if all <= memory {
        return Ok(ReusePlan { prepared_again: vec![false; bytes.len()], kept: all });
    }
    let mut order: Vec<usize> = (0..bytes.len()).collect();
    order.sort_by_key(|&place| (bytes[place], place));
    let plans = (0..order.len()).filter_map(|largest| releasing_at_most(&order, largest, bytes, memory));
    let count = |plan: &ReusePlan| plan.prepared_again.iter().filter(|&&again| again).count();
    let best = plans.min_by(|a, b| count(a).cmp(&count(b)).then(b.kept.cmp(&a.kept)));
    // The largest fits on its own, so releasing all is one of the plans.
    Ok(best.unwrap_or_else(|| ReusePlan { prepared_again: vec![true; bytes.len()], kept: Bytes::ZERO }))
}

/// The plan whose largest released subgraph is number `largest` of `order`, which goes by size.
fn releasing_at_most(order: &[usize], largest: usize, bytes: &[Bytes], memory: Bytes) -> Option<ReusePlan> {
    let (below, above) = (&order[..largest], &order[largest + 1..]);
    let mut kept: Bytes = above.iter().map(|&place| bytes[place]).sum();
    let room = memory.saturating_sub(bytes[order[largest]]);
    if kept > room {
        return None;
    }
    let mut prepared_again = vec![true; order.len()];
    for &place in above {
        prepared_again[place] = false;
    }
    for &place in below {
        if kept + bytes[place] > room {
            break;
        }
        kept += bytes[place];
        prepared_again[place] = false;
    }
    Some(ReusePlan { prepared_again, kept })
}
