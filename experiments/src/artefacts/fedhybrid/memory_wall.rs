//! Figure 1: the losses of a federation on phones short of memory, and where data correlate with memory.

use super::federations::{Federation, Held, courses, hold, hold_all, point_of, readings, seeds, shown, text};
use crate::artefacts::prelude::*;
use crate::artefacts::sweeps::words;

/// The first two methods of each task are Oort as published, and Oort with enough memory.
pub(super) fn figure1(context: &Context<'_>) -> Result<Outcome> {
    let all = hold_all(context)?;
    let mut records = courses(context, &all)?;
    for pair in all.windows(2).enumerate().filter(|(place, pair)| pair[0].first == *place).map(|(_, pair)| pair) {
        let task = &pair[0].cases;
        let of_task = shown(context, &task[0], &pair[0].federation)?;
        let lost = |of: [&Federation; 2]| of[1].accuracy() - of[0].accuracy();
        let both = lost([&pair[0].federation, &pair[1].federation]);
        records.row((words(task), point_of("drop", &of_task, 0.0, both)))?;
        for &apart in context.reading_numbers("data-by-memory")? {
            let mut found = Vec::new();
            for Held { cases, .. } in pair {
                let text = text(context, &cases[0].id, &readings(&cases[1]))?;
                let courses = hold(context, &format!("{text}\ndata_by_memory = {apart}"), &seeds(context)?)?;
                found.push(Federation { courses });
                let mut cases = cases.clone();
                cases[1].name = cases[1].name.as_ref().map(|of| format!("{of}, data by memory {apart}"));
                let curve = found.last().map(Federation::curve).unwrap_or_default().into_iter();
                curve
                    .map(|point| (words(&cases), point_of("apart", &of_task, point.0, point.1)))
                    .try_for_each(|row| records.row(row))?;
            }
            records.row((words(task), point_of("drop", &of_task, apart, lost([&found[0], &found[1]]))))?;
        }
    }
    show(context, records, Outcome::default())
}
