//! The accuracy that each policy costs, measured by training small networks under it.

use std::collections::BTreeMap;

use haversack_reports::figure::{Intervals, Panel};
use haversack_training::FidelityClass;
use indexmap::{IndexMap, IndexSet};

use super::points::{Point, points};
use crate::artefacts::learning::{Taught, Training, learn, stand_ins};
use crate::artefacts::prelude::*;
use crate::measured::{committed, interval};

/// The device on which policies have their classes, and the stand-ins of images and texts with their mini-batches and data.
const DEVICE: &str = "galaxy-s22";
const STAND_INS: [(&str, u64, &str, &str); 2] =
    [("resnet8-cifar", 64, "glyphs", "images"), ("transformer2-lora", 16, "phrases", "texts")];
/// Policies that change the statistics of batch normalisation, by their percentage of the saved tensors.
const GIVEN: [(&str, f64); 2] = [("sage", 25.0), ("dga", 12.0)];
/// The data that they learn.
const DATA: &str = STAND_INS[0].2;
/// The artefact itself.
const PLACE: &str = "comparison/accuracy";
/// The policies of the four papers.
const PAPERS: [&str; 4] = ["daf", "mandheling", "sage", "fedhybrid"];

/// The measured cost of a policy in accuracy.
#[derive(Clone)]
pub(super) struct Cost {
    /// The policy, and what it was given.
    pub(super) label: String,
    pub(super) stand_in: String,
    /// Points above training without a policy with the same seeds, and half of the 95% interval.
    pub(super) mean: f64,
    pub(super) half: f64,
}

impl Cost {
    /// The cost whose seeds are these points above those without a policy.
    fn of(label: String, stand_in: &str, above: &[f64]) -> Self {
        let (mean, half) = interval(above);
        Self { label, stand_in: stand_in.to_owned(), mean, half }
    }

    /// Whether it is the cost of `policy`, with whatever it was given.
    fn is_of(&self, policy: &str) -> bool {
        self.label.split(',').next() == Some(policy)
    }

    /// `−0.6 ± 1.9`, in points.
    pub(super) fn words(&self) -> String {
        format!("{:+.1} ± {:.1}", self.mean, self.half).replace('-', "−")
    }
}

/// The costs measured at `places` on stand-ins that learn `data`, relative to `original` with the same mini-batches and
/// seeds.
pub(super) fn costs(places: &[&str], data: &str) -> Result<Vec<Cost>> {
    let mut costs: Vec<Cost> = Vec::new();
    for place in places {
        let trainings = committed(place)?.trainings;
        for one in trainings.iter().filter(|one| one.data == data) {
            // `daf, batch 32, 4 epochs, 12% for activations`; those within a time budget answer another question.
            let parts: Vec<&str> = one.how.splitn(4, ", ").collect();
            let [policy, batch, epochs, set @ ..] = &parts[..] else { continue };
            let set = set.first().copied().unwrap_or_default();
            let plain = format!("original, {batch}, {epochs}");
            let plain = trainings.iter().find(|other| other.network == one.network && other.how == plain);
            let Some(plain) = plain.filter(|plain| plain.how != one.how && !set.ends_with("each")) else { continue };
            let label =
                set.strip_suffix(" for activations").map_or((*policy).to_owned(), |share| format!("{policy}, {share}"));
            if costs.iter().any(|known| known.label == label && known.stand_in == one.network) {
                continue;
            }
            let pairs = one.learned.iter().zip(&plain.learned).filter(|(own, other)| own.seed == other.seed);
            let above = pairs.filter_map(|(own, other)| Some(own.accuracy.last()? - other.accuracy.last()?));
            costs.push(Cost::of(label, &one.network, &above.collect::<Vec<_>>()));
        }
    }
    Ok(costs)
}

/// The measured accuracy of the policies of the case that were trained, by how faithful their gradients are.
pub(super) fn panel(case: &[Point], costs: &[Cost]) -> Panel {
    let (mut chart, mut shown) = (Intervals::new(), IndexSet::new());
    let mut classes: BTreeMap<FidelityClass, IndexSet<&str>> = BTreeMap::new();
    for point in case {
        point.gradients.into_iter().for_each(|class| _ = classes.entry(class).or_default().insert(&point.policy));
    }
    for (class, own) in classes {
        let mut marks: IndexMap<&str, Vec<[f64; 3]>> = IndexMap::new();
        // Equal gradients learn the same.
        if class == FidelityClass::Exact {
            marks.insert("original", vec![[0.0; 3]]);
        }
        // Trainings are of the least that a policy gives up.
        for policy in own.into_iter().filter(|policy| class != FidelityClass::Exact && shown.insert(*policy)) {
            for Cost { label, mean, half, .. } in costs.iter().filter(|cost| cost.is_of(policy)) {
                marks.entry(label).or_default().push([mean - half, *mean, mean + half]);
            }
        }
        if !marks.is_empty() {
            let add = |chart: Intervals, (label, own)| chart.category(label, own, "");
            chart = marks.into_iter().fold(chart.group(class.word()), add);
        }
    }
    Panel::new(chart)
        .title("accuracy on stand-ins, against no policy")
        .y(Axis::new("difference").unit("points"))
        .apart()
}

/// Every policy on a stand-in of each kind; those that change statistics are trained for this artefact, others for the papers'.
pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of("data,stand_in,policy,points,low,high");
    let (own, mut known) = (own(context)?, Vec::new());
    let others: Vec<&str> = context.artefact.measured.iter().copied().filter(|place| *place != PLACE).collect();
    for (model, batch, data, kind) in STAND_INS {
        let case = points(context.cache, DEVICE, (model, batch, data), context.seed);
        let mut costs = costs(&others, data)?;
        costs.extend(own.iter().filter(|_| data == DATA).cloned());
        for Cost { label, stand_in, mean, half } in &costs {
            outcome.row(([data, stand_in, label], [*mean, mean - half, mean + half]))?;
        }
        let cost = |policy: &&str| {
            let given = || costs.iter().find(|cost| cost.is_of(policy));
            let most = worst(&costs, policy).or_else(given).map(Cost::words);
            let exact = || case.iter().any(|point| point.policy == *policy && point.is_exact()).then(|| "0".to_owned());
            most.or_else(exact).map(|cost| format!("{} {cost}", spelled(policy)))
        };
        known.push(format!("on {kind} {}", PAPERS.iter().filter_map(cost).collect::<Vec<_>>().join(", ")));
        outcome.panels.push(panel(&case, &costs).title(format!("stand-ins that learn {kind}")));
    }
    outcome.words("finding", known.join("; "));
    outcome.words("confidence", "95%");
    Ok(outcome)
}

/// The costs of the policies that are trained here.
fn own(context: &Context<'_>) -> Result<Vec<Cost>> {
    let stand_in = stand_ins(context, "images")?.pop().context("no stand-in is declared")?;
    let training = |policy: &str, activation_budget: Option<Budget>| {
        let scenario = Scenario { activation_budget, ..under(&stand_in.scenario, policy, &[]) };
        Training { stand_in: stand_in.clone(), scenario }
    };
    let given = GIVEN.map(|(policy, percent)| training(policy, Some(Budget::Percent(percent))));
    let plain = learn(context, &[training("original", None)])?.remove(0)?;
    let cost = |((policy, percent), taught): ((&str, f64), Result<Taught>)| {
        Ok(Cost::of(format!("{policy}, {percent}%"), &stand_in.scenario.model, &taught?.above(&plain)))
    };
    GIVEN.into_iter().zip(learn(context, &given)?).map(cost).collect()
}

/// The cost of a policy on the stand-in where it is largest.
pub(super) fn worst<'c>(costs: &'c [Cost], policy: &str) -> Option<&'c Cost> {
    costs.iter().filter(|cost| cost.label == policy).min_by(|a, b| a.mean.total_cmp(&b.mean))
}
