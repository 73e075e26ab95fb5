//! Compares `mincut` with each paper's policy, both as shipped and with its parameters tuned, among runs with
//! equally faithful gradients.

use haversack_policies::{Entry, registry};
use haversack_reports::figure::Stack;
use haversack_training::FidelityClass;

use crate::artefacts::prelude::*;
use crate::run::Results;
use crate::tune::{Tuned, tuned};

/// Machines: a device and a stack.
const MACHINES: [(&str, &str); 3] =
    [("galaxy-s10", "sage-opencl"), ("rtx-3090", "pytorch-cuda"), ("server-core", "pytorch-cpu")];
/// Networks and mini-batch sizes.
const NETWORKS: [(&str, u64); 3] = [("resnet50", 16), ("mobilenetv2", 16), ("bert-small", 8)];
/// Budgets in percent of the memory that training needs without a policy.
const PERCENTS: [f64; 3] = [75.0, 50.0, 35.0];
/// Policies that run on any engine.
const PAPERS: [&str; 12] =
    ["sgc", "sga", "dgc", "dga", "sage", "dtr", "actnn", "daf", "gact", "capuchin", "melon", "fedhybrid"];
/// The classes of fidelity that both can have.
const CLASSES: [FidelityClass; 3] = [FidelityClass::Exact, FidelityClass::BatchStatistics, FidelityClass::Stored];
/// The most runs to tune a policy.
const TRIES: u64 = 24;
/// Times that differ by less than this share are equal.
const EQUAL: f64 = 1e-3;
/// The possible verdicts.
const VERDICTS: [&str; 5] =
    ["mincut is faster", "equal", "the paper is faster", "only mincut fits", "only the paper fits"];

/// A machine, a network and a budget.
#[derive(Clone, Copy, PartialEq)]
struct Case {
    device: &'static str,
    stack: &'static str,
    model: &'static str,
    batch: u64,
    percent: f64,
}

/// A paper's policy in a case.
struct Duel {
    case: Case,
    paper: &'static str,
    class: FidelityClass,
    tuned: Tuned,
    own: Option<Results>,
}

impl Duel {
    /// The paper's run, as it is shipped or tuned.
    fn paper(&self, is_tuned: bool) -> Option<&Results> {
        if is_tuned { self.tuned.tuned.as_ref() } else { self.tuned.shipped.as_ref() }
    }

    /// The index in [`VERDICTS`]; `None` if neither fits.
    fn verdict(&self, is_tuned: bool) -> Option<usize> {
        match (&self.own, self.paper(is_tuned)) {
            (Some(own), Some(paper)) => {
                let ratio = paper.iteration_time_s / own.iteration_time_s;
                Some(if ratio > 1.0 + EQUAL { 0 } else { 1 + usize::from(ratio < 1.0 - EQUAL) })
            }
            (Some(_), None) => Some(3),
            (None, Some(_)) => Some(4),
            (None, None) => None,
        }
    }
}

/// The duels of all papers in a case.
fn duels(context: &Context<'_>, case: Case) -> Result<Vec<Duel>> {
    let base = Scenario {
        seed: context.seed,
        stack: Some(case.stack.to_owned()),
        memory_budget: Some(Budget::Percent(case.percent)),
        iterations: Some(2),
        ..trained(case.device, case.model, "original", case.batch)
    };
    let run = |scenario: &Scenario| -> Result<Option<Results>> {
        let plan = context.plan(scenario)?;
        Ok(plan.run_within_device(context.cache).ok().map(|record| Results::new(&plan, &record)))
    };
    let mincut = |class: FidelityClass, least: u64| {
        let bits = [1, 2, 4, 8, 16].into_iter().find(|&bits| bits >= least).unwrap_or(16).to_string();
        let stored = [("fidelity", class.word()), ("least_bits", bits.as_str())];
        run(&under(&base, "mincut", if class == FidelityClass::Stored { &stored } else { &stored[..1] }))
    };
    let mut found = Vec::new();
    let mut own: Vec<((FidelityClass, u64), Option<Results>)> = Vec::new();
    for paper in PAPERS {
        let entry: &Entry = registry::find(paper)?;
        let tuned = tuned(entry, &base, TRIES, context.cache)?;
        // A policy that does not fit has the class that it has with enough memory.
        let roomy = Scenario { memory_budget: None, ..under(&base, paper, &[]) };
        let of = match tuned.shipped.clone().or(tuned.tuned.clone()) {
            Some(results) => Some(results),
            None => run(&roomy)?,
        };
        let Some(of) = of.filter(|results| CLASSES.contains(&results.fidelity)) else { continue };
        let key = (of.fidelity, of.least_bits);
        if !own.iter().any(|(known, _)| *known == key) {
            own.push((key, mincut(key.0, key.1)?));
        }
        let own = own.iter().find(|(known, _)| *known == key).and_then(|(_, results)| results.clone());
        found.push(Duel { case, paper, class: of.fidelity, tuned, own });
    }
    Ok(found)
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut cases = Vec::new();
    for (device, stack) in MACHINES {
        for (model, batch) in NETWORKS {
            cases.extend(PERCENTS.map(|percent| Case { device, stack, model, batch, percent }));
        }
    }
    let found: Vec<Vec<Duel>> = cases.into_par_iter().map(|case| duels(context, case)).collect::<Result<_>>()?;
    let duels: Vec<Duel> = found.into_iter().flatten().collect();
    let header = "device,stack,model,batch,budget_percent,gradients,policy,shipped_s,tuned_s,tries,set,mincut_s,\
                  mincut_gap,shipped,tuned";
    let mut records = Records::of(header);
    for duel in &duels {
        let time = |results: Option<&Results>| results.map(|results| results.iteration_time_s);
        let set: Vec<String> = duel.tuned.set.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let word = |is_tuned| duel.verdict(is_tuned).map_or("neither fits", |place| VERDICTS[place]);
        let Case { device, stack, model, batch, percent } = duel.case;
        let case = ([device, stack, model], batch as f64, percent);
        let papers = ([duel.class.word(), duel.paper], [time(duel.paper(false)), time(duel.paper(true))]);
        let own = [time(duel.own.as_ref()), duel.own.as_ref().and_then(|own| own.optimality_gap)];
        let tuning = (duel.tuned.tries as f64, set.join(" "));
        records.row((case, papers, tuning, own, [word(false), word(true)]))?;
    }
    let mut outcome = Outcome::default();
    for class in CLASSES {
        for (is_tuned, how) in [(false, "as shipped"), (true, "tuned")] {
            let of = |paper: &str, verdict: usize| {
                let own = duels.iter().filter(|duel| duel.class == class && duel.paper == paper);
                own.filter(|duel| duel.verdict(is_tuned) == Some(verdict)).count()
            };
            let there: Vec<&str> =
                PAPERS.into_iter().filter(|paper| (0..5).any(|verdict| of(paper, verdict) > 0)).collect();
            let mut stack = Stack::new(there.iter().copied());
            let mut words = Vec::new();
            for (verdict, name) in VERDICTS.into_iter().enumerate() {
                let counts: Vec<usize> = there.iter().map(|paper| of(paper, verdict)).collect();
                words.push(format!("{name} at {}", counts.iter().sum::<usize>()));
                stack = stack.part(name, counts.iter().map(|&count| count as f64).collect::<Vec<_>>());
            }
            outcome.summary.push(format!("{}, papers {how}: {}", class.word(), words.join(", ")));
            let title = format!("{}, papers {how}", class.word());
            outcome.panel(&title, stack, Axis::default(), from_zero("points", ""));
        }
        outcome.summary.push(beside_the_fastest(&duels, class));
        let own = duels.iter().filter(|duel| duel.class == class).filter_map(|duel| duel.own.as_ref());
        let mut gaps: Vec<f64> = own.filter_map(|own| own.optimality_gap).collect();
        gaps.sort_by(f64::total_cmp);
        gaps.dedup();
        if let (Some(middle), Some(high)) = (gaps.get(gaps.len() / 2), gaps.get(gaps.len() * 9 / 10)) {
            let [middle, high] = [middle, high].map(|gap| gap * 100.0);
            outcome.summary.push(format!(
                "{}: mincut is {middle:.1}% above the bound in the median, {high:.1}% in the 90th percentile",
                class.word()
            ));
        }
    }
    outcome.words("finding", beside_the_fastest(&duels, CLASSES[0]));
    show(context, records, outcome)
}

/// A sentence on the time of the fastest paper policy as shipped relative to `mincut`, over the cases
/// in which both fit.
fn beside_the_fastest(duels: &[Duel], class: FidelityClass) -> String {
    let mut ratios: Vec<f64> = Vec::new();
    for case in duels.chunk_by(|one, other| one.case == other.case) {
        let times = case
            .iter()
            .filter(|duel| duel.class == class)
            .filter_map(|duel| Some([duel.paper(false)?.iteration_time_s, duel.own.as_ref()?.iteration_time_s]));
        ratios.extend(times.min_by(|one, other| one[0].total_cmp(&other[0])).map(|[paper, own]| paper / own));
    }
    let [faster, slower] = [|ratio: &f64| *ratio > 1.0 + EQUAL, |ratio: &f64| *ratio < 1.0 - EQUAL]
        .map(|holds| ratios.iter().copied().filter(holds).count());
    format!(
        "{}, compared with the fastest paper as shipped at each of {} points: faster at {faster}, slower at \
         {slower}; by {:.1}% in the median",
        class.word(),
        ratios.len(),
        (median(ratios.clone()).unwrap_or(1.0) - 1.0) * 100.0
    )
}
