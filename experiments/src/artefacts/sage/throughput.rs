//! Throughput against the memory budget: the curves of figures 9 to 11.

use super::setting::{SageNetwork, scenario};
use crate::artefacts::prelude::*;

/// A scheme: its name for people, its policy and the policy's parameters.
pub(super) type Scheme = (&'static str, &'static str, Set<'static>);

/// The schemes of figures 9 and 10.
pub(super) const SCHEMES: [Scheme; 5] =
    [("SGC", "sgc", &[]), ("SGA", "sga", &[]), ("DGC", "dgc", &[]), ("DGA", "dga", &[]), ("Sage", "sage", &[])];

/// The throughput of a scheme within a budget.
pub(super) struct ThroughputPoint {
    pub(super) scheme: &'static str,
    /// The budget in percent of what the unmanaged graph needs, and in megabytes.
    pub(super) percent: f64,
    pub(super) megabytes: f64,
    /// Samples a second; `None` if the scheme does not fit.
    pub(super) rate: Option<f64>,
}

/// Throughput of each scheme at each declared budget.
pub(super) struct Throughputs {
    /// The throughput of the unmanaged graph.
    pub(super) unmanaged: f64,
    /// By scheme, then budget.
    pub(super) points: Vec<ThroughputPoint>,
}

/// Simulates `schemes` on `network` and `device` at every declared budget.
pub(super) fn throughputs(
    context: &Context<'_>,
    device: &str,
    network: SageNetwork,
    schemes: &[Scheme],
) -> Result<Throughputs> {
    let mut scenario = scenario(context, device, network)?;
    scenario.iterations = context.reading_number("steady-state")? as u32;
    let unmanaged = context.run(&scenario)?;
    let whole = unmanaged.peak_memory;
    let mut points = Vec::new();
    for &(name, policy, set) in schemes {
        let scenario = under(&scenario, policy, set);
        for &percent in context.reading_numbers("budgets")? {
            let record = context.within(&scenario, budget(whole, percent))?;
            let rate = record.map(|record| record.samples_per_second());
            points.push(ThroughputPoint {
                scheme: name,
                percent,
                megabytes: whole.megabytes() * percent / 100.0,
                rate,
            });
        }
    }
    Ok(Throughputs { unmanaged: unmanaged.samples_per_second(), points })
}

/// The budget of `percent` of what the unmanaged graph needs.
pub(super) fn budget(whole: Bytes, percent: f64) -> Budget {
    Budget::Bytes(Bytes((whole.as_f64() * percent / 100.0).ceil() as u64))
}

impl Throughputs {
    /// Samples a second of `scheme` by budget.
    pub(super) fn of(&self, scheme: &str) -> impl Iterator<Item = Option<f64>> {
        self.points.iter().filter(move |point| point.scheme == scheme).map(|point| point.rate)
    }

    /// The mean over all budgets; a budget that the scheme cannot reach counts as zero.
    pub(super) fn mean(&self, scheme: &str) -> f64 {
        let count = self.of(scheme).count().max(1);
        self.of(scheme).map(|rate| rate.unwrap_or(0.0)).sum::<f64>() / count as f64
    }

    /// Adds the panel of the curves.
    pub(super) fn draw(&self, outcome: &mut Outcome, title: &str) {
        let lines = curves(&self.points, |point| point.scheme, |point| Some((point.megabytes, point.rate?)));
        outcome.panel(title, lines, axis("memory budget", "MB").log(), from_zero("throughput", "samples/s"));
    }
}
