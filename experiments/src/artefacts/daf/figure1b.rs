//! Figure 1b: memory and time of the methods beside their accuracy, on stand-ins.

use super::accuracy::{draw, of_methods};
use crate::artefacts::learning::title;
use crate::artefacts::prelude::*;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let found = of_methods(context)?;
    let mut outcome = Outcome::of("network,method,relative_time,relative_memory,points_lost");
    for one in &found {
        let mut front = Front::new();
        for (name, taught) in &one.ways {
            let (Ok(taught), Some(original)) = (taught, one.original()) else { continue };
            let over = |own: Vec<f64>, all: Vec<f64>| Some(mean(&own)? / mean(&all)?);
            let (time, memory) = (over(taught.times(), original.times()), over(taught.memory(), original.memory()));
            let lost = mean(&original.accuracies(Part::Test)).zip(mean(&taught.accuracies(Part::Test)));
            let lost = lost.map(|(all, own)| all - own);
            outcome.row((title(&one.stand_in), name.as_str(), time, memory, lost))?;
            front = front.cloud(name.as_str(), time.zip(memory).into_iter().collect::<Vec<_>>());
        }
        outcome.panel(
            &title(&one.stand_in),
            front,
            from_zero("time over Original's", ""),
            from_zero("memory over Original's", ""),
        );
    }
    draw(context, &mut outcome, &found)?;
    Ok(outcome)
}
