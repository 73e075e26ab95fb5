//! `haversack sensitivity`: repeats one run with each constant moved in turn, and reports how far its figures move.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use haversack_devices::{ConstantEntry, Kind};
use haversack_reports::{Axis, BarSeries, Bars, Figure, Panel};
use haversack_training::{Record, RunError};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use crate::checked::doubt;
use crate::output::{Format, Plot, check_apart, join, note};
use crate::progress::{Amount, Progress};
use crate::quantities::percent;
use crate::scenario::{Holder, ScenarioFlags, World, moved, workload};
use crate::texts::text;
use crate::{Cache, Plan, Result, Scenario};

/// The options of `sensitivity`.
#[derive(Clone, Debug, Args)]
#[command(after_help = include_str!("../help/sensitivity.txt"))]
pub struct SensitivityOptions {
    /// Scenario file; flags override its keys
    #[arg(value_name = "SCENARIO.toml")]
    pub file: Option<PathBuf>,
    /// Scenario keys given as flags.
    #[command(flatten)]
    pub scenario: ScenarioFlags,
    /// Move each constant down and up by this much
    #[arg(long, value_name = "PERCENT", default_value = "20%")]
    pub by: Move,
    /// Show only the N constants with the largest effect
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Plot how far the time moves to FILE (.svg or .png)
    #[arg(long, value_name = "FILE")]
    pub plot: Option<Plot>,
}

/// The fraction by which a constant is moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move(f64);

impl FromStr for Move {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        let percent = percent.filter(|percent| *percent > 0.0 && *percent < 100.0);
        percent
            .map(|percent| Self(percent / 100.0))
            .ok_or_else(|| format!("expected a percentage above 0% and below 100%, such as 20%, found '{text}'"))
    }
}

/// The figures of a run that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Figures {
    iteration_time_s: f64,
    energy_j: f64,
    peak_memory_bytes: u64,
}

impl Figures {
    fn of(plan: &Plan) -> Result<Self, RunError> {
        let Record { iteration, energy, peak_memory, .. } = plan.run()?;
        Ok(Self { iteration_time_s: iteration.seconds(), energy_j: energy.0, peak_memory_bytes: peak_memory.0 })
    }

    /// Time, energy and memory, in this order.
    const fn all(self) -> [f64; 3] {
        [self.iteration_time_s, self.energy_j, self.peak_memory_bytes as f64]
    }
}

/// A run with one constant moved.
#[derive(Serialize)]
struct Side {
    /// The constant's value.
    value: f64,
    /// The figures; `None` if nothing runs with this value.
    #[serde(rename = "results")]
    figures: Option<Figures>,
}

/// A constant, and the run's figures with it moved.
struct Moved {
    entry: ConstantEntry,
    /// Moved down and up; `None` where the calibration does not allow the value.
    sides: [Option<Side>; 2],
}

impl Moved {
    /// The results of `scenario` in `world` with one constant moved.
    fn alone(
        scenario: &Scenario,
        world: &World,
        holder: Holder,
        entry: ConstantEntry,
        by: Move,
        cache: &Cache,
    ) -> Self {
        let sides = moved(&entry, by.0).map(|values| {
            values.map(|value| {
                // A value that makes the file contradict itself counts as not allowed.
                let world = world.with(holder, &entry.name, value).ok()?;
                let scenario = world.scenario(scenario);
                let figures = Plan::new(&scenario, cache).ok().and_then(|plan| Figures::of(&plan).ok());
                Some(Side { value, figures })
            })
        });
        Self { entry, sides: sides.unwrap_or_default() }
    }

    /// The largest relative change of time, energy and memory; infinite where nothing runs.
    fn largest(&self, base: Figures) -> [f64; 3] {
        let mut largest = [0.0_f64; 3];
        for side in self.sides.iter().flatten() {
            let figures = side.figures.map_or([f64::INFINITY; 3], Figures::all);
            for (largest, (now, before)) in largest.iter_mut().zip(figures.into_iter().zip(base.all())) {
                *largest = largest.max((now - before).abs() / before.max(f64::MIN_POSITIVE));
            }
        }
        largest
    }

    fn to_json(&self, base: Figures) -> Value {
        // JSON has no infinity, so it becomes null.
        let [time, energy, memory] = self.largest(base);
        let ConstantEntry { name, value, unit, kind, source, file } = &self.entry;
        json!({
            "file": file, "key": name, "unit": unit, "kind": kind, "source": source, "value": value,
            "down": self.sides[0], "up": self.sides[1],
            "iteration_time_moves": time, "energy_moves": energy, "peak_memory_moves": memory,
        })
    }
}

/// The effect of moving every constant.
struct Sensitivity {
    scenario: Scenario,
    by: f64,
    base: Figures,
    /// The constants that change a figure, those with the largest effect on time first.
    moved: Vec<Moved>,
    /// The number of constants that change nothing.
    unmoved: usize,
}

/// Moves each constant of the scenario's run and prints how far its figures move.
///
/// # Errors
/// A scenario that is wrong, or that does not run as given; files that cannot be written.
pub fn run(options: &SensitivityOptions) -> Result<()> {
    let scenario = options.scenario.over(options.file.as_deref())?;
    check_apart([("--plot", options.plot.as_ref().map(Plot::path))], scenario.names(options.file.as_deref()))?;
    let cache = Cache::new();
    let plan = Plan::new(&scenario, &cache)?;
    for sentence in plan.resolved.notes.iter().chain(&doubt(&plan)) {
        note(sentence);
    }
    let base = Figures::of(&plan).map_err(|error| plan.explain_failure(error, &cache))?;
    let mut found = Sensitivity::new(scenario, &plan, base, options.by, &cache)?;
    if let Some(top) = options.top {
        found.moved.truncate(top);
    }
    if let Some(plot) = &options.plot
        && !found.moved.is_empty()
    {
        plot.draw(&found.figure())?;
    }
    options.format.print(|| found.to_text(), || found.to_json())
}

/// The share by which the time of an iteration may be off if each constant that is fitted or estimated may be by `by`: the root
/// of the sum of the squares of what each moves it.
///
/// # Errors
/// A scenario that is wrong, or that does not run as it is.
pub(crate) fn uncertainty(scenario: &Scenario, by: f64, cache: &Cache) -> Result<f64> {
    let plan = Plan::new(scenario, cache)?;
    let base = Figures::of(&plan).map_err(|error| plan.explain_failure(error, cache))?;
    let world = World::of(&plan.resolved, cache)?;
    let uncertain = |kind: Kind| matches!(kind, Kind::Fitted | Kind::Estimated);
    let entries = world.entries().into_iter().filter(|(_, entry)| uncertain(entry.kind)).collect::<Vec<_>>();
    let moves = entries.into_par_iter().map(|(holder, entry)| {
        let [time, ..] = Moved::alone(scenario, &world, holder, entry, Move(by), cache).largest(base);
        if time.is_finite() { time * time } else { 0.0 }
    });
    // Added in the order of the constants, so that the sum has the same bits on any number of threads.
    Ok(moves.collect::<Vec<f64>>().into_iter().sum::<f64>().sqrt())
}

impl Sensitivity {
    fn new(scenario: Scenario, plan: &Plan, base: Figures, by: Move, cache: &Cache) -> Result<Self> {
        let world = World::of(&plan.resolved, cache)?;
        let entries = world.entries();
        let all = entries.len() as u64;
        let progress = Progress::new(Amount::Number("constants"), all, 0);
        let run = |(holder, entry): (Holder, ConstantEntry)| {
            let moved = Moved::alone(&scenario, &world, holder, entry, by, cache);
            progress.inc(1);
            moved
        };
        let mut runs: Vec<Moved> = entries.into_par_iter().map(run).collect();
        progress.finish();
        let before = runs.len();
        runs.retain(|moved| moved.largest(base) != [0.0; 3]);
        let unmoved = before - runs.len();
        runs.sort_by(|a, b| {
            let pairs = b.largest(base).into_iter().zip(a.largest(base));
            pairs.map(|(b, a)| b.total_cmp(&a)).fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
        Ok(Self { scenario, by: by.0, base, moved: runs, unmoved })
    }

    fn to_json(&self) -> Value {
        let scenario = self.scenario.to_json(Default::default());
        let constants: Vec<Value> = self.moved.iter().map(|moved| moved.to_json(self.base)).collect();
        json!({
            "scenario": scenario, "by": self.by, "base": self.base,
            "constants": constants, "unmoved": self.unmoved,
        })
    }

    /// Two bars per constant: how far the time moves with a smaller and with a larger value.
    fn figure(&self) -> Figure {
        let drawn = || self.moved.iter().take(DRAWN);
        // Names wrap at blanks in the figure; the table prints them unchanged.
        let names = drawn().map(|moved| moved.entry.name.replace(['.', '_'], " "));
        let change = |moved: &Moved, side: usize| {
            let figures = moved.sides.get(side)?.as_ref()?.figures?;
            Some(100.0 * (figures.iteration_time_s / self.base.iteration_time_s - 1.0))
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
        let most = self.moved.first().map(|moved| format!(": {} matters most", moved.entry.name));
        let title = format!("{model} under {} on {}{}", scenario.policy, scenario.device, most.unwrap_or_default());
        Figure::new(title).panel(panel)
    }

    fn to_text(&self) -> String {
        let mut answer = self.to_json();
        join(&mut answer, json!({ "model": workload::called(&self.scenario.model) }));
        text(include_str!("../texts/sensitivity.txt"), &answer)
    }
}

/// The number of constants in the figure; more names would not fit.
const DRAWN: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_is_a_percentage() {
        assert_eq!("20%".parse(), Ok(Move(0.2)));
        for text in ["20", "0%", "100%", "-5%", "many", "%", "NaN%"] {
            assert!(text.parse::<Move>().unwrap_err().contains("such as 20%"), "{text}");
        }
    }

    #[test]
    fn what_moves_most_is_the_larger_of_both_sides() {
        let figures = |iteration_time_s| Some(Figures { iteration_time_s, energy_j: 1.0, peak_memory_bytes: 100 });
        let side = |time_s| Some(Side { value: 1.0, figures: figures(time_s) });
        let entry = ConstantEntry {
            name: "x".to_owned(),
            value: 1.0,
            unit: "us",
            kind: haversack_devices::Kind::Measured,
            source: String::new(),
            file: String::new(),
        };
        let base = Figures { iteration_time_s: 2.0, energy_j: 1.0, peak_memory_bytes: 100 };
        // 1.8 is 10% less than 2, and 2.5 is 25% more.
        let moved = Moved { entry: entry.clone(), sides: [side(1.8), side(2.5)] };
        assert_eq!(moved.largest(base), [0.25, 0.0, 0.0]);
        let fails = Moved { entry, sides: [None, Some(Side { value: 1.0, figures: None })] };
        assert_eq!(fails.largest(base), [f64::INFINITY; 3]);
    }
}
