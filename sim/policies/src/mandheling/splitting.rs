//! Into which parts a product's batch is split on the DSP (section 3.5).

use haversack_devices::units::Nanos;

/// By how much the latency of a sample may exceed that of a smaller batch before an operator counts as abnormal.
pub const THRESHOLD: f64 = 1.2;

/// A batch in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Samples of each; the last one has what is left.
    pub samples: u64,
    /// What all take, sums included.
    pub time: Nanos,
}

/// The parts in which a batch of `batch` samples takes least, where the operator is abnormal as a whole.
///
/// `profile` gives the operator's latency for so many samples and is asked at powers of two below `batch`; adding the
/// results of one more part takes `accumulation` (equation 4, where all parts have one scale). An operator is abnormal
/// where a sample takes more than `threshold` times what it takes in a smaller batch. Nothing where it is normal, the
/// DSP does not run it, or no parts take less than the whole. Of equal times the larger parts win.
pub fn split(profile: impl Fn(u64) -> Option<Nanos>, batch: u64, accumulation: Nanos, threshold: f64) -> Option<Parts> {
    let whole = profile(batch)?;
    let mut smaller = Vec::new();
    let mut samples = 1;
    while samples < batch {
        smaller.push((samples, profile(samples)?));
        samples *= 2;
    }
    let each = |time: Nanos, samples: u64| time.0 as f64 / samples as f64;
    let normal = smaller.iter().map(|&(samples, time)| each(time, samples)).min_by(f64::total_cmp)?;
    if each(whole, batch) <= threshold * normal {
        return None;
    }
    let in_parts = |&(samples, time): &(u64, Nanos)| {
        let (full, rest) = (batch / samples, batch % samples);
        let last = if rest > 0 { profile(rest)? } else { Nanos::ZERO };
        let sums = full + u64::from(rest > 0) - 1;
        Some(Parts { samples, time: time * full + last + accumulation * sums })
    };
    // The first of equals is the least.
    let best = smaller.iter().rev().filter_map(in_parts).min_by_key(|parts| parts.time)?;
    (best.time < whole).then_some(best)
}
