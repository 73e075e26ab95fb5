//! Throughput against the memory budget: the curves of figures 9 to 11.

use super::setting::{Network, scenario};
use crate::artefacts::prelude::*;

/// A scheme: its name for people, its policy and the policy's parameters.
pub(super) type Scheme = (&'static str, &'static str, Set<'static>);

/// The schemes of figures 9 and 10.
pub(super) const SCHEMES: [Scheme; 5] =
    [("SGC", "sgc", &[]), ("SGA", "sga", &[]), ("DGC", "dgc", &[]), ("DGA", "dga", &[]), ("Sage", "sage", &[])];

/// Throughput of each scheme at each budget, in samples a second; `None` if the scheme does not fit.
pub(super) struct Curves {
    /// What the unmanaged graph needs, and its throughput.
    pub(super) unmanaged: (Bytes, f64),
    /// The budgets, in percent of it.
    pub(super) percents: Vec<f64>,
    /// By scheme, then budget.
    pub(super) by_scheme: Vec<Vec<Option<f64>>>,
}

/// Simulates `schemes` on `network` and `device` at every declared budget.
pub(super) fn curves(
    context: &Context<'_>,
    device: &str,
    network: Network,
    schemes: &[Scheme],
) -> Result<Curves, ArtefactError> {
    let mut scenario = scenario(context, device, network)?;
    scenario.iterations = context.reading_number("steady-state")? as u32;
    let unmanaged = context.run(&scenario)?;
    let percents = context.reading_numbers("budgets")?.to_vec();
    let mut by_scheme = Vec::new();
    for (_, policy, set) in schemes {
        let scenario = under(&scenario, policy, set);
        let mut curve = Vec::new();
        for percent in &percents {
            let record = context.within(&scenario, budget(unmanaged.peak_memory, *percent))?;
            curve.push(record.map(|record| record.samples_per_second()));
        }
        by_scheme.push(curve);
    }
    let unmanaged = (unmanaged.peak_memory, unmanaged.samples_per_second());
    Ok(Curves { unmanaged, percents, by_scheme })
}

/// The budget of `percent` of what the unmanaged graph needs.
pub(super) fn budget(whole: Bytes, percent: f64) -> Budget {
    Budget::Bytes(Bytes((whole.as_f64() * percent / 100.0).ceil() as u64))
}

impl Curves {
    /// The budget of `percent`, in megabytes.
    pub(super) fn megabytes(&self, percent: f64) -> f64 {
        self.unmanaged.0.megabytes() * percent / 100.0
    }

    /// The mean over all budgets; a budget that the scheme cannot reach counts as zero.
    pub(super) fn mean(&self, scheme: usize) -> f64 {
        let curve = &self.by_scheme[scheme];
        curve.iter().map(|value| value.unwrap_or(0.0)).sum::<f64>() / curve.len().max(1) as f64
    }

    /// The panel of the curves.
    pub(super) fn panel(&self, title: &str, schemes: &[Scheme]) -> Panel {
        let mut lines = Lines::new();
        for ((name, _, _), curve) in schemes.iter().zip(&self.by_scheme) {
            let points = self.percents.iter().zip(curve);
            let points: Vec<_> = points.filter_map(|(&p, value)| Some((self.megabytes(p), (*value)?))).collect();
            lines = lines.series(Series::new(*name, points).ends_low());
        }
        let memory = Axis::new("memory budget").unit("MB").log();
        Panel::new(lines).title(title).x(memory).y(Axis::new("throughput").unit("samples/s").from_zero())
    }
}
