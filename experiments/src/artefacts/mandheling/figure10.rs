//! Figure 10: the techniques, one after the other.

use haversack_devices::Frequency;

use super::setting::{Network, XIAOMI_10, batch, method_names, on_xiaomi_10};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact =
    on_xiaomi_10("figure10", "time of a batch as the four techniques are added", run);

/// The networks of the figure.
const NETWORKS: [&str; 3] = ["vgg11", "vgg16", "resnet34"];
/// The network whose numbers the text gives.
const TOLD: &str = "resnet34";

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
    let scenario = Scenario::new(XIAOMI_10, Network::called(network).ok()?.model);
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

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let samples = context.reading_number("batch")? as u64;
    let mut outcome = Outcome::default();
    let mut table = Table::new(["network", "step", "time_s", "saved_percent", "energy_j"]);
    let mut by_network = Vec::new();
    for network in NETWORKS {
        let mut seconds = Vec::new();
        for (step, ..) in STEPS {
            let Some(scenario) = of_step(step, network, samples) else { continue };
            let batch = batch(context, &scenario)?;
            seconds.push(batch.time.seconds());
            let percent = saved(&seconds, step).map(|share| share * 100.0);
            let name = Network::called(network)?.name;
            let numbers = [batch.time.seconds().into(), percent.into(), batch.energy.0.into()];
            table.push([name.into(), step.into()].into_iter().chain(numbers))?;
            if network == TOLD {
                answer(context, &mut outcome, step, batch.time.seconds(), percent);
            }
        }
        by_network.push(seconds);
    }
    let benefits: Vec<f64> = by_network.iter().filter_map(|seconds| saved(seconds, "+batch-splitting")).collect();
    for (network, benefit) in NETWORKS.iter().zip(&benefits) {
        outcome.quantity(&format!("what splitting saves of {network}"), "", [*benefit]);
    }
    let id = "mandheling/figure10/vgg11-<-vgg16,-resnet34/batch-splitting/benefit";
    context.judge(&mut outcome, id)?;
    let shown: Vec<String> = NETWORKS.iter().zip(&benefits).map(|(id, b)| format!("{id} {:.1} %", b * 100.0)).collect();
    outcome.remark(id, shown.join(", "));
    outcome.figure = Some(figure(&by_network, &paper(context))?);
    outcome.table = Some(table);
    Ok(outcome)
}

/// Answers the row of a step of the network that the text tells of: its time, or what it saves.
fn answer(context: &Context<'_>, outcome: &mut Outcome, step: &str, seconds: f64, percent: Option<f64>) {
    for (metric, value) in [("time", Some(seconds)), ("time-saved", percent)] {
        let id = format!("mandheling/figure10/resnet34-on-xiaomi-10/{step}/{metric}");
        if let (Ok(_), Some(value)) = (context.row(&id), value) {
            outcome.number(id, value);
        }
    }
}

/// The paper's seconds of each step of the network that it tells of; those after the third from its percentages.
fn paper(context: &Context<'_>) -> Vec<Option<f64>> {
    let mut seconds: Vec<Option<f64>> = Vec::new();
    for (step, ..) in STEPS {
        let number = |metric: &str| {
            let id = format!("mandheling/figure10/resnet34-on-xiaomi-10/{step}/{metric}");
            context.row(&id).ok().and_then(|row| row.number())
        };
        let before = seconds.last().copied().flatten();
        let from_share = before.zip(number("time-saved")).map(|(before, percent)| before * (1.0 - percent / 100.0));
        seconds.push(number("time").or(from_share));
    }
    seconds
}

fn figure(by_network: &[Vec<f64>], paper: &[Option<f64>]) -> Result<Figure, ArtefactError> {
    let mut figure = Figure::new("Mandheling, figure 10: the techniques, one after the other, Xiaomi 10, batch 64")
        .note("The paper gives numbers for ResNet-34 alone, the last two as percentages of the step before.")
        .columns(3)
        .order(method_names())
        .panel_size(380, 300);
    for (network, seconds) in NETWORKS.iter().zip(by_network) {
        let bars = Bars::new(STEPS.map(|(_, name, ..)| name)).show_values();
        let bars = if *network == TOLD {
            beside(bars, "Mandheling", seconds.iter().copied(), paper.iter().copied())
        } else {
            bars.series(BarSeries::new("Mandheling", seconds.iter().copied()))
        };
        let panel = Panel::new(bars).title(Network::called(network)?.name).y(Axis::new("time of a batch").unit("s"));
        figure = figure.panel(panel);
    }
    Ok(figure)
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
