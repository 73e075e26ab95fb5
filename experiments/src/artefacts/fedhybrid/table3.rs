//! Tables 3 and 4: time to the accuracy that random selection reaches.

use super::federations::{self, Course, Federation, Held, duration, hold_all, of_most, over_seeds, shown};
use crate::artefacts::learning::words;
use crate::artefacts::prelude::*;
use crate::artefacts::sweeps::gathered;

/// A federation and the one it is timed against, whose best accuracy with each seed is the target.
struct Beside<'f> {
    first: &'f Federation,
    own: &'f Federation,
}

impl Beside<'_> {
    /// For each seed, the first's time to its best accuracy divided by this federation's time to it.
    fn speedups(&self) -> Vec<Option<f64>> {
        self.own.beside(self.first, speedup)
    }

    /// For each seed, by which factor it needs fewer rounds to the target than the first, and by which factor its
    /// rounds are shorter: the speed-up is the product. If it never reaches the target, its rounds are compared
    /// over the whole run.
    fn factors(&self) -> [Vec<Option<f64>>; 2] {
        let fewer = |first: &Course, own: &Course| {
            let rounds = |course: &Course| course.rounds_to(first.best()).map(f64::from);
            Some(rounds(first)? / rounds(own)?)
        };
        let shorter = |first: &Course, own: &Course| {
            let to_target = speedup(first, own).zip(fewer(first, own)).map(|(speedup, fewer)| speedup / fewer);
            to_target.or(Some(first.round_s() / own.round_s()))
        };
        [self.own.beside(self.first, shorter), self.own.beside(self.first, fewer)]
    }

    /// For each seed, the accuracy minus the first's, at the time when the shorter of the two runs ends, and after the
    /// same number of rounds, in points.
    fn equal(&self) -> [Vec<f64>; 2] {
        let by_time = |first: &Course, own: &Course| {
            let end_s = first.all_s().min(own.all_s());
            own.best_by(end_s) - first.best_by(end_s)
        };
        let by_rounds = |first: &Course, own: &Course| own.best() - first.best();
        [self.own.beside(self.first, by_time), self.own.beside(self.first, by_rounds)]
    }

    /// A description: the number and length of rounds relative to the first's, accuracy at equal time, and
    /// the phones reached.
    fn way(&self) -> String {
        let [shorter, fewer] = self.factors().map(|factor| over_seeds(&factor, 2));
        let [by_time, by_rounds] = self.equal().map(|points| words(&points));
        let whom = self.own.words();
        format!(
            "rounds {shorter} times as short, as few: {fewer}; {by_time} points at equal time, {by_rounds} after all rounds; {whom}"
        )
    }

    /// Reasons to doubt the first's best accuracy as a target, after a semicolon: it still rises, or too few phones can
    /// take part for a choice.
    fn doubts(&self) -> String {
        let gain = self.first.mean(Course::last_gain);
        let rises = (gain >= PLATEAU).then(|| format!("; not converged: {gain:.1} points in the last fifth"));
        let has_choice = self.first.courses.iter().all(|course| course.has_choice());
        let no_choice = "; no choice: fewer than two cohorts of phones can take part";
        rises.unwrap_or_default() + if has_choice { "" } else { no_choice }
    }
}

fn speedup(first: &Course, own: &Course) -> Option<f64> {
    Some(first.time_to(first.best())? / own.time_to(first.best())?)
}

/// The gain in points in the last fifth of the rounds above which a method has not converged.
const PLATEAU: f64 = 1.5;

/// The factor between a speed-up and the paper's above which a note explains the difference: for
/// MobileNetV2, and for texts.
const FAR: [f64; 2] = [1.5, 2.5];

/// Whether a speed-up differs by more than that from the paper's.
fn is_far(paper: &ReferenceRow, simulated: Option<f64>) -> bool {
    let most = FAR[usize::from(!paper.subject.starts_with("openimg"))];
    match (paper.number(), simulated) {
        (Some(paper), Some(simulated)) => simulated / paper > most || paper / simulated > most,
        (Some(_), None) => true,
        (None, Some(_)) => matches!(paper.claim, Claim::Never),
        (None, None) => false,
    }
}

/// Table 3, or table 4, which is timed against a row of table 3; readings have no row.
pub(super) fn table(context: &Context<'_>) -> Result<Outcome> {
    let (all, table) = (hold_all(context)?, context.artefact.id);
    let mut outcome = Outcome::default();
    let header = "speedup,shorter_rounds,fewer_rounds,points_at_equal_time,points_at_equal_rounds,accuracy_percent,round_s,rounds,\
                  updates_per_round,phones_left_out_percent,phones_contributed_percent,samples_reached_percent,killed_percent,\
                  dropped_percent,table,place,far,stand_in,way,at_chance,differences,from,found,random_takes";
    let mut places = all.iter().enumerate();
    let records = gathered(context, header, |_| {
        let (place, held) = places.next().context("a federation is missing")?;
        let (Held { cases, federation: own, first }, [task, method]) = (held, held.ids());
        let beside = Beside { first: &all[*first].federation, own };
        let (speedups, is_first) = (beside.speedups(), place == *first);
        let (speedup, equal) = (of_most(&speedups), beside.equal());
        let [_, stand_in] = shown(context, &cases[0], own)?;
        let is_baseline = is_first && table == "table4";
        if is_baseline {
            let id = format!("fedhybrid/table3/{task}/{method}/accuracy");
            let row = context.reference.row(&id).with_context(|| format!("no row is called `{id}`"))?;
            outcome.baseline(row, own.accuracy());
        }
        let row = context.row(&format!("fedhybrid/{table}/{task}/{method}/speedup"));
        let far = !is_first && row.is_ok_and(|row| is_far(row, speedup));
        let numbers =
            (speedup, beside.factors().map(|factor| of_most(&factor)), equal.clone().map(median), own.costs());
        let place = if is_baseline {
            "baseline"
        } else if is_first {
            "first"
        } else {
            "other"
        };
        let kind = [table, place, if far { "far" } else { "" }, &stand_in].map(str::to_owned);
        let way = beside.way() + &if is_first { beside.doubts() } else { String::new() };
        let at_chance = federations::at_chance(context, task, &own.best())?;
        let from = all[*first].cases[1].name.clone().unwrap_or_default();
        let [found, takes] = [over_seeds(&speedups, 2), duration(beside.first.round_s())];
        Ok(vec![(numbers, kind, [way, at_chance, words(&equal[1]), from, found, takes])])
    })?;
    outcome.words("what the paper permits", permitted(context)?);
    show(context, records, outcome)
}

/// For two tasks, the bound that the paper's own figures put on FedHybrid's speed-up with FedProx: Oort's speed-up,
/// times the ratio of its round duration to that of an oracle with enough memory (section 2.1), divided by the cost of
/// plans relative to ideal ones (figure 21).
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
    let of_all = [
        of("openimg-mobilenetv2", "mobilenetv2", "MobileNetV2, OpenImage"),
        of("agnews-bert", "bert", "BERT, AG News"),
    ];
    Ok(of_all.into_iter().collect::<Result<Vec<_>>>()?.join("; "))
}
