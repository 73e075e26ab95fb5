//! What training in integers costs in accuracy, on what stands in for the paper's networks and data sets.

use super::setting::batch;
use super::table7::METHODS;
use crate::artefacts::learning::{Taught, Training, answer_accuracy, learn, stand_in_words, stand_ins, with_seeds};
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
    let of = |((method, name), taught)| {
        let stand_in = with_seeds(stand_in(method).clone(), [&taught]);
        Learned { method, name, stand_in, taught }
    };
    Ok(METHODS.into_iter().zip(learned).map(of).collect())
}

/// Prices all of them on the phone, each by its own engine, once scales have settled: fp32 carries data on another machine alone.
pub(super) fn on_the_phone(context: &Context<'_>, found: &mut [Learned]) -> Result<()> {
    let in_integers = found.iter().find(|one| one.method == "mnn-int8").context("MNN-INT8 was not trained")?;
    let StandIn { scenario, .. } = in_integers.stand_in.clone();
    for one in found {
        let Ok(taught) = &mut one.taught else { continue };
        let (scenario, batches, _) = one.stand_in.on_data(&under(&scenario, one.method, &[]), context.cache)?;
        taught.epoch_s = batch(context, &scenario)?.time.seconds() * batches as f64;
        taught.memory_mb = context.run(&scenario)?.peak_memory.megabytes();
    }
    Ok(())
}

/// Answers the accuracies of table 8 on one phone: MNN-FP32's is put in, the others are beside it.
pub(super) fn answer(outcome: &mut Outcome, subjects: &[&str], found: &[Learned]) {
    let Some(first) = found.first() else { return };
    for subject in subjects {
        for (place, one) in found.iter().enumerate() {
            let id = format!("mandheling/table8/{subject}/{}/accuracy", one.method);
            let of = format!("stand-in {}", stand_in_words(&one.stand_in));
            answer_accuracy(outcome, &id, &one.taught, &of, &(first.name, &first.taught), place == 0);
        }
    }
}
