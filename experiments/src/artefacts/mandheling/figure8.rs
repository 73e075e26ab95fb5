//! Figures 8a and 8b: accuracy by the clock while one phone trains, each on a stand-in for its network.

use super::accuracy;
use super::table7::METHODS;
use crate::artefacts::learning::{Compared, Way, compare, stand_in_words, words};
use crate::artefacts::prelude::*;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let found = accuracy::of_methods(context)?;
    let mut outcome = Outcome::of("method,epoch,mean_clock_s,mean_accuracy,accuracy_in_the_end");
    let floats = accuracy::of_floats(context, &found)?;
    let (mut lines, mut ways) = (Lines::new(), Vec::new());
    for one in &found {
        let mut way = Way::of(one.name, &one.taught);
        if one.method == METHODS[0].0 {
            way.seeds.iter_mut().for_each(|[_, memory, time]| (*memory, *time) = (floats.memory, floats.whole()));
        }
        ways.push(way);
        let Ok(taught) = &one.taught else { continue };
        let mut points = taught.curve(Part::Test);
        if one.method == METHODS[0].0 {
            points.iter_mut().zip(&floats.clock).for_each(|(point, &time)| point.0 = time);
        }
        for (epoch, &(time, accuracy)) in (1_u64..).zip(&points) {
            outcome.row((one.name, epoch, time, accuracy, words(&taught.accuracies(Part::Test))))?;
        }
        lines = lines.series(Series::new(one.name, points));
    }
    let in_integers = found.iter().find(|one| one.method != METHODS[0].0).context("nothing was trained in integers")?;
    let stand_in = &in_integers.stand_in;
    outcome.words("stand-ins", stand_in_words(context, stand_in));
    outcome.panel("", lines, from_zero("simulated time", "s"), test_accuracy());
    compare(context, &mut outcome, &[Compared { stand_in, group: ways.len(), ways }])?;
    Ok(outcome)
}
