//! Figure 18: the local training engine, part by part. The paper prints no number of it.

mod budget;
mod codec;

use self::budget::{Phone, THRESHOLDS, phones};
use self::codec::{Map, maps};
use super::figure19::training::Trained;
use super::setting::on_testbed;
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact =
    Artefact { users: true, ..on_testbed("figure18", "the local training engine, part by part", run) };

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let (maps, phones) = (maps(context)?, phones(context)?);
    let mut outcome = Outcome { table: Some(table(&maps, &phones)?), ..Outcome::default() };
    outcome.figure = Some(figure(&maps, &phones));
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
    let times: Vec<f64> =
        phones.iter().filter_map(|phone| Some(phone.predicted[which].as_ref()?.time.seconds())).collect();
    (!times.is_empty()).then(|| times.iter().sum())
}

fn table(maps: &[Map], phones: &[Phone]) -> Result<Table, ArtefactError> {
    let mut table = Table::new(["panel", "subject", "method", "quantity", "unit", "value"]);
    let mut row = |panel: &str, subject: &str, method: &str, quantity: &str, unit: &str, value: Option<f64>| {
        table.push([panel, subject, method, quantity, unit].map(Into::into).into_iter().chain([value.into()]))
    };
    for map in maps {
        let name = map.name();
        let times = [
            ("quantisation", map.quantise),
            ("mixed compression", map.compress),
            ("mixed decompression", map.restore),
            ("convolution", map.convolution),
        ];
        for (method, time) in times {
            row("a", &name, method, "time", "ms", Some(time.seconds() * 1e3))?;
        }
        for (method, error) in [("quantisation", map.quantised), ("mixed compression", map.mixed)] {
            row("b", &name, method, "size", "B", Some(error.bytes as f64))?;
            row("b", &name, method, "error variance over the map's", "", Some(error.variance))?;
        }
    }
    for phone in phones {
        let methods = [("direct measurement", phone.measured.as_ref()), ("predictor", phone.predicted[0].as_ref())];
        for (method, trained) in methods {
            row("c", &phone.user, method, "page faults", "", trained.map(|trained| trained.faults as f64))?;
        }
        for (name, trained) in thresholds().zip(&phone.predicted) {
            let seconds = trained.as_ref().map(|trained| trained.time.seconds());
            row("d", &phone.user, &name, "time of all rounds", "s", seconds)?;
            row(
                "d",
                &phone.user,
                &name,
                "budgets decided",
                "",
                trained.as_ref().map(|trained| trained.budgets.len() as f64),
            )?;
        }
    }
    Ok(table)
}

fn figure(maps: &[Map], phones: &[Phone]) -> Figure {
    let names = || maps.iter().map(Map::name);
    let milliseconds = |of: fn(&Map) -> haversack_devices::units::Nanos| {
        maps.iter().map(move |map| of(map).seconds() * 1e3).collect::<Vec<_>>()
    };
    let times = Bars::new(names())
        .series(BarSeries::new("quantisation", milliseconds(|map| map.quantise)))
        .series(BarSeries::new("mixed compression", milliseconds(|map| map.compress)))
        .series(BarSeries::new("convolution", milliseconds(|map| map.convolution)));
    let variances = |of: fn(&Map) -> f64| maps.iter().map(of).collect::<Vec<_>>();
    let errors = Bars::new(names())
        .series(BarSeries::new("quantisation", variances(|map| map.quantised.variance)))
        .series(BarSeries::new("mixed compression", variances(|map| map.mixed.variance)));
    let faults = |of: fn(&Phone) -> Option<&Trained>| {
        phones.iter().map(|phone| of(phone).map(|trained| trained.faults as f64)).collect::<Vec<_>>()
    };
    let users = phones.iter().map(|phone| phone.user.trim_start_matches("synthetic-0000").to_owned());
    let faults = Bars::new(users)
        .series(BarSeries::new("direct measurement", faults(|phone| phone.measured.as_ref())))
        .series(BarSeries::new("predictor", faults(|phone| phone.predicted[0].as_ref())))
        .show_values();
    let totals: Vec<Option<f64>> = (0..THRESHOLDS.len()).map(|which| total(phones, which)).collect();
    let totals = Bars::new(thresholds()).series(BarSeries::new("predictor", totals)).show_values();
    Figure::new("FedHybrid, figure 18: the local training engine, Galaxy S22")
        .note("The paper prints no number. Maps of one sample, synthetic where their values matter; five phones in use, five rounds of MobileNetV2 at batch 32 on each.")
        .columns(2)
        .panel_size(460, 260)
        .panel(
            Panel::new(times)
                .title("a: time of one map")
                .x(Axis::new("map"))
                .y(Axis::new("time").unit("ms").log()),
        )
        .panel(
            Panel::new(errors)
                .title("b: error within the same bytes")
                .x(Axis::new("map"))
                .y(Axis::new("variance, over the map's").log()),
        )
        .panel(
            Panel::new(faults)
                .title("c: page faults in five rounds")
                .x(Axis::new("synthetic user"))
                .y(Axis::new("page faults").from_zero()),
        )
        .panel(
            Panel::new(totals)
                .title("d: time of all rounds by the thresholds")
                .x(Axis::new("(TP1, TP2)"))
                .y(Axis::new("time on five phones").unit("s").from_zero()),
        )
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
    let plans = |which: usize| {
        phones.iter().filter_map(|phone| Some(phone.predicted[which].as_ref()?.budgets.len())).sum::<usize>()
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
