//! Figure 1b: memory and time of the methods beside their accuracy, on stand-ins.

use super::accuracy::{draw, of_methods};
use crate::artefacts::prelude::*;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let found = of_methods(context)?;
    let mut outcome = Outcome::of("network,method,relative_time,relative_memory,points_lost");
    for one in &found {
        let mut front = Front::new();
        for (name, taught) in &one.ways {
            let (Ok(taught), Some(original)) = (taught, one.first()) else { continue };
            let (time, memory) = (taught.time_s() / original.time_s(), taught.memory_mb / original.memory_mb);
            let lost = mean(&original.accuracies(Part::Test)).zip(mean(&taught.accuracies(Part::Test)));
            let lost = lost.map(|(all, own)| all - own);
            outcome.row((one.title.as_str(), name.as_str(), time, memory, lost))?;
            if taught.at_chance().is_none() {
                front = front.cloud(name.as_str(), [(time, memory)]);
            }
        }
        if one.first().is_none() {
            continue;
        }
        outcome.panel(
            &one.title,
            front,
            from_zero("time over Original's", ""),
            from_zero("memory over Original's", ""),
        );
    }
    draw(outcome, &found)
}
