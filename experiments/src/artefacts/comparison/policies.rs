//! Every policy on six devices of three kinds and three networks: memory against time, apart by how faithful gradients are and by
//! whether the device's usual engine runs it; and what accuracy it was measured to cost on a stand-in.

use std::collections::BTreeMap;

use haversack_reports::figure::Panel;
use haversack_training::FidelityClass;
use indexmap::IndexMap;

use super::accuracy::{self, Cost, costs, worst};
use super::points::{self, Network, PERCENTS, Point};
use crate::artefacts::prelude::*;
use crate::quantities::range;
use crate::sensitivity::uncertainty;

const NETWORKS: [Network; 3] =
    [("resnet50", 32, "glyphs"), ("mobilenetv2", 32, "glyphs"), ("bert-small", 32, "phrases")];
/// The device of the overview, which shows the first of the networks.
const OVERVIEW: &str = "galaxy-s22";
/// How far off each constant may be that was fitted or estimated.
const OFF: f64 = 0.2;

const HEADER: &str =
    "device,model,policy,stack,is_usual,budget_percent,budget_gb,memory_gb,time_s,gradients,bound_s,off";

fn points(context: &Context<'_>, device: &str, network: Network) -> Result<Vec<Point>> {
    let plain = trained(device, NETWORKS[0].0, "original", NETWORKS[0].1);
    let off = *context.once(format!("uncertainty {device}"), || Ok(uncertainty(&plain, OFF, context.cache)?))?;
    let mut found = points::points(context.cache, device, network, context.seed);
    found.iter_mut().filter(|point| point.policy == plain.policy).for_each(|point| point.off = Some(off));
    Ok(found)
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let is_overview = context.artefact.id == "policies";
    let (device, networks) =
        if is_overview { (OVERVIEW, &NETWORKS[..1]) } else { (context.artefact.id, &NETWORKS[..]) };
    let mut all = Vec::new();
    for network in networks {
        let points = context.once(format!("policies {device} {}", network.0), || points(context, device, *network))?;
        all.extend_from_slice(&points);
    }
    shown(&all, context.artefact.measured, is_overview)
}

/// The data, the panels and the findings; of the overview without the engines that are not the device's usual one.
fn shown(points: &[Point], measured: &[&str], is_overview: bool) -> Result<Outcome> {
    let mut outcome = Outcome::of(HEADER);
    for point in points {
        let words = [&point.device, &point.model, &point.policy, &point.stack].map(|word| word.as_str());
        let numbers = [point.budget_percent, point.budget_gb, point.memory_gb, point.time_s];
        let gradients = point.gradients.map(FidelityClass::word);
        outcome.row((words, point.is_usual, numbers, gradients, [point.bound_s, point.off]))?;
    }
    let has_others = !is_overview && points.iter().any(|point| !point.is_usual);
    let mut findings = Vec::new();
    for case in points.chunk_by(|one, other| one.model == other.model) {
        let data = NETWORKS.iter().find(|(model, ..)| *model == case[0].model).map_or("", |(.., data)| data);
        let costs = costs(measured, data)?;
        let name = spelled(&case[0].model);
        outcome
            .panels
            .push(front(case, &name, "the mini-batch's own gradients", |point| point.is_usual && point.is_exact()));
        outcome
            .panels
            .push(front(case, &name, "gradients that give something up", |point| point.is_usual && !point.is_exact()));
        if has_others {
            outcome.panels.push(front(case, &name, "on other engines", |point| !point.is_usual));
        }
        outcome.panels.push(accuracy::panel(case, &costs));
        findings.push(finding(case, &costs));
    }
    outcome.words("finding", findings.first().cloned().unwrap_or_default());
    outcome.words("findings", findings[1..].iter().map(|finding| format!("{finding}.")).collect::<Vec<_>>().join(" "));
    outcome.summary.extend(findings);
    outcome.quantity("budgets", "%", PERCENTS);
    outcome.quantity("off", "%", [OFF * 100.0]);
    outcome.words("confidence", "95%");
    Ok(outcome)
}

/// Memory against time of those that are `wanted`, with the bound of exact plans.
fn front(case: &[Point], name: &str, title: &str, wanted: impl Fn(&Point) -> bool) -> Panel {
    let shown: Vec<&Point> = case.iter().filter(|point| point.place().is_some() && wanted(point)).collect();
    let mut clouds: IndexMap<(&str, &str), Vec<(f64, f64)>> = IndexMap::new();
    for point in &shown {
        let class = point.gradients.unwrap_or_default().word();
        clouds.entry((class, &point.policy)).or_default().extend(point.place());
    }
    let add = |front: Front, ((class, policy), points)| front.cloud_of(class, policy, points);
    let mut front = clouds.into_iter().fold(Front::new(), add);
    let is_usual = shown.iter().any(|point| point.is_usual);
    let plain = case.iter().find_map(|point| Some((point.time_s?, point.off?))).filter(|_| is_usual);
    let band = plain.map(|(time, off)| [time / (1.0 + off), time * (1.0 + off)]);
    if let Some(band) = band {
        front = front.band(band, "no policy, if constants are off");
    }
    // Within a budget all have one bound, but for those that write to flash: theirs is lower, and bounds all.
    let mut bounds: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for point in shown.iter().filter(|point| point.is_exact() && point.is_usual) {
        let within = point.budget_gb.unwrap_or(f64::INFINITY);
        let Some(bound) = point.bound_s else { continue };
        let known = bounds.entry(within.to_bits()).or_insert((within, bound));
        known.1 = known.1.min(bound);
    }
    if !bounds.is_empty() {
        front = front.bound(bounds.into_values().collect::<Vec<_>>());
    }
    let panel = Panel::new(front).title(format!("{name}, {title}"));
    // Panels that are compared have one range.
    let of_usual = || case.iter().filter(|point| point.is_usual).filter_map(Point::place);
    let spanning = |axis: Axis, ends: Option<(f64, f64)>| match ends.filter(|_| is_usual) {
        Some((least, most)) => axis.range(least / 1.1, most * 1.1),
        None => axis,
    };
    let memory = spanning(Axis::new("peak memory").unit("GB").log(), range(of_usual().map(|place| place.0)));
    let times = of_usual().map(|place| place.1).chain(band.into_iter().flatten());
    panel.x(memory).y(spanning(Axis::new("time of an iteration").unit("s").log(), range(times)))
}

/// Where the fewest policies keep the mini-batch's own gradients, and which of those whose accuracy is known needs the least memory.
fn finding(case: &[Point], costs: &[Cost]) -> String {
    let usual = || case.iter().filter(|point| point.is_usual).filter_map(|point| Some((point, point.place()?)));
    let Some((_, plain)) = usual().find(|(point, _)| point.policy == "original") else {
        return format!("{} does not train without a policy", spelled(&case[0].model));
    };
    let mut budgets: Vec<f64> = usual().filter_map(|(point, _)| point.budget_gb).collect();
    budgets.sort_by(f64::total_cmp);
    budgets.dedup();
    // The policies that fit, with the time of each at its fastest.
    let fitting = |budget: f64| {
        let mut times: IndexMap<&str, f64> = IndexMap::new();
        for (point, (memory, time)) in usual().filter(|(point, _)| point.is_exact()) {
            if point.budget_gb.unwrap_or(memory) <= budget {
                let known = times.entry(&point.policy).or_insert(time);
                *known = known.min(time);
            }
        }
        times.sort_by(|_, a, _, b| a.total_cmp(b));
        times
    };
    let fitting: Vec<_> = budgets.into_iter().map(|budget| (budget, fitting(budget))).collect();
    let alone = fitting.iter().rev().find(|(_, left)| left.len() == 1);
    let few = alone.or_else(|| fitting.iter().find(|(_, left)| !left.is_empty()));
    let mut parts = Vec::new();
    if let Some((budget, left)) = few
        && let Some((policy, time)) = left.first()
    {
        let who = match left.len() {
            1 => format!("only {} keeps", spelled(policy)),
            number => format!("{} is the fastest of {number} that keep", spelled(policy)),
        };
        let pace = pace(time / plain.1);
        parts.push(format!("within {budget:.2} GB {who} the mini-batch's own gradients, {pace} as no policy"));
    }
    let known = usual().filter(|(point, _)| point.budget_gb.is_none() && !point.is_exact());
    let known = known.filter_map(|(point, place)| Some((point, place, worst(costs, &point.policy)?)));
    if let Some((point, (memory, time), cost)) = known.min_by(|a, b| a.1.0.total_cmp(&b.1.0)) {
        let (share, pace) = (memory / plain.0 * 100.0, pace(time / plain.1));
        let points = cost.words();
        let policy = spelled(&point.policy);
        parts.push(format!("{policy} needs {share:.0}% of its memory, is {pace}, at {points} points of accuracy"));
    }
    format!("{} on {}: {}", spelled(&case[0].model), spelled(&case[0].device), parts.join("; "))
}

/// `times` as long as no policy, in words.
fn pace(times: f64) -> String {
    match format!("{times:.1}").as_str() {
        "1.0" => "as fast".to_owned(),
        slower if times > 1.0 => format!("{slower} times as slow"),
        // Micro-batches whose tensors fit into a cache may be faster than the whole mini-batch.
        _ => format!("{:.1} times as fast", 1.0 / times),
    }
}

#[cfg(test)]
mod tests {
    use haversack_policies::POLICIES;

    use super::super::points::scenarios;
    use super::*;
    use crate::Cache;
    use crate::artefacts::ARTEFACTS;
    use crate::papers::notes::Facts;
    use crate::papers::{Readings, Reference};

    const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/comparison");

    fn committed_points() -> Vec<Point> {
        let rows = csv::Reader::from_path(format!("{DOCS}.csv")).unwrap().into_deserialize();
        rows.map(Result::unwrap).collect()
    }

    fn measured() -> &'static [&'static str] {
        ARTEFACTS.iter().find(|artefact| artefact.place() == "comparison/policies").unwrap().measured
    }

    #[test]
    fn the_picture_in_the_documentation_is_the_one_that_is_drawn_today() {
        let outcome = shown(&committed_points(), measured(), true).unwrap();
        let readings = Readings::load(&Reference::load().unwrap()).unwrap();
        let facts = Facts { cells: &[], quantities: &outcome.quantities, declared: &|_| None };
        let figure = readings.frame("comparison", "policies").unwrap().around(outcome.panels, &facts).unwrap();
        let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
        assert!(readme.contains(&format!("![{}]", figure.title)), "README.md shows another finding: {}", figure.title);
        let today = figure.render().unwrap().svg;
        let command = "haversack reproduce comparison/policies --out out, then copy out/comparison/policies.{csv,svg}";
        assert!(
            std::fs::read_to_string(format!("{DOCS}.svg")).unwrap() == today,
            "docs/comparison.svg is old: {command}"
        );
    }

    #[test]
    fn points_of_the_picture_are_what_is_simulated_today() {
        let (committed, cache) = (committed_points(), Cache::new());
        let all = scenarios(OVERVIEW, NETWORKS[0], 0);
        // Every eighth run: one of most policies. Those of minimum cuts are dozens of runs each.
        for (scenario, is_usual) in all.iter().step_by(8).filter(|(scenario, _)| scenario.policy != "mincut") {
            let Some(now) = Point::of(&cache, scenario, *is_usual) else { continue };
            let then =
                committed.iter().find(|then| then.policy == now.policy && then.budget_percent == now.budget_percent);
            let then = Point { off: None, ..then.unwrap().clone() };
            assert_eq!(then, now, "docs/comparison.csv is old");
        }
        // On the device's own engine every policy has a row, and one stack.
        for entry in POLICIES.iter().filter(|entry| entry.engine.is_none()) {
            assert!(committed.iter().any(|point| point.policy == entry.id && point.is_usual), "{}", entry.id);
        }
        assert!(committed.iter().all(|point| !point.is_usual || point.stack == committed[0].stack));
    }

    #[test]
    fn a_pace_reads_in_the_direction_of_its_number() {
        let expected =
            [(1.31, "1.3 times as slow"), (1.04, "as fast"), (0.97, "as fast"), (0.633, "1.6 times as fast")];
        expected.into_iter().for_each(|(times, words)| assert_eq!(pace(times), words));
    }

    #[test]
    fn a_finding_says_who_is_left_and_what_the_smallest_costs() {
        let point = |policy: &str, budget: Option<f64>, memory: f64, gradients| Point {
            device: "galaxy-s22".to_owned(),
            model: "resnet50".to_owned(),
            policy: policy.to_owned(),
            stack: String::new(),
            is_usual: true,
            budget_percent: None,
            budget_gb: budget,
            memory_gb: Some(memory),
            time_s: Some(10.0 / memory),
            gradients: Some(gradients),
            bound_s: None,
            off: None,
        };
        let exact = FidelityClass::Exact;
        let case = [
            point("original", None, 4.0, exact),
            point("sage", Some(2.0), 2.0, exact),
            point("mincut", Some(2.0), 1.9, exact),
            point("mincut", Some(1.0), 1.0, exact),
            point("actnn", None, 1.0, FidelityClass::Stored),
            point("gact", None, 0.5, FidelityClass::Stored),
        ];
        let cost =
            |stand_in: &str, mean, half| Cost { label: "actnn".to_owned(), stand_in: stand_in.to_owned(), mean, half };
        let costs = [cost("a", -0.5, 2.0), cost("b", -0.9, 1.0)];
        // Within 1 GB one is left, at 10 s over 2.5 s. Of what was measured ActNN needs 1 GB of 4 GB.
        let expected = "ResNet-50 on Galaxy S22: within 1.00 GB only mincut keeps the mini-batch's own gradients, 4.0 times \
                        as slow as no policy; ActNN needs 25% of its memory, is 4.0 times as slow, at −0.9 ± 1.0 points of accuracy";
        assert_eq!(finding(&case, &costs), expected);
        // Within 2 GB, Sage at 5 s and minimum cuts at 5.3 s.
        let two = finding(&case[..3], &[]);
        assert!(two.ends_with("within 2.00 GB Sage is the fastest of 2 that keep the mini-batch's own gradients, 2.0 times as slow as no policy"), "{two}");
    }

    #[test]
    fn costs_are_differences_with_the_same_seeds() {
        let costs = costs(measured(), "glyphs").unwrap();
        let of = |label: &str, stand_in: &str| {
            let found = costs.iter().filter(|cost| cost.label == label && cost.stand_in == stand_in);
            found.map(|cost| (cost.mean, cost.half)).collect::<Vec<_>>()
        };
        // 65.3, 72.25 and 77.9 against 88.3, 87.9 and 93.3: -23, -15.65 and -15.4.
        let [(mean, half)] = of("fixed8", "resnet8-cifar")[..] else { panic!("once") };
        assert!((mean + 54.05 / 3.0).abs() < 1e-9 && half > 5.0, "{mean} {half}");
        // 86.4, 81.15 and 90.95 against the same three: -1.9, -6.75 and -2.35.
        let [(mean, _)] = of("sage, 25%", "resnet8-cifar")[..] else { panic!("once") };
        assert!((mean + 11.0 / 3.0).abs() < 1e-9, "{mean}");
        assert_eq!(of("daf, 12%", "lenet5").len(), 1);
        assert!(of("original", "lenet5").is_empty());
    }
}
