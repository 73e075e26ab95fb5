//! Scale factors in training: how often they change, and those of parts of a mini-batch.

use strum::IntoEnumIterator;

use crate::artefacts::learning::stand_ins;
use crate::artefacts::prelude::*;
use crate::artefacts::trained::{IN_INTEGERS, SplitGradient, Trained, measured};
use crate::measured::{Measured, MeasuredSeries};
use crate::train::{Factors, Made, StandIn, apart};

/// The artefact that measures them.
const PLACE: &str = "mandheling/figure4b";
const ABOUT: &str = "Scale factors of training in integers: how often they change in the first and the last epoch, \
                     their mean and their standard deviation in the last";
const ROW: &str = "mandheling/figure4b/vgg11-batch-64/scale-factor/change-interval";

/// A measurement of every tensor: its id, its unit, and its value from the first and the last epoch.
type Quantity = (&'static str, &'static str, fn([&[u32]; 2]) -> f64);

const QUANTITIES: [Quantity; 4] = [
    ("early", "% of batches", |[first, _]| changed(first)),
    ("late", "% of batches", |[_, last]| changed(last)),
    ("level", "bits", |[_, last]| moments(last).0),
    ("spread", "bits", |[_, last]| moments(last).1),
];

/// The batch of each change, and the number of batches since the change before.
fn changes(factors: &[i64]) -> Vec<(usize, usize)> {
    let pairs = factors.windows(2).enumerate();
    let at: Vec<usize> = pairs.filter(|(_, pair)| pair[0] != pair[1]).map(|(before, _)| before + 1).collect();
    at.windows(2).map(|pair| (pair[1], pair[1] - pair[0])).collect()
}

/// The percentage of batches whose factor differs from that of the batch before.
fn changed(factors: &[u32]) -> f64 {
    let changes = factors.windows(2).filter(|pair| pair[0] != pair[1]).count();
    changes as f64 / factors.len().saturating_sub(1).max(1) as f64 * 100.0
}

/// The mean and the standard deviation.
fn moments(factors: &[u32]) -> (f64, f64) {
    let all: Vec<f64> = factors.iter().map(|&factor| f64::from(factor)).collect();
    let middle = mean(&all).unwrap_or_default();
    let squares: Vec<f64> = all.iter().map(|factor| (factor - middle).powi(2)).collect();
    (middle, mean(&squares).unwrap_or_default().sqrt())
}

/// A tensor's factors in the first and in the last epoch.
fn ends(factors: &Factors, epochs: u32) -> [&[u32]; 2] {
    let each = factors.each.len() / epochs.max(1) as usize;
    [&factors.each[..each], &factors.each[factors.each.len() - each..]]
}

/// The prefix of the ids of a tensor's values.
fn name(model: &str, factors: &Factors) -> String {
    format!("{model}/{}/{}", factors.made, factors.tensor)
}

fn measure(context: &Context<'_>) -> Result<Measured> {
    let stand_ins = stand_ins(context, "factors")?;
    let words = |of: fn(&StandIn) -> &str| {
        let mut words: Vec<&str> = stand_ins.iter().map(of).collect();
        words.dedup();
        words
    };
    let (data, models) = (words(|one| &one.data), words(|one| &one.scenario.model));
    let mut measured = context.measuring(ABOUT, &data, &models);
    let all: Vec<(&StandIn, u64)> =
        stand_ins.iter().flat_map(|one| measured.seeds.iter().map(move |&seed| (one, seed))).collect();
    let of = |&(one, seed): &(&StandIn, u64)| one.factors(&one.scenario, seed, context.cache, context.kept);
    let found: Vec<Arc<Vec<Factors>>> = all.par_iter().map(of).collect::<Result<_, _>>()?;
    for (one, of_seeds) in stand_ins.iter().zip(found.chunks_exact(measured.seeds.len())) {
        let model = &one.scenario.model;
        let tensors = of_seeds.first().map_or(0, |factors| factors.len());
        for tensor in 0..tensors {
            for (quantity, unit, value) in QUANTITIES {
                let each: Vec<f64> =
                    of_seeds.iter().map(|factors| value(ends(&factors[tensor], one.epochs()))).collect();
                measured.add(format!("{}/{quantity}", name(model, &of_seeds[0][tensor])), unit, &each);
            }
        }
        measured.series.extend(of_seeds.first().and_then(|factors| factors.first()).map(|first| MeasuredSeries {
            id: name(model, first),
            seed: measured.seeds[0],
            unit: "bits".to_owned(),
            values: first.each.iter().copied().map(i64::from).collect(),
        }));
    }
    Ok(measured)
}

/// The measurements of the tensors of one kind in one network, by quantity.
fn of_kind(measured: &Measured, model: &str, made: Made, quantity: &str) -> Vec<f64> {
    let (begin, end) = (format!("{model}/{made}/"), format!("/{quantity}"));
    let is = |id: &str| id.starts_with(&begin) && id.ends_with(&end);
    measured.values.iter().filter(|value| is(&value.id)).flat_map(|value| value.each.iter().copied()).collect()
}

/// Batches between two changes if this percentage of batches has one; `None` if there are none.
fn interval(percent: f64) -> Option<f64> {
    (percent > 0.0).then(|| 100.0 / percent)
}

/// Figure 4a: the first convolution's factor with the first seed, batch by batch.
pub(super) fn figure4a(context: &Context<'_>) -> Result<Outcome> {
    let measured = context.measured(PLACE, || apart(rayon::current_num_threads(), || measure(context))?)?;
    let mut outcome = Outcome::of("network,kind,tensor,seed,batch,factor");
    outcome.words("stand-ins", measured.trained_on());
    let first = measured.series.first().context("no series was measured")?;
    let parts: Vec<&str> = first.id.split('/').collect();
    if let [model, kind, tensor @ ..] = &parts[..] {
        for (batch, &factor) in (0_u64..).zip(&first.values) {
            outcome.row(([*model, *kind, &tensor.join("/")], first.seed, batch, factor as f64))?;
        }
    }
    let factor: Vec<(f64, f64)> = (0..).map(f64::from).zip(first.values.iter().map(|&factor| factor as f64)).collect();
    let end = factor.len() as f64;
    outcome.quantity("least and largest factor", "bits", factor.iter().map(|point| point.1));
    let trace = Lines::new().series(Series::new("first convolution", factor).stroke(Stroke::Step).unmarked());
    outcome.panel("", trace, Axis::new("batch").range(0.0, end), axis("scale factor", "bits"));
    Ok(outcome)
}

pub(super) fn figure4b(context: &Context<'_>) -> Result<Outcome> {
    let measured = context.measured(PLACE, || apart(rayon::current_num_threads(), || measure(context))?)?;
    let mut outcome = Outcome::of("network,kind,tensor,quantity,value,lo,hi,unit");
    outcome.words("stand-ins", measured.trained_on());
    for value in &measured.values {
        let parts: Vec<&str> = value.id.split('/').collect();
        if let [model, kind, tensor @ .., quantity] = &parts[..] {
            let numbers = [value.value, value.lo, value.hi];
            outcome.row(([*model, *kind, &tensor.join("/"), *quantity], numbers, value.unit.as_str()))?;
        }
    }
    let first = measured.series.first().context("no series was measured")?;
    let model = first.id.split('/').next().unwrap_or_default();
    let late = measured.value(&format!("{}/late", first.id))?;
    outcome.range(ROW, late.each.iter().copied().filter_map(interval));
    let early = measured.value(&format!("{}/early", first.id))?;
    outcome.quantity("early interval of the first convolution", "", interval(early.value));
    outcome.quantity("seeds without a change", "", [late.each.iter().filter(|&&share| share == 0.0).count() as f64]);
    outcome.quantity("seeds", "", [late.each.len() as f64]);
    outcome.remark(ROW, format!("the first convolution of {model} on {}, last epoch", measured.data.join(", ")));
    for made in Made::iter() {
        let shares = of_kind(&measured, model, made, "late");
        outcome.quantity(&format!("late interval of {made}s"), "", mean(&shares).and_then(interval));
    }
    jumps(&mut outcome, &first.values);
    ranked(context, &mut outcome, &measured, model)?;
    Ok(outcome)
}

/// The batches between the changes of a factor.
fn jumps(outcome: &mut Outcome, factors: &[i64]) {
    let since = |(batch, interval): (usize, usize)| (batch as f64, interval as f64);
    let between: Vec<(f64, f64)> = changes(factors).into_iter().map(since).collect();
    let jumps = Lines::new().series(Series::new("first convolution", between).stroke(Stroke::None));
    let batches = Axis::new("batch").range(1.0, factors.len() as f64).log();
    outcome.panel("batches since the last change", jumps, batches, from_zero("interval", "batches"));
}

/// The intervals of all tensors that change, for each seed, and the paper's.
fn ranked(context: &Context<'_>, outcome: &mut Outcome, measured: &Measured, model: &str) -> Result<()> {
    let (mut lines, mut most) = (Lines::new(), 1.0_f64);
    for made in Made::iter() {
        let mut intervals: Vec<f64> = of_kind(measured, model, made, "late").into_iter().filter_map(interval).collect();
        intervals.sort_by(f64::total_cmp);
        most = most.max(intervals.len() as f64);
        let points: Vec<(f64, f64)> = (1..).map(f64::from).zip(intervals).collect();
        lines = lines.series(Series::new(made.to_string(), points).stroke(Stroke::None));
    }
    if let Claim::Range { lo, hi } = context.row(ROW)?.claim {
        for end in [lo, hi] {
            let line = Series::new("paper", [(1.0, end), (most, end)]);
            lines = lines.series(line.look(Look::Hatched).unmarked());
        }
    }
    let title = "mean interval of every tensor, last epoch";
    outcome.panel(title, lines, Axis::new("tensor, by interval"), axis("interval", "batches").log());
    Ok(())
}

const ABOUT_PARTS: &str =
    "Gradients of weights from parts of a mini-batch with scale factors of their own, merged by equation 4";

/// Parts of a mini-batch of 64.
const PARTS: [usize; 4] = [2, 4, 8, 16];
/// Mini-batches whose gradients are split.
const BATCHES: usize = 20;

/// The measurements for each number of parts: id, label and unit.
const OF_PARTS: [(&str, &str); 4] = [
    ("same-factor", "parts whose factor is the largest of the parts"),
    ("whole-factor", "gradients whose largest factor is the whole mini-batch's"),
    ("error-merged", "error of the merged gradient"),
    ("error-whole", "error of the whole mini-batch's gradient"),
];

pub(super) fn section3_5(context: &Context<'_>) -> Result<Outcome> {
    let (measured, outcome) = measured(context, ABOUT_PARTS, &[IN_INTEGERS], split)?;
    let mut records = Records::of("network,parts,quantity,label,percent,lo,hi");
    for (id, label) in OF_PARTS {
        for parts in PARTS {
            let value = measured.value(&format!("{}/{id}/{parts}", IN_INTEGERS.model))?;
            records.row((IN_INTEGERS.model, parts as u64, id, label, [value.value, value.lo, value.hi]))?;
        }
    }
    show(context, records, outcome)
}

/// The fractions and mean errors over the gradients of all layers.
fn split(trained: &Trained) -> Result<Vec<(String, &'static str, f64)>> {
    let mut found = Vec::new();
    for parts in PARTS {
        let all = trained.split_gradients(BATCHES, parts)?;
        let of =
            |value: fn(&SplitGradient) -> f64| mean(&all.iter().map(value).collect::<Vec<_>>()).unwrap_or_default();
        let percents =
            [of(same_factor), of(whole_factor), of(SplitGradient::error_of_merged), of(SplitGradient::error_of_whole)];
        for ((id, _), share) in OF_PARTS.into_iter().zip(percents) {
            found.push((format!("{id}/{parts}"), "%", share * 100.0));
        }
    }
    Ok(found)
}

/// The fraction of parts whose factor is the largest, which equation 4 uses.
fn same_factor(of: &SplitGradient) -> f64 {
    let largest = of.factors.iter().max();
    of.factors.iter().filter(|factor| Some(*factor) == largest).count() as f64 / of.factors.len().max(1) as f64
}

/// One if the largest factor of the parts is that of the whole mini-batch.
fn whole_factor(of: &SplitGradient) -> f64 {
    if of.factors.iter().max() == Some(&of.whole_factor) { 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use haversack_devices::registry::load_stack;
    use statrs::distribution::{Continuous, ContinuousCDF, Normal};

    use super::*;
    use crate::artefacts::trained::tests::trained_again;
    use crate::measured::committed;

    /// E min(1, |D|), where D is the difference of two logarithms that each scatter by `sigma` bits.
    fn share_of_changes(sigma: f64) -> f64 {
        let difference = Normal::new(0.0, sigma * 2.0_f64.sqrt()).unwrap();
        // ∫ |x| p(x) dx over |x| < 1 is 2 s² (p(0) − p(1)).
        let within = 4.0 * sigma * sigma * (difference.pdf(0.0) - difference.pdf(1.0));
        within + 2.0 * difference.cdf(-1.0)
    }

    #[test]
    fn factors_as_measured_change_as_often_as_was_measured() {
        let measured = crate::measured::committed(PLACE).unwrap();
        let factors = load_stack("mandheling-measured").unwrap().constants.factors.clone().unwrap();
        for (made, scatter) in [
            (Made::Output, Some(factors.output)),
            (Made::InputGradient, factors.input_gradient),
            (Made::WeightGradient, factors.weight_gradient),
        ] {
            let found = mean(&of_kind(&measured, "vgg-small", made, "late")).unwrap() / 100.0;
            // The constants have three digits.
            let scatter = scatter.unwrap().value.0;
            assert!((share_of_changes(scatter) - found).abs() < 0.001, "{made}: {found}");
        }
    }

    #[test]
    fn the_stacks_factors_change_as_often_as_figure_4_says() {
        // Once in 10 to 60 batches, with a uniform logarithm: (1/10 − 1/60) / ln 6 = 4.65% of batches.
        let said = (0.1 - 1.0 / 60.0) / 6.0_f64.ln();
        let factors = load_stack("mandheling").unwrap().constants.factors.clone().unwrap();
        assert!((share_of_changes(factors.output.value.0) - said).abs() < 1e-4, "{}", factors.output.value.0);
        // For every tensor: the paper states it for one.
        assert!(factors.input_gradient.is_none() && factors.weight_gradient.is_none());
    }

    #[test]
    fn an_interval_lies_between_two_changes() {
        // Changes come in batches 2, 5 and 6: 3 batches and 1 batch apart. The first two batches and the last are not
        // between changes.
        let factors = [3, 3, 4, 4, 4, 3, 4, 4];
        assert_eq!(changes(&factors), [(5, 3), (6, 1)]);
        assert!(changes(&[]).is_empty() && changes(&[3, 4]).is_empty());
    }

    #[test]
    fn shares_and_moments_are_of_their_epoch() {
        // Two epochs of four batches: 2 of 3 neighbours differ in the first and none in the second,
        // whose factors are 5.
        let factors = Factors { tensor: "t".to_owned(), made: Made::Output, each: vec![3, 4, 3, 3, 5, 5, 5, 5] };
        let ends = ends(&factors, 2);
        let values = QUANTITIES.map(|(.., value)| value(ends));
        assert_eq!(values, [2.0 / 3.0 * 100.0, 0.0, 5.0, 0.0]);
        // Of 3, 4, 3 and 3 the mean is 3.25, the variance (3 · 0.0625 + 0.5625) / 4 = 0.1875.
        assert_eq!(moments(ends[0]), (3.25, 0.1875_f64.sqrt()));
        assert_eq!((interval(25.0), interval(0.0)), (Some(4.0), None));
    }

    #[test]
    fn parts_are_merged_by_equation_4_as_they_were_measured_to_be() {
        let trained = trained_again("mandheling/section3.5", IN_INTEGERS, 2);
        // One part is the whole.
        for one in trained.split_gradients(1, 1).unwrap() {
            assert_eq!((&one.factors[..], one.error_of_merged()), (&[one.whole_factor][..], one.error_of_whole()));
        }
        let four = trained.split_gradients(BATCHES, 4).unwrap();
        // Five layers in each mini-batch.
        assert_eq!(four.len(), 5 * BATCHES);
        for one in &four {
            // The sum of four parts is at most four times the largest: two bits more.
            assert!(one.factors.len() == 4 && one.whole_factor <= one.factors.iter().max().unwrap() + 2);
        }
        // The third seed is 2; it was measured before sums had one order on every machine.
        let measured = committed("mandheling/section3.5").unwrap();
        let mean = |value: fn(&SplitGradient) -> f64| four.iter().map(value).sum::<f64>() / four.len() as f64 * 100.0;
        for (id, found) in [("same-factor", mean(same_factor)), ("error-merged", mean(SplitGradient::error_of_merged))]
        {
            let before = measured.value(&format!("lenet5/{id}/4")).unwrap();
            assert!((found / before.each[2] - 1.0).abs() < 0.05, "{id}: {found} for {before:?}");
        }
    }
}
