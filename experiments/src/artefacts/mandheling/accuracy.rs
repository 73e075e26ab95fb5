//! What training in integers costs in accuracy, on what stands in for the paper's networks and data sets.

use super::table7::METHODS;
use crate::artefacts::learning::{Taught, Training, answer_accuracy, learn, stand_in_words, stand_ins};
use crate::artefacts::prelude::*;
use crate::train::StandIn;

/// A method with its stand-in, learned.
pub(super) struct Learned {
    pub(super) method: &'static str,
    pub(super) name: &'static str,
    pub(super) stand_in: StandIn,
    pub(super) taught: Result<Taught>,
}

/// Every method on the stand-in of its number format: fp32 by an eager framework, whose graph carries data, and integers.
pub(super) fn of_methods(context: &Context<'_>) -> Result<Vec<Learned>> {
    let first =
        |kind: &str| stand_ins(context, kind)?.into_iter().next().with_context(|| format!("no stand-in in {kind}"));
    let (fp32, int8) = (first("fp32")?, first("int8")?);
    let stand_in = |method: &str| if method == METHODS[0].0 { &fp32 } else { &int8 };
    let training = |(method, _): (&'static str, _)| {
        let stand_in = stand_in(method);
        let scenario = match method == METHODS[0].0 {
            true => stand_in.scenario.clone(),
            false => under(&stand_in.scenario, method, &[]),
        };
        Training { stand_in: stand_in.clone(), scenario }
    };
    let learned = learn(context, &METHODS.map(training))?;
    let of = |((method, name), taught)| Learned { method, name, stand_in: stand_in(method).clone(), taught };
    Ok(METHODS.into_iter().zip(learned).map(of).collect())
}

/// What training in fp32 costs on the phone.
pub(super) struct OfFloats {
    /// The simulated time so far at the end of each epoch, in seconds.
    pub(super) clock: Vec<f64>,
    /// The peak of memory, in megabytes.
    pub(super) memory: f64,
}

impl OfFloats {
    /// The simulated time of the whole training, in seconds.
    pub(super) fn whole(&self) -> f64 {
        self.clock.last().copied().unwrap_or_default()
    }
}

/// What fp32 costs: what carries data there runs on another machine, so that its clock is that of MNN-INT8, by the ratio of
/// their iterations, and its memory that of MNN's own iteration.
pub(super) fn of_floats(context: &Context<'_>, found: &[Learned]) -> Result<OfFloats> {
    let in_integers = found.iter().find(|one| one.method == "mnn-int8").context("MNN-INT8 was not trained")?;
    let run = |method: &str| context.run(&under(&in_integers.stand_in.scenario, method, &[]));
    let (floats, integers) = (run(METHODS[0].0)?, run(in_integers.method)?);
    let slower = floats.iteration.seconds() / integers.iteration.seconds();
    match &in_integers.taught {
        Ok(taught) => Ok(OfFloats {
            clock: taught.curve(Part::Test).into_iter().map(|(time, _)| time * slower).collect(),
            memory: floats.peak_memory.megabytes(),
        }),
        Err(error) => bail!("its stand-in: {error:#}"),
    }
}

/// Answers the accuracies of table 8 on one phone: MNN-FP32's is put in, the others are beside it.
pub(super) fn answer(context: &Context<'_>, outcome: &mut Outcome, subjects: &[&str], found: &[Learned]) {
    let of_test = |one: &Learned| one.taught.as_ref().map(|taught| taught.accuracies(Part::Test)).unwrap_or_default();
    let baseline = found.first().map(of_test).unwrap_or_default();
    for subject in subjects {
        for (place, one) in found.iter().enumerate() {
            let id = format!("mandheling/table8/{subject}/{}/accuracy", one.method);
            let accuracies = one.taught.as_ref().map(|taught| taught.accuracies(Part::Test));
            let of = format!("stand-in {}", stand_in_words(context, &one.stand_in));
            let accuracies = accuracies.map_err(|error| format!("{error:#}"));
            answer_accuracy(outcome, &id, accuracies, &of, Some((METHODS[0].1, baseline.as_slice())), place == 0);
        }
    }
}
