//! The federations of artefacts: the training (a *task*) and the *method* are readings, whose texts together form a
//! specification of `haversack federate`.

mod course;

pub(in crate::artefacts) use course::Course;
use haversack_reports::Cell;

use crate::artefacts::learning;
use crate::artefacts::prelude::*;
use crate::artefacts::sweeps::{combinations, gathered, name};
use crate::federate::{Specification, held};
use crate::papers::shown::SweptCase;
use crate::quantities::counted;
use crate::reproduce::Cells;

/// The file that errors of a specification name.
const PLACE: &str = "readings of a federation";

/// A federation with each of its seeds.
#[derive(Clone, Debug)]
pub(super) struct Federation {
    pub(super) courses: Vec<Arc<Course>>,
}

/// The reading that all federations share.
const PHONES: &str = "phones";
/// The system of the phones: that of the testbed, or that of phones as sold, which a federation
/// requests among its parts.
const TESTBED: &str = "testbed";
pub(super) const AS_SOLD: &str = "as-sold";
/// The number of seeds: for tables and figures, and for each alternative reading.
const SEEDS: [&str; 2] = ["federation-seeds", "readings-seeds"];

/// The specification of a task and its parts, each a reading. The name of a task joins its data set and its network,
/// each a reading: `openimg-mobilenetv2`; further readings for the data set follow it, as in `20news+step-bert`.
pub(super) fn text(context: &Context<'_>, task: &str, parts: &[&str]) -> Result<String> {
    let system = if parts.contains(&AS_SOLD) { AS_SOLD } else { TESTBED };
    let others = parts.iter().copied().filter(|part| *part != AS_SOLD);
    Ok(format!("{}\n{}", of_task(context, task)?, joined(context, std::iter::once(system).chain(others))?))
}

/// The training of a task, and its phones.
fn of_task(context: &Context<'_>, task: &str) -> Result<String> {
    let (set, network) = task.split_once('-').with_context(|| format!("{task} names no data set and no network"))?;
    joined(context, std::iter::once(PHONES).chain(set.split('+')).chain([network]))
}

fn joined<'p>(context: &Context<'_>, parts: impl IntoIterator<Item = &'p str>) -> Result<String> {
    let texts = parts.into_iter().map(|part| context.reading_text(part));
    Ok(texts.collect::<Result<Vec<_>>>()?.join("\n"))
}

/// The seeds of federations.
pub(super) fn seeds(context: &Context<'_>) -> Result<Vec<u64>> {
    let declared = SEEDS.iter().find_map(|id| context.reading_number(id).ok());
    let number = declared.context("no reading gives the number of seeds of a federation")? as u64;
    Ok(context.seeds_of(&(0..number).collect::<Vec<_>>()))
}

/// A federation of a declared sweep over tasks and methods. A method names its readings, and, if there are several
/// groups, its group; the first of a group is the baseline of the others.
pub(super) struct Held {
    pub(super) cases: Vec<SweptCase>,
    pub(super) federation: Federation,
    /// The index of the first of its group.
    pub(super) first: usize,
}

impl Held {
    /// The task and the method, as named in rows.
    pub(super) fn ids(&self) -> [&str; 2] {
        [0, 1].map(|place| self.cases[place].id.as_str())
    }
}

/// Simulates the federations of the artefact's sweep with all seeds, once for all artefacts.
///
/// # Errors
/// A specification that is wrong, and the errors of a federation.
pub(super) fn hold_all(context: &Context<'_>) -> Result<Vec<Held>> {
    let (all, seeds) = (combinations(context)?, seeds(context)?);
    let group = |cases: &[SweptCase]| (cases[0].id.clone(), cases[1].also.get("group").cloned());
    let one = |cases: &Vec<SweptCase>| {
        let courses = hold(context, &text(context, &cases[0].id, &readings(&cases[1]))?, &seeds)?;
        let first = all.iter().position(|other| group(other) == group(cases)).unwrap_or_default();
        Ok(Held { cases: cases.clone(), federation: Federation { courses }, first })
    };
    all.par_iter().map(one).collect()
}

/// The readings of a method.
pub(super) fn readings(method: &SweptCase) -> Vec<&str> {
    method.also.get("readings").map_or(Vec::new(), |readings| readings.split(' ').collect())
}

/// The federation of `text` with each of `seeds`: simulated if nothing is learned, otherwise committed or learned now.
///
/// # Errors
/// A specification that is wrong, one without committed results, and the errors of a federation.
pub(in crate::artefacts) fn hold(context: &Context<'_>, text: &str, seeds: &[u64]) -> Result<Vec<Arc<Course>>> {
    let asked = Specification::parse(PLACE, text, seeds.first().copied())?;
    let Some(learning) = asked.learned(context.cache)? else {
        return seeds.par_iter().map(|&seed| held_now(context, text, seed, text)).collect();
    };
    let learned = if context.learn {
        let now = |&seed: &u64| Ok(held_now(context, text, seed, &learning.key)?.as_ref().clone());
        context.note_learned(&learning, seeds.par_iter().map(now).collect())?
    } else {
        context.committed(&learning)?
    };
    Ok(learned.learned.into_iter().map(Arc::new).collect())
}

/// Simulates the federation of `text` now, once for all artefacts; learned results are kept under `key`.
fn held_now(context: &Context<'_>, text: &str, seed: u64, key: &str) -> Result<Arc<Course>> {
    let key = format!("federation, seed {seed}: {}", key.replace('\n', "; "));
    context.once(key.clone(), || {
        if let Some(course) = context.kept.get(&key) {
            return Ok(course);
        }
        let asked = Specification::parse(PLACE, text, Some(seed))?;
        let course = Course::of(&held(&asked, None, context.cache, &mut |_, _| Ok(()))?, seed);
        if context.learn {
            context.kept.keep(&key, &course)?;
        }
        Ok(course)
    })
}

impl Federation {
    /// The highest accuracy with each seed, in percent.
    pub(super) fn best(&self) -> Vec<f64> {
        self.courses.iter().map(|course| course.best()).collect()
    }

    /// The mean over the seeds of the highest accuracy, in percent.
    pub(super) fn accuracy(&self) -> f64 {
        mean(&self.best()).unwrap_or_default()
    }

    /// Compares each seed with the same seed of `first` by `of`, which takes `first`'s course first.
    pub(super) fn beside<T>(&self, first: &Self, of: impl Fn(&Course, &Course) -> T) -> Vec<T> {
        first.courses.iter().zip(&self.courses).map(|(first, own)| of(first, own)).collect()
    }

    /// The hours and the accuracy in percent of each measured round that all seeds have: the median of both.
    pub(super) fn curve(&self) -> Vec<(f64, f64)> {
        let curves: Vec<Vec<(f64, f64)>> = self.courses.iter().map(|course| course.curve()).collect();
        let rounds = curves.iter().map(Vec::len).min().unwrap_or(0);
        let middle = |round: usize| {
            let of = |part: fn(&(f64, f64)) -> f64| median(curves.iter().map(|curve| part(&curve[round])).collect());
            Some((of(|point| point.0)?, of(|point| point.1)?))
        };
        (0..rounds).filter_map(middle).collect()
    }

    /// The mean time of a round, in seconds.
    pub(super) fn round_s(&self) -> f64 {
        self.mean(Course::round_s)
    }

    /// The mean of a quantity over the seeds.
    pub(super) fn mean(&self, of: impl Fn(&Course) -> f64) -> f64 {
        mean(&self.courses.iter().map(|course| of(course)).collect::<Vec<_>>()).unwrap_or_default()
    }

    /// Accuracy, the time of a round, rounds, updates per round, and fractions of phones, samples and updates.
    pub(super) fn costs(&self) -> [f64; 9] {
        [
            self.accuracy(),
            self.round_s(),
            self.mean(|course| course.total(|rounds| f64::from(rounds.all))),
            self.mean(Course::updates),
            self.mean(Course::excluded),
            self.mean(Course::contributed),
            self.mean(|course| course.total(|rounds| rounds.reached)),
            self.mean(Course::killed),
            self.mean(Course::dropped),
        ]
    }

    /// A description: rounds, their cost, and the outcomes of phones.
    pub(super) fn words(&self) -> String {
        let [_, round_s, rounds, updates, excluded, contributed, reached, killed, dropped] = self.costs();
        let round = duration(round_s);
        format!(
            "{rounds:.0} rounds of {round}, {updates:.1} updates each; {excluded:.0} % of phones left out, {contributed:.0} % contributed, with {reached:.0} % of all samples; of parts {killed:.1} % killed, {dropped:.1} % dropped",
        )
    }
}

/// The median of the existing values, if at least half of the seeds have one.
pub(super) fn of_most(values: &[Option<f64>]) -> Option<f64> {
    let there: Vec<f64> = values.iter().copied().flatten().collect();
    if 2 * there.len() >= values.len().max(1) { median(there) } else { None }
}

/// The same as text, with the range if there are several seeds, and the number of seeds without a value.
pub(super) fn over_seeds(values: &[Option<f64>], decimals: usize) -> String {
    let Some(middle) = of_most(values) else { return "never".to_owned() };
    let there = || values.iter().copied().flatten();
    let [least, most] = [there().fold(f64::INFINITY, f64::min), there().fold(0.0, f64::max)];
    let never = values.len() - there().count();
    let never = if never > 0 { format!(", {never} never") } else { String::new() };
    match values.len() {
        0 | 1 => format!("{middle:.decimals$}"),
        _ => format!("{middle:.decimals$} ({least:.decimals$} to {most:.decimals$}{never})"),
    }
}

/// Seconds as text.
pub(in crate::artefacts) fn duration(seconds: f64) -> String {
    crate::quantities::time(Nanos((seconds.max(0.0) * 1e9) as u64))
}

/// The network that learns and its data.
fn trained(context: &Context<'_>, task: &str) -> Result<[String; 2]> {
    let text = of_task(context, task)?;
    let value = |key: &str| {
        let line = text.lines().find(|line| line.split('=').next().is_some_and(|name| name.trim() == key));
        line.and_then(|line| line.split('"').nth(1)).unwrap_or("its own").to_owned()
    };
    Ok(["stand_in", "data"].map(value))
}

/// The accuracy of a guess on the data of the federation of `text`, and its standard deviation; `None` if
/// nothing is learned.
pub(in crate::artefacts) fn chance(context: &Context<'_>, text: &str) -> Result<Option<[f64; 2]>> {
    Ok(Specification::parse(PLACE, text, None)?.chance(context.cache)?)
}

/// A remark, after a comma, if accuracies are not better than a guess; otherwise empty.
pub(super) fn at_chance(context: &Context<'_>, task: &str, accuracies: &[f64]) -> Result<String> {
    let chance = chance(context, &text(context, task, &["random"])?)?;
    let said = chance.and_then(|chance| learning::at_chance(accuracies, chance));
    Ok(said.map_or_else(String::new, |said| format!(", {said}")))
}

/// Accuracy over time of each federation of the artefact's sweep, and its results compared with the first of its group.
pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    show(context, courses(context, &hold_all(context)?)?, Outcome::default())
}

/// The records: one for each point of a curve, and one for the whole.
pub(super) fn courses(context: &Context<'_>, all: &[Held]) -> Result<Records> {
    let header = "kind,title,stand_in,time_h,accuracy_percent,round_s,rounds,updates,phones_left_out_percent,contributed,reached,\
                  killed_percent,dropped_percent,first_accuracy,gain,slowdown,first_over_round,time_s,first_time_s,words,duration,\
                  first_words,first_duration";
    let mut places = all.iter();
    gathered(context, header, |_| {
        let Held { cases, federation, first } = places.next().context("a federation is missing")?;
        let (first, of_task) = (&all[*first].federation, shown(context, &cases[0], federation)?);
        // The time to the lower of the two highest accuracies.
        let times = federation
            .beside(first, |first, own| [own, first].map(|course| course.time_to(own.best().min(first.best()))));
        let ratios: Vec<Option<f64>> = times.iter().map(|[own, first]| Some((*own)? / (*first)?)).collect();
        let [own_s, first_s] = [0, 1].map(|of| of_most(&times.iter().map(|pair| pair[of]).collect::<Vec<_>>()));
        let [accuracy, costs @ ..] = federation.costs().map(Some);
        let beside = [
            Some(first.accuracy()),
            Some(federation.accuracy() - first.accuracy()),
            of_most(&ratios),
            Some(first.round_s() / federation.round_s()),
            Some(own_s.unwrap_or_default()),
            Some(first_s.unwrap_or_default()),
        ];
        let words = [federation, first].map(|one| [one.words(), duration(one.round_s())]).concat();
        let curve = federation.curve().into_iter().map(|point| point_of("curve", &of_task, point.0, point.1));
        let whole = ("whole", of_task.clone(), [None, accuracy], costs, beside, words).row();
        Ok(curve.chain([whole]).collect())
    })
}

/// A record of [`courses`] that is a point of a curve.
pub(super) fn point_of(kind: &str, of_task: &[String; 2], x: f64, accuracy: f64) -> Vec<Cell> {
    (kind, of_task.clone(), [x, accuracy], [None::<f64>; 14], [""; 4]).row()
}

/// The title of a task's panel, and the network that learns in it.
pub(super) fn shown(context: &Context<'_>, task: &SweptCase, federation: &Federation) -> Result<[String; 2]> {
    let [network, data] = trained(context, &task.id)?;
    let title = learning::title(&network, &data, &name(task).replacen(", ", " on ", 1));
    Ok([title, format!("{network} on {data}, {}", counted(federation.courses.len(), "seed", "seeds"))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_seeds_decide_whether_a_target_is_reached() {
        assert_eq!(of_most(&[Some(2.0), None, Some(4.0)]), Some(3.0));
        assert_eq!(over_seeds(&[Some(2.0), None, Some(4.0)], 1), "3.0 (2.0 to 4.0, 1 never)");
        assert_eq!([over_seeds(&[Some(2.0)], 0), over_seeds(&[None], 0)], ["2", "never"]);
        assert_eq!(of_most(&[None, None, Some(4.0)]), None);
        assert_eq!(of_most(&[]), None);
    }
}
