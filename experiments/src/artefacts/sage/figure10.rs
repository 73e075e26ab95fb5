//! Figure 10: throughput against memory on two phones and a server GPU.

use haversack_reports::figure::Figure;
use haversack_reports::table::Table;

use super::setting::{BERT, NETWORKS, RESNET, least, scenario, under};
use super::throughput::{SCHEMES, curves};
use super::{MACHINES, PHONES};
use crate::reproduce::{ArtefactError, Context, Outcome};

const SAGE: usize = 4;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    let mut table = Table::new(["device", "network", "scheme", "budget_mb", "samples_per_s"]);
    let mut figure = Figure::new("Sage, figure 10: throughput against memory, batch 32")
        .panel_size(270, 220)
        .columns(NETWORKS.len());
    let mut fastest_bert = 0.0f64;
    let mut resnet = Vec::new();
    for device in MACHINES {
        for network in NETWORKS {
            let found = curves(context, device, network, &SCHEMES)?;
            for ((name, _, _), curve) in SCHEMES.iter().zip(&found.by_scheme) {
                for (&percent, value) in found.percents.iter().zip(curve) {
                    let budget = found.megabytes(percent);
                    table.push([
                        (*device).into(),
                        network.name.into(),
                        (*name).into(),
                        budget.into(),
                        (*value).into(),
                    ])?;
                }
            }
            if network == BERT && PHONES.contains(device) {
                fastest_bert =
                    found.by_scheme[SAGE].iter().flatten().fold(fastest_bert, |best, &value| best.max(value));
            }
            if network == RESNET {
                resnet.push((*device, found.unmanaged.1));
            }
            figure = figure.panel(found.panel(&format!("{} on {device}", network.name), &SCHEMES));
        }
    }
    outcome.number("sage/figure10/bert-small/sage/throughput", fastest_bert);
    let rate = |wanted: &str| resnet.iter().find(|(device, _)| *device == wanted).map(|(_, rate)| *rate);
    let phone = context.reading_text("compared-phone")?;
    if let (Some(server), Some(compared)) = (rate("rtx-3090"), rate(phone)) {
        let id = "sage/figure10/rtx-3090-vs-phones/throughput/ratio";
        outcome.number(id, server / compared);
        let others: Vec<_> =
            PHONES.iter().filter(|p| **p != phone).filter_map(|p| Some((p, server / rate(p)?))).collect();
        for (other, ratio) in others {
            outcome.remark(id, format!("{ratio:.0} against the {other}"));
        }
    }
    let scenario = scenario(context, "galaxy-s10", RESNET)?;
    let [sage, dga, dgc] = [
        least(context, &under(&scenario, "sage", &[]))?,
        least(context, &under(&scenario, "dga", &[]))?,
        least(context, &under(&scenario, "dgc", &[]))?,
    ];
    let id = "sage/figure10/resnet50/sage-vs-dga/minimum-memory";
    outcome.number(id, (1.0 - sage.as_f64() / dga.as_f64()) * 100.0);
    outcome.remark(id, format!("DGC needs {:.1} times Sage's least", dgc.as_f64() / sage.as_f64()));
    outcome.figure = Some(figure);
    outcome.table = Some(table);
    outcome.notes.calibrated.push("The stack's constants of table 1, as shares of each GPU's own peak.".into());
    outcome.notes.predicted.push("All curves of all machines; no throughput was fitted.".into());
    outcome.notes.misses.push(
        "BERT-small is faster on the Note 20 than the paper's bound of 7 samples a second: the rate of matrix products is known from latencies of one sample on another phone only, and all of the stack's shares are taken over to a GPU whose own peak is disputed.".into(),
    );
    outcome.notes.left_out.push("The host that feeds the RTX 3090.".into());
    Ok(outcome)
}
