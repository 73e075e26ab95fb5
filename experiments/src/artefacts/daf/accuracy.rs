//! The methods' accuracies on what stands in for the paper's networks and data sets.

use haversack_reports::pareto::Sense;
use haversack_workloads::data::Part;

use super::setting::{DafNetwork, METHODS, SUBJECTS, of_method};
use crate::artefacts::learning::{Taught, Training, learn, stand_in_words, stand_ins, words};
use crate::artefacts::prelude::*;
use crate::train::StandIn;

/// The kinds of stand-ins.
pub(super) const KINDS: [&str; 2] = ["images", "tokens"];

/// A stand-in learned under every method, in their order.
pub(super) struct Learned {
    pub(super) kind: &'static str,
    pub(super) stand_in: StandIn,
    pub(super) methods: Vec<Result<Taught>>,
}

/// Every stand-in of the artefact under every method.
pub(super) fn of_methods(context: &Context<'_>) -> Result<Vec<Learned>> {
    let mut found = Vec::new();
    for kind in KINDS {
        found.extend(stand_ins(context, kind)?.into_iter().map(|stand_in| (kind, stand_in)));
    }
    let mut trainings = Vec::new();
    for (_, stand_in) in &found {
        for (method, _) in METHODS {
            trainings.push(Training { stand_in, scenario: of_method(context, &stand_in.scenario, method)? });
        }
    }
    let mut learned = learn(context, &trainings)?.into_iter();
    let of = |(kind, stand_in)| Learned { kind, stand_in, methods: learned.by_ref().take(METHODS.len()).collect() };
    Ok(found.into_iter().map(of).collect())
}

/// The kind of what stands in for a network.
fn kind_of(network: DafNetwork) -> &'static str {
    if network.is_of_images() { KINDS[0] } else { KINDS[1] }
}

/// Answers the accuracies of table 1: Original's is put in, the others are beside it.
pub(super) fn answer(context: &Context<'_>, outcome: &mut Outcome, found: &[Learned]) {
    for (subject, _, network) in SUBJECTS {
        let Some(one) = found.iter().find(|one| one.kind == kind_of(network)) else { continue };
        for ((method, _), taught) in METHODS.into_iter().zip(&one.methods) {
            let id = format!("daf/table1/{subject}/{method}/accuracy");
            match taught.as_ref().map(|taught| taught.accuracies(Part::Test)) {
                Err(error) => outcome.not_modelled(id, format!("its stand-in: {error:#}")),
                Ok(accuracies) => {
                    outcome.remark(&id, remark(context, one, &accuracies));
                    let value = mean(&accuracies).unwrap_or_default();
                    let input = method == METHODS[0].0;
                    outcome.answer(id, if input { Answer::Input(value) } else { Answer::Number(value) });
                }
            }
        }
    }
}

/// What an accuracy is of, and by how much it differs from Original's with the same seeds.
fn remark(context: &Context<'_>, one: &Learned, accuracies: &[f64]) -> String {
    let of = stand_in_words(context, &one.stand_in);
    let Some(Ok(original)) = one.methods.first() else { return format!("stand-in {of}") };
    let differences: Vec<f64> =
        accuracies.iter().zip(original.accuracies(Part::Test)).map(|(own, original)| own - original).collect();
    format!("stand-in {of}; {} points from Original", words(&differences))
}

/// Says in the figure what was trained, and draws accuracy against memory and against simulated time.
pub(super) fn draw(context: &Context<'_>, outcome: &mut Outcome, found: &[Learned]) {
    let named: Vec<String> = found.iter().map(|one| stand_in_words(context, &one.stand_in)).collect();
    outcome.words("stand-ins", named.join("; "));
    type Cost = fn(&Taught) -> Vec<f64>;
    let costs: [(Cost, &str, &str); 2] =
        [(Taught::memory, "peak memory", "MB"), (Taught::times, "simulated time", "s")];
    for one in found {
        for (cost, label, unit) in costs {
            let mut front = Front::new().senses([Sense::Minimise, Sense::Maximise]).overall();
            for ((_, name), taught) in METHODS.into_iter().zip(&one.methods) {
                let points = taught
                    .as_ref()
                    .map(|taught| cost(taught).into_iter().zip(taught.accuracies(Part::Test)).collect::<Vec<_>>());
                front = front.cloud(name, points.unwrap_or_default());
            }
            let title = format!("{} on {}", one.stand_in.scenario.model, one.stand_in.data);
            outcome.panel(&title, front, axis(label, unit), axis("test accuracy", "%"));
        }
    }
}
