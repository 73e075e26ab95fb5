//! Figure 10: the techniques, one after the other.

use haversack_devices::Frequency;

use super::setting::{XIAOMI_10, batch};
use crate::artefacts::prelude::*;

/// The networks of the figure.
const NETWORKS: [(&str, &str); 3] = [("vgg11", "VGG-11"), ("vgg16", "VGG-16"), ("resnet34", "ResNet-34")];

/// The steps as the reference names them, for people, and what each sets.
pub(crate) const STEPS: [(&str, &str, &str, &str); 5] = [
    ("none", "none", "", ""),
    ("+self-adaptive-rescaling", "+ rescaling", "rescaling", "adaptive"),
    ("+subgraph-reuse", "+ reuse", "reuse", "on"),
    ("+batch-splitting", "+ splitting", "splitting", "on"),
    ("+co-scheduling", "+ co-scheduling", "coscheduling", "on"),
];

/// The scenario in which all techniques up to `step` are at work, on the Xiaomi 10.
pub(crate) fn of_step(step: &str, network: &str, batch: u64) -> Option<Scenario> {
    let last = STEPS.iter().position(|(id, ..)| *id == step)?;
    let scenario = Scenario::new(XIAOMI_10, format!("{network}-cifar"));
    let scenario = Scenario { batch, frequency: Frequency::Governor, ..scenario };
    let mut set = vec![("rescaling", "dynamic"), ("reuse", "off"), ("splitting", "off"), ("coscheduling", "off")];
    set.extend(STEPS[1..=last].iter().map(|&(.., key, value)| (key, value)));
    Some(under(&scenario, "mandheling", &set))
}

/// The share of the time that `step` saves of the step before it, in a network's `seconds` by step.
fn saved(seconds: &[f64], step: &str) -> Option<f64> {
    let place = STEPS.iter().position(|(id, ..)| *id == step)?;
    let (before, after) = (seconds.get(place.checked_sub(1)?)?, seconds.get(place)?);
    Some(1.0 - after / before)
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
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
            // Where the paper gives a share alone, its seconds follow from those of the step before.
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
