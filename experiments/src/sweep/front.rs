//! Memory against throughput: a Pareto front a device and model, one cloud a policy.

use std::collections::HashSet;

use haversack_reports::figure::{Axis, Front};
use haversack_reports::pareto::{Sense, Senses};
use haversack_reports::{Figure, FigureError, Panel, Rendered};
use rayon::ThreadPool;
use rayon::prelude::*;

use super::found::{Cloud, Found};
use crate::reproduce::range;

/// Which way is better of memory, and of throughput.
pub(super) const SENSES: Senses = [Sense::Minimise, Sense::Maximise];

/// Points of a policy that are all drawn; of more, one for each cell of a raster that is finer than the picture.
const ALL_DRAWN: usize = 1 << 10;
const RASTER: f64 = 700.0;

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
    let all = || cloud.policies.iter().flat_map(|reached| &reached.points);
    let memory = span(all().map(|point| point.0));
    let throughput = span(all().map(|point| point.1));
    for reached in &cloud.policies {
        front = front.cloud(reached.policy.as_str(), drawn(&reached.points, memory, throughput));
    }
    let panel = Panel::new(front).x(Axis::new("peak memory").unit("MB")).y(Axis::new("throughput").unit("samples/s"));
    Figure::new(format!("{} on {}", cloud.model, cloud.device)).order(order.iter().copied()).panel(panel)
}

/// The least of the values, and how far the largest is from it.
fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (least, largest) = range(values).unwrap_or((0.0, 1.0));
    (least, if largest > least { largest - least } else { 1.0 })
}

/// The points that are drawn of a picture with these spans: where there are many, the first of each cell.
fn drawn(points: &[(f64, f64)], memory: (f64, f64), throughput: (f64, f64)) -> Vec<(f64, f64)> {
    if points.len() <= ALL_DRAWN {
        return points.to_vec();
    }
    let cell = |value: f64, (least, width): (f64, f64)| ((value - least) / width * RASTER) as u32;
    let mut taken = HashSet::new();
    let is_first = |point: &&(f64, f64)| taken.insert((cell(point.0, memory), cell(point.1, throughput)));
    points.iter().filter(is_first).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_points_are_drawn_once_a_cell_and_few_all() {
        // Ten thousand points along a line of 10 by 5: a cell is 10 / 700 wide, so 701 cells are met, the last by the end alone.
        let line: Vec<(f64, f64)> = (0..10_000).map(|n| f64::from(n) / 999.9).map(|x| (x, x / 2.0)).collect();
        let (memory, throughput) = (span(line.iter().map(|p| p.0)), span(line.iter().map(|p| p.1)));
        let shown = drawn(&line, memory, throughput);
        assert_eq!((shown.len(), shown[0]), (701, line[0]));
        assert_eq!(drawn(&line[..ALL_DRAWN], memory, throughput), line[..ALL_DRAWN]);
        // A single value spans nothing, and is drawn.
        let same = vec![(1.0, 2.0); ALL_DRAWN + 1];
        assert_eq!(drawn(&same, span([1.0].into_iter()), span([2.0].into_iter())), [(1.0, 2.0)]);
    }
}
