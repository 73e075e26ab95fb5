//! Figure 20b: plans for many clients, one by one and by clusters.

use crate::artefacts::prelude::*;
use crate::federate::{Specification, planning};

const ROW: &str = "fedhybrid/figure20b/server/clustering+cache/plan-speedup";

pub(super) fn plans(context: &Context<'_>) -> Result<Outcome> {
    let text = context.reading_text("figure20b-federation")?;
    let key = format!("plans of a federation, seed {}", context.seed);
    let found = context.once(key, || {
        Ok(planning(&Specification::parse("figure20b-federation", text, Some(context.seed))?, context.cache)?)
    })?;
    let mut outcome = Outcome::of("clients,one_by_one_s,clusters_s,plans_of_clusters");
    let (mut each, mut clusters, mut speedups) = (Vec::new(), Vec::new(), Vec::new());
    for &clients in context.reading_numbers("clients")? {
        let own = found.each_s.iter().take(clients as usize);
        let one_by_one: f64 = own.sum();
        let by_clusters = found.plans_s + found.clustering_s * clients;
        outcome.row(([Some(clients), Some(one_by_one), Some(by_clusters)], found.plans as u64))?;
        each.push((clients, one_by_one));
        clusters.push((clients, by_clusters));
        speedups.push(one_by_one / by_clusters.max(f64::MIN_POSITIVE));
    }
    let most = speedups.iter().copied().fold(0.0, f64::max);
    outcome.number(ROW, most);
    let largest = context.reading_numbers("clients")?.iter().copied().fold(0.0, f64::max);
    outcome.remark(ROW, format!("{} plans of clusters in place of one a client, at {largest:.0} clients", found.plans));
    let lines =
        Lines::new().series(Series::new("one by one", each)).series(Series::new("clusters and cache", clusters));
    outcome.panel("", lines, axis("clients", "").log(), axis("time of one core of the server", "s").log());
    Ok(outcome)
}
