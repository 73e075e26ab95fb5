//! Figure 11: six ways to combine accumulation and checkpointing.

use super::setting::{MACHINES, PHONES, RESNET};
use super::throughput::{Scheme, throughputs};
use crate::artefacts::prelude::*;

const HYBRIDS: [Scheme; 6] = [
    ("DGC only", "dgc", &[]),
    ("DGA only", "dga", &[]),
    ("half and half", "sage", &[("order", "half")]),
    ("alternating", "sage", &[("order", "alternate")]),
    ("DGC first", "sage", &[("order", "dgc-first")]),
    ("Sage", "sage", &[]),
];

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of("device,hybrid,mean_samples_per_s");
    let mut means: Vec<(&str, &str, f64)> = Vec::new();
    for &device in MACHINES {
        let found = throughputs(context, device, RESNET, &HYBRIDS)?;
        let own = HYBRIDS.map(|(name, ..)| (device, name, found.mean(name)));
        own.into_iter().try_for_each(|row| outcome.row(row))?;
        let bars = columns(HYBRIDS.map(|(name, ..)| name), &own, [("mean throughput", |one| one.2)]);
        outcome.bars(&spelled(device), bars, axis("mean throughput", "samples/s"));
        means.extend(own);
    }
    for (where_to, is_phone, name, hybrid) in
        [("on the phones", true, "Sage", "Sage"), ("on the server", false, "checkpointing first", "DGC first")]
    {
        let of = || means.iter().filter(|(device, ..)| PHONES.contains(device) == is_phone);
        let own = of().filter(|(_, known, _)| *known == hybrid).map(|(.., mean)| *mean);
        outcome.quantity(&format!("mean of {name} {where_to}"), "", own);
        let best = of().map(|(.., mean)| *mean).collect::<Vec<_>>();
        let best = best.chunks(HYBRIDS.len()).map(|of_device| of_device.iter().copied().fold(0.0, f64::max));
        outcome.quantity(&format!("highest mean {where_to}"), "", best);
    }
    context.judge(&mut outcome, "sage/figure11/resnet50-on-phones/sage-highest-of-six-hybrids/throughput")?;
    context.judge(&mut outcome, "sage/figure11/resnet50-on-rtx-3090/dgc-first-highest/throughput")?;
    Ok(outcome)
}
