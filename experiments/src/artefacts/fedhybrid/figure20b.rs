//! Figure 20b: plans for many clients, one by one and by clusters.

use crate::artefacts::prelude::*;
use crate::federate::{Specification, planning};

pub(super) fn plans(context: &Context<'_>) -> Result<Outcome> {
    let text = context.reading_text("figure20b-federation")?;
    let key = format!("plans of a federation, seed {}", context.seed);
    let found = context.once(key, || {
        Ok(planning(&Specification::parse("figure20b-federation", text, Some(context.seed))?, context.cache)?)
    })?;
    let mut records = Records::of("clients,one_by_one_s,clusters_s,plans_of_clusters,speedup");
    for &clients in context.reading_numbers("clients")? {
        let one_by_one: f64 = found.each_s.iter().take(clients as usize).sum();
        let by_clusters = found.plans_s + found.clustering_s * clients;
        let speedup = one_by_one / by_clusters.max(f64::MIN_POSITIVE);
        records.row(([clients, one_by_one, by_clusters], found.plans as u64, speedup))?;
    }
    show(context, records, Outcome::default())
}
