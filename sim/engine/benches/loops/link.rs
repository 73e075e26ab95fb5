//! Shared bandwidth with a constant number of flows in flight.

use haversack_devices::units::{Bytes, BytesPerSecond, Nanos};
use haversack_engine::SharedBandwidth;

use crate::draw::Draw;

fn run(in_flight: usize, count: u64, mut cap: impl FnMut(&mut Draw) -> Option<BytesPerSecond>) -> u64 {
    let mut draw = Draw(3);
    // Fails only for an invalid capacity.
    let Ok(mut link) = SharedBandwidth::new(BytesPerSecond(17e9)) else { return 0 };
    for flow in 0..in_flight {
        let cap = cap(&mut draw);
        let _ = link.insert(Nanos(0), Bytes(draw.exponential(1e6)), cap, flow);
    }
    for _ in 0..count {
        let Some(due) = link.next_completion() else { break };
        let Ok(Some(done)) = link.advance(due) else { break };
        let cap = cap(&mut draw);
        let _ = link.insert(done.time, Bytes(draw.exponential(1e6)), cap, done.item);
    }
    link.now().0
}

pub(crate) fn completions(in_flight: usize, count: u64) -> u64 {
    run(in_flight, count, |_| None)
}

/// Caps around the fair share of one flow.
pub(crate) fn capped_completions(in_flight: usize, count: u64) -> u64 {
    let share = 17e9 / in_flight as f64;
    run(in_flight, count, |draw| Some(BytesPerSecond(draw.exponential(1.5 * share) as f64 + 1.0)))
}
