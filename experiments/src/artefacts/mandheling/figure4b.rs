//! Figure 4: a layer's scale factor while VGG-11 trains, and the batches between its changes.
//!
//! Nothing is trained here: the factors come from the stochastic process that the policy `mandheling` draws from.

use haversack_policies::engines::ALGORITHM;
use haversack_policies::mandheling::Parameters;
use haversack_policies::mandheling::scales::ScaleProcess;
use haversack_workloads::autograd::Optimiser;
use haversack_workloads::{mixed, models};

use super::setting::{MandhelingNetwork, of_no_phone};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact = of_no_phone("figure4b", "how a scale factor changes while VGG-11 trains", run);

const ROW: &str = "mandheling/figure4b/vgg11-batch-64/scale-factor/change-interval";
/// Batches over which a mean interval is taken: hundreds of changes of the slowest factor.
const WATCHED: usize = 20_000;
/// Batches of the panels' horizontal axes.
const SHOWN: usize = 2_000;

/// The changes of a scale factor: in which batch each came, and the batches since the one before it.
fn changes(factors: &[u32]) -> Vec<(usize, usize)> {
    let pairs = factors.windows(2).enumerate();
    let at: Vec<usize> = pairs.filter(|(_, pair)| pair[0] != pair[1]).map(|(before, _)| before + 1).collect();
    at.windows(2).map(|pair| (pair[1], pair[1] - pair[0])).collect()
}

/// The mean of the batches between changes.
fn mean_interval(factors: &[u32]) -> Option<f64> {
    let changes = changes(factors);
    let all: usize = changes.iter().map(|(_, interval)| interval).sum();
    (!changes.is_empty()).then(|| all as f64 / changes.len() as f64)
}

/// The tensors whose scale is taken anew while VGG-11 trains, in the order of an iteration.
fn rescaled() -> Result<Vec<String>> {
    let network = models::build(MandhelingNetwork::called("vgg11")?.model, None)?;
    let graph = mixed::rewrite(&network, mixed::algorithm(ALGORITHM.default)?, Optimiser::Sgd)?;
    let mut names: Vec<String> = Vec::new();
    for tensor in graph.nodes.iter().filter_map(|node| node.rescales) {
        let name = &graph.tensor(tensor).name;
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    Ok(names)
}

fn run(context: &Context<'_>) -> Result<Outcome> {
    let settled = Parameters::default().warm_up as usize;
    let names = rescaled()?;
    let mut outcome = Outcome::of("tensor,mean_interval_batches,least_factor,largest_factor");
    let (mut first, mut intervals) = (Vec::new(), Vec::new());
    for name in &names {
        let mut process = ScaleProcess::new(context.seed, name);
        let factors: Vec<u32> = (0..settled + WATCHED).map(|_| process.next_batch()).collect();
        let late = &factors[settled..];
        let interval = mean_interval(late).with_context(|| format!("the factor of {name} never changes"))?;
        let ends = [late.iter().min(), late.iter().max()].map(|factor| u64::from(factor.copied().unwrap_or_default()));
        outcome.row((name.as_str(), interval, ends))?;
        intervals.push(interval);
        if first.is_empty() {
            first = factors;
        }
    }
    outcome.range(ROW, intervals.iter().copied());
    outcome.remark(ROW, "an input: the process was set to this range");
    let shown = &first[..SHOWN];
    let factor: Vec<(f64, f64)> = shown.iter().enumerate().map(|(batch, &f)| (batch as f64, f64::from(f))).collect();
    let since = |(batch, interval): (usize, usize)| (batch as f64, interval as f64);
    let between: Vec<(f64, f64)> = changes(shown).into_iter().map(since).collect();
    intervals.sort_by(f64::total_cmp);
    let ranked: Vec<(f64, f64)> = (1..).map(f64::from).zip(intervals).collect();
    let count = ranked.len() as f64;
    let mut means = Lines::new().series(Series::new("mean interval", ranked).stroke(Stroke::None));
    if let Claim::Range { lo, hi } = context.row(ROW)?.claim {
        for end in [lo, hi] {
            means = means
                .series(Series::new("10 to 60 batches", [(1.0, end), (count, end)]).look(Look::Hatched).unmarked());
        }
    }
    let batches = || Axis::new("batch").range(0.0, SHOWN as f64);
    let trace = Lines::new().series(Series::new("first convolution", factor).stroke(Stroke::Step).unmarked());
    outcome.panel("(a) scale factor", trace, batches(), axis("scale factor", "bits"));
    let jumps = Lines::new().series(Series::new("first convolution", between).stroke(Stroke::None));
    let interval = || from_zero("interval", "batches");
    outcome.panel("(b) batches since the last change", jumps, batches(), interval());
    outcome.panel("mean interval of every tensor", means, Axis::new("tensor, by interval"), interval());
    outcome.quantity("rescaled tensors", "", [names.len() as f64]);
    outcome.words("batches watched", format!("{WATCHED} batches from batch {settled} on"));
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_lies_between_two_changes() {
        // Changes come in batches 2, 5 and 6: 3 batches and 1 batch apart, 2 on average. The first two batches and the
        // last are not between changes.
        let factors = [3, 3, 4, 4, 4, 3, 4, 4];
        assert_eq!(changes(&factors), [(5, 3), (6, 1)]);
        assert_eq!(mean_interval(&factors), Some(2.0));
        assert_eq!(mean_interval(&[3, 3, 4, 4]), None);
        assert_eq!(mean_interval(&[]), None);
    }

    #[test]
    fn every_product_of_vgg11_has_factors_of_its_own() {
        let names = rescaled().unwrap();
        let unique: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
        // Eight convolutions and a classifier, each with its output, its weight's gradient and its input's gradient,
        // but for the gradient of the picture: 9 · 3 − 1.
        assert_eq!(names.len(), 26, "{names:?}");
    }
}
