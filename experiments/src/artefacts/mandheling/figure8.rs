//! Figures 8a and 8b: accuracy by the clock while one phone trains, each on a stand-in for its network.

use haversack_workloads::data::Part;

use super::accuracy;
use super::setting::on_xiaomi_11_pro;
use super::table7::METHODS;
use crate::artefacts::learning::{stand_in_words, words};
use crate::artefacts::prelude::*;

pub(super) static FIGURE8A: Artefact =
    on_xiaomi_11_pro("figure8a", "accuracy by the clock while one phone trains VGG-11's stand-in", run);
pub(super) static FIGURE8B: Artefact =
    on_xiaomi_11_pro("figure8b", "the same of ResNet-18's, a larger network in larger mini-batches", run);

fn run(context: &Context<'_>) -> Result<Outcome> {
    let found = accuracy::of_methods(context)?;
    let mut outcome = Outcome::of("method,epoch,clock_s,test_accuracy,final_accuracy");
    let clock = accuracy::clock_of_floats(context, &found)?;
    let mut lines = Lines::new();
    for one in &found {
        let Ok(taught) = &one.taught else { continue };
        let mut points = taught.curve(Part::Test);
        if one.method == METHODS[0].0 {
            points.iter_mut().zip(&clock).for_each(|(point, &time)| point.0 = time);
        }
        for (epoch, &(time, accuracy)) in (1_u64..).zip(&points) {
            outcome.row((one.name, epoch, time, accuracy, words(&taught.accuracies(Part::Test))))?;
        }
        lines = lines.series(Series::new(one.name, points));
    }
    let named: Vec<String> = found.iter().skip(1).take(1).map(|one| stand_in_words(context, &one.stand_in)).collect();
    outcome.words("stand-ins", named.join("; "));
    outcome.panel("", lines, from_zero("simulated time", "s"), test_accuracy());
    Ok(outcome)
}
