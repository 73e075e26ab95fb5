//! Artefacts that are a batch in every case of a declared sweep, or of one case.

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

/// Section 1: memory and time of a batch of ResNet-50, of 32 as the section has it.
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

/// Figure 1a: how much longer training takes than inference.
pub(super) fn figure1a(context: &Context<'_>) -> Result<Outcome> {
    swept(context, "training_s,inference_s,ratio,ratio_of_operations", |scenario, _| {
        let plan = context.plan(scenario)?;
        let (training, inference) = (plan.run()?.iteration.seconds(), inference(&plan).seconds());
        let counts = count(&plan.resolved.network, 1);
        let of_operations = counts.training_flops as f64 / counts.forward_flops as f64;
        Ok([training, inference, training / inference, of_operations])
    })
}

/// Inference as the reading has it: the products of the forward pass, prepared before.
fn inference(plan: &Plan) -> Nanos {
    let scenario = plan.scenario();
    let products = plan.graph.nodes.iter().enumerate();
    let products = products.filter(|(_, node)| node.phase == Phase::Forward && node.work.kind.is_dense_product());
    products.map(|(id, _)| plan.machine().cost(&plan.graph, id, scenario.batch, scenario.precision).busy).sum()
}

/// Figure 1b: what a batch of training takes out of the battery, in seconds of the apps of the reading, in its order.
pub(super) fn figure1b(context: &Context<'_>) -> Result<Outcome> {
    let &[video, game] = context.reading_numbers("apps")? else { bail!("the reading `apps` is not two numbers") };
    let idle = context.device(XIAOMI_10)?.constants.power.idle.value;
    swept(context, "batch,time_s,energy_j,video_s,game_s", |scenario, _| {
        let record = context.run(scenario)?;
        let time = record.iteration.seconds();
        // An app's power is all that the phone draws.
        let energy = record.energy.0 + idle.0 * time;
        Ok((scenario.batch, [time, energy, energy / video, energy / game]))
    })
}

/// Section 2.3: what one cycle of the DSP holds.
pub(super) fn section2_3(context: &Context<'_>) -> Result<Outcome> {
    let device = context.device(XIAOMI_10)?;
    let dsp = device.constants.dsp.as_ref().context("the Xiaomi 10 has no DSP")?;
    let mut outcome = Outcome::default();
    let id = "mandheling/section2.3/hexagon-698/int8-lanes-per-cycle/throughput";
    outcome.answer(id, Answer::Input(dsp.vector.value.as_f64()));
    outcome.remark(id, "bytes of a vector, from the data sheet");
    Ok(outcome)
}

/// Section 3.4: seconds of a batch with a scale that is taken anew in every batch and with one when it is due, all other
/// techniques off.
pub(super) fn section3_4(context: &Context<'_>) -> Result<Outcome> {
    swept(context, "dynamic_s,adaptive_s,ratio,saved_percent", |scenario, _| {
        let dynamic = batch(context, scenario)?.time.seconds();
        let adaptive = batch(context, &with(scenario, &[("rescaling", "adaptive")]))?.time.seconds();
        Ok([dynamic, adaptive, dynamic / adaptive, (1.0 - adaptive / dynamic) * 100.0])
    })
}

/// Values of a picture of section 5's text, 3 × 32 × 32, and what the text has of Mandheling: seconds of a day's training,
/// and per cent of the battery.
const PICTURE: f64 = 3072.0;
const TOLD: [f64; 2] = [31.25, 0.13];

/// Section 5: what a day's training takes of a phone's idle time and of its battery.
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
