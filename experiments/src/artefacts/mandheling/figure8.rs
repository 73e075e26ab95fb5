//! Figures 8a and 8b: accuracy by the clock while one phone trains, each on a stand-in for its network.

use super::{accuracy, published};
use crate::artefacts::learning::{Compared, Taught, compare, stand_in_words, title, words};
use crate::artefacts::prelude::*;

/// Of a figure's stand-in for `network`, beside NITI's own accuracies where `beside` says so.
pub(super) fn of(context: &Context<'_>, network: &str, beside: bool) -> Result<Outcome> {
    let mut found = accuracy::of_methods(context)?;
    accuracy::on_the_phone(context, &mut found)?;
    let mut outcome = Outcome::of("method,epoch,mean_clock_s,mean_accuracy,accuracy_in_the_end");
    let stand_in = found.last().context("nothing is trained")?.stand_in.clone();
    let title = title(&stand_in.scenario.model, &stand_in.data, network);
    let ways: Vec<(String, Result<Taught>)> = found.into_iter().map(|one| (one.name.to_owned(), one.taught)).collect();
    let (mut lines, mut guesses) = (Lines::new(), Vec::new());
    for (name, taught) in &ways {
        let Ok(taught) = taught else { continue };
        let points = taught.curve();
        for (epoch, &(time, accuracy)) in (1_u64..).zip(&points) {
            outcome.row((name.as_str(), epoch, time, accuracy, words(&taught.accuracies(Part::Test))))?;
        }
        guesses.extend(taught.at_chance().map(|said| format!("{name} {said}")));
        lines = lines.series(Series::new(name.as_str(), points));
    }
    outcome.words("stand-ins", stand_in_words(&stand_in));
    outcome.list("no better than a guess", guesses);
    if ways.iter().any(|(_, taught)| taught.is_ok()) {
        outcome.panel(&title, lines, from_zero("simulated time", "s"), test_accuracy());
    }
    compare(&mut outcome, &[Compared { kind: "", stand_in, title, group: ways.len(), ways }])?;
    if beside {
        published::central(&mut outcome)?;
    }
    Ok(outcome)
}
