//! Section 3.5 with data: what equation 4 makes of the parts of a split mini-batch.

use crate::artefacts::prelude::*;
use crate::artefacts::trained::{IN_INTEGERS, SplitGradient, Trained, measured};

const ABOUT: &str =
    "Gradients of weights from parts of a mini-batch with scale factors of their own, merged by equation 4";

/// Parts of a mini-batch of 64.
const PARTS: [usize; 4] = [2, 4, 8, 16];
/// Mini-batches of which gradients are split.
const BATCHES: usize = 20;

/// What is measured for each number of parts: by its id, for people, and its unit.
const QUANTITIES: [(&str, &str); 4] = [
    ("same-factor", "parts whose factor is the largest of the parts"),
    ("whole-factor", "gradients whose largest factor is the whole mini-batch's"),
    ("error-merged", "error of the merged gradient"),
    ("error-whole", "error of the whole mini-batch's gradient"),
];

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let (measured, outcome) = measured(context, ABOUT, &[IN_INTEGERS], split)?;
    let mut records = Records::of("network,parts,quantity,label,percent,lo,hi");
    for (id, label) in QUANTITIES {
        for parts in PARTS {
            let value = measured.value(&format!("{}/{id}/{parts}", IN_INTEGERS.model))?;
            records.row((IN_INTEGERS.model, parts as u64, id, label, [value.value, value.lo, value.hi]))?;
        }
    }
    show(context, records, outcome)
}

/// The shares and mean errors over the gradients of all layers.
fn split(trained: &Trained) -> Result<Vec<(String, &'static str, f64)>> {
    let mut found = Vec::new();
    for parts in PARTS {
        let all = trained.split_gradients(BATCHES, parts)?;
        let of =
            |value: fn(&SplitGradient) -> f64| mean(&all.iter().map(value).collect::<Vec<_>>()).unwrap_or_default();
        let percents =
            [of(same_factor), of(whole_factor), of(SplitGradient::error_of_merged), of(SplitGradient::error_of_whole)];
        for ((id, _), share) in QUANTITIES.into_iter().zip(percents) {
            found.push((format!("{id}/{parts}"), "%", share * 100.0));
        }
    }
    Ok(found)
}

/// The share of parts whose factor is that of equation 4, the largest.
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
    use super::*;
    use crate::artefacts::trained::tests::trained_again;
    use crate::measured::committed;

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
