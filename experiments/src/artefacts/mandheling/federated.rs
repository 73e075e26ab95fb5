//! Federations of Xiaomi 11 Pros (section 4.3): table 8's federated rows, figures 8c and 8d.
//!
//! What a round takes is simulated of the paper's network, what rounds teach is learned by a stand-in. The two INT8 engines train
//! by the same algorithm, so that one federation in integers learns for both.

use super::published;
use super::table7::METHODS;
use super::table8::put_in_rounds;
use crate::artefacts::fedhybrid::federations::{Course, chance, hold};
use crate::artefacts::learning::{Taught, answer_accuracy, title};
use crate::artefacts::prelude::*;

/// The seeds of the stand-in's federations.
const SEEDS: [u64; 5] = [0, 1, 2, 3, 4];

/// What is trained by a federation, as the reference names it and for people; a reading of that name says of which phones.
pub(super) const SUBJECTS: [(&str, &str); 2] =
    [("fl-femnist-lenet", "LeNet, many phones"), ("fl-cifar100-vgg16", "VGG-16, many phones")];

/// The federation that the reading `id` declares under `method`, with each of `seeds`.
fn federation(context: &Context<'_>, id: &str, method: &str, seeds: &[u64]) -> Result<Vec<Arc<Course>>> {
    hold(context, &format!("{}\npolicy = \"{method}\"", context.reading_text(id)?), seeds)
}

/// What rounds of the paper's network take.
fn timed(context: &Context<'_>, subject: &str, method: &str) -> Result<Arc<Course>> {
    federation(context, subject, method, &[context.seed])?.pop().context("no federation was held")
}

/// How accurate the server's weights are after rounds of the stand-in's federation.
fn taught(context: &Context<'_>, method: &str) -> Result<Taught> {
    let (id, method) = match method {
        "mnn-fp32" => ("federated-fp32", method),
        _ => ("federated-int8", "mnn-int8"),
    };
    let seeds = federation(context, id, method, &context.seeds_of(&SEEDS))?;
    let chance = chance(context, context.reading_text(id)?)?.unwrap_or_default();
    Ok(Taught { seeds: seeds.iter().map(|course| course.as_ref().clone()).collect(), chance, ..Taught::default() })
}

/// Answers the federated rows of table 8, with bars of times and energies, under the names in `quantities`.
pub(super) fn answer(context: &Context<'_>, outcome: &mut Outcome, quantities: [(&str, &str, &str); 2]) -> Result<()> {
    let learned = METHODS.map(|(method, _)| taught(context, method));
    for (subject, name) in SUBJECTS {
        let mut grid = Grid::default();
        for (place, (method, method_name)) in METHODS.into_iter().enumerate() {
            let number = put_in_rounds(context, outcome, subject, method)?;
            let timed = timed(context, subject, method)?;
            // Energy of one client, as section 4.3 has it: what a phone of the population spends in all.
            let round = [timed.round_s(), timed.round_of_a_phone_j()];
            for ((metric, words, unit), each) in quantities.into_iter().zip(round) {
                let id = format!("mandheling/table8/{subject}/{method}/{metric}");
                let value = each * number / 3600.0;
                let paper = grid.answer(context, outcome, &id, [name, method_name, words], value)?;
                outcome.row((name, method, round, metric, value, paper, unit))?;
            }
            let id = format!("mandheling/table8/{subject}/{method}/accuracy");
            let first = (METHODS[0].1, &learned[0]);
            answer_accuracy(outcome, &id, &learned[place], "a stand-in's federation", &first, place == 0);
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
    let mut number = 0;
    for (method, name) in METHODS {
        let timed = timed(context, subject, method)?;
        let taught: Vec<Vec<(u32, f64)>> = taught(context, method)?.seeds.iter().map(Course::by_round).collect();
        number = taught.len();
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
    let words = if number == 1 { "one seed".to_owned() } else { format!("the mean of {number} seeds") };
    outcome.words("federation", format!("LeNet-5 on glyphs, {words}; every phone is a Xiaomi 11 Pro"));
    let stands_for = SUBJECTS.iter().find(|(id, _)| *id == subject).map_or(subject, |(_, name)| *name);
    outcome.panel(&title("lenet5", "glyphs", stands_for), lines, from_zero("simulated time", "s"), test_accuracy());
    if subject == SUBJECTS[0].0 {
        published::federated(&mut outcome)?;
    }
    Ok(outcome)
}
