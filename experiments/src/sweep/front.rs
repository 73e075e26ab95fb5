//! Memory against throughput: a Pareto front a device and model, one cloud a policy.

use haversack_reports::figure::{Axis, Front};
use haversack_reports::pareto::{Sense, Senses};
use haversack_reports::{Figure, FigureError, Panel, Rendered};
use rayon::ThreadPool;
use rayon::prelude::*;

use super::found::{Cloud, Found};

/// Which way is better of memory, and of throughput.
pub(super) const SENSES: Senses = [Sense::Minimise, Sense::Maximise];

/// The pictures, each with the name of its files.
pub(super) fn draw(found: &Found, pool: &ThreadPool) -> Result<Vec<(String, Rendered)>, FigureError> {
    // Names take their colours in one order, so that a policy looks the same in every picture.
    let mut order: Vec<&str> = Vec::new();
    for reached in found.clouds.iter().flat_map(|cloud| &cloud.policies) {
        if !order.contains(&reached.policy.as_str()) {
            order.push(&reached.policy);
        }
    }
    let draw = |cloud: &Cloud| Ok((cloud.name.clone(), figure(cloud, &order).render()?));
    pool.install(|| found.clouds.par_iter().map(draw).collect())
}

fn figure(cloud: &Cloud, order: &[&str]) -> Figure {
    let mut front = Front::new().senses(SENSES);
    for reached in &cloud.policies {
        front = front.cloud(reached.policy.as_str(), reached.points.clone());
    }
    let panel = Panel::new(front).x(Axis::new("peak memory").unit("MB")).y(Axis::new("throughput").unit("samples/s"));
    Figure::new(format!("{} on {}", cloud.model, cloud.device)).order(order.iter().copied()).panel(panel)
}
