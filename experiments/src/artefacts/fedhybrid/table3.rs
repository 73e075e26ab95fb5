//! Tables 3 and 4, and their curves, figures 15 and 16: time to the accuracy that random selection reaches.

use super::federations::{
    self, Course, Federation, Wanted, duration, hold_all, of_most, over_seeds, stand_in, stand_ins,
};
use crate::artefacts::learning::words;
use crate::artefacts::prelude::*;

/// The tasks: as rows call them, and for people.
const TASKS: [(&str, &str); 6] = [
    ("openimg-mobilenetv2", "MobileNetV2, OpenImage"),
    ("openimg-shufflenet", "ShuffleNet, OpenImage"),
    ("20news-bert", "BERT, 20News"),
    ("20news-albert", "ALBERT, 20News"),
    ("agnews-bert", "BERT, AG News"),
    ("agnews-albert", "ALBERT, AG News"),
];

/// A method: as rows call it, for people, and the readings that say how it trains.
#[derive(Clone, Copy, Debug)]
struct Method {
    id: &'static str,
    name: &'static str,
    readings: [&'static str; 2],
}

const fn method(id: &'static str, name: &'static str, how: &'static str, aggregator: &'static str) -> Method {
    Method { id, name, readings: [how, aggregator] }
}

const RANDOM: Method = method("random+fedprox", "Random + FedProx", "random", "fedprox");
const FEDHYBRID: Method = method("fedhybrid+fedprox", "FedHybrid + FedProx", "fedhybrid", "fedprox");

/// A table: groups of methods, the first of each that against which the others are timed.
pub(super) struct Comparison {
    table: &'static str,
    groups: &'static [&'static [Method]],
    /// Whether the table itself has the first's rows.
    has_baseline: bool,
}

pub(super) const TABLE_3: Comparison = Comparison {
    table: "table3",
    groups: &[
        &[
            RANDOM,
            method("oort+fedprox", "Oort + FedProx", "oort", "fedprox"),
            method("heterofl+fedprox", "HeteroFL + FedProx", "heterofl", "fedprox"),
            FEDHYBRID,
        ],
        &[
            method("random+yogi", "Random + Yogi", "random", "yogi"),
            method("oort+yogi", "Oort + Yogi", "oort", "yogi"),
            method("heterofl+yogi", "HeteroFL + Yogi", "heterofl", "yogi"),
            method("fedhybrid+yogi", "FedHybrid + Yogi", "fedhybrid", "yogi"),
        ],
    ],
    has_baseline: true,
};

pub(super) const TABLE_4: Comparison = Comparison {
    table: "table4",
    groups: &[&[
        RANDOM,
        FEDHYBRID,
        method("oort+melon", "Oort + Melon", "oort-melon", "fedprox"),
        method("oort+capuchin", "Oort + Capuchin", "oort-capuchin", "fedprox"),
        method("oort+gact", "Oort + GACT", "oort-gact", "fedprox"),
    ]],
    has_baseline: false,
};

/// The federations of a task and a group of methods, in their order.
struct Group {
    task: (&'static str, &'static str),
    methods: &'static [Method],
    federations: Vec<Federation>,
}

fn held(context: &Context<'_>, comparison: &Comparison) -> Result<Vec<Group>> {
    let groups = || TASKS.into_iter().flat_map(|task| comparison.groups.iter().map(move |methods| (task, *methods)));
    let wanted: Vec<Wanted> = groups()
        .flat_map(|(task, methods)| methods.iter().map(move |method| (task.0, method.readings.to_vec())))
        .collect();
    let mut found = hold_all(context, &wanted)?.into_iter();
    let of = |(task, methods): (_, &'static [Method])| {
        let federations = found.by_ref().take(methods.len()).collect();
        Group { task, methods, federations }
    };
    Ok(groups().map(of).collect())
}

impl Group {
    /// The best of the first method with each seed: what the others are to reach.
    fn targets(&self) -> Vec<f64> {
        self.federations.first().map(Federation::best).unwrap_or_default()
    }

    /// Of a method, with each seed, the first method's time to its best over the method's time to it.
    fn speedups(&self, method: usize) -> Vec<Option<f64>> {
        let targets = self.targets();
        let first = self.federations[0].times_to(&targets);
        let own = self.federations[method].times_to(&targets);
        first.into_iter().zip(own).map(|(first, own)| Some(first? / own?)).collect()
    }

    /// With each seed how many times as few rounds as the first method's a method takes to its best, and how many times as long as
    /// the method's a round of the first takes: a speed-up is the product. Where the method's never get there, of all its rounds.
    fn factors(&self, method: usize) -> [Vec<Option<f64>>; 2] {
        let targets = self.targets();
        let rounds = |of: &Federation| -> Vec<Option<f64>> {
            let to = |(course, target): (&Arc<Course>, &f64)| course.rounds_to(*target).map(f64::from);
            of.courses.iter().zip(&targets).map(to).collect()
        };
        let (first, own) = (&self.federations[0], &self.federations[method]);
        let fewer: Vec<Option<f64>> =
            rounds(first).into_iter().zip(rounds(own)).map(|(first, own)| Some(first? / own?)).collect();
        let to_target =
            self.speedups(method).into_iter().zip(&fewer).map(|(speedup, fewer)| Some(speedup? / (*fewer)?));
        let courses = first.courses.iter().zip(&own.courses);
        let shorter =
            to_target.zip(courses).map(|(found, (first, own))| found.or(Some(first.round_s() / own.round_s())));
        (shorter.collect(), fewer).into()
    }

    /// With each seed the accuracy of a method less the first's when the sooner of the two ends, and after as many rounds, in points.
    fn equal(&self, method: usize) -> [Vec<f64>; 2] {
        let pairs = || self.federations[0].courses.iter().zip(&self.federations[method].courses);
        let by_time = pairs().map(|(first, own)| {
            let end_s = first.all_s().min(own.all_s());
            own.best_by(end_s) - first.best_by(end_s)
        });
        [by_time.collect(), pairs().map(|(first, own)| own.best() - first.best()).collect()]
    }

    /// How a method got there: rounds and their length beside the first method's, accuracy at equal time, and whom it reached.
    fn way(&self, method: usize) -> String {
        let federation = &self.federations[method];
        let [shorter, fewer] = self.factors(method).map(|factor| over_seeds(&factor, 2));
        let [by_time, by_rounds] = self.equal(method).map(|points| words(&points));
        format!(
            "rounds {shorter} times as short, as few: {fewer}; {by_time} points at equal time, {by_rounds} after all rounds; {}{}",
            federation.words(),
            if method == 0 { self.doubts() } else { String::new() }
        )
    }

    /// What makes the first method's best no target, after a semicolon: it still rises, or nobody has a choice.
    fn doubts(&self) -> String {
        let (first, gain) = (&self.federations[0], self.federations[0].mean(Course::last_gain));
        let rises = if gain >= PLATEAU {
            format!("; not converged: {gain:.1} points in the last fifth")
        } else {
            String::new()
        };
        let has_choice = first.courses.iter().all(|course| course.has_choice());
        format!(
            "{rises}{}",
            if has_choice { "" } else { "; no choice: fewer than two cohorts of phones can take part" }
        )
    }
}

/// Points that a method gains in the last fifth of its rounds, from which on it has not converged.
const PLATEAU: f64 = 1.5;

pub(super) fn table(context: &Context<'_>, comparison: &Comparison) -> Result<Outcome> {
    let groups = held(context, comparison)?;
    let mut outcome = Outcome::of(
        "task,method,speedup,shorter_rounds,fewer_rounds,points_at_equal_time,points_at_equal_rounds,accuracy_percent,round_s,rounds,updates_per_round,phones_left_out_percent,phones_contributed_percent,samples_reached_percent,killed_percent,dropped_percent",
    );
    let mut grid = Grid::default();
    for group in &groups {
        let stand_in = stand_in(context, group.task.0, &group.federations)?;
        let baseline = group.federations[0].best();
        for (place, method) in group.methods.iter().enumerate() {
            let federation = &group.federations[place];
            let speedup = of_most(&group.speedups(place));
            let factors = group.factors(place).map(|factor| of_most(&factor));
            let equal = group.equal(place).map(median);
            outcome.row((group.task.1, method.name, speedup, factors, equal, costs(federation)))?;
            let row = |metric: &str| format!("fedhybrid/{}/{}/{}/{metric}", comparison.table, group.task.0, method.id);
            if place == 0 && !comparison.has_baseline {
                let id = format!("fedhybrid/{}/{}/{}/accuracy", TABLE_3.table, group.task.0, method.id);
                let row = context.reference.row(&id).with_context(|| format!("no row is called `{id}`"))?;
                outcome.baseline(row, federation.accuracy());
                continue;
            }
            let (speed, accuracy) = (row("speedup"), row("accuracy"));
            grid.put([group.task.1, method.name, "speedup"], speedup, context.paper(&speed)?);
            outcome.remark(&speed, format!("{}; stand-in {stand_in}", group.way(place)));
            let differences: Vec<f64> =
                federation.best().iter().zip(&baseline).map(|(own, first)| own - first).collect();
            let from = group.methods[0].name;
            let at_chance = federations::at_chance(context, group.task.0, &federation.best())?;
            let differences = words(&differences);
            outcome.remark(&accuracy, format!("stand-in {stand_in}{at_chance}; {differences} points from {from}"));
            if place == 0 {
                outcome.answer(speed, Answer::Input(1.0));
                outcome.answer(accuracy, Answer::Input(federation.accuracy()));
            } else {
                outcome.answer(speed, speedup.map_or(Answer::Never, Answer::Number));
                outcome.number(accuracy, federation.accuracy());
            }
        }
    }
    outcome.words("stand-in", stand_ins(context, TASKS.map(|task| task.0), &groups[0].federations)?);
    outcome.words("what the paper permits", permitted(context)?);
    offer(context, &mut outcome, comparison, &groups)?;
    outcome.panel("", grid.bars("speedup"), Axis::default(), from_zero("speed-up over random selection", ""));
    let mut bars = Bars::new(TASKS.map(|task| task.1));
    for methods in comparison.groups {
        for (place, method) in methods.iter().enumerate().skip(1) {
            let of_all = groups.iter().filter(|group| group.methods[0].id == methods[0].id);
            let points = of_all.map(|group| median(group.equal(place)[0].clone()));
            bars = bars.series(BarSeries::new(method.name, points.collect::<Vec<_>>()));
        }
    }
    outcome.panel(
        "when the sooner of the two ends",
        bars,
        Axis::default(),
        axis("accuracy above random selection's", "points"),
    );
    Ok(outcome)
}

/// Of two tasks what the paper's own figures permit of FedHybrid's speed-up with FedProx: Oort's, times its rounds over those of
/// an oracle with memory enough (section 2.1), over what its plans cost beside an ideal one (figure 21).
fn permitted(context: &Context<'_>) -> Result<String> {
    let number = |id: &str| {
        let id = format!("fedhybrid/{id}");
        context.reference.row(&id).and_then(|row| row.number()).with_context(|| format!("no number is called `{id}`"))
    };
    let of = |task: &str, network: &str, name: &str| {
        let [oort, own] = ["oort+fedprox", "fedhybrid+fedprox"].map(|method| format!("table3/{task}/{method}/speedup"));
        let (oort, own) = (number(&oort)?, number(&own)?);
        let wall = number(&format!("section2.1/{network}/oort-practical/oort-oracle/round-duration-ratio"))?;
        let plans =
            1.0 + number("figure21/op10p-mobilenetv2,squeezenet-batch-16/fedhybrid/ideal/energy-increase")? / 100.0;
        let permitted = oort * wall / plans;
        let rest = own / permitted;
        Ok(format!(
            "{name} {oort} × {wall} / {plans:.3} = {permitted:.1} of {own}, so that {rest:.1} is left for fewer rounds"
        ))
    };
    let of_all = [(0, "mobilenetv2"), (4, "bert")].map(|(task, network)| of(TASKS[task].0, network, TASKS[task].1));
    Ok(of_all.into_iter().collect::<Result<Vec<_>>>()?.join("; "))
}

/// Of a federation accuracy, the time of a round, rounds, updates in each, and shares of phones, samples and parts.
fn costs(federation: &Federation) -> [f64; 9] {
    [
        federation.accuracy(),
        federation.round_s(),
        federation.rounds(),
        federation.mean(Course::updates),
        federation.excluded(),
        federation.mean(Course::contributed),
        federation.mean(|course| course.total(|rounds| rounds.reached)),
        federation.mean(Course::killed),
        federation.mean(Course::dropped),
    ]
}

/// How far a speed-up may be from the paper's before a note says why: of MobileNetV2, and of texts.
const FAR: [f64; 2] = [1.5, 2.5];

/// What the notes quote: speed-ups that are far from the paper's, each with how it came about.
fn offer(context: &Context<'_>, outcome: &mut Outcome, comparison: &Comparison, groups: &[Group]) -> Result<()> {
    let mut far = Vec::new();
    for group in groups {
        let most = FAR[usize::from(!group.task.0.starts_with("openimg"))];
        for (place, method) in group.methods.iter().enumerate().skip(1) {
            let id = format!("fedhybrid/{}/{}/{}/speedup", comparison.table, group.task.0, method.id);
            let paper = context.row(&id)?;
            let simulated = of_most(&group.speedups(place));
            let is_far = match (paper.number(), simulated) {
                (Some(paper), Some(simulated)) => simulated / paper > most || paper / simulated > most,
                (Some(_), None) => true,
                (None, Some(_)) => matches!(paper.claim, Claim::Never),
                (None, None) => false,
            };
            if is_far {
                let way = group.way(place);
                let found = over_seeds(&group.speedups(place), 2);
                far.push(format!(
                    "{}, {}: {found} ({way}; Random takes {})",
                    group.task.1,
                    method.name,
                    duration(group.federations[0].round_s())
                ));
            }
        }
    }
    outcome.list("speed-ups far from the paper's", far);
    Ok(())
}

pub(super) fn over_time(context: &Context<'_>, comparison: &Comparison) -> Result<Outcome> {
    let groups = held(context, comparison)?;
    let mut outcome = Outcome::of("task,method,time_h,accuracy_percent");
    outcome.words("stand-in", stand_ins(context, TASKS.map(|task| task.0), &groups[0].federations)?);
    for task in TASKS {
        let own = groups.iter().filter(|group| group.task == task);
        let named = own.flat_map(|group| group.methods.iter().map(|method| method.name).zip(&group.federations));
        federations::over_time(context, &mut outcome, task.0, task.1, named)?;
    }
    Ok(outcome)
}
