//! Networks that artefacts train on stand-ins, and the presentation of their accuracies.
//!
//! A *stand-in* is a reading whose key is `stand-in`: its value is a specification of `haversack train`, and the first
//! word of its id is the kind of network it replaces (`images-resnet8`). If a kind has a `-base`, a reading of the same
//! form, its stand-ins start from the final weights of that one. Learned results are committed, or learned now
//! ([`Context::learn`]); the cost of an iteration is simulated without data whenever a figure is drawn.

use haversack_reports::Sense;

use super::chart::final_accuracy;
use super::prelude::*;
use crate::measured::{self, interval};
use crate::papers::catalogue::Entry;
use crate::papers::readings::{Reading, Value};
use crate::progress::{Amount, Progress};
use crate::quantities::counted;
use crate::train::{StandIn, learned};
use crate::{CommandError, interrupt};

/// A scenario on a stand-in.
#[derive(Clone, Debug)]
pub(super) struct Training {
    pub(super) stand_in: StandIn,
    pub(super) scenario: Scenario,
}

/// The results of a training.
#[derive(Clone, Debug, Default)]
pub(super) struct Taught {
    pub(super) seeds: Vec<measured::Learned>,
    /// The time of an epoch in seconds, and the peak of an iteration in megabytes.
    pub(super) epoch_s: f64,
    pub(super) memory_mb: f64,
    pub(super) chance: [f64; 2],
}

/// The stand-ins of a kind that are declared for the artefact, if any.
///
/// # Errors
/// A stand-in that is not a specification.
pub(super) fn stand_ins(context: &Context<'_>, kind: &str) -> Result<Vec<StandIn>> {
    let Entry { paper, id, .. } = context.artefact.entry;
    let of_kind = context.readings.of(paper, id).filter(|reading| reading.key == "stand-in");
    let of_kind = of_kind.filter(|reading| reading.id.split('-').next() == Some(kind));
    let parse = |reading: &Reading| match &reading.value {
        Value::Text(text) => Ok(StandIn::parse(&format!("reading `{}`", reading.id), text)?),
        other => Err(anyhow!("the reading `{}` is not words but {other}", reading.id)),
    };
    // All seeds share one base, as with a pre-trained network.
    let base = context.readings.reading(paper, id, &format!("{kind}-base")).map(parse).transpose()?;
    let stand_in = |reading| {
        let stand_in: StandIn = parse(reading)?;
        let seeds = context.seeds_of(&stand_in.seeds);
        let stand_in = stand_in.with_seeds(seeds).with_classes(context.cache)?;
        Ok(base.iter().fold(stand_in, |stand_in, base| stand_in.after(base.clone())))
    };
    of_kind.map(stand_in).collect()
}

/// The results of all trainings with all their seeds, committed or learned now. A training that diverges, is not
/// possible or was not committed becomes an error of its own.
///
/// # Errors
/// Ctrl-C.
pub(super) fn learn(context: &Context<'_>, trainings: &[Training]) -> Result<Vec<Result<Taught>>> {
    let all: usize = trainings.iter().map(|training| training.stand_in.seeds.len()).sum();
    let progress = context.learn.then(|| Progress::new(Amount::Number("trainings"), all as u64, 0));
    let found = trainings.par_iter().map(|training| taught(context, training, progress.as_ref())).collect::<Vec<_>>();
    ensure!(!interrupt::came(), CommandError::Interrupted);
    Ok(found)
}

fn taught(
    context: &Context<'_>,
    Training { stand_in, scenario }: &Training,
    progress: Option<&Progress>,
) -> Result<Taught> {
    let cache = context.cache;
    let (scenario, batches, chance) = stand_in.on_data(scenario, cache)?;
    let record = context.run(&scenario)?;
    let wanted = stand_in.wanted(&scenario, &record, cache)?;
    let found = if let Some(progress) = progress {
        let learn = |&seed: &u64| {
            let learned = learned(seed, &stand_in.learn(&scenario, seed, cache, context.kept)?);
            progress.inc(1);
            Ok(learned)
        };
        context.note_learned(&wanted, stand_in.seeds.par_iter().map(learn).collect())?
    } else {
        context.committed(&wanted)?
    };
    let (epoch_s, memory_mb) = (batches as f64 * record.iteration.seconds(), record.peak_memory.megabytes());
    Ok(Taught { seeds: found.learned, epoch_s, memory_mb, chance })
}

/// `stand_in` with the seeds of those trainings that succeeded.
pub(super) fn with_seeds<'t>(stand_in: StandIn, ways: impl IntoIterator<Item = &'t Result<Taught>>) -> StandIn {
    let seeds = |taught: &Result<Taught>| Some(taught.as_ref().ok()?.seeds.iter().map(|seed| seed.seed).collect());
    match ways.into_iter().find_map(seeds) {
        Some(seeds) => stand_in.with_seeds(seeds),
        None => stand_in,
    }
}

impl Taught {
    /// The accuracy of each seed on a part after its last epoch, in percent.
    pub(super) fn accuracies(&self, part: Part) -> Vec<f64> {
        let last = |seed: &measured::Learned| match part {
            Part::Validation => Some(seed.validation),
            _ => seed.accuracy.last().copied(),
        };
        self.seeds.iter().filter_map(last).collect()
    }

    /// For each epoch of each seed, the simulated time so far and the test accuracy in percent.
    pub(super) fn courses(&self) -> Vec<Vec<(f64, f64)>> {
        let times = || (1..).map(|epoch| f64::from(epoch) * self.epoch_s);
        self.seeds.iter().map(|seed| times().zip(seed.accuracy.iter().copied()).collect()).collect()
    }

    /// For each epoch, the simulated time so far and the test accuracy in percent, as means over the seeds.
    pub(super) fn curve(&self) -> Vec<(f64, f64)> {
        let courses = self.courses();
        let epochs = courses.iter().map(Vec::len).min().unwrap_or(0);
        let at = |epoch: usize| {
            let (times, accuracies): (Vec<_>, Vec<_>) = courses.iter().map(|course| course[epoch]).unzip();
            Some((mean(&times)?, mean(&accuracies)?))
        };
        (0..epochs).filter_map(at).collect()
    }

    /// The simulated time of the whole training, in seconds.
    pub(super) fn time_s(&self) -> f64 {
        self.seeds.iter().map(|seed| seed.accuracy.len()).max().unwrap_or(0) as f64 * self.epoch_s
    }

    /// The points by which each seed is above the same seed of `other`.
    pub(super) fn above(&self, other: &Self) -> Vec<f64> {
        self.accuracies(Part::Test).iter().zip(other.accuracies(Part::Test)).map(|(own, other)| own - other).collect()
    }

    /// A remark that nothing was learned, if the accuracy is not better than a guess.
    pub(super) fn at_chance(&self) -> Option<String> {
        at_chance(&self.accuracies(Part::Test), self.chance)
    }
}

/// A remark that nothing was learned, if the mean of `accuracies`, less half of its interval or the scatter of a guess,
/// whichever is more, is not better than a guess. The second argument is the accuracy of a guess, and its scatter.
pub(super) fn at_chance(accuracies: &[f64], [guess, scatter]: [f64; 2]) -> Option<String> {
    let (mean, half) = interval(accuracies);
    let is_more = mean - half.max(scatter) > guess;
    (!is_more).then(|| format!("at {} % no better than a guess, {guess:.1} %", words(accuracies)))
}

/// Answers the row `id` with the mean accuracy of `taught`, as an input if it is the baseline itself, or records the
/// reason why its stand-in has none. The remark names the stand-in (`of`) and the difference in points from `baseline`
/// with the same seeds.
pub(super) fn answer_accuracy(
    outcome: &mut Outcome,
    id: &str,
    taught: &Result<Taught>,
    of: &str,
    baseline: &(&str, &Result<Taught>),
    is_baseline: bool,
) {
    let taught = match taught {
        Ok(taught) => taught,
        Err(error) => return outcome.not_modelled(id, format!("its stand-in: {error:#}")),
    };
    let at_chance = taught.at_chance().map_or_else(String::new, |said| format!(", {said}"));
    let above = |first: &Taught| format!("; {} points from {}", words(&taught.above(first)), baseline.0);
    outcome.remark(id, format!("{of}{at_chance}{}", baseline.1.as_ref().map(above).unwrap_or_default()));
    let value = mean(&taught.accuracies(Part::Test)).unwrap_or_default();
    outcome.answer(id, if is_baseline { Answer::Input(value) } else { Answer::Number(value) });
}

/// The columns that [`compare`] adds to the data of a figure.
const COLUMNS: &str = "stand_in,trained,seed,test_accuracy,points_above,peak_memory_mb,simulated_time_s";

/// A stand-in that was trained in several ways, which come in groups of `group`: those of a group are compared with its
/// first, seed by seed.
pub(super) struct Compared {
    pub(super) kind: &'static str,
    pub(super) stand_in: StandIn,
    /// The title of its panels.
    pub(super) title: String,
    /// The ways by name, in their order; the others are compared with the first.
    pub(super) ways: Vec<(String, Result<Taught>)>,
    pub(super) group: usize,
}

impl Compared {
    /// The results of the first way.
    pub(super) fn first(&self) -> Option<&Taught> {
        self.ways.first().and_then(|(_, taught)| taught.as_ref().ok())
    }

    /// The results of a way.
    pub(super) fn way(&self, name: &str) -> Option<&Taught> {
        self.ways.iter().find(|(known, _)| known == name).and_then(|(_, taught)| taught.as_ref().ok())
    }

    /// The reason why a way was not trained, or has no committed result; `None` if all have results.
    pub(super) fn failure(&self) -> Option<String> {
        self.ways.iter().find_map(|(name, taught)| Some(format!("{name}: {:#}", taught.as_ref().err()?)))
    }
}

/// Adds the results to the data, one row per seed, and offers as text the points by which each way is above the first of
/// its group.
pub(super) fn compare(outcome: &mut Outcome, found: &[Compared]) -> Result<()> {
    outcome.widen(COLUMNS);
    let mut said = Vec::new();
    for one in found {
        let Compared { stand_in, ways, group, .. } = one;
        let (mut differences, of) = (Vec::new(), stand_in_words(stand_in));
        for (place, (name, taught)) in ways.iter().enumerate() {
            let first = place - place % (*group).max(1);
            let Ok(taught) = taught else { continue };
            let above = ways[first].1.as_ref().map(|first| taught.above(first)).unwrap_or_default();
            for (number, seed) in taught.seeds.iter().enumerate() {
                let (accuracy, above) = (seed.accuracy.last().copied(), above.get(number).copied());
                let costs = [taught.memory_mb, taught.time_s()];
                outcome.row_at_the_end((of.as_str(), name.as_str(), seed.seed, [accuracy, above], costs))?;
            }
            if place > first && !above.is_empty() {
                let at_chance = taught.at_chance().map_or_else(String::new, |said| format!(" ({said}: not drawn)"));
                differences.push(format!("{name} {}{at_chance}", words(&above)));
            }
        }
        let missing = one.failure().map(|why| format!("not all were trained ({why})"));
        outcome.summary.extend(missing.iter().map(|missing| format!("{of}: {missing}")));
        differences.extend(missing);
        said.push(format!("{} ({of})", differences.join(", ")));
    }
    outcome.words("differences", said.join("; "));
    Ok(())
}

/// The costs of a training.
const COSTS: [Quantity<Taught>; 2] = [("peak memory, MB", |one| one.memory_mb), ("simulated time, s", Taught::time_s)];

/// Draws accuracy against the first of the costs, with the front. Ways that learned nothing are left out.
pub(super) fn fronts(outcome: &mut Outcome, found: &[Compared], costs: usize) {
    for Compared { title, ways, .. } in found {
        let taught = ways.iter().filter_map(|(name, taught)| Some((name, taught.as_ref().ok()?)));
        let drawn: Vec<(&String, &Taught)> = taught.filter(|(_, one)| one.at_chance().is_none()).collect();
        let least = drawn.iter().flat_map(|(_, one)| one.accuracies(Part::Test)).fold(100.0, f64::min);
        for (label, cost) in COSTS[..costs].iter().filter(|_| !drawn.is_empty()) {
            let front = Front::new().senses([Sense::Minimise, Sense::Maximise]).overall();
            let points =
                |one: &Taught| one.accuracies(Part::Test).into_iter().map(|own| (cost(one), own)).collect::<Vec<_>>();
            let front = drawn.iter().fold(front, |front, (name, one)| front.cloud(name.as_str(), points(one)));
            let (label, unit) = label.split_once(", ").unwrap_or((label, ""));
            outcome.panel(title, front, axis(label, unit), final_accuracy(least));
        }
    }
}

/// The title of panels, from the trained network, the data, and the replaced network: `LeNet-5 on glyphs (for ResNet-18)`.
pub(super) fn title(network: &str, data: &str, stands_for: &str) -> String {
    let data = if data == "linear" { "linear classes" } else { data };
    format!("{} on {data} (for {stands_for})", spelled(network))
}

/// A mean with half the width of its 95% interval as text: `79.2 ± 0.4`; for a single value only the value.
pub(super) fn words(values: &[f64]) -> String {
    let (mean, half) = interval(values);
    if values.len() < 2 { format!("{mean:.1}") } else { format!("{mean:.1} ± {half:.1}") }
}

/// The description of a stand-in in figures: `lenet5 on glyphs, 5 seeds, 4 epochs`.
pub(super) fn stand_in_words(stand_in: &StandIn) -> String {
    let (seeds, epochs) = (counted(stand_in.seeds.len(), "seed", "seeds"), stand_in.epochs() as usize);
    let epochs = counted(epochs, "epoch", "epochs");
    let base = stand_in.base.as_ref().map_or_else(String::new, |base| format!(" after {}", base.data));
    format!("{} on {}{base}, {seeds}, {epochs}", stand_in.scenario.model, stand_in.data)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::cache::Cache;
    use crate::papers::readings::Readings;
    use crate::papers::reference::Reference;
    use crate::reproduce::Kept;

    #[test]
    fn ways_are_compared_seed_by_seed() {
        let way = |accuracies: &[f64]| {
            let seed = |&accuracy: &f64| measured::Learned { accuracy: vec![accuracy], ..measured::Learned::default() };
            Taught { seeds: accuracies.iter().map(seed).collect(), epoch_s: 2.0, memory_mb: 1.0, chance: [10.0, 1.0] }
        };
        // 90 − 92 and 95 − 94; a way that could not be trained has no difference.
        assert_eq!(way(&[90.0, 95.0]).above(&way(&[92.0, 94.0])), [-2.0, 1.0]);
        assert!(way(&[]).above(&way(&[92.0])).is_empty());
        assert_eq!((way(&[90.0]).time_s(), way(&[90.0, 92.0]).curve()), (2.0, vec![(2.0, 91.0)]));
        // The mean of −2 and 1 is −0.5, its standard error 3/2 / 1; 12.706 of them are half of the interval.
        assert_eq!(words(&[-2.0, 1.0]), "-0.5 ± 19.1");
    }

    #[test]
    fn what_learned_nothing_is_told_from_what_did() {
        // With ten classes, a guess at 10 % scatters by 1.3 over 2,000 samples: one seed at 11 % may be a guess,
        // at 12 % it is not.
        let chance = [10.0, 1.3];
        assert!(at_chance(&[11.0], chance).is_some_and(|said| said == "at 11.0 % no better than a guess, 10.0 %"));
        assert_eq!(at_chance(&[12.0], chance), None);
        // The mean of 10 and 90 is 50, its interval 12.706 · 40 to each side.
        assert!(at_chance(&[10.0, 90.0], chance).is_some());
        assert_eq!(at_chance(&[89.0, 91.0, 90.0], chance), None);
    }

    #[test]
    fn panels_are_titled_by_what_was_trained() {
        let found = title("mlp", "linear", "BERT");
        assert_eq!(found, "MLP on linear classes (for BERT)");
        let found = title("transformer2-lora", "phrases", "RoBERTa-base");
        assert_eq!(found, "a transformer with LoRA on phrases (for RoBERTa-base)");
    }

    /// A stand-in that trains quickly, and the results of `ways` of it, with or without learning.
    fn of_little(context: &Context<'_>, ways: &[Scenario]) -> Vec<Result<Taught>> {
        let text = "data = \"linear\"\ndevice = \"jetson-agx-xavier\"\nmodel = \"mlp\"\nbatch = 32\nepochs = 1\nseeds = [0, 1]";
        let stand_in = StandIn::parse("a test", text).unwrap();
        let stand_in = stand_in.clone().with_seeds(context.seeds_of(&stand_in.seeds));
        let of = |scenario: &Scenario| Training { stand_in: stand_in.clone(), scenario: scenario.clone() };
        learn(context, &ways.iter().map(of).collect::<Vec<_>>()).unwrap()
    }

    fn of_policy(device: &str, policy: &str) -> Scenario {
        Scenario { batch: 32, policy: policy.to_owned(), ..Scenario::new(device, "mlp") }
    }

    /// Calls `look` with an artefact's context; `learn` and `full` are the flags of the command.
    fn given<T>(seed: u64, learn: bool, full: bool, look: impl FnOnce(&Context<'_>) -> T) -> T {
        let entry = Entry { paper: "sage", id: "figure99", measured: &["sage/figure99"], ..Entry::EMPTY };
        let artefact = &crate::reproduce::Artefact { entry, run: |_| Ok(Outcome::default()) };
        let (reference, readings) = (&Reference::load().unwrap(), &Readings::default());
        let (cache, kept, learned) = (&Cache::new(), &Kept::default(), &Mutex::default());
        let (rows, trace) = (Vec::new(), None);
        look(&Context { seed, learn, full, artefact, rows, reference, readings, cache, trace, kept, learned })
    }

    #[test]
    fn what_nobody_has_trained_is_said_with_the_command_that_trains_it() {
        let ways = [of_policy("jetson-agx-xavier", "original")];
        let error = given(0, false, false, |context| of_little(context, &ways).swap_remove(0).unwrap_err());
        assert!(error.is::<crate::reproduce::Lacking>());
        assert_eq!(
            error.to_string(),
            "mlp has not been trained on linear (original, batch 32, 1 epoch): nothing is \
             measured for sage/figure99; did you mean 'daf/figure9'? (`haversack reproduce sage/figure99 --full` measures it); `haversack reproduce sage/figure99 --learn --full` trains it"
        );
    }

    #[test]
    fn one_seed_is_learned_or_all_and_a_device_matters_where_something_is_short() {
        let daf = of_policy("jetson-agx-xavier", "daf");
        let short = Scenario { time_budget: Some(Nanos(1)), ..of_policy("jetson-agx-xavier", "elastictrainer") };
        let learned = |seed, full| {
            given(seed, true, full, |context| {
                let taught = of_little(context, &[daf.clone(), short.clone()]);
                // A nanosecond is too short to train any weight.
                assert!(taught[1].is_err());
                let noted = context.learned.lock().unwrap().clone();
                (taught[0].as_ref().unwrap().seeds.clone(), noted)
            })
        };
        let (one, noted) = learned(7, false);
        assert_eq!((one.len(), one[0].seed, noted.len()), (1, 7, 1));
        let (all, again) = learned(6, true);
        assert_eq!(all.iter().map(|seed| seed.seed).collect::<Vec<_>>(), [6, 7]);
        assert_eq!((&all[1].accuracy, &again[0].key), (&one[0].accuracy, &noted[0].key));
    }

    /// If you change what networks learn, increase `NUMERICS` in `measured.rs`, write the new results below, and train
    /// all artefacts again: `haversack reproduce --learn --full`.
    #[test]
    fn networks_learn_what_they_did_when_trainings_were_committed() {
        let ways = ["original", "daf", "fixed8"].map(|policy| of_policy("jetson-agx-xavier", policy));
        let in_integers = of_policy("xiaomi-11-pro", "mnn-int8");
        let found = given(0, true, false, |context| {
            let taught = of_little(context, &ways.into_iter().chain([in_integers]).collect::<Vec<_>>());
            taught.iter().map(|one| one.as_ref().unwrap().accuracies(Part::Test)[0]).collect::<Vec<_>>()
        });
        assert_eq!(found, LEARNED);
    }

    /// With `NUMERICS` at 1.
    const LEARNED: [f64; 4] = [54.1, 53.25, 49.55, 72.85];
}
