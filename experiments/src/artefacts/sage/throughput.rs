//! Throughput, and energy, against the memory budget: figures 9 to 11, and 13.

use super::setting::{MACHINES, PHONES, RESNET, S10, is_fixed, scenario};
use crate::artefacts::prelude::*;

/// The budget of `percent` of the unmanaged graph's need.
fn budget(whole: Bytes, percent: f64) -> Budget {
    Budget::Bytes(Bytes((whole.as_f64() * percent / 100.0).ceil() as u64))
}

/// The megabytes of a budget in percent of the unmanaged graph's need, and the samples per second within it,
/// if the scheme fits.
fn rate(context: &Context<'_>, scenario: &Scenario, percent: f64) -> Result<(f64, Option<f64>)> {
    let whole = context.run(&under(scenario, "original", &[]))?.peak_memory;
    let record = context.within(scenario, budget(whole, percent))?;
    Ok((whole.megabytes() * percent / 100.0, record.map(|record| record.samples_per_second())))
}

/// Figure 9: the least memory of each scheme, and its throughput.
pub(super) fn figure9(context: &Context<'_>) -> Result<Outcome> {
    swept(context, "budget_mb,samples_per_s,least_memory_mb", |scenario, ids| {
        let percent = ids[2].parse()?;
        let least = (percent == 100.0).then(|| context.least(scenario)).transpose()?;
        Ok((rate(context, scenario, percent)?, least.map(Bytes::megabytes)))
    })
}

/// Figures 9a and 9b.
pub(super) fn on_extreme(context: &Context<'_>) -> Result<Outcome> {
    swept(context, "budget_mb,samples_per_s,where_both_fit", |scenario, ids| {
        let percent = ids[2].parse()?;
        let found = rate(context, scenario, percent)?;
        let other = if scenario.policy == "dgc" { "dga" } else { "dgc" };
        let both = percent < 100.0 && rate(context, &under(scenario, other, &[]), percent)?.1.is_some();
        Ok((found, found.1.filter(|_| both)))
    })
}

/// Figure 10: two phones and a server GPU.
pub(super) fn figure10(context: &Context<'_>) -> Result<Outcome> {
    let records =
        records(context, "budget_mb,samples_per_s", |scenario, ids| rate(context, scenario, ids[3].parse()?))?;
    let mut outcome = Outcome::default();
    let unmanaged = |device: &&str| {
        let iterations = context.reading_number("steady-state")? as u32;
        Ok(context
            .run(&Scenario { iterations: Some(iterations), ..scenario(context, device, RESNET)? })?
            .samples_per_second())
    };
    let rates = MACHINES.iter().map(unmanaged).collect::<Result<Vec<f64>>>()?;
    if let ([of_phones @ .., server], Some(phones)) = (rates.as_slice(), mean(&rates[..PHONES.len()])) {
        let id = "sage/figure10/rtx-3090-vs-phones/throughput/ratio";
        outcome.number(id, server / phones);
        let each = of_phones.iter().zip(PHONES);
        let each = each.map(|(rate, device)| format!("{:.0} against the {}", server / rate, spelled(device)));
        outcome.remark(id, each.collect::<Vec<_>>().join(", "));
    }
    let scenario = scenario(context, S10, RESNET)?;
    let floor = context.reading_number("floor")?.to_string();
    let least = |policy, set: &[(&str, &str)]| context.least(&under(&scenario, policy, set));
    let [sage, dga, dgc] = [least("sage", &[("floor", &floor)])?, least("dga", &[])?, least("dgc", &[])?];
    let id = "sage/figure10/resnet50/sage-vs-dga/minimum-memory";
    outcome.number(id, (1.0 - sage.as_f64() / dga.as_f64()) * 100.0);
    outcome.remark(id, format!("DGC needs {:.1} times Sage's least", dgc.as_f64() / sage.as_f64()));
    let fixed = Bytes(context.plan(&scenario)?.graph.bytes_of(is_fixed).at(1));
    outcome.quantity("the weights and their gradients", "%", [fixed.as_f64() / dga.as_f64() * 100.0]);
    show(context, records, outcome)
}

/// Figure 11: six combinations of accumulation and checkpointing, each as the mean over all budgets; a budget that a
/// combination cannot reach counts as zero.
pub(super) fn figure11(context: &Context<'_>) -> Result<Outcome> {
    swept(context, "mean_samples_per_s", |scenario, _| {
        let budgets = context.reading_numbers("budgets")?.iter();
        let rates = budgets.map(|&percent| Ok(rate(context, scenario, percent)?.1.unwrap_or(0.0)));
        Ok(mean(&rates.collect::<Result<Vec<_>>>()?))
    })
}

/// Figure 13: energy of an iteration against the memory budget.
pub(super) fn figure13(context: &Context<'_>) -> Result<Outcome> {
    let records = records(context, "joules_per_sample", |scenario, ids| {
        let whole = context.run(scenario)?.peak_memory;
        let record = context.within(scenario, budget(whole, ids[2].parse()?))?;
        Ok(record.map(|record| record.energy.0 / scenario.batch as f64))
    })?;
    let mut one = under(&scenario(context, S10, RESNET)?, "sage", &[]);
    one.batch = context.reading_number("latency-batch")? as u64;
    let mut outcome = Outcome::default();
    outcome.number("sage/figure13/resnet50-on-galaxy-s10/sage/energy-per-iteration", context.run(&one)?.energy.0);
    show(context, records, outcome)
}
