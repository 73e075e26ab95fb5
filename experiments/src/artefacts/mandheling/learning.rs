//! The cost of integer training in accuracy, on stand-ins for the paper's networks and data sets, on one phone and in
//! federations of Xiaomi 11 Pros (section 4.3).

use std::collections::BTreeMap;

use super::setting::batch;
use super::tables::{METHODS, add, rounds_of};
use crate::artefacts::fedhybrid::federations::{Course, chance, duration, hold};
use crate::artefacts::learning::{
    Compared, Taught, Training, answer_accuracy, compare, learn, stand_in_words, stand_ins, title, with_seeds, words,
};
use crate::artefacts::prelude::*;
use crate::measured::Measured;
use crate::train::{StandIn, apart};

/// A method with its trained stand-in.
pub(super) struct Learned {
    pub(super) method: &'static str,
    pub(super) name: &'static str,
    pub(super) stand_in: StandIn,
    pub(super) taught: Result<Taught>,
}

/// Every method on the stand-in of its number format: fp32 with an eager framework, whose graph can compute real
/// values, and integers.
pub(super) fn of_methods(context: &Context<'_>) -> Result<Vec<Learned>> {
    let first =
        |kind: &str| stand_ins(context, kind)?.into_iter().next().with_context(|| format!("no stand-in in {kind}"));
    let (fp32, int8) = (first("fp32")?, first("int8")?);
    let stand_in = |method: &str| if method == METHODS[0].0 { &fp32 } else { &int8 };
    let training = |(method, _): (&'static str, _)| {
        let stand_in = stand_in(method);
        let scenario = match method == METHODS[0].0 {
            true => stand_in.scenario.clone(),
            false => under(&stand_in.scenario, method, &[]),
        };
        Training { stand_in: stand_in.clone(), scenario }
    };
    let learned = learn(context, &METHODS.map(training))?;
    let of = |((method, name), taught)| {
        let stand_in = with_seeds(stand_in(method).clone(), [&taught]);
        Learned { method, name, stand_in, taught }
    };
    Ok(METHODS.into_iter().zip(learned).map(of).collect())
}

/// Computes the cost of all methods on the phone, each with its own engine, once scales have settled: the fp32 graph
/// that computes real values runs only on another machine.
pub(super) fn on_the_phone(context: &Context<'_>, found: &mut [Learned]) -> Result<()> {
    let in_integers = found.iter().find(|one| one.method == "mnn-int8").context("MNN-INT8 was not trained")?;
    let StandIn { scenario, .. } = in_integers.stand_in.clone();
    for one in found {
        let Ok(taught) = &mut one.taught else { continue };
        let (scenario, batches, _) = one.stand_in.on_data(&under(&scenario, one.method, &[]), context.cache)?;
        taught.epoch_s = batch(context, &scenario)?.time.seconds() * batches as f64;
        taught.memory_mb = context.run(&scenario)?.peak_memory.megabytes();
    }
    Ok(())
}

/// Answers the accuracies of table 8 on one phone: MNN-FP32's is an input, and the others are judged relative to it.
pub(super) fn answer(outcome: &mut Outcome, subjects: &[&str], found: &[Learned]) {
    let Some(first) = found.first() else { return };
    for subject in subjects {
        for (place, one) in found.iter().enumerate() {
            let id = format!("mandheling/table8/{subject}/{}/accuracy", one.method);
            let of = format!("stand-in {}", stand_in_words(&one.stand_in));
            answer_accuracy(outcome, &id, &one.taught, &of, &(first.name, &first.taught), place == 0);
        }
    }
}

/// The figure of the stand-in for `network`, with NITI's own accuracies if `beside`.
pub(super) fn figure8(context: &Context<'_>, network: &str, beside: bool) -> Result<Outcome> {
    let mut found = of_methods(context)?;
    on_the_phone(context, &mut found)?;
    let stand_in = found.last().context("nothing is trained")?.stand_in.clone();
    let title = title(&stand_in.scenario.model, &stand_in.data, network);
    let ways: Vec<(String, Result<Taught>)> = found.into_iter().map(|one| (one.name.to_owned(), one.taught)).collect();
    let mut records = Records::of("method,epoch,mean_clock_s,mean_accuracy,accuracy_in_the_end,title");
    let mut guesses = Vec::new();
    for (name, taught) in &ways {
        let Ok(taught) = taught else { continue };
        for (epoch, (time, accuracy)) in (1_u64..).zip(taught.curve()) {
            let in_the_end = words(&taught.accuracies(Part::Test));
            records.row((name.as_str(), epoch, [time, accuracy], in_the_end, title.as_str()))?;
        }
        guesses.extend(taught.at_chance().map(|said| format!("{name} {said}")));
    }
    let mut outcome = show(context, records, Outcome::default())?;
    outcome.words("stand-ins", stand_in_words(&stand_in));
    outcome.list("no better than a guess", guesses);
    compare(&mut outcome, &[Compared { kind: "", stand_in, title, group: ways.len(), ways }])?;
    if beside {
        published(&mut outcome, "central", "epochs")?;
    }
    Ok(outcome)
}

/// The seeds of the stand-in's federations.
const SEEDS: [u64; 5] = [0, 1, 2, 3, 4];

/// The trainings by federations: the name in the reference, and the label; a reading of that name defines the phones.
pub(super) const SUBJECTS: [(&str, &str); 2] =
    [("fl-femnist-lenet", "LeNet, many phones"), ("fl-cifar100-vgg16", "VGG-16, many phones")];

/// The federation that the reading `id` declares under `method`, with each of `seeds`.
fn federation(context: &Context<'_>, id: &str, method: &str, seeds: &[u64]) -> Result<Vec<Arc<Course>>> {
    hold(context, &format!("{}\npolicy = \"{method}\"", context.reading_text(id)?), seeds)
}

/// The cost of rounds of the paper's network.
fn timed(context: &Context<'_>, subject: &str, method: &str) -> Result<Arc<Course>> {
    federation(context, subject, method, &[context.seed])?.pop().context("a federation is missing")
}

/// The accuracy of the server's weights after rounds of the stand-in's federation.
fn taught(context: &Context<'_>, method: &str) -> Result<Taught> {
    let (id, method) = match method {
        "mnn-fp32" => ("federated-fp32", method),
        _ => ("federated-int8", "mnn-int8"),
    };
    let seeds = federation(context, id, method, &context.seeds_of(&SEEDS))?;
    let chance = chance(context, context.reading_text(id)?)?.unwrap_or_default();
    Ok(Taught { seeds: seeds.iter().map(|course| course.as_ref().clone()).collect(), chance, ..Taught::default() })
}

/// Adds the federated rows of table 8 to its records, and answers their accuracies.
pub(super) fn answer_federated(context: &Context<'_>, records: &mut Records, outcome: &mut Outcome) -> Result<()> {
    let learned = METHODS.map(|(method, _)| taught(context, method));
    for (subject, name) in SUBJECTS {
        for (place, (method, method_name)) in METHODS.into_iter().enumerate() {
            let (rounds, timed) = (rounds_of(context, subject, method)?, timed(context, subject, method)?);
            // The energy of one client, as in section 4.3: the total of a phone of the population.
            let round = [timed.round_s(), timed.round_of_a_phone_j()];
            add(context, records, [subject, subject, name, method, method_name], rounds, round, 1.0, &|_| None)?;
            let id = format!("mandheling/table8/{subject}/{method}/accuracy");
            let first = (METHODS[0].1, &learned[0]);
            answer_accuracy(outcome, &id, &learned[place], "a stand-in's federation", &first, place == 0);
        }
    }
    Ok(())
}

/// The accuracy of the stand-in over the time that the same number of rounds of the network takes.
pub(super) fn figure(context: &Context<'_>, subject: &str) -> Result<Outcome> {
    let mut outcome = Outcome::of("method,seed,round,clock_s,test_accuracy");
    let mut lines = Lines::new();
    let mut number = 0;
    for (method, name) in METHODS {
        let timed = timed(context, subject, method)?;
        let taught: Vec<Vec<(u32, f64)>> = taught(context, method)?.seeds.iter().map(Course::by_round).collect();
        number = taught.len();
        let clock = |round: u32| f64::from(round) * timed.round_s();
        for (seed, points) in (0_u64..).zip(&taught) {
            for &(round, accuracy) in points {
                outcome.row((method, seed, u64::from(round), clock(round), accuracy))?;
            }
        }
        let mean_at = |(place, &(round, _)): (usize, &(u32, f64))| {
            let all: Vec<f64> = taught.iter().filter_map(|seed| seed.get(place)).map(|point| point.1).collect();
            Some((clock(round), mean(&all)?))
        };
        let points: Vec<(f64, f64)> = taught.first().into_iter().flatten().enumerate().filter_map(mean_at).collect();
        outcome.list(method, points.last().map(|(time, end)| format!("{end:.1} % after {}", duration(*time))));
        lines = lines.series(Series::new(name, points));
    }
    let words = if number == 1 { "one seed".to_owned() } else { format!("the mean of {number} seeds") };
    outcome.words("federation", format!("LeNet-5 on glyphs, {words}; every phone is a Xiaomi 11 Pro"));
    let stands_for = SUBJECTS.iter().find(|(id, _)| *id == subject).map_or(subject, |(_, name)| *name);
    outcome.panel(&title("lenet5", "glyphs", stands_for), lines, from_zero("simulated time", "s"), test_accuracy());
    if subject == SUBJECTS[0].0 {
        published(&mut outcome, "federated", "rounds")?;
    }
    Ok(outcome)
}

/// Accuracies of yuanjinliang1/IntFL-TMC, commit d01857ca; those of rows with the role `withheld` are not known.
const CURVES: &str = include_str!("../../../reference/int8-curves.csv");

/// The rows of a kind, as maps from columns to values.
fn rows(kind: &str) -> Result<Vec<BTreeMap<String, String>>> {
    let rows = csv::Reader::from_reader(CURVES.as_bytes()).into_deserialize();
    let rows: Vec<BTreeMap<String, String>> = rows.collect::<Result<_, _>>()?;
    Ok(rows.into_iter().filter(|row| row["kind"] == kind).collect())
}

/// Draws the curves of a kind, one per regime of gradients.
fn published(outcome: &mut Outcome, kind: &str, clock: &str) -> Result<()> {
    let rows = rows(kind)?;
    let first = rows.first().context("nothing was published")?;
    let known = rows.iter().filter(|row| row["role"] != "withheld");
    let point = |row: &BTreeMap<String, String>| Some((row["at"].parse().ok()?, row["accuracy_percent"].parse().ok()?));
    let curves = curves(known, |row| format!("gradients of {}", row["gradient"]), point);
    let [network, data, batch] = ["network", "data", "batch"].map(|column| &first[column]);
    let title = format!("published, not ours: {network} on {data} by NITI, batch {batch}");
    outcome.panel(&title, curves, from_zero(clock, ""), test_accuracy());
    Ok(())
}

const PLACE: &str = "mandheling/rescaling";
const ABOUT: &str = "Accuracy in fp32, in integers with every scale factor computed again in every batch, and with \
                     self-adaptive rescaling, and the differences with the same seed";

/// A method, the one that it is compared with, and the display name.
const COMPARED: [(&str, &str, &str); 2] =
    [("mandheling", "mnn-int8", "self-adaptive rescaling"), ("mnn-int8", "mnn-fp32", "integers")];
/// The parts that accuracy is measured on.
const PARTS: [(Part, &str); 2] = [(Part::Validation, "validation"), (Part::Test, "test")];

fn measure_rescaling(context: &Context<'_>) -> Result<Measured> {
    let found = of_methods(context)?;
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

pub(super) fn rescaling(context: &Context<'_>) -> Result<Outcome> {
    let measured = context.measured(PLACE, || apart(rayon::current_num_threads(), || measure_rescaling(context))?)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::readings::{Readings, Value};
    use crate::papers::reference::Reference;

    #[test]
    fn what_trains_in_integers_here_does_so_as_the_rows_to_fit_do() {
        let readings = Readings::load(&Reference::load().unwrap()).unwrap();
        let keys = |id: &str| -> toml::Table {
            let Value::Text(text) = &readings.reading("mandheling", "table8", id).unwrap().value else {
                panic!("{id}")
            };
            text.parse().unwrap()
        };
        let fit = |kind: &str| rows(kind).unwrap().into_iter().find(|row| row["role"] == "fit").unwrap();
        let (central, federated) = (keys("int8-lenet5"), keys("federated-int8"));
        let row = fit("central");
        assert_eq!(central["batch"].to_string(), row["batch"]);
        // A b-bit weight gradient equals a seven-bit one with a learning rate of 2 to the power of b − 7.
        let rate = |bits: i32| f64::from(bits - 7).exp2();
        assert!(row["gradient"].starts_with("gb 2 "));
        assert_eq!(central["learning_rate"].as_float(), Some(rate(2)));
        let row = fit("federated");
        assert_eq!((row["gradient"].as_str(), federated["learning_rate"].as_float()), ("1 bits", Some(rate(1))));
        for (own, column) in [("batch", "batch"), ("cohort", "clients_a_round"), ("local_epochs", "local_epochs")] {
            assert_eq!(federated[own].to_string(), row[column]);
        }
    }

    #[test]
    fn nothing_is_known_of_what_is_withheld() {
        for row in ["central", "federated"].into_iter().flat_map(|kind| rows(kind).unwrap()) {
            assert_eq!(row["role"] == "withheld", row["accuracy_percent"].is_empty());
        }
    }
}
