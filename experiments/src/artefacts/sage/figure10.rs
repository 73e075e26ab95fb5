//! Figure 10: throughput against memory on two phones and a server GPU.

use super::setting::{BERT, MACHINES, NETWORKS, PHONES, RESNET, S10, scenario};
use super::throughput::{SCHEMES, throughputs};
use crate::artefacts::prelude::*;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of("device,network,scheme,budget_mb,samples_per_s");
    let mut fastest_bert = 0.0f64;
    let mut resnet = Vec::new();
    for &device in MACHINES {
        for network in NETWORKS {
            let found = throughputs(context, device, network, &SCHEMES)?;
            for point in &found.points {
                outcome.row((device, network.name, point.scheme, point.megabytes, point.rate))?;
            }
            if network == BERT && PHONES.contains(&device) {
                fastest_bert = found.of("Sage").flatten().fold(fastest_bert, f64::max);
            }
            if network == RESNET {
                resnet.push((device, found.unmanaged));
            }
            found.draw(&mut outcome, &format!("{} on {}", network.name, spelled(device)));
        }
    }
    outcome.number("sage/figure10/bert-small/sage/throughput", fastest_bert);
    let rates = |phones: bool| resnet.iter().filter(move |(device, _)| PHONES.contains(device) == phones);
    let of_phones: Vec<f64> = rates(true).map(|(_, rate)| *rate).collect();
    if let (Some((_, server)), Some(phones)) = (rates(false).next(), mean(&of_phones)) {
        let id = "sage/figure10/rtx-3090-vs-phones/throughput/ratio";
        outcome.number(id, server / phones);
        let each: Vec<String> =
            rates(true).map(|(device, rate)| format!("{:.0} against the {}", server / rate, spelled(device))).collect();
        outcome.remark(id, each.join(", "));
    }
    let scenario = scenario(context, S10, RESNET)?;
    let least = |policy| context.least(&under(&scenario, policy, &[]));
    let [sage, dga, dgc] = [least("sage")?, least("dga")?, least("dgc")?];
    let id = "sage/figure10/resnet50/sage-vs-dga/minimum-memory";
    outcome.number(id, (1.0 - sage.as_f64() / dga.as_f64()) * 100.0);
    outcome.remark(id, format!("DGC needs {:.1} times Sage's least", dgc.as_f64() / sage.as_f64()));
    Ok(outcome)
}
