//! Artefacts about batches: in every case of a declared sweep, in a single case, with one technique added after the
//! other, and with heat.

use haversack_devices::Frequency;
use haversack_training::HeatPoint;
use haversack_workloads::Phase;
use haversack_workloads::counts::count;

use super::setting::{XIAOMI_10, XIAOMI_11_PRO, batch, batch_if_it_fits};
use crate::artefacts::prelude::*;

/// Time and energy of figures 5, 6, 7 and 11.
pub(super) fn costs(context: &Context<'_>) -> Result<Outcome> {
    swept(context, "time_s,energy_j", |scenario, _| {
        let batch = batch_if_it_fits(context, scenario)?;
        Ok([batch.map(|batch| batch.time.seconds()), batch.map(|batch| batch.energy.0)])
    })
}

/// Section 1: memory and time of a batch of ResNet-50, with 32 samples as in the section.
pub(super) fn section1(context: &Context<'_>) -> Result<Outcome> {
    let mut scenario = trained(XIAOMI_10, "resnet50", context.reading_text("libraries")?, 32);
    scenario.frequency = context.reading_text("frequency")?.parse()?;
    let Record { peak_memory, iteration, breakdown, .. } = context.run(&scenario)?;
    let mut records = Records::of("quantity,part,value,unit");
    records.row(("memory", "peak", peak_memory.megabytes() / 1e3, "GB"))?;
    records.row(("time", "all", iteration.seconds(), "s"))?;
    for (part, time) in breakdown.parts().into_iter().filter(|(_, time)| time.0 > 0) {
        records.row(("time", part, time.seconds(), "s"))?;
    }
    show(context, records, Outcome::default())
}

/// Figure 1a: the time of training relative to inference.
pub(super) fn figure1a(context: &Context<'_>) -> Result<Outcome> {
    swept(context, "training_s,inference_s,ratio,ratio_of_operations", |scenario, _| {
        let plan = context.plan(scenario)?;
        let (training, inference) = (plan.run()?.iteration.seconds(), inference(&plan).seconds());
        let counts = count(&plan.resolved.network, 1);
        let of_operations = counts.training_flops as f64 / counts.forward_flops as f64;
        Ok([training, inference, training / inference, of_operations])
    })
}

/// Inference as declared by the reading: the products of the forward pass, prepared before.
fn inference(plan: &Plan) -> Nanos {
    let scenario = plan.scenario();
    let products = plan.graph.nodes.iter().enumerate();
    let products = products.filter(|(_, node)| node.phase == Phase::Forward && node.work.kind.is_dense_product());
    products.map(|(id, _)| plan.machine().cost(&plan.graph, id, scenario.batch, scenario.precision).busy).sum()
}

/// Figure 1b: the battery charge of a batch of training, in seconds of the reading's apps, in its order.
pub(super) fn figure1b(context: &Context<'_>) -> Result<Outcome> {
    let &[video, game] = context.reading_numbers("apps")? else { bail!("the reading `apps` is not two numbers") };
    let idle = context.device(XIAOMI_10)?.constants.power.idle.value;
    swept(context, "batch,time_s,energy_j,video_s,game_s", |scenario, _| {
        let record = context.run(scenario)?;
        let time = record.iteration.seconds();
        // The power of an app is the total power of the phone.
        let energy = record.energy.0 + idle.0 * time;
        Ok((scenario.batch, [time, energy, energy / video, energy / game]))
    })
}

/// Section 2.3: the operations in one cycle of the DSP.
pub(super) fn section2_3(context: &Context<'_>) -> Result<Outcome> {
    let device = context.device(XIAOMI_10)?;
    let dsp = device.constants.dsp.as_ref().context("the Xiaomi 10 has no DSP")?;
    let mut outcome = Outcome::default();
    let id = "mandheling/section2.3/hexagon-698/int8-lanes-per-cycle/throughput";
    outcome.answer(id, Answer::Input(dsp.vector.value.as_f64()));
    outcome.remark(id, "bytes of a vector, from the data sheet");
    Ok(outcome)
}

/// Section 3.4: seconds of a batch with scales computed in every batch, and with scales computed only when due, all
/// other techniques off.
pub(super) fn section3_4(context: &Context<'_>) -> Result<Outcome> {
    swept(context, "dynamic_s,adaptive_s,ratio,saved_percent", |scenario, _| {
        let dynamic = batch(context, scenario)?.time.seconds();
        let adaptive = batch(context, &with(scenario, &[("rescaling", "adaptive")]))?.time.seconds();
        Ok([dynamic, adaptive, dynamic / adaptive, (1.0 - adaptive / dynamic) * 100.0])
    })
}

/// The values in a picture of section 5, 3 × 32 × 32, and the section's numbers for Mandheling: seconds of a day's
/// training, and percent of the battery.
const PICTURE: f64 = 3072.0;
const TOLD: [f64; 2] = [31.25, 0.13];

/// Section 5: the idle time and the battery charge that a day's training takes.
pub(super) fn section5(context: &Context<'_>) -> Result<Outcome> {
    let pictures = context.reading_number("section5-pictures")?;
    let idle = context.reading_number("section5-idle")? * 3600.0;
    let battery = context.device(XIAOMI_11_PRO)?.constants.battery.as_ref().context("the phone has no battery")?.value;
    let header =
        "batches,batch_time_s,time_s,idle_percent,energy_j,battery_percent,told_time,told_battery,picture_size";
    swept(context, header, |scenario, _| {
        let of_batch = batch(context, scenario)?;
        let batches = (pictures / scenario.batch as f64).ceil();
        let (time, energy) = (batches * of_batch.time.seconds(), batches * of_batch.energy.0);
        let [of_idle, of_battery] = [time / idle, energy / battery.0].map(|share| share * 100.0);
        let told = TOLD.map(|told| (scenario.policy == "mandheling").then_some(told));
        let size = scenario.input.as_ref().map(|input| input.0.iter().product::<u64>() as f64 / PICTURE);
        Ok((batches, [of_batch.time.seconds(), time, of_idle, energy, of_battery], told, size))
    })
}

/// The batch size, from the reading `figure9-run`.
const BATCH: u64 = 64;
/// The speed-up of a batch that is allowed for when the number of batches is chosen.
const SPARE: f64 = 1.2;

/// A method: the policy's name, the display name, and the minutes from the reading `figure9-run`.
const RUNS: [(&str, &str, f64); 2] = [("mnn-fp32", "MNN-FP32", 2.0), ("mandheling", "Mandheling", 18.0)];

/// The device's state after each batch until the minutes are over.
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

pub(super) fn figure9(context: &Context<'_>) -> Result<Outcome> {
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

/// The networks of the figure.
const NETWORKS: [(&str, &str); 3] = [("vgg11", "VGG-11"), ("vgg16", "VGG-16"), ("resnet34", "ResNet-34")];

/// The steps: the name in the reference, the display names, and the settings of each.
pub(crate) const STEPS: [(&str, &str, &str, &str); 5] = [
    ("none", "none", "", ""),
    ("+self-adaptive-rescaling", "+ rescaling", "rescaling", "adaptive"),
    ("+subgraph-reuse", "+ reuse", "reuse", "on"),
    ("+batch-splitting", "+ splitting", "splitting", "on"),
    ("+co-scheduling", "+ co-scheduling", "coscheduling", "on"),
];

/// The scenario with all techniques up to `step`, on the Xiaomi 10.
pub(crate) fn of_step(step: &str, network: &str, batch: u64) -> Option<Scenario> {
    let last = STEPS.iter().position(|(id, ..)| *id == step)?;
    let scenario = Scenario::new(XIAOMI_10, format!("{network}-cifar"));
    let scenario = Scenario { batch, frequency: Frequency::Governor, ..scenario };
    let mut set = vec![("rescaling", "dynamic"), ("reuse", "off"), ("splitting", "off"), ("coscheduling", "off")];
    set.extend(STEPS[1..=last].iter().map(|&(.., key, value)| (key, value)));
    Some(under(&scenario, "mandheling", &set))
}

/// The fraction of the previous step's time that `step` saves, in a network's `seconds` by step.
fn saved(seconds: &[f64], step: &str) -> Option<f64> {
    let place = STEPS.iter().position(|(id, ..)| *id == step)?;
    let (before, after) = (seconds.get(place.checked_sub(1)?)?, seconds.get(place)?);
    Some(1.0 - after / before)
}

pub(super) fn figure10(context: &Context<'_>) -> Result<Outcome> {
    let samples = context.reading_number("batch")? as u64;
    let mut records = Records::of("network,name,step,step_name,time_s,saved,saved_percent,energy_j,paper_s");
    for (network, name) in NETWORKS {
        let (mut seconds, mut before): (Vec<f64>, Option<f64>) = Default::default();
        for (step, step_name, ..) in STEPS {
            let Some(scenario) = of_step(step, network, samples) else { continue };
            let batch = batch(context, &scenario)?;
            seconds.push(batch.time.seconds());
            let saved = saved(&seconds, step);
            let stated = ["time", "time-saved"].map(|metric| {
                context.paper(&format!("mandheling/figure10/{network}-on-xiaomi-10/{step}/{metric}")).ok().flatten()
            });
            // If the paper gives only a percentage, the seconds follow from those of the previous step.
            let from_share = before.zip(stated[1]).map(|(before, percent)| before * (1.0 - percent / 100.0));
            before = stated[0].or(from_share);
            let shares = [saved, saved.map(|share| share * 100.0)];
            let case = (network, name, step, step_name);
            records.row((case, batch.time.seconds(), shares, batch.energy.0, before))?;
        }
    }
    show(context, records, Outcome::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_saves_of_the_step_before() {
        // (8 − 6) / 8 = 0.25, and nothing comes before the first step.
        let seconds = [10.0, 8.0, 6.0];
        assert_eq!(saved(&seconds, "+subgraph-reuse"), Some(0.25));
        assert_eq!(saved(&seconds, "none"), None);
        assert_eq!(saved(&seconds, "+co-scheduling"), None);
    }
}
