//! Networks that artefacts train on stand-ins: which, and what is made of their accuracies.
//!
//! A *stand-in* is a reading whose key is `stand-in`, or `stand-in, quick` where not everything is asked for: its value is a
//! specification of `haversack train`, and the first word of its id the kind of what it stands for (`images-resnet8`). Those of
//! a kind that has a `-base`, a reading of the same form, go on from where that one ends.

use haversack_reports::pareto::Sense;

use super::prelude::*;
use crate::error::CommandError;
use crate::measured::interval;
use crate::papers::catalogue::Entry;
use crate::papers::readings::{Reading, Value};
use crate::train::{Row, StandIn};

/// A scenario on a stand-in.
#[derive(Clone, Debug)]
pub(super) struct Training {
    pub(super) stand_in: StandIn,
    pub(super) scenario: Scenario,
}

/// What a training has come to: the rows of every seed.
#[derive(Clone, Debug)]
pub(super) struct Taught {
    seeds: Vec<Arc<Vec<Row>>>,
}

/// The stand-ins of a kind that are declared for the artefact: those of `--full`, or the quick one; none where none is.
///
/// # Errors
/// One that is no specification.
pub(super) fn stand_ins(context: &Context<'_>, kind: &str) -> Result<Vec<StandIn>> {
    let Entry { paper, id, .. } = context.artefact.entry;
    let key = if context.full { "stand-in" } else { "stand-in, quick" };
    let readings = context.readings.of(paper, id).filter(|reading| reading.key == key);
    let of_kind = readings.filter(|reading| reading.id.split('-').next() == Some(kind));
    let parse = |reading: &Reading, shift: u64| match &reading.value {
        Value::Text(text) => Ok(StandIn::parse(&format!("reading `{}`", reading.id), text, shift)?),
        other => Err(anyhow!("the reading `{}` is not words but {other}", reading.id)),
    };
    // One base for all seeds, as of a network that is taken ready-made.
    let base = if context.full { format!("{kind}-base") } else { format!("{kind}-base-quick") };
    let base = context.readings.reading(paper, id, &base).map(|reading| parse(reading, 0)).transpose()?;
    let after = |stand_in: StandIn| match &base {
        Some(base) => stand_in.after(base.clone()),
        None => stand_in,
    };
    of_kind.map(|reading| Ok(after(parse(reading, context.seed)?))).collect()
}

/// Trains all of them with all their seeds: what diverges or cannot be is an error of its own.
///
/// # Errors
/// Ctrl-C.
pub(super) fn learn(context: &Context<'_>, trainings: &[Training]) -> Result<Vec<Result<Taught>>> {
    let courses: Vec<(&Training, u64)> = trainings
        .iter()
        .flat_map(|training| training.stand_in.seeds.iter().map(move |&seed| (training, seed)))
        .collect();
    let course = |&(Training { stand_in, scenario }, seed): &(&Training, u64)| {
        stand_in.learn(scenario, seed, context.cache, context.kept)
    };
    // First what no other artefact is training, so that nobody waits while there is something to do.
    let begun = |one: &(&Training, u64)| {
        let (Training { stand_in, scenario }, seed) = *one;
        (!stand_in.is_being_learned(scenario, seed, context.cache)).then(|| course(one))
    };
    let begun: Vec<_> = courses.par_iter().map(begun).collect();
    let rest = courses.par_iter().zip(begun).map(|(one, begun)| begun.unwrap_or_else(|| course(one)));
    let mut learned = rest.collect::<Vec<_>>().into_iter();
    let mut of = |training: &Training| {
        let seeds: Vec<_> = learned.by_ref().take(training.stand_in.seeds.len()).collect();
        seeds.into_iter().collect::<Result<Vec<_>, _>>().map(|seeds| Taught { seeds })
    };
    let found: Vec<_> = trainings.iter().map(&mut of).collect();
    if found.iter().any(|one| matches!(one, Err(CommandError::Interrupted))) {
        bail!(CommandError::Interrupted);
    }
    Ok(found.into_iter().map(|one| one.map_err(anyhow::Error::new)).collect())
}

impl Taught {
    /// The accuracy of each seed on a part after its last epoch, in percent.
    pub(super) fn accuracies(&self, part: Part) -> Vec<f64> {
        self.of_seeds(part, |rows| rows.last().map(|row| row.accuracy * 100.0))
    }

    /// The simulated time so far and the accuracy on a part in percent, of each epoch of each seed.
    pub(super) fn courses(&self, part: Part) -> Vec<Vec<(f64, f64)>> {
        let point = |row: &Row| (row.simulated_time_s, row.accuracy * 100.0);
        let of = |rows: &Arc<Vec<Row>>| rows.iter().filter(|row| row.split == part).map(point).collect();
        self.seeds.iter().map(of).collect()
    }

    /// Of each epoch the simulated time so far and the accuracy on a part in percent, means over the seeds.
    pub(super) fn curve(&self, part: Part) -> Vec<(f64, f64)> {
        let courses = self.courses(part);
        let epochs = courses.iter().map(Vec::len).min().unwrap_or(0);
        let at = |epoch: usize| {
            let (times, accuracies): (Vec<_>, Vec<_>) = courses.iter().map(|course| course[epoch]).unzip();
            Some((mean(&times)?, mean(&accuracies)?))
        };
        (0..epochs).filter_map(at).collect()
    }

    /// The simulated time of the whole training with each seed, in seconds.
    pub(super) fn times(&self) -> Vec<f64> {
        self.of_seeds(Part::Test, |rows| rows.last().map(|row| row.simulated_time_s))
    }

    /// The largest peak of memory with each seed, in megabytes.
    pub(super) fn memory(&self) -> Vec<f64> {
        self.of_seeds(Part::Test, |rows| {
            rows.iter().map(|row| row.peak_memory_bytes).max().map(|peak| peak as f64 / 1e6)
        })
    }

    fn of_seeds(&self, part: Part, value: impl Fn(&[&Row]) -> Option<f64>) -> Vec<f64> {
        let of = |rows: &Arc<Vec<Row>>| value(&rows.iter().filter(|row| row.split == part).collect::<Vec<_>>());
        self.seeds.iter().filter_map(of).collect()
    }
}

/// Answers the row `id` with the mean of `accuracies`, put in where it is the baseline itself, or says why its stand-in has
/// none; the remark is `of` what, and by how many points it differs from `baseline` with the same seeds.
pub(super) fn answer_accuracy(
    outcome: &mut Outcome,
    id: &str,
    accuracies: Result<Vec<f64>, String>,
    of: &str,
    baseline: Option<(&str, &[f64])>,
    is_baseline: bool,
) {
    let accuracies = match accuracies {
        Ok(accuracies) => accuracies,
        Err(error) => return outcome.not_modelled(id, format!("its stand-in: {error}")),
    };
    let beside = baseline.map_or_else(String::new, |(name, baseline)| {
        let differences: Vec<f64> = accuracies.iter().zip(baseline).map(|(own, other)| own - other).collect();
        format!("; {} points from {name}", words(&differences))
    });
    outcome.remark(id, format!("{of}{beside}"));
    let value = mean(&accuracies).unwrap_or_default();
    outcome.answer(id, if is_baseline { Answer::Input(value) } else { Answer::Number(value) });
}

/// The columns that [`compare`] adds to the data of a figure.
const COLUMNS: &str = "stand_in,trained,seed,test_accuracy,points_above,peak_memory_mb,simulated_time_s";

/// A stand-in that was learned in several ways, which come in groups of `group`: those of a group are compared with its
/// first, seed by seed.
pub(super) struct Compared<'s> {
    pub(super) stand_in: &'s StandIn,
    pub(super) ways: Vec<Way>,
    pub(super) group: usize,
}

/// A way of learning: of each seed the accuracy on the test part in percent, the peak of memory in megabytes, and the
/// simulated time in seconds; of none where it could not be learned.
pub(super) struct Way {
    pub(super) name: String,
    pub(super) seeds: Vec<[f64; 3]>,
}

impl Way {
    pub(super) fn of(name: &str, taught: &Result<Taught>) -> Self {
        let seeds = |taught: &Taught| {
            let costs = taught.memory().into_iter().zip(taught.times());
            let seeds = taught.accuracies(Part::Test).into_iter().zip(costs);
            seeds.map(|(accuracy, (memory, time))| [accuracy, memory, time]).collect()
        };
        Self { name: name.to_owned(), seeds: taught.as_ref().map_or_else(|_| Vec::new(), seeds) }
    }

    /// By how many points each seed is above the same one of `other`.
    fn above(&self, other: &Self) -> Vec<f64> {
        self.seeds.iter().zip(&other.seeds).map(|([own, ..], [other, ..])| own - other).collect()
    }
}

/// Adds what was learned to the data, a row a seed, draws accuracy against memory and against simulated time with their
/// fronts, and offers as words what each way is above the first of its group.
pub(super) fn compare(context: &Context<'_>, outcome: &mut Outcome, found: &[Compared<'_>]) -> Result<()> {
    outcome.widen(COLUMNS);
    let mut said = Vec::new();
    for Compared { stand_in, ways, group } in found {
        let (mut differences, of) = (Vec::new(), stand_in_words(context, stand_in));
        for (place, way) in ways.iter().enumerate() {
            let first = place - place % (*group).max(1);
            let above = way.above(&ways[first]);
            for (number, (&seed, &[accuracy, memory, time])) in stand_in.seeds.iter().zip(&way.seeds).enumerate() {
                let above = above.get(number).copied();
                outcome.row_at_the_end((of.as_str(), way.name.as_str(), seed, accuracy, above, [memory, time]))?;
            }
            if place > first && !above.is_empty() {
                differences.push(format!("{} {}", way.name, words(&above)));
            }
        }
        said.push(format!("{} ({of})", differences.join(", ")));
        fronts(outcome, &title(stand_in), ways);
    }
    outcome.words("differences", said.join("; "));
    Ok(())
}

fn fronts(outcome: &mut Outcome, title: &str, ways: &[Way]) {
    for (cost, label, unit) in [(1, "peak memory", "MB"), (2, "simulated time", "s")] {
        let front = Front::new().senses([Sense::Minimise, Sense::Maximise]).overall();
        let points = |way: &Way| way.seeds.iter().map(|seed| (seed[cost], seed[0])).collect::<Vec<_>>();
        let front = ways.iter().fold(front, |front, way| front.cloud(way.name.as_str(), points(way)));
        outcome.panel(title, front, from_zero(label, unit), test_accuracy());
    }
}

/// A stand-in above its panels.
pub(super) fn title(stand_in: &StandIn) -> String {
    format!("{} on {}", spelled(&stand_in.scenario.model), stand_in.data)
}

/// A mean with half the width of its 95% interval, in words: `79.2 ± 0.4`; of one value that value.
pub(super) fn words(values: &[f64]) -> String {
    let (mean, half) = interval(values);
    if values.len() < 2 { format!("{mean:.1}") } else { format!("{mean:.1} ± {half:.1}") }
}

/// How a stand-in's figures say which they are: `lenet5 on glyphs, quick, 1 seed`.
pub(super) fn stand_in_words(context: &Context<'_>, stand_in: &StandIn) -> String {
    let quick = if context.full { "" } else { "quick, " };
    let (number, epochs) = (stand_in.seeds.len(), stand_in.epochs());
    let seeds = if number == 1 { "seed" } else { "seeds" };
    let rounds = if epochs == 1 { "epoch" } else { "epochs" };
    let base = stand_in.base_data().map_or_else(String::new, |data| format!(" after {data}"));
    format!("{} on {}{base}, {quick}{number} {seeds}, {epochs} {rounds}", stand_in.scenario.model, stand_in.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_compared_seed_by_seed() {
        let way = |accuracies: &[f64]| Way {
            name: String::new(),
            seeds: accuracies.iter().map(|&accuracy| [accuracy, 1.0, 1.0]).collect(),
        };
        // 90 − 92 and 95 − 94; of a way that could not be learned there is nothing.
        assert_eq!(way(&[90.0, 95.0]).above(&way(&[92.0, 94.0])), [-2.0, 1.0]);
        assert!(way(&[]).above(&way(&[92.0])).is_empty());
        // The mean of −2 and 1 is −0.5, its standard error 3/2 / 1; 12.706 of them are half of the interval.
        assert_eq!(words(&[-2.0, 1.0]), "-0.5 ± 19.1");
    }
}
