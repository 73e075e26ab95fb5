//! Section 3.4: dynamic against static rescaling, and what the self-adaptive kind saves.

use super::figure10::of_step;
use super::setting::{MandhelingNetwork, NETWORKS, batch as settled, on_xiaomi_10};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact =
    on_xiaomi_10("section3.4", "rescaling in every batch against rescaling when it is due", run);

const RATIO: &str = "mandheling/section3.4/dynamic-vs-static-rescaling/dsp/latency-ratio";
const SAVED: &str = "mandheling/section3.4/all/self-adaptive-rescaling/time-saved";

/// A network with and without a scale that is taken anew in every batch, all other techniques off.
struct Rescaled {
    network: MandhelingNetwork,
    dynamic: f64,
    adaptive: f64,
}

impl Rescaled {
    fn ratio(&self) -> f64 {
        self.dynamic / self.adaptive
    }

    /// Per cent.
    fn saved(&self) -> f64 {
        (1.0 - self.adaptive / self.dynamic) * 100.0
    }
}

fn rescaled(context: &Context<'_>, network: MandhelingNetwork) -> Result<Rescaled> {
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
    Ok(Rescaled { network, dynamic: seconds("none")?, adaptive: seconds("+self-adaptive-rescaling")? })
}

fn run(context: &Context<'_>) -> Result<Outcome> {
    let all = NETWORKS.map(|network| rescaled(context, network)).into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut outcome = Outcome::of("network,dynamic_s,adaptive_s,ratio,saved_percent");
    for one in &all {
        outcome.row((one.network.name, [one.dynamic, one.adaptive, one.ratio(), one.saved()]))?;
        if one.network.id.0 == "resnet34" {
            outcome.number(RATIO, one.ratio());
        }
    }
    if let Some((low, high)) = range(all.iter().map(Rescaled::ratio)) {
        let words = format!("ResNet-34, the network of figure 10; {low:.2} to {high:.2} over the six networks");
        outcome.remark(RATIO, words);
    }
    outcome.range(SAVED, all.iter().map(Rescaled::saved));
    let names = || NETWORKS.map(|network| network.name);
    let times = columns(names(), &all, [("dynamic", |one| one.dynamic), ("self-adaptive", |one| one.adaptive)]);
    outcome.bars("time of a batch", times, axis("time", "s").log());
    let saved = columns(names(), &all, [("time saved", Rescaled::saved)]);
    outcome.bars("what self-adaptive rescaling saves", saved, from_zero("time saved", "%"));
    Ok(outcome)
}
