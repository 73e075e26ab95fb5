//! Section 3.4: dynamic against static rescaling, and what the self-adaptive kind saves.

use super::figure10::of_step;
use super::setting::{MandhelingNetwork, NETWORKS, batch as settled};
use crate::artefacts::prelude::*;

const RATIO: &str = "mandheling/section3.4/dynamic-vs-static-rescaling/dsp/latency-ratio";
const SAVED: &str = "mandheling/section3.4/all/self-adaptive-rescaling/time-saved";

/// Seconds of a batch with a scale that is taken anew in every batch and with one when it is due, all other techniques
/// off; their ratio, and what is saved in per cent.
fn rescaled(context: &Context<'_>, network: MandhelingNetwork) -> Result<[f64; 4]> {
    let batch = context.reading_number("batch")? as u64;
    let seconds = |step: &str| -> Result<f64> {
        let scenario = of_step(step, network.id.0, batch);
        let mut scenario = scenario.with_context(|| format!("figure 10 has no step `{step}`"))?;
        scenario.frequency = context.reading_text("frequency")?.parse()?;
        if network.model == "inceptionv3" {
            scenario.input = Some(context.reading_text("inception-input")?.parse()?);
        }
        Ok(settled(context, &scenario)?.time.seconds())
    };
    let (dynamic, adaptive) = (seconds("none")?, seconds("+self-adaptive-rescaling")?);
    Ok([dynamic, adaptive, dynamic / adaptive, (1.0 - adaptive / dynamic) * 100.0])
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of("network,dynamic_s,adaptive_s,ratio,saved_percent");
    let mut all = Vec::new();
    for network in NETWORKS {
        let found = rescaled(context, network)?;
        outcome.row((network.name, found))?;
        if network.id.0 == "resnet34" {
            outcome.number(RATIO, found[2]);
        }
        all.push(found);
    }
    if let Some((low, high)) = range(all.iter().map(|found| found[2])) {
        let words = format!("ResNet-34, the network of figure 10; {low:.2} to {high:.2} over the six networks");
        outcome.remark(RATIO, words);
    }
    outcome.range(SAVED, all.iter().map(|found| found[3]));
    let names = || NETWORKS.map(|network| network.name);
    let times = columns(names(), &all, [("dynamic", |found| found[0]), ("self-adaptive", |found| found[1])]);
    outcome.bars("time of a batch", times, axis("time", "s").log());
    let saved = columns(names(), &all, [("time saved", |found| found[3])]);
    outcome.bars("what self-adaptive rescaling saves", saved, from_zero("time saved", "%"));
    Ok(outcome)
}
