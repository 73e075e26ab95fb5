//! Section 5: what a day's training takes of a phone's idle time and of its battery.

use super::setting::{MandhelingNetwork, XIAOMI_11_PRO, batch, scenario};
use crate::artefacts::prelude::*;

/// The network that the text names.
const NETWORK: &str = "inceptionv3";
/// Values of a picture of the text, 3 × 32 × 32.
const VALUES: f64 = 3072.0;
/// The methods, as the policies name them and for people, with what the text has of them: seconds of a day's training,
/// and per cent of the battery.
const METHODS: [(&str, &str, Option<[f64; 2]>); 3] =
    [("mnn-fp32", "MNN-FP32", None), ("mnn-int8", "MNN-INT8", None), ("mandheling", "Mandheling", Some([31.25, 0.13]))];

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let pictures = context.reading_number("section5-pictures")?;
    let idle = context.reading_number("section5-idle")? * 3600.0;
    let battery = context.device(XIAOMI_11_PRO)?.constants.battery.as_ref().context("the phone has no battery")?.value;
    let mut outcome = Outcome::of("method,batches,batch_time_s,time_s,idle_percent,energy_j,battery_percent");
    let mut grid = Grid::default();
    for (method, name, told) in METHODS {
        let scenario = scenario(context, XIAOMI_11_PRO, MandhelingNetwork::called(NETWORK)?, method)?;
        let of_batch = batch(context, &scenario)?;
        if let Some(input) = &scenario.input {
            outcome.quantity("size of a picture", "x", [input.0.iter().product::<u64>() as f64 / VALUES]);
        }
        let batches = (pictures / scenario.batch as f64).ceil();
        let (time, energy) = (batches * of_batch.time.seconds(), batches * of_batch.energy.0);
        let [of_idle, of_battery] = [time / idle, energy / battery.0].map(|share| share * 100.0);
        outcome.row((method, batches, [of_batch.time.seconds(), time, of_idle, energy, of_battery]))?;
        for (place, (label, unit, value)) in [("time", "s", time), ("battery", "%", of_battery)].into_iter().enumerate()
        {
            let told = told.map(|told| told[place]);
            grid.put([name, SIMULATED, label], Some(value), told);
            outcome.quantity(&format!("{label} under {name}"), unit, [value]);
            if let Some(told) = told {
                outcome.quantity(&format!("{label} in the text"), unit, [told]);
            }
        }
        outcome.quantity(&format!("idle time under {name}"), "%", [of_idle]);
    }
    outcome.bars("time of a day's training", grid.bars("time"), from_zero("time", "s"));
    outcome.bars("share of the battery", grid.bars("battery"), from_zero("share", "%"));
    Ok(outcome)
}
