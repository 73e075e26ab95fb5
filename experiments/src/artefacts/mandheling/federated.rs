//! Federations of Xiaomi 11 Pros (section 4.3): table 8's federated rows, figures 8c and 8d.
//!
//! What a round takes is simulated of the paper's network, what rounds teach is learned by a stand-in. The two INT8 engines train
//! by the same algorithm, so that one federation in integers learns for both.

use std::sync::Arc;

use super::setting::{XIAOMI_11_PRO, on_xiaomi_11_pro};
use super::table7::METHODS;
use super::table8::rounds;
use crate::artefacts::learning::words;
use crate::artefacts::prelude::*;
use crate::federate::{Held, Specification, held};

pub(super) static FIGURE8C: Artefact =
    on_xiaomi_11_pro("figure8c", "accuracy by the clock while phones train LeNet together", |context| {
        figure(context, SUBJECTS[0].0)
    })
    .with_users();
pub(super) static FIGURE8D: Artefact =
    on_xiaomi_11_pro("figure8d", "the same of VGG-16", |context| figure(context, SUBJECTS[1].0)).with_users();

/// What is trained by a federation, as the reference names it and for people; a reading of that name says of which phones.
pub(super) const SUBJECTS: [(&str, &str); 2] =
    [("fl-femnist-lenet", "LeNet, many phones"), ("fl-cifar100-vgg16", "VGG-16, many phones")];

/// A round, in the mean.
#[derive(Clone, Copy, Debug)]
struct MeanRound {
    seconds: f64,
    /// Of all its phones.
    joules: f64,
    phones: u32,
}

/// The federation that the reading `id` declares under `method`.
fn specification(context: &Context<'_>, id: &str, method: &str, shift: u64) -> Result<Specification> {
    let text = format!("{}\npolicy = \"{method}\"", context.reading_text(id)?.replace(';', "\n"));
    let seed = context.seed.wrapping_add(shift);
    Ok(Specification::parse(&format!("reading `{id}`"), &text, Some(seed))?)
}

/// Holds it once for all artefacts.
fn hold(context: &Context<'_>, asked: &Specification) -> Result<Arc<Held>> {
    let key = format!("federation {:?}", asked.record());
    context.once(key, || Ok(held(asked, context.cache)?))
}

/// What a round of the paper's network takes.
fn round(context: &Context<'_>, subject: &str, method: &str) -> Result<MeanRound> {
    let asked = specification(context, subject, method, 0)?;
    let held = hold(context, &asked)?;
    let mean = |of: fn(&haversack_federation::rows::RoundRow) -> f64| {
        mean(&held.rounds.iter().map(of).collect::<Vec<_>>()).with_context(|| format!("{subject} has no rounds"))
    };
    Ok(MeanRound { seconds: mean(|row| row.duration_s)?, joules: mean(|row| row.energy_j)?, phones: held.phones })
}

/// How accurate the server's weights are after rounds of the stand-in's federation, by seed, in percent.
fn taught(context: &Context<'_>, method: &str) -> Result<Vec<Vec<(u32, f64)>>> {
    let quick = if context.full { "" } else { "-quick" };
    let (id, method) = match method {
        "mnn-fp32" => (format!("federated-fp32{quick}"), method),
        _ => (format!("federated-int8{quick}"), "mnn-int8"),
    };
    let of_seed = |(shift, _)| {
        let held = hold(context, &specification(context, &id, method, shift)?)?;
        Ok(held.rounds.iter().filter_map(|row| Some((row.round, 100.0 * row.accuracy?))).collect())
    };
    (0..).zip(context.seeds()).map(of_seed).collect()
}

/// The accuracies at the end, by seed.
fn last(taught: &[Vec<(u32, f64)>]) -> Vec<f64> {
    taught.iter().filter_map(|seed| seed.last()).map(|&(_, accuracy)| accuracy).collect()
}

/// Answers the federated rows of table 8; `grid` keeps times and energies for its bars, under the names in `quantities`.
pub(super) fn answer(
    context: &Context<'_>,
    (outcome, grid): (&mut Outcome, &mut Grid),
    quantities: [(&str, &str, &str); 2],
) -> Result<()> {
    let learned = METHODS.map(|(method, _)| taught(context, method));
    let [fp32, ..] = &learned;
    let baseline = fp32.as_ref().map(|taught| last(taught)).unwrap_or_default();
    for (subject, name) in SUBJECTS {
        for (place, (method, method_name)) in METHODS.into_iter().enumerate() {
            let rounds_row = context.row(&format!("mandheling/table8/{subject}/{method}/rounds"))?;
            let number = rounds(context.reference, rounds_row);
            let number = number.with_context(|| format!("{} has no number", rounds_row.id))?;
            outcome.answer(rounds_row.id.clone(), Answer::Input(number));
            let round = round(context, subject, method)?;
            // Of one client, as section 4.3 has it: what a phone of the population spends in all.
            let of_client = round.joules / f64::from(round.phones);
            for ((metric, words, unit), each) in quantities.into_iter().zip([round.seconds, of_client]) {
                let id = format!("mandheling/table8/{subject}/{method}/{metric}");
                let value = each * number / 3600.0;
                let paper = grid.answer((context, outcome), &id, [name, method_name, words], value)?;
                outcome.row((name, method, [round.seconds, of_client], metric, value, paper, unit))?;
            }
            let id = format!("mandheling/table8/{subject}/{method}/accuracy");
            match &learned[place] {
                Ok(taught) => {
                    let own = last(taught);
                    let differences: Vec<f64> = own.iter().zip(&baseline).map(|(own, fp32)| own - fp32).collect();
                    let (words, than) = (words(&differences), METHODS[0].1);
                    outcome.remark(&id, format!("a stand-in's federation; {words} points from {than}"));
                    let value = mean(&own).unwrap_or_default();
                    outcome.answer(id, if place == 0 { Answer::Input(value) } else { Answer::Number(value) });
                }
                Err(error) => outcome.not_modelled(id, format!("its stand-in: {error:#}")),
            }
        }
    }
    Ok(())
}

/// Accuracy of the stand-in by the time that as many rounds of the network take.
fn figure(context: &Context<'_>, subject: &str) -> Result<Outcome> {
    let mut outcome = Outcome::of("method,seed,round,clock_s,test_accuracy");
    let mut lines = Lines::new();
    for (method, name) in METHODS {
        let (round, taught) = (round(context, subject, method)?, taught(context, method)?);
        let clock = |number: u32| f64::from(number) * round.seconds;
        for (seed, points) in (0_u64..).zip(&taught) {
            for &(number, accuracy) in points {
                outcome.row((method, seed, u64::from(number), clock(number), accuracy))?;
            }
        }
        let first = taught.first().into_iter().flatten().enumerate();
        let points: Vec<(f64, f64)> = first
            .filter_map(|(place, &(number, _))| {
                let all: Vec<f64> = taught.iter().filter_map(|seed| seed.get(place)).map(|point| point.1).collect();
                Some((clock(number) / 3600.0, mean(&all)?))
            })
            .collect();
        lines = lines.series(Series::new(name, points));
    }
    let words = if context.full { "the mean of five seeds" } else { "quick, 1 seed" };
    outcome.words("federation", format!("LeNet-5 on glyphs, {words}; every phone is a {XIAOMI_11_PRO}"));
    outcome.panel("", lines, from_zero("simulated time", "h"), test_accuracy());
    Ok(outcome)
}
