//! The time of an iteration where one constant is moved: a tornado, the widest first.

use haversack_reports::figure::{Axis, BarSeries, Bars};
use haversack_reports::{Figure, Panel};

use super::{Moved, Sensitivity};
use crate::quantities::percent;
use crate::scenario::workload;

/// Constants that are drawn; names of more would not fit.
const DRAWN: usize = 12;

impl Sensitivity {
    /// Two bars a constant: how far the time moves where it is less, and where it is more.
    pub(super) fn figure(&self) -> Figure {
        let drawn = || self.moved.iter().take(DRAWN);
        // A name breaks at blanks, and the table has it as it is.
        let names = drawn().map(|moved| moved.entry.name.replace(['.', '_'], " "));
        let change = |moved: &Moved, side: usize| {
            let figures = moved.sides.get(side)?.as_ref()?.figures?;
            Some(100.0 * (figures.time_s / self.base.time_s - 1.0))
        };
        let series = |name: String, side: usize| {
            BarSeries::new(name, drawn().map(|moved| change(moved, side)).collect::<Vec<_>>())
        };
        let bars = Bars::new(names)
            .series(series(format!("constant {} less", percent(self.by)), 0))
            .series(series(format!("constant {} more", percent(self.by)), 1));
        let panel = Panel::new(bars).y(Axis::new("time of an iteration moves by").unit("%"));
        let scenario = &self.scenario;
        let model = workload::called(&scenario.model);
        let title = format!("{model} under {} on {}", scenario.policy, scenario.device);
        Figure::new(title).panel(panel)
    }
}
