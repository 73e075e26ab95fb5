//! Federations that artefacts hold: what is trained (a *task*), and how (a *method*), are readings, whose texts together are a
//! specification of `haversack federate`.

mod course;

pub(in crate::artefacts) use course::Course;

use crate::artefacts::learning;
use crate::artefacts::prelude::*;
use crate::federate::{Specification, held};
use crate::quantities::counted;

/// The file that errors of a specification name.
const PLACE: &str = "readings of a federation";

/// A federation with each of its seeds.
#[derive(Clone, Debug)]
pub(super) struct Federation {
    pub(super) courses: Vec<Arc<Course>>,
}

/// What all federations have.
const PHONES: &str = "phones";
/// The system of the phones: of the testbed, and of phones as they are sold, which a federation asks for among its parts.
const TESTBED: &str = "testbed";
pub(super) const AS_SOLD: &str = "as-sold";
/// How often each is held.
const SEEDS: &str = "federation-seeds";

/// The specification of a task and what comes with it, each a reading. A task is called by its data set and its network, each a
/// reading: `openimg-mobilenetv2`.
pub(super) fn text(context: &Context<'_>, task: &str, parts: &[&str]) -> Result<String> {
    let system = if parts.contains(&AS_SOLD) { AS_SOLD } else { TESTBED };
    let others = parts.iter().copied().filter(|part| *part != AS_SOLD);
    Ok(format!("{}\n{}", of_task(context, task)?, joined(context, std::iter::once(system).chain(others))?))
}

/// What is trained of a task, and on which phones.
fn of_task(context: &Context<'_>, task: &str) -> Result<String> {
    let (set, network) = task.split_once('-').with_context(|| format!("{task} names no data set and no network"))?;
    joined(context, [PHONES, set, network])
}

fn joined<'p>(context: &Context<'_>, parts: impl IntoIterator<Item = &'p str>) -> Result<String> {
    let texts = parts.into_iter().map(|part| context.reading_text(part));
    Ok(texts.collect::<Result<Vec<_>>>()?.join("\n"))
}

/// The seeds that federations are held with.
pub(super) fn seeds(context: &Context<'_>) -> Result<Vec<u64>> {
    let number = context.reading_number(SEEDS)? as u64;
    Ok(context.seeds_of(&(0..number).collect::<Vec<_>>()))
}

/// A task and what comes with it.
pub(super) type Wanted = (&'static str, Vec<&'static str>);

/// Holds each of `wanted` with all seeds, once for all artefacts.
///
/// # Errors
/// A specification that is wrong, and whatever a federation fails with.
pub(super) fn hold_all(context: &Context<'_>, wanted: &[Wanted]) -> Result<Vec<Federation>> {
    let seeds = seeds(context)?;
    let one = |(task, parts): &Wanted| hold(context, &text(context, task, parts)?, &seeds);
    let found: Vec<_> = wanted.par_iter().map(one).collect::<Result<_>>()?;
    Ok(found.into_iter().map(|courses| Federation { courses }).collect())
}

/// The federation of `text` with each of `seeds`: simulated where nobody learns, else as it was committed or learned now.
///
/// # Errors
/// A specification that is wrong, one that nobody has held, and whatever a federation fails with.
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

/// Holds the federation of `text` now, once for all artefacts; what learned is kept under `key`.
fn held_now(context: &Context<'_>, text: &str, seed: u64, key: &str) -> Result<Arc<Course>> {
    let key = format!("federation, seed {seed}: {}", key.replace('\n', "; "));
    context.once(key.clone(), || {
        if let Some(course) = context.kept.get(&key) {
            return Ok(course);
        }
        let asked = Specification::parse(PLACE, text, Some(seed))?;
        let course = Course::of(&held(&asked, None, context.cache)?, seed);
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

    /// With each seed the times of this one and of `other` to the lower of their highest accuracies, in seconds.
    pub(super) fn times_beside(&self, other: &Self) -> [Vec<Option<f64>>; 2] {
        let targets: Vec<f64> = self.best().into_iter().zip(other.best()).map(|(own, other)| own.min(other)).collect();
        [self.times_to(&targets), other.times_to(&targets)]
    }

    /// With each seed how many times as long as `other` it takes to the lower of their highest accuracies.
    pub(super) fn slowdown(&self, other: &Self) -> Option<f64> {
        let [own, others] = self.times_beside(other);
        let ratios: Vec<Option<f64>> = own.iter().zip(others).map(|(own, other)| Some((*own)? / other?)).collect();
        of_most(&ratios)
    }

    /// With each seed the time to the accuracy of its place in `targets`, in seconds; `None` where it is not reached.
    pub(super) fn times_to(&self, targets: &[f64]) -> Vec<Option<f64>> {
        self.courses.iter().zip(targets).map(|(course, &target)| course.time_to(target)).collect()
    }

    /// Hours and accuracy in percent of each measured round that all seeds have: of both the median.
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

    /// The number of rounds.
    pub(super) fn rounds(&self) -> f64 {
        self.mean(|course| course.total(|rounds| f64::from(rounds.all)))
    }

    /// The share of phones that are left out, in percent.
    pub(super) fn excluded(&self) -> f64 {
        self.mean(Course::excluded)
    }

    /// The mean of a quantity over the seeds.
    pub(super) fn mean(&self, of: impl Fn(&Course) -> f64) -> f64 {
        mean(&self.courses.iter().map(|course| of(course)).collect::<Vec<_>>()).unwrap_or_default()
    }

    /// What there is to say of it: rounds, what they take, and what became of phones.
    pub(super) fn words(&self) -> String {
        format!(
            "{:.0} rounds of {}, {:.1} updates each; {:.0} % of phones left out, {:.0} % contributed, with {:.0} % of all samples; of parts {:.1} % killed, {:.1} % dropped",
            self.rounds(),
            duration(self.round_s()),
            self.mean(Course::updates),
            self.excluded(),
            self.mean(Course::contributed),
            self.mean(|course| course.total(|rounds| rounds.reached)),
            self.mean(Course::killed),
            self.mean(Course::dropped),
        )
    }
}

/// The median of the values there are, where at least half of the seeds have one.
pub(super) fn of_most(values: &[Option<f64>]) -> Option<f64> {
    let there: Vec<f64> = values.iter().copied().flatten().collect();
    if 2 * there.len() >= values.len().max(1) { median(there) } else { None }
}

/// The same in words, with the least and the most of more seeds than one, and with how many have none.
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

/// Seconds in words.
pub(super) fn duration(seconds: f64) -> String {
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

/// The same as figures of `federations` say it: `mlp on linear, 2 seeds`.
pub(super) fn stand_in(context: &Context<'_>, task: &str, federations: &[Federation]) -> Result<String> {
    let [network, data] = trained(context, task)?;
    let seeds = federations.first().map_or(0, |federation| federation.courses.len());
    Ok(format!("{network} on {data}, {}", counted(seeds, "seed", "seeds")))
}

/// The same of several tasks, each once.
pub(super) fn stand_ins<'t>(
    context: &Context<'_>,
    tasks: impl IntoIterator<Item = &'t str>,
    federations: &[Federation],
) -> Result<String> {
    let all = tasks.into_iter().map(|task| stand_in(context, task, federations));
    let mut all = all.collect::<Result<Vec<_>>>()?;
    all.dedup();
    Ok(all.join("; "))
}

/// What a guess tells apart of the data of the federation of `text`, and by how much it scatters; `None` where nobody learns.
pub(in crate::artefacts) fn chance(context: &Context<'_>, text: &str) -> Result<Option<[f64; 2]>> {
    Ok(Specification::parse(PLACE, text, None)?.chance(context.cache)?)
}

/// In words that accuracies are no better than a guess, if so, after a comma.
pub(super) fn at_chance(context: &Context<'_>, task: &str, accuracies: &[f64]) -> Result<String> {
    let chance = chance(context, &text(context, task, &["random"])?)?;
    let said = chance.and_then(|chance| learning::at_chance(accuracies, chance));
    Ok(said.map_or_else(String::new, |said| format!(", {said}")))
}

/// Draws accuracy over time of each federation of a task, and adds it to the data under its `name`.
pub(super) fn over_time<'f>(
    context: &Context<'_>,
    outcome: &mut Outcome,
    task: &str,
    name: &str,
    named: impl IntoIterator<Item = (&'f str, &'f Federation)>,
) -> Result<()> {
    let mut lines = Lines::new();
    for (method, federation) in named {
        let curve = federation.curve();
        for &(time, accuracy) in &curve {
            outcome.row((name, method, [Some(time), Some(accuracy)]))?;
        }
        lines = lines.series(Series::new(method, curve).unmarked());
    }
    let [network, data] = trained(context, task)?;
    let title = learning::title(&network, &data, &name.replacen(", ", " on ", 1));
    outcome.panel(&title, lines, axis("simulated time", "h"), test_accuracy());
    Ok(())
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
