//! Figure 18: the local training engine, part by part. The paper prints no number of it.

mod budget;
mod codec;

use self::budget::{Phone, THRESHOLDS, phones};
use self::codec::{Map, maps};
use super::figure19::training;
use crate::artefacts::prelude::*;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let (maps, phones) = (maps(context)?, phones(context)?);
    let mut outcome = data(&maps, &phones)?;
    draw(&mut outcome, &maps, &phones);
    offer(&mut outcome, &maps, &phones);
    Ok(outcome)
}

/// C1 to C5.
fn thresholds() -> impl Iterator<Item = String> {
    (1..).zip(THRESHOLDS).map(|(number, (tp1, tp2))| {
        let factor = tp1.parse::<f64>().unwrap_or_default() / 100.0;
        format!("C{number} ({factor}, {tp2})")
    })
}

/// The time of all rounds of all phones on which none fails to end.
fn total(phones: &[Phone], which: usize) -> Option<f64> {
    let ended = phones.iter().filter_map(|phone| phone.predicted[which].as_ref());
    let times: Vec<f64> = ended.map(training::time).collect();
    (!times.is_empty()).then(|| times.iter().sum())
}

fn data(maps: &[Map], phones: &[Phone]) -> Result<Outcome> {
    let mut outcome = Outcome::of("panel,subject,method,quantity,unit,value");
    for map in maps {
        let name = map.name();
        let times = [
            ("quantisation", map.quantise),
            ("mixed compression", map.compress),
            ("mixed decompression", map.restore),
            ("convolution", map.convolution),
        ];
        for (method, time) in times {
            outcome.row(("a", name.as_str(), method, "time", "ms", time.seconds() * 1e3))?;
        }
        for (method, error) in [("quantisation", map.quantised), ("mixed compression", map.mixed)] {
            outcome.row(("b", name.as_str(), method, "size", "B", error.bytes as f64))?;
            outcome.row(("b", name.as_str(), method, "error variance over the map's", "", error.variance))?;
        }
    }
    for phone in phones {
        let user = phone.user.as_str();
        for (method, record) in [("direct measurement", &phone.measured), ("predictor", &phone.predicted[0])] {
            outcome.row(("c", user, method, "page faults", "", record.as_ref().map(training::faults)))?;
        }
        for (name, record) in thresholds().zip(&phone.predicted) {
            let record = record.as_ref();
            outcome.row(("d", user, name.as_str(), "time of all rounds", "s", record.map(training::time)))?;
            outcome.row(("d", user, name.as_str(), "budgets decided", "", record.map(training::budgets)))?;
        }
    }
    Ok(outcome)
}

fn draw(outcome: &mut Outcome, maps: &[Map], phones: &[Phone]) {
    let names = || maps.iter().map(Map::name);
    let times: [Quantity<Map>; 3] = [
        ("quantisation", |map| map.quantise.seconds() * 1e3),
        ("mixed compression", |map| map.compress.seconds() * 1e3),
        ("convolution", |map| map.convolution.seconds() * 1e3),
    ];
    let time = axis("time", "ms").log();
    outcome.panel("a: time of one map", columns(names(), maps, times), Axis::new("map"), time);
    let errors: [Quantity<Map>; 2] =
        [("quantisation", |map| map.quantised.variance), ("mixed compression", |map| map.mixed.variance)];
    let variance = Axis::new("variance, over the map's").log();
    outcome.panel("b: error within the same bytes", columns(names(), maps, errors), Axis::new("map"), variance);
    let users = phones.iter().map(|phone| phone.user.trim_start_matches("synthetic-0000"));
    let faults: [Quantity<Phone, Option<f64>>; 2] = [
        ("direct measurement", |phone| phone.measured.as_ref().map(training::faults)),
        ("predictor", |phone| phone.predicted[0].as_ref().map(training::faults)),
    ];
    let faults = columns(users, phones, faults).show_values();
    outcome.panel("c: page faults in five rounds", faults, Axis::new("synthetic user"), from_zero("page faults", ""));
    let totals = (0..THRESHOLDS.len()).map(|which| total(phones, which));
    let totals = Bars::new(thresholds()).series(BarSeries::new("predictor", totals)).show_values();
    let title = "d: time of all rounds by the thresholds";
    outcome.panel(title, totals, Axis::new("(TP1, TP2)"), from_zero("time on five phones", "s"));
}

/// What the notes quote.
fn offer(outcome: &mut Outcome, maps: &[Map], phones: &[Phone]) {
    let slower = maps.iter().map(|map| map.compress.seconds() / map.quantise.seconds()).fold(0.0, f64::max);
    let worst = maps.iter().map(|map| map.compress.seconds() / map.convolution.seconds()).fold(0.0, f64::max);
    outcome.quantity("compression over quantisation", "", [slower]);
    outcome.quantity("compression over a convolution", "%", [worst * 100.0]);
    if slower > 2.0 {
        outcome.quantity("compression is far slower", "", [slower]);
    }
    let better = maps.iter().filter(|map| map.mixed.variance < map.quantised.variance).count();
    outcome.words("maps with the smaller error", format!("{better} of {} maps", maps.len()));
    let plans = |which: usize| -> f64 {
        phones.iter().filter_map(|phone| phone.predicted[which].as_ref()).map(training::budgets).sum()
    };
    let counts: Vec<String> = (0..THRESHOLDS.len()).map(|which| plans(which).to_string()).collect();
    outcome.words("budgets decided", counts.join(", "));
    let times: Vec<u64> = (0..THRESHOLDS.len()).filter_map(|which| Some(total(phones, which)?.to_bits())).collect();
    if times.windows(2).all(|pair| pair[0] == pair[1]) {
        outcome.words("thresholds that decide nothing", "all");
    }
    let runs = phones.iter().flat_map(|phone| phone.predicted.iter().chain([&phone.measured]));
    let never = runs.filter(|run| run.is_none()).count();
    if never > 0 {
        outcome.quantity("runs that never end", "", [never as f64]);
    }
}
