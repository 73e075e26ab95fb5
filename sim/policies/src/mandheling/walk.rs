//! What an iteration takes on two processors with memory spaces of their own, and a placement that is better by it.
//!
//! Equations 1 to 3 know of a crossing only what the operator before has made. A map that forward saves crosses again for
//! whichever side reads it in backward, and what lies on both sides crosses no more: as the executor does it.

use haversack_devices::units::{Bytes, Nanos};
use haversack_workloads::TrainingGraph;

use super::placement::{OperatorRow, crossing_for};
use crate::setting::DspProfile;

/// How often a placement is gone through for something better.
const SWEEPS: usize = 4;

/// An iteration of a graph whose operators stand in a row.
pub(super) struct Walk<'a> {
    pub(super) graph: &'a TrainingGraph,
    pub(super) batch: u64,
    pub(super) dsp: &'a dyn DspProfile,
    pub(super) row: &'a OperatorRow,
}

impl Walk<'_> {
    /// What an iteration takes after the first where `there` says which operators of the row the DSP runs.
    fn takes(&self, there: &[bool]) -> Nanos {
        let on_dsp = self.row.by_node(self.graph, there);
        let call = self.dsp.crossing(Bytes::ZERO);
        // Whether a tensor lies with the CPU, and with the DSP.
        let mut lies = vec![[true, false]; self.graph.tensors.len()];
        let mut steady = Nanos::ZERO;
        for _ in 0..2 {
            let mut before = false;
            steady = self.row.computing(there);
            for (node, &here) in self.graph.nodes.iter().zip(&on_dsp).filter(|(node, _)| !self.row.passes_over(node)) {
                let mut copied = 0;
                for &input in &node.inputs {
                    if !std::mem::replace(&mut lies[input as usize][usize::from(here)], true) {
                        copied += crossing_for(self.graph, node, input, self.batch);
                    }
                }
                if here != before || copied > 0 {
                    let under_way = if here == before { call } else { Nanos::ZERO };
                    steady += self.dsp.crossing(Bytes(copied)) - under_way;
                }
                before = here;
                for &output in &node.outputs {
                    lies[output as usize] = [!here, here];
                }
            }
        }
        steady
    }

    /// The best of `placements`, and what is better than it by one run of operators, or the first or last of one, on the
    /// other processor.
    pub(super) fn improved<const N: usize>(&self, placements: [Vec<bool>; N]) -> Vec<bool> {
        let timed = placements.into_iter().map(|there| (self.takes(&there), there));
        let Some((mut least, mut there)) = timed.min_by_key(|&(takes, _)| takes) else { return Vec::new() };
        for _ in 0..SWEEPS {
            let before = least;
            let mut first = 0;
            while first < there.len() {
                let length = there[first..].iter().take_while(|&&side| side == there[first]).count();
                let end = first + length;
                for turned in [first..end, first..first + 1, end - 1..end] {
                    let mut other = there.clone();
                    turned.for_each(|place| other[place] = !there[place] && self.row.dsp[place].is_some());
                    let takes = self.takes(&other);
                    if takes < least {
                        (least, there) = (takes, other);
                        break;
                    }
                }
                first = end;
            }
            if least == before {
                break;
            }
        }
        there
    }
}
