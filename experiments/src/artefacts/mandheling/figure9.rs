//! Figure 9: how hot the device gets, and what becomes of the CPU's frequency.

use haversack_devices::Frequency;
use haversack_training::HeatPoint;

use super::setting::XIAOMI_10;
use crate::artefacts::prelude::*;

/// Samples of a batch, by the reading `figure9-run`.
const BATCH: u64 = 64;
/// How much faster a batch may get on the way, as far as the number of batches is concerned.
const SPARE: f64 = 1.2;

/// A method as the policies name it, for people, and the minutes that the reading `figure9-run` gives it.
const RUNS: [(&str, &str, f64); 2] = [("mnn-fp32", "MNN-FP32", 2.0), ("mandheling", "Mandheling", 18.0)];

/// The device after each batch until the minutes are over.
fn curve(context: &Context<'_>, method: &str, minutes: f64) -> Result<Vec<HeatPoint>> {
    let mut scenario = trained(XIAOMI_10, "vgg16-cifar", method, BATCH);
    scenario.frequency = Frequency::Governor;
    scenario.ambient_c = Some(context.reading_number("figure9-ambient")?);
    let cool = context.run(&scenario)?.iteration;
    let end = Nanos::from_seconds(minutes * 60.0);
    scenario.iterations = Some((end.seconds() / cool.seconds() * SPARE).ceil() as u32);
    let mut heat = context.run(&scenario)?.heat;
    heat.retain(|point| point.at <= end);
    Ok(heat)
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let start = context.reading_number("figure9-ambient")?;
    let mut outcome = Outcome::of("method,time_s,die_c,chassis_c,battery_c,cpu_ghz");
    let (mut temperatures, mut frequencies) = (Lines::new(), Lines::new());
    for (method, name, minutes_of_run) in RUNS {
        let curve = curve(context, method, minutes_of_run)?;
        for point in &curve {
            let heat = [point.die, point.chassis, point.battery].map(|part| part.0);
            outcome.row((method, point.at.seconds(), heat, gigahertz(point)))?;
        }
        let id = format!("mandheling/figure9/{XIAOMI_10}/{method}/temperature");
        if let Some(last) = curve.last() {
            outcome.answer(id.clone(), Answer::Range(start.min(last.die.0), last.die.0));
            let highest = curve.iter().map(|point| point.die.0).fold(start, f64::max);
            outcome.remark(id.clone(), format!("at most {highest:.1} C, and {:.2} GHz at the end", gigahertz(last)));
        }
        let minutes = |point: &HeatPoint| point.at.seconds() / 60.0;
        let die = curve.iter().map(|point| (minutes(point), point.die.0));
        let die: Vec<_> = [(0.0, start)].into_iter().chain(die).collect();
        let clock: Vec<_> = curve.iter().map(|point| (minutes(point), gigahertz(point))).collect();
        temperatures = temperatures.series(Series::new(name, die).unmarked());
        frequencies = frequencies.series(Series::new(name, clock).stroke(Stroke::Step).unmarked());
        if let Claim::Range { lo, hi } = context.row(&id)?.claim {
            // The paper's first and last value.
            let ends = Series::new(name, [(0.0, lo), (minutes_of_run, hi)]);
            temperatures = temperatures.series(ends.stroke(Stroke::None).look(Look::Hatched));
        }
    }
    let stated = &context.row(&format!("mandheling/figure9/{XIAOMI_10}/mnn-fp32/temperature"))?.conditions;
    outcome.words("what the paper says of MNN-FP32", stated);
    let time = || axis("time", "min");
    outcome.panel("temperature of the die", temperatures, time(), axis("temperature", "°C"));
    outcome.panel("frequency of the CPU", frequencies, time(), from_zero("frequency", "GHz"));
    Ok(outcome)
}

fn gigahertz(point: &HeatPoint) -> f64 {
    point.frequency.0 / 1e9
}
