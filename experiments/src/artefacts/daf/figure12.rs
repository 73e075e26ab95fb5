//! Figure 12: the statistics of dynamic quantisation, DAF's way, the original way and by CUB; and how block-level
//! atomics fare against a second launch as a GPU gets more units, which is the reason that section 3.2.2 gives.

use haversack_devices::KernelTime;
use haversack_gpu::Plan;
use haversack_gpu::baseline::{cub, framework};
use haversack_gpu::profile::{CONTROL, block_against_passes, over_units};
use haversack_kernels::reduce::Statistic;

use super::reductions::{OPERATIONS, Operation, micros, profiler};
use crate::artefacts::prelude::*;

const SPEED_UP: &str = "daf/figure12/conv2d-[1,256,14,14];-attention-[1,512,768]/daf/reduction-speedup";
/// The platforms, and whether CUB runs on them.
const PLATFORMS: [(&str, bool); 4] =
    [("jetson-agx-orin", true), ("jetson-agx-xavier", true), ("iqoo-neo3", false), ("redmagic-7", false)];
/// The GPUs that are given other numbers of units: the two of section 3.2.2.
const SCALED: [&str; 2] = ["jetson-agx-xavier", "rtx-3090"];
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

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of("what,device,units,operation,method,plan,launches,framework_us,launch_us,busy_us");
    let mut all = Vec::new();
    for operation in OPERATIONS {
        let of_platform = |(id, has_cub)| measure(context, &mut outcome, operation, id, has_cub);
        let measured = PLATFORMS.into_iter().map(of_platform).collect::<Result<Vec<_>, _>>()?;
        let bars = columns(
            PLATFORMS.map(|(id, _)| spelled(id)),
            &measured,
            [("over the original method", |at| Some(at.over_framework())), ("over CUB", Measured::over_cub)],
        );
        outcome.bars(operation.title, bars, axis("speed-up of DAF", "x"));
        all.extend(measured);
    }
    let mut crossings = Vec::new();
    for id in SCALED {
        crossings.extend(scaled(context, &mut outcome, id)?);
    }
    outcome.range(SPEED_UP, speed_ups_of(&all));
    outcome.quantity("share of launches and overhead", "%", all.iter().flat_map(|at| at.overheads.clone()));
    outcome.quantity("time of the epilogue", "µs", all.iter().map(|at| at.fused));
    outcome.summary.push(format!("figure 12: geometric mean of all speed-ups {:.1}", geometric_mean(&all)));
    outcome.summary.extend(crossings);
    Ok(outcome)
}

/// The microseconds of the framework, of launches and of work.
fn times(time: &KernelTime) -> [f64; 3] {
    [time.overhead, time.launch, time.busy].map(|time| time.0 * 1e6)
}

fn measure(
    context: &Context<'_>,
    outcome: &mut Outcome,
    operation: Operation,
    id: &str,
    has_cub: bool,
) -> Result<Measured> {
    let profiler = profiler(context, &context.device(id)?)?;
    let name = spelled(id);
    let place = ("reduction", name.as_str(), None::<u64>, operation.name);
    let best = profiler.fastest(&CONTROL, operation.elements, profiler.epilogue())?;
    let launches = best.counts.launches() + best.counts.memsets;
    outcome.row((place, "DAF", described(&best.plan), u64::from(launches), times(&best.time)))?;
    let framework = profiler.time_of(&framework(&CONTROL, operation.elements, &profiler.machine)?);
    let cub = has_cub.then(|| cub(&CONTROL, operation.elements, &profiler.machine)).transpose()?;
    let cub = cub.map(|counts| profiler.time_of(&counts));
    for (method, time) in [("framework", Some(&framework)), ("CUB", cub.as_ref())] {
        let Some(time) = time else { continue };
        let launches = (time.launch.0 / profiler.gpu.launch().seconds()).round() as u64;
        outcome.row((place, method, "", launches, times(time)))?;
    }
    let overhead = |time: &KernelTime| (time.overhead + time.launch).0 / micros(time) * 1e8;
    let overheads = [&framework].into_iter().chain(&cub).map(overhead).collect();
    let [fused, framework] = [&best.time, &framework].map(micros);
    Ok(Measured { fused, framework, cub: cub.as_ref().map(micros), overheads })
}

/// Block atomics over a second launch as the GPU is given other numbers of units: a panel, and where they are even.
fn scaled(context: &Context<'_>, outcome: &mut Outcome, id: &str) -> Result<Vec<String>> {
    let (device, name) = (context.device(id)?, &*spelled(id));
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
                    let place = ("units", name, Some(u64::from(at.units)), operation.name);
                    let launches = u64::from(timed.counts.launches() + timed.counts.memsets);
                    outcome.row((place, method, described(&timed.plan), launches, times(&timed.time)))?;
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
    let ends = [UNITS.start(), UNITS.end()].map(|units| (f64::from(*units), 1.0));
    let lines = lines.series(Series::new("equal", ends).unmarked());
    let title = format!("block atomics over two passes against units: {name}");
    let units = Axis::new("units").ticks_at([8.0, 16.0, 32.0, 48.0, 64.0, 82.0]);
    outcome.panel(&title, lines, units, axis("time over time", "x"));
    Ok(crossings)
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
    mean(&logarithms).unwrap_or_default().exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantities::range;

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
