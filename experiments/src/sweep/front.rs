//! Memory against throughput and against energy: Pareto fronts of a device and a model, one cloud a policy.

use std::collections::HashSet;

use haversack_reports::figure::{Axis, Front};
use haversack_reports::pareto::{BOTH_MINIMISED, Sense, Senses};
use haversack_reports::{Figure, FigureError, Panel, Rendered};
use indexmap::IndexSet;
use rayon::prelude::*;

use super::found::{Cloud, Found, Reached, SETTINGS};
use crate::quantities::range;

/// Which way is better of memory, and of throughput.
pub(super) const SENSES: Senses = [Sense::Minimise, Sense::Maximise];

/// Values of a setting that a picture names one by one, at most.
const FEW: usize = 6;
/// Points of a policy that are all drawn; of more, one for each cell of a raster that is finer than the picture.
const ALL_DRAWN: usize = 1 << 10;
const RASTER: f64 = 700.0;

/// The pictures, each with the name of its files.
pub(super) fn draw(found: &Found) -> Result<Vec<(String, Rendered)>, FigureError> {
    // Names take their colours in one order, so that a policy looks the same in every picture.
    let policies = found.clouds.iter().flat_map(|cloud| &cloud.policies);
    let order: IndexSet<&str> = policies.map(|reached| reached.policy.as_str()).collect();
    let draw = |cloud: &Cloud| Ok((cloud.name.clone(), figure(cloud, &order).render()?));
    found.clouds.par_iter().map(draw).collect()
}

fn figure(cloud: &Cloud, order: &IndexSet<&str>) -> Figure {
    // A device by the sweep's own changes may have another memory.
    let ram = haversack_devices::load(&cloud.device).ok().map(|device| device.ram().megabytes());
    let panel = |points: fn(&Reached) -> &[(f64, f64)], senses, axis| {
        let all = || cloud.policies.iter().flat_map(points);
        let (memory, value) = (span(all().map(|point| point.0)), span(all().map(|point| point.1)));
        let start = Front::new().senses(senses).overall();
        let start = ram.into_iter().fold(start, |front, ram| front.wall(ram, "the device's RAM"));
        let add = |front: Front, reached: &Reached| {
            front.cloud(reached.policy.as_str(), drawn(points(reached), memory, value))
        };
        Panel::new(cloud.policies.iter().fold(start, add)).x(Axis::new("peak memory").unit("MB")).y(axis)
    };
    let throughput = panel(|reached| &reached.points, SENSES, Axis::new("throughput").unit("samples/s"));
    let energy = panel(|reached| &reached.energies, BOTH_MINIMISED, Axis::new("energy of a sample").unit("J"));
    let figure = Figure::new(cloud.title()).order(order.iter().copied());
    let figure = Figure { note: Some(settings(cloud)), ..figure }.panel(throughput);
    if cloud.policies.iter().any(|reached| !reached.energies.is_empty()) { figure.panel(energy) } else { figure }
}

/// "batch 8; stack pytorch-cuda; precision fp32 and fp16".
fn settings(cloud: &Cloud) -> String {
    let known = SETTINGS.iter().zip(&cloud.settings).filter(|(_, values)| !values.is_empty());
    let words = known.map(|(name, values)| {
        let mut values: Vec<&str> = values.iter().map(String::as_str).collect();
        values.sort_by_key(|value| value.parse::<u64>().ok());
        if values.len() > FEW {
            format!("{name} of {} kinds", values.len())
        } else {
            format!("{name} {}", values.join(", "))
        }
    });
    words.collect::<Vec<_>>().join("; ")
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
