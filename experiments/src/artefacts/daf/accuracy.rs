//! The methods' accuracies on what stands in for the paper's networks and data sets.

use super::setting::{METHODS, of_method};
use crate::artefacts::learning::{
    Compared, Training, answer_accuracy, compare, learn, stand_in_words, stand_ins, title, with_seeds,
};
use crate::artefacts::prelude::*;
use crate::train::StandIn;

/// The kinds of stand-ins.
pub(super) const KINDS: [&str; 2] = ["images", "tokens"];
/// For what each kind stands in.
const STAND_FOR: [&str; 2] = ["ResNet-18", "RoBERTa-base and GPT-2 medium"];

/// Every stand-in of the artefact, learned in the ways that `ways` names.
pub(super) fn learned(
    context: &Context<'_>,
    ways: impl Fn(&str, &StandIn) -> Result<Vec<(String, Training)>>,
) -> Result<Vec<Compared>> {
    let (mut found, mut trainings) = (Vec::new(), Vec::new());
    for kind in KINDS {
        for stand_in in stand_ins(context, kind)? {
            let (names, mut own): (Vec<_>, Vec<_>) = ways(kind, &stand_in)?.into_iter().unzip();
            trainings.append(&mut own);
            found.push((kind, stand_in, names));
        }
    }
    ensure!(!found.is_empty(), "no stand-in is declared for the artefact");
    let mut taught = learn(context, &trainings)?.into_iter();
    let of = |(kind, stand_in, names): (_, _, Vec<String>)| {
        let ways: Vec<_> = names.into_iter().zip(taught.by_ref()).collect();
        let (group, stand_in) = (ways.len(), with_seeds(stand_in, ways.iter().map(|(_, taught)| taught)));
        let stands_for = STAND_FOR[usize::from(kind != KINDS[0])];
        let title = title(&stand_in.scenario.model, &stand_in.data, stands_for);
        Compared { kind, stand_in, title, ways, group }
    };
    Ok(found.into_iter().map(of).collect())
}

/// Every stand-in of the artefact under every method, in their order.
pub(super) fn of_methods(context: &Context<'_>) -> Result<Vec<Compared>> {
    let of = |kind: &str, stand_in: &StandIn, (method, name): (&str, &str)| {
        let scenario = of_method(context, kind, &stand_in.scenario, method)?;
        Ok((name.to_owned(), Training { stand_in: stand_in.clone(), scenario }))
    };
    learned(context, |kind, stand_in| METHODS.into_iter().map(|method| of(kind, stand_in, method)).collect())
}

/// Answers the accuracies of table 1: Original's is put in, the others are beside it.
pub(super) fn answer(context: &Context<'_>, outcome: &mut Outcome, found: &[Compared]) {
    for row in context.rows.iter().filter(|row| row.metric == "accuracy") {
        let kind = if row.subject.starts_with("resnet") { KINDS[0] } else { KINDS[1] };
        let place = METHODS.iter().position(|(method, _)| *method == row.method);
        let Some((one, place)) = found.iter().find(|one| one.kind == kind).zip(place) else { continue };
        let of = format!("stand-in {}", stand_in_words(&one.stand_in));
        let first = (METHODS[0].1, &one.ways[0].1);
        answer_accuracy(outcome, &row.id, &one.ways[place].1, &of, &first, place == 0);
    }
}

/// Draws accuracy against memory and against simulated time with their fronts, and says in the figure what was trained.
pub(super) fn draw(mut outcome: Outcome, found: &[Compared]) -> Result<Outcome> {
    let named: Vec<String> = found.iter().map(|one| stand_in_words(&one.stand_in)).collect();
    outcome.words("stand-ins", named.join("; "));
    compare(&mut outcome, found)?;
    Ok(outcome)
}

/// Draws the accuracies as bars, the mean over the seeds.
pub(super) fn bars(outcome: &mut Outcome, found: &[Compared]) {
    let series = |place: usize, name: &str| {
        let of = |one: &Compared| {
            one.ways.get(place)?.1.as_ref().ok().and_then(|taught| mean(&taught.accuracies(Part::Test)))
        };
        BarSeries::new(name, found.iter().map(of).collect::<Vec<_>>())
    };
    if found.iter().all(|one| one.first().is_none()) {
        return;
    }
    let bars = Bars::new(found.iter().map(|one| one.title.as_str()));
    let bars = METHODS.into_iter().enumerate().fold(bars, |bars, (place, (_, name))| bars.series(series(place, name)));
    outcome.bars("", bars, test_accuracy());
}
