//! Figure 12: the statistics of dynamic quantisation, DAF's way, the original way and by CUB; and how block-level
//! atomics fare against a second launch as a GPU gets more units, which is the reason that section 3.2.2 gives.

use haversack_devices::processor::KernelTime;
use haversack_gpu::Plan;
use haversack_gpu::profile::{block_against_passes, over_units};
use haversack_kernels::reduce::Statistic;

use super::reductions::{OPERATIONS, Operation, by_cub, by_framework, fused, micros, profiler};
use super::setting::on_platforms;
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact = Artefact {
    devices: &["jetson-agx-orin", "jetson-agx-xavier", "iqoo-neo3", "redmagic-7", "rtx-3090"],
    ..on_platforms("figure12", "speed-up of reductions, and the crossover of block atomics over units", run)
};

/// The platforms: id, name for people, and whether CUB runs on it.
const PLATFORMS: [(&str, &str, bool); 4] = [
    ("jetson-agx-orin", "Jetson AGX Orin", true),
    ("jetson-agx-xavier", "Jetson AGX Xavier", true),
    ("iqoo-neo3", "iQOO Neo 3", false),
    ("redmagic-7", "RedMagic 7", false),
];
/// The GPUs that are given other numbers of units: the two of section 3.2.2.
const SCALED: [(&str, &str); 2] = [("jetson-agx-xavier", "Jetson AGX Xavier"), ("rtx-3090", "RTX 3090")];
/// Units, from those of the Xavier to those of the RTX 3090.
const UNITS: std::ops::RangeInclusive<u32> = 8..=82;
/// Threads of a block.
const THREADS: [u32; 2] = [128, 256];

/// What one platform takes for one operation, in microseconds.
struct Measured {
    fused: f64,
    framework: f64,
    cub: Option<f64>,
    /// What of the baselines' times is launches and the framework's overhead, in per cent.
    overheads: Vec<f64>,
}

impl Measured {
    fn over_framework(&self) -> f64 {
        self.framework / self.fused
    }

    fn over_cub(&self) -> Option<f64> {
        Some(self.cub? / self.fused)
    }
}

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    let mut table = Table::new(COLUMNS);
    let Some(row) = context.rows.first() else { anyhow::bail!("the reference has no row of figure 12") };
    let paper = match row.claim {
        Claim::Range { lo, hi } => format!("{lo} to {hi}"),
        _ => "no range".to_owned(),
    };
    let mut figure = Figure::new("DAF, figure 12: the cost of reductions")
        .note(format!("Above: three statistics of a tensor; the paper has {paper} over all. Below: a minimum in a kernel of its own, without launches: both have two."))
        .columns(2)
        .panel_size(520, 280);
    let mut all = Vec::new();
    for operation in OPERATIONS {
        let mut measured = Vec::new();
        for (id, name, has_cub) in PLATFORMS {
            measured.push(measure(context, &mut table, operation, (id, name, has_cub))?);
        }
        figure = figure.panel(speed_ups(operation, &measured));
        all.extend(measured);
    }
    let mut crossings = Vec::new();
    for (id, name) in SCALED {
        let (panel, found) = scaled(context, &mut table, id, name)?;
        figure = figure.panel(panel);
        crossings.extend(found);
    }
    if let Some((lo, hi)) = range(speed_ups_of(&all)) {
        outcome.answer(row.id.clone(), Answer::Range(lo, hi));
    }
    outcome.quantity("share of launches and overhead", "%", all.iter().flat_map(|at| at.overheads.clone()));
    outcome.quantity("time of the epilogue", "µs", all.iter().map(|at| at.fused));
    outcome.summary.push(format!("figure 12: geometric mean of all speed-ups {:.1}", geometric_mean(&all)));
    outcome.summary.extend(crossings);
    Ok(outcome.drawn(figure, table))
}

const COLUMNS: [&str; 10] =
    ["what", "device", "units", "operation", "method", "plan", "launches", "framework_us", "launch_us", "busy_us"];

/// A row of the table.
fn push(
    table: &mut Table,
    (what, device, units, operation): (&str, &str, Option<u32>, Operation),
    (method, plan): (&str, String),
    time: &KernelTime,
    launches: u32,
) -> Result<(), ArtefactError> {
    let units = units.map_or(Cell::Empty, |units| u64::from(units).into());
    let micros = |seconds: f64| Cell::Number(seconds * 1e6);
    table.push([
        what.into(),
        device.into(),
        units,
        operation.name.into(),
        method.into(),
        plan.into(),
        u64::from(launches).into(),
        micros(time.overhead.0),
        micros(time.launch.0),
        micros(time.busy.0),
    ])?;
    Ok(())
}

fn measure(
    context: &Context<'_>,
    table: &mut Table,
    operation: Operation,
    (id, name, has_cub): (&str, &str, bool),
) -> Result<Measured, ArtefactError> {
    let profiler = profiler(context, &context.device(id)?)?;
    let place = ("reduction", name, None, operation);
    let best = fused(&profiler, operation.elements)?;
    let plan = described(&best.plan);
    push(table, place, ("DAF", plan), &best.time, best.counts.launches() + best.counts.memsets)?;
    let framework = by_framework(&profiler, operation.elements)?;
    let launches = |time: &KernelTime| (time.launch.0 / profiler.gpu.launch().seconds()).round() as u32;
    push(table, place, ("framework", String::new()), &framework, launches(&framework))?;
    let cub = has_cub.then(|| by_cub(&profiler, operation.elements)).transpose()?;
    if let Some(cub) = &cub {
        push(table, place, ("CUB", String::new()), cub, launches(cub))?;
    }
    let overhead = |time: &KernelTime| (time.overhead + time.launch).0 / micros(time) * 1e8;
    let overheads = [&framework].into_iter().chain(&cub).map(overhead).collect();
    let [fused, framework] = [&best.time, &framework].map(micros);
    Ok(Measured { fused, framework, cub: cub.as_ref().map(micros), overheads })
}

fn speed_ups(operation: Operation, measured: &[Measured]) -> Panel {
    let bars = Bars::new(PLATFORMS.map(|(_, name, _)| name))
        .series(BarSeries::new("over the original method", measured.iter().map(Measured::over_framework)))
        .series(BarSeries::new("over CUB", measured.iter().map(Measured::over_cub)))
        .show_values();
    Panel::new(bars).title(operation.title).y(Axis::new("speed-up of DAF").unit("x"))
}

/// Block atomics over a second launch as the GPU is given other numbers of units: a panel, and where they are even.
fn scaled(
    context: &Context<'_>,
    table: &mut Table,
    id: &str,
    name: &str,
) -> Result<(Panel, Vec<String>), ArtefactError> {
    let device = context.device(id)?;
    let units: Vec<u32> = UNITS.collect();
    let mut lines = Lines::new();
    let mut crossings = Vec::new();
    for operation in OPERATIONS {
        for threads in THREADS {
            let plans = block_against_passes(threads);
            let swept = over_units(&device, &units, &plans, &[Statistic::Minimum], operation.elements)?;
            let mut points = Vec::new();
            for at in &swept {
                for (method, timed) in ["block atomics", "second launch"].into_iter().zip(&at.timed) {
                    let place = ("units", name, Some(at.units), operation);
                    let launches = timed.counts.launches() + timed.counts.memsets;
                    push(table, place, (method, described(&timed.plan)), &timed.time, launches)?;
                }
                if let [block, passes] = at.timed.as_slice() {
                    points.push((f64::from(at.units), block.time.busy.0 / passes.time.busy.0));
                }
            }
            let series = format!("{}, {threads} threads", operation.name);
            crossings.push(crossing(name, &series, &points));
            lines = lines.series(Series::new(series, points).unmarked());
        }
    }
    let ends = [(f64::from(*UNITS.start()), 1.0), (f64::from(*UNITS.end()), 1.0)];
    let panel = Panel::new(lines.series(Series::new("equal", ends).unmarked()))
        .title(format!("block atomics over two passes against units: {name}"))
        .x(Axis::new("units").ticks_at([8.0, 16.0, 32.0, 48.0, 64.0, 82.0]))
        .y(Axis::new("time over time").unit("x"));
    Ok((panel, crossings))
}

fn described(plan: &Plan) -> String {
    format!("{}, {} threads", plan.strategy.name(), plan.threads)
}

/// At how many units block atomics win for the last time.
fn crossing(device: &str, series: &str, points: &[(f64, f64)]) -> String {
    let last = points.iter().rfind(|(_, ratio)| *ratio < 1.0);
    let found = match last {
        None => "lose on any number of units".to_owned(),
        Some((units, _)) if *units == f64::from(*UNITS.end()) => format!("still win on {units} units"),
        Some((units, _)) => format!("win up to {units} units"),
    };
    format!("figure 12, block atomics against a second launch, {device}, {series}: they {found}")
}

/// Every speed-up.
fn speed_ups_of(measured: &[Measured]) -> impl Iterator<Item = f64> {
    measured.iter().flat_map(|at| std::iter::once(at.over_framework()).chain(at.over_cub()))
}

fn geometric_mean(measured: &[Measured]) -> f64 {
    let logarithms: Vec<f64> = speed_ups_of(measured).map(f64::ln).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_ups_are_over_both_baselines_where_there_are_two() {
        // 8 / 1, 2 / 1 and 8 / 2: from 2 to 8, and the cube root of 64 is 4.
        let measured = [
            Measured { fused: 1.0, framework: 8.0, cub: Some(2.0), overheads: Vec::new() },
            Measured { fused: 2.0, framework: 8.0, cub: None, overheads: Vec::new() },
        ];
        assert_eq!(range(speed_ups_of(&measured)), Some((2.0, 8.0)));
        assert!((geometric_mean(&measured) - 4.0).abs() < 1e-12);
    }

    #[test]
    fn the_last_win_is_the_crossing() {
        let found = |ratios: [f64; 3]| {
            let points: Vec<_> = [8.0, 40.0, 82.0].into_iter().zip(ratios).collect();
            crossing("a GPU", "a tensor", &points)
        };
        assert!(found([0.9, 0.8, 1.1]).ends_with("they win up to 40 units"));
        assert!(found([0.9, 1.1, 0.9]).ends_with("they still win on 82 units"));
        assert!(found([1.0, 1.1, 1.2]).ends_with("they lose on any number of units"));
    }
}
