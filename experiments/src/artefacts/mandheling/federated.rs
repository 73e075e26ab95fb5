//! Federations of Xiaomi 11 Pros (section 4.3): table 8's federated rows, figures 8c and 8d.
//!
//! What a round takes is simulated of the paper's network, what rounds teach is learned by a stand-in. The two INT8 engines train
//! by the same algorithm, so that one federation in integers learns for both.

use super::table7::METHODS;
use super::table8::put_in_rounds;
use crate::artefacts::fedhybrid::federations::{Course, hold};
use crate::artefacts::learning::answer_accuracy;
use crate::artefacts::prelude::*;

/// What is trained by a federation, as the reference names it and for people; a reading of that name says of which phones.
pub(super) const SUBJECTS: [(&str, &str); 2] =
    [("fl-femnist-lenet", "LeNet, many phones"), ("fl-cifar100-vgg16", "VGG-16, many phones")];

/// The federation that the reading `id` declares under `method`, held once for all artefacts.
fn federation(context: &Context<'_>, id: &str, method: &str, seed: u64) -> Result<Arc<Course>> {
    let text = format!("{}\npolicy = \"{method}\"", context.reading_text(id)?);
    hold(context, &text, seed)
}

/// How accurate the server's weights are after rounds of the stand-in's federation, by seed, in percent.
fn taught(context: &Context<'_>, method: &str) -> Result<Vec<Arc<Course>>> {
    let quick = if context.full { "" } else { "-quick" };
    let (id, method) = match method {
        "mnn-fp32" => (format!("federated-fp32{quick}"), method),
        _ => (format!("federated-int8{quick}"), "mnn-int8"),
    };
    context.seeds().into_iter().map(|seed| federation(context, &id, method, seed)).collect()
}

/// How accurate the server's weights are at the end, by seed, in percent.
fn last(taught: &[Arc<Course>]) -> Vec<f64> {
    taught.iter().filter_map(|course| course.by_round().last().map(|(_, accuracy)| *accuracy)).collect()
}

/// Answers the federated rows of table 8, with bars of times and energies, under the names in `quantities`.
pub(super) fn answer(context: &Context<'_>, outcome: &mut Outcome, quantities: [(&str, &str, &str); 2]) -> Result<()> {
    let learned = METHODS.map(|(method, _)| taught(context, method));
    let [fp32, ..] = &learned;
    let baseline = fp32.as_ref().map(|taught| last(taught)).unwrap_or_default();
    for (subject, name) in SUBJECTS {
        let mut grid = Grid::default();
        for (place, (method, method_name)) in METHODS.into_iter().enumerate() {
            let number = put_in_rounds(context, outcome, subject, method)?;
            let timed = federation(context, subject, method, context.seed)?;
            // Energy of one client, as section 4.3 has it: what a phone of the population spends in all.
            let round = [timed.round_s(), timed.round_of_a_phone_j()];
            for ((metric, words, unit), each) in quantities.into_iter().zip(round) {
                let id = format!("mandheling/table8/{subject}/{method}/{metric}");
                let value = each * number / 3600.0;
                let paper = grid.answer(context, outcome, &id, [name, method_name, words], value)?;
                outcome.row((name, method, round, metric, value, paper, unit))?;
            }
            let id = format!("mandheling/table8/{subject}/{method}/accuracy");
            let accuracies = learned[place].as_ref().map(|taught| last(taught)).map_err(|error| format!("{error:#}"));
            let baseline = Some((METHODS[0].1, baseline.as_slice()));
            answer_accuracy(outcome, &id, accuracies, "a stand-in's federation", baseline, place == 0);
        }
        for (_, words, unit) in quantities {
            outcome.bars(words, grid.bars(words), axis(words, unit));
        }
    }
    Ok(())
}

/// Accuracy of the stand-in by the time that as many rounds of the network take.
pub(super) fn figure(context: &Context<'_>, subject: &str) -> Result<Outcome> {
    let mut outcome = Outcome::of("method,seed,round,clock_s,test_accuracy");
    let mut lines = Lines::new();
    for (method, name) in METHODS {
        let timed = federation(context, subject, method, context.seed)?;
        let taught: Vec<Vec<(u32, f64)>> = taught(context, method)?.iter().map(|course| course.by_round()).collect();
        let clock = |round: u32| f64::from(round) * timed.round_s();
        for (seed, points) in (0_u64..).zip(&taught) {
            for &(round, accuracy) in points {
                outcome.row((method, seed, u64::from(round), clock(round), accuracy))?;
            }
        }
        let mean_at = |(place, &(round, _)): (usize, &(u32, f64))| {
            let all: Vec<f64> = taught.iter().filter_map(|seed| seed.get(place)).map(|point| point.1).collect();
            Some((clock(round), mean(&all)?))
        };
        let points: Vec<(f64, f64)> = taught.first().into_iter().flatten().enumerate().filter_map(mean_at).collect();
        lines = lines.series(Series::new(name, points));
    }
    let words = if context.full { "the mean of five seeds" } else { "quick, 1 seed" };
    outcome.words("federation", format!("LeNet-5 on glyphs, {words}; every phone is a Xiaomi 11 Pro"));
    outcome.panel("", lines, from_zero("simulated time", "s"), test_accuracy());
    Ok(outcome)
}
