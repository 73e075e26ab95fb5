//! Sections 2 and 3: what a federation loses where memory is short, and with the memory saving that there was before.

use super::federations::{
    AS_SOLD, Course, Federation, Wanted, duration, hold, hold_all, of_most, over_time, seeds, stand_in, stand_ins, text,
};
use crate::artefacts::prelude::*;

/// The tasks: of their readings, for people, as figure 1's rows call them, and as the others' do.
const TASKS: [(&str, &str, &str, &str); 2] = [
    ("openimg-mobilenetv2-32", "MobileNetV2 on OpenImage", "mobilenetv2-openimg", "mobilenetv2"),
    ("agnews-bert", "BERT on AG News", "bert-agnews", "bert"),
];
/// What takes updates in: the papers' tables have two; here the first.
const AGGREGATOR: &str = "fedprox";
/// Methods: of their readings, and for people.
const PRACTICAL: (&str, &str) = ("oort", "Oort, practical");
const ORACLE: (&str, &str) = ("oort-oracle", "Oort, oracle");
const RANDOM: (&str, &str) = ("random", "Random");
const SAVING: [(&str, &str, &str); 3] = [
    ("oort-capuchin", "Oort + Capuchin", "oort+capuchin"),
    ("oort-gact", "Oort + GACT", "oort+gact"),
    ("oort-melon", "Oort + Melon", "oort+melon"),
];

/// The federations of each task under `methods`, in their order.
fn held(context: &Context<'_>, methods: &[&'static str]) -> Result<Vec<Vec<Federation>>> {
    let wanted: Vec<Wanted> = TASKS
        .iter()
        .flat_map(|(task, ..)| methods.iter().map(move |&method| (*task, vec![method, AGGREGATOR, AS_SOLD])))
        .collect();
    Ok(hold_all(context, &wanted)?.chunks(methods.len()).map(<[_]>::to_vec).collect())
}

/// Draws accuracy over time, a panel a task, and adds it to the data.
fn draw(context: &Context<'_>, outcome: &mut Outcome, names: &[&str], found: &[Vec<Federation>]) -> Result<()> {
    outcome.words("stand-in", stand_ins(context, TASKS.map(|task| task.0), &found[0])?);
    for ((task, name, ..), federations) in TASKS.iter().zip(found) {
        over_time(context, outcome, task, name, names.iter().copied().zip(federations))?;
    }
    Ok(())
}

pub(super) fn figure1(context: &Context<'_>) -> Result<Outcome> {
    let methods = [PRACTICAL, ORACLE, RANDOM];
    let found = held(context, &methods.map(|method| method.0))?;
    let mut outcome = Outcome::of("task,method,time_h,accuracy_percent");
    for ((task, _, subject, _), federations) in TASKS.iter().zip(&found) {
        let id = format!("fedhybrid/figure1/{subject}/oort-practical-vs-oort-oracle/accuracy-drop");
        outcome.number(&id, federations[1].accuracy() - federations[0].accuracy());
        outcome.remark(
            &id,
            format!(
                "{:.1} % practical, {:.1} % oracle, {:.1} % random; stand-in {}",
                federations[0].accuracy(),
                federations[1].accuracy(),
                federations[2].accuracy(),
                stand_in(context, task, federations)?
            ),
        );
    }
    draw(context, &mut outcome, &methods.map(|method| method.1), &found)?;
    let mut lines = Lines::new();
    for ((task, name, ..), federations) in TASKS.iter().zip(&found) {
        let mut drops = vec![(0.0, federations[1].accuracy() - federations[0].accuracy())];
        for &apart in context.reading_numbers("data-by-memory")? {
            let [practical, oracle] = [PRACTICAL, ORACLE].map(|(method, of)| {
                let text = text(context, task, &[method, AGGREGATOR, AS_SOLD])?;
                let courses = hold(context, &format!("{text}\ndata_by_memory = {apart}"), &seeds(context)?)?;
                let federation = Federation { courses };
                for (time, accuracy) in federation.curve() {
                    outcome.row((*name, format!("{of}, data by memory {apart}").as_str(), [time, accuracy]))?;
                }
                Ok::<_, anyhow::Error>(federation.accuracy())
            });
            drops.push((apart, oracle? - practical?));
        }
        lines = lines.series(Series::new(*name, drops));
    }
    let apart = Axis::new("how far data go with memory").from_zero();
    outcome.panel("what is lost with the phones", lines, apart, axis("the oracle's accuracy less Oort's", "points"));
    Ok(outcome)
}

pub(super) fn section2_1(context: &Context<'_>) -> Result<Outcome> {
    let found = held(context, &[PRACTICAL.0, ORACLE.0])?;
    let mut outcome = Outcome::of("task,method,round_s,phones_left_out_percent,killed_percent,dropped_percent");
    for ((_, task, _, subject), federations) in TASKS.iter().zip(&found) {
        let [practical, oracle] = [&federations[0], &federations[1]];
        for (federation, (_, name)) in [practical, oracle].into_iter().zip([PRACTICAL, ORACLE]) {
            let shares = [
                federation.round_s(),
                federation.excluded(),
                federation.mean(Course::killed),
                federation.mean(Course::dropped),
            ];
            outcome.row((*task, name, shares))?;
        }
        let excluded = format!("fedhybrid/section2.1/{subject}/oort-practical/clients-excluded");
        outcome.number(&excluded, practical.excluded());
        outcome.remark(&excluded, practical.words());
        let ratio = format!("fedhybrid/section2.1/{subject}/oort-practical/oort-oracle/round-duration-ratio");
        outcome.number(&ratio, practical.round_s() / oracle.round_s());
        outcome.remark(
            &ratio,
            format!("{} practical, {} oracle", duration(practical.round_s()), duration(oracle.round_s())),
        );
    }
    Ok(outcome)
}

pub(super) fn figure3(context: &Context<'_>) -> Result<Outcome> {
    let methods = [PRACTICAL.0, SAVING[0].0, SAVING[1].0, SAVING[2].0];
    let found = held(context, &methods)?;
    let mut outcome = Outcome::of("task,method,time_h,accuracy_percent");
    let (mut accuracies, mut ends) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for ((.., subject), federations) in TASKS.iter().zip(&found) {
        let alone = &federations[0];
        for (federation, (_, name, method)) in federations[1..].iter().zip(SAVING) {
            if method == "oort+gact" {
                let [own, others] = federation.times_beside(alone);
                accuracies[0].push(federation.accuracy());
                accuracies[1].push(alone.accuracy());
                ends[0].push(of_most(&own).unwrap_or_default());
                ends[1].push(of_most(&others).unwrap_or_default());
                continue;
            }
            let gain = format!("fedhybrid/figure3/{subject}/{method}/accuracy-gain");
            outcome.number(&gain, federation.accuracy() - alone.accuracy());
            outcome.remark(
                &gain,
                format!("{name}: {:.1} %; Oort alone: {:.1} %", federation.accuracy(), alone.accuracy()),
            );
            let ratio = format!("fedhybrid/figure3/{subject}/{method}/time-to-accuracy-ratio");
            outcome.answer(&ratio, federation.slowdown(alone).map_or(Answer::Never, Answer::Number));
            outcome.remark(&ratio, format!("{name}: {}. Oort alone: {}", federation.words(), alone.words()));
        }
    }
    let [with, alone] = accuracies;
    outcome.quantity("final accuracy of Oort with GACT", "%", with);
    outcome.quantity("final accuracy of Oort", "%", alone);
    let [with, alone] = ends;
    outcome.quantity("time to the target of Oort with GACT", "s", with);
    outcome.quantity("time to the target of Oort", "s", alone);
    context.judge(&mut outcome, "fedhybrid/figure3/all/oort+gact/no-gain-in-accuracy-and-slower")?;
    let names = [PRACTICAL.1, SAVING[0].1, SAVING[1].1, SAVING[2].1];
    draw(context, &mut outcome, &names, &found)?;
    Ok(outcome)
}
