//! Figure 21: energy of training within a memory budget, against training that has enough.

use haversack_devices::units::{Joules, Watts};

use super::setting::{FEW_PICTURES, OP10P, scenario};
use crate::artefacts::prelude::*;

const INCREASE: &str = "fedhybrid/figure21/op10p-mobilenetv2,squeezenet-batch-16/fedhybrid/ideal/energy-increase";
const RATIO: &str = "fedhybrid/figure21/op10p/baselines/fedhybrid/energy-ratio";

/// All that a power monitor in the battery's place measures: what training draws, and the idle phone beside it.
fn energy(record: &Record, idle: Watts) -> Joules {
    record.energy + idle * record.iteration
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let idle = context.device(OP10P)?.constants.power.idle.value;
    let records = records(context, "time_s,energy_j,energy_over_ideal,increase_percent", |_, ids| {
        let of = |policy: &str| scenario(context, OP10P, &ids[0], FEW_PICTURES, policy);
        let ideal = energy(&context.run(&of("original")?)?, idle);
        let record = context.within(&of(&ids[1])?, Budget::Percent(ids[2].parse()?))?;
        let energy = record.as_ref().map(|record| energy(record, idle).0);
        let over = energy.map(|energy| energy / ideal.0);
        Ok([record.map(|record| record.iteration.seconds()), energy, over, over.map(|over| (over - 1.0) * 100.0)])
    })?;
    let most = records.most("increase_percent", "policy", "fedhybrid")?;
    let mut outcome = show(context, records, Outcome::default())?;
    // What the notes quote.
    if let (Some(most), Some(paper)) = (most, context.paper(INCREASE)?)
        && most < paper
    {
        outcome.quantity("largest increase of energy", "%", [most]);
    }
    let ratio = outcome.answers.iter().find(|(id, _)| id == RATIO);
    let least = ratio.and_then(|(_, answer)| if let Answer::Range(least, _) = answer { Some(*least) } else { None });
    if let Some(least) = least.filter(|least| *least < 1.0) {
        outcome.quantity("least energy over FedHybrid's", "", [least]);
    }
    Ok(outcome)
}
