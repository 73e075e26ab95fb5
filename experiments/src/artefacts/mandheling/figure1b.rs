//! Figure 1b: what a batch of training takes out of the battery, in seconds of apps that people know.

use super::setting::{NETWORKS, XIAOMI_10, scenario};
use crate::artefacts::prelude::*;

/// The apps of the reading, in its order.
const APPS: [&str; 2] = ["TikTok", "Genshin Impact"];
/// The network and the batch that the paper's text has.
const NAMED: (&str, u64) = ("resnet50", 32);

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let &[video, game] = context.reading_numbers("apps")? else { bail!("the reading `apps` is not two numbers") };
    let idle = context.device(XIAOMI_10)?.constants.power.idle.value;
    let mut named = trained(XIAOMI_10, NAMED.0, "mnn-fp32", NAMED.1);
    named.frequency = context.reading_text("frequency")?.parse()?;
    let mut batches = vec![("ResNet-50".to_owned(), named)];
    for network in NETWORKS {
        batches.push((network.name.to_owned(), scenario(context, XIAOMI_10, network, "mnn-fp32")?));
    }
    let mut outcome = Outcome::of("network,batch,time_s,energy_j,video_s,game_s");
    let mut found = Vec::new();
    for (name, scenario) in batches {
        let record = context.run(&scenario)?;
        let time = record.iteration.seconds();
        // An app's power is all that the phone draws.
        let energy = record.energy.0 + idle.0 * time;
        let seconds = [energy / video, energy / game];
        outcome.row((name.as_str(), scenario.batch, [time, energy], seconds))?;
        found.push((format!("{name}, batch {}", scenario.batch), [energy, seconds[0], seconds[1]]));
    }
    if let Some((_, [energy, ..])) = found.first() {
        outcome.quantity("a batch of ResNet-50", "J", [*energy]);
    }
    let names = || found.iter().map(|(name, _)| name.clone());
    let energy = columns(names(), &found, [("energy", |one| one.1[0])]);
    outcome.bars("energy of a batch", energy, from_zero("energy", "J"));
    let seconds = columns(names(), &found, [(APPS[0], |one| one.1[1]), (APPS[1], |one| one.1[2])]);
    outcome.bars("as long as an app", seconds, from_zero("time of an app", "s"));
    Ok(outcome)
}
