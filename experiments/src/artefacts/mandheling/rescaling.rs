//! Section 3.4 with data: what self-adaptive rescaling costs in accuracy, and what integers do beside fp32.

use super::accuracy;
use crate::artefacts::learning::words;
use crate::artefacts::prelude::*;
use crate::measured::Measured;
use crate::train::apart;

const PLACE: &str = "mandheling/rescaling";
const ABOUT: &str = "Accuracy in fp32, in integers with every scale factor taken anew in every batch, and with self-adaptive \
                     rescaling, and the differences with the same seed";

/// A method and the one that it is compared with, by their names, and for people.
const COMPARED: [(&str, &str, &str); 2] =
    [("mandheling", "mnn-int8", "self-adaptive rescaling"), ("mnn-int8", "mnn-fp32", "integers")];
/// The parts that accuracy is measured on.
const PARTS: [(Part, &str); 2] = [(Part::Validation, "validation"), (Part::Test, "test")];

fn measure(context: &Context<'_>) -> Result<Measured> {
    let found = accuracy::of_methods(context)?;
    let stand_in = &found.first().context("nothing was trained")?.stand_in;
    let (data, model) = (stand_in.data.as_str(), stand_in.scenario.model.as_str());
    let mut measured = context.measuring(ABOUT, &[data], &[model]);
    measured.seeds.clone_from(&stand_in.seeds);
    let of = |method: &str, part| -> Result<Vec<f64>> {
        let one = found.iter().find(|one| one.method == method).with_context(|| format!("{method} was not trained"))?;
        match &one.taught {
            Ok(taught) => Ok(taught.accuracies(part)),
            Err(error) => bail!("{method}: {error:#}"),
        }
    };
    for one in &found {
        for (part, name) in PARTS {
            measured.add(format!("{}/{}", one.method, name), "%", &of(one.method, part)?);
        }
    }
    for (method, other, _) in COMPARED {
        for (part, name) in PARTS {
            let pairs = of(method, part)?.into_iter().zip(of(other, part)?);
            let lost: Vec<f64> = pairs.map(|(own, other)| other - own).collect();
            measured.add(format!("{method}-below-{other}/{}", name), "points", &lost);
        }
    }
    Ok(measured)
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let measured = context.measured(PLACE, || apart(rayon::current_num_threads(), || measure(context))?)?;
    let mut outcome = Outcome::of("id,value,lo,hi,unit");
    outcome.words("stand-ins", measured.trained_on());
    for value in &measured.values {
        outcome.row((value.id.as_str(), [value.value, value.lo, value.hi], value.unit.as_str()))?;
    }
    let mut lines = Lines::new();
    for (method, other, label) in COMPARED {
        let lost = measured.value(&format!("{method}-below-{other}/test"))?;
        outcome.words(&format!("points that {label} cost"), words(&lost.each));
        let points: Vec<(f64, f64)> =
            measured.seeds.iter().zip(&lost.each).map(|(&seed, &lost)| (seed as f64, lost)).collect();
        lines = lines.series(Series::new(label, points).stroke(Stroke::None));
        let ends = [measured.seeds.iter().min(), measured.seeds.iter().max()];
        let level = |height: f64| {
            let across = ends.into_iter().flatten().map(|&seed| (seed as f64, height));
            Series::new(label, across.collect::<Vec<_>>()).unmarked()
        };
        lines = lines.series(level(lost.value));
        for end in [lost.lo, lost.hi] {
            lines = lines.series(level(end).look(Look::Hatched));
        }
    }
    outcome.panel("test accuracy lost, by seed", lines, Axis::new("seed"), axis("accuracy lost", "points"));
    Ok(outcome)
}
