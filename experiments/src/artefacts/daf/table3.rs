//! Table 3: the upkeep of the page table, by sorting and by two red-black trees.

use haversack_devices::{Device, HostThread, Precision, Stack};
use haversack_memory::pages::order_cost::{self, OrderCost, OrderWork, OrderWorkload};

use super::setting::{BOARD, RESNET_CIFAR, scenario};
use crate::artefacts::prelude::*;

const DEVICES: &[&str] = &["jetson-agx-orin", BOARD, "iqoo-neo3"];
/// The methods: as the reference names them, and for people.
const METHODS: [(&str, &str); 2] = [("sort", "sort"), ("red-black-tree", "red-black trees")];
/// Draws of sizes, times and importances that counts are the means of: one draw of 80 tensors is off by some percent.
const DRAWS: u64 = 64;
/// Tensors of the sweep.
const SWEPT: [u32; 8] = [8, 16, 32, 64, 128, 256, 512, 1024];
/// Shares of all bytes that go in the course of an iteration, in per cent.
const FREED: [u32; 7] = [0, 5, 10, 20, 40, 60, 80];

/// Mean counts of one iteration.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    comparisons: f64,
    moves: f64,
}

impl Counts {
    fn mean(works: &[OrderWork]) -> Self {
        let mean = |of: fn(&OrderWork) -> u64| works.iter().map(of).sum::<u64>() as f64 / works.len().max(1) as f64;
        Self { comparisons: mean(|work| work.comparisons), moves: mean(|work| work.moves) }
    }

    /// Microseconds of the `host`'s thread that keeps the tables of `device` under `stack`.
    fn micros(self, device: &Device, stack: &Stack, host: &HostThread) -> Result<f64> {
        let time = stack.table_time(device, self.comparisons.round() as u64, self.moves.round() as u64, host);
        let Some(time) = time else { bail!("{} does not say who keeps tables on {}", stack.id, device.id) };
        Ok(time.seconds() * 1e6)
    }
}

/// What an iteration of `activations` tensors counts in the order of [`METHODS`].
fn counts(activations: u32, freed_percent: u32) -> [Counts; 2] {
    let of_draw = |seed| {
        let workload = OrderWorkload { freed: f64::from(freed_percent) / 100.0, seed, ..OrderWorkload::default() };
        order_cost::iteration(activations, &workload)
    };
    let draws: Vec<_> = (1..=DRAWS).map(of_draw).collect();
    let of = |way: fn(&OrderCost) -> OrderWork| Counts::mean(&draws.iter().map(way).collect::<Vec<_>>());
    [of(|cost| cost.sort), of(|cost| cost.tree)]
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of(
        "device,tensors,freed_percent,sort_comparisons,sort_moves,trees_comparisons,trees_moves,sort_us,trees_us",
    );
    // The tensors that forward saves in ResNet-18 on images of 32 by 32, as the reading `upkeep` has it.
    let plan = context.plan(&Scenario::new(BOARD, RESNET_CIFAR.model))?;
    let activations = u32::try_from(plan.graph.saved().len())?;
    let mut grid = Grid::default();
    // The ratio of the two methods on the first device, in the paper.
    let mut stated = Vec::new();
    for &id in DEVICES {
        let name = &*spelled(id);
        let swept = Swept::new(context, id, activations, 0)?;
        for ((method, method_name), micros) in METHODS.into_iter().zip(swept.micros) {
            let row = format!("daf/table3/{id}/{method}/time");
            stated.push(grid.answer(context, &mut outcome, &row, [name, method_name, "time"], micros)?);
        }
        swept.push(&mut outcome, name)?;
    }
    let stated = stated[0].zip(stated[1]).map(|(sort, trees)| sort / trees);
    outcome.bars("time of an iteration", grid.bars("time"), axis("time", "µs").log());
    // The other panels are of one core: what a core needs for an operation cancels out of a ratio.
    let tensors = Axis::new("tensors").log().ticks_at(SWEPT.map(f64::from));
    let by_tensors = ("sort over trees, by tensors", tensors, SWEPT.map(|tensors| (tensors, 0)).to_vec());
    let freed = axis("bytes that must go", "%");
    let by_freed = ("sort over trees, by what must go", freed, FREED.map(|freed| (activations, freed)).to_vec());
    for (place, (title, x, of)) in [by_tensors, by_freed].into_iter().enumerate() {
        let mut found = Vec::new();
        for (tensors, freed) in of {
            let swept = Swept::new(context, BOARD, tensors, freed)?;
            swept.push(&mut outcome, "swept")?;
            found.push((f64::from([tensors, freed][place]), swept));
        }
        outcome.panel(title, ratio_lines(&found, stated), x, axis("sort over trees", "x").log());
    }
    let [sort, trees] = counts(activations, 0);
    outcome.quantity("tensors of the network", "", [f64::from(activations)]);
    outcome.summary.push(format!(
        "table 3, operations for {activations} tensors: sorting {:.0} comparisons and {:.0} moves, trees {:.0} and {:.0}",
        sort.comparisons, sort.moves, trees.comparisons, trees.moves
    ));
    Ok(outcome)
}

/// The thread that drives the accelerator: an iteration of ResNet-18 on images of 32 by 32, which it launches.
fn host(context: &Context<'_>, device: &str) -> Result<HostThread> {
    let plan = context.plan(&scenario(context, device, RESNET_CIFAR)?)?;
    let (graph, batch) = (&plan.graph, plan.scenario().batch);
    let launch = |id| plan.machine().cost(graph, id, batch, Precision::Fp32).launch;
    let working = (0..graph.nodes.len()).map(launch).sum();
    Ok(HostThread { span: plan.machine().unbounded_time(graph, batch, Precision::Fp32), working })
}

/// What an iteration takes on a device, by both methods.
struct Swept {
    tensors: u32,
    freed_percent: u32,
    counted: [Counts; 2],
    micros: [f64; 2],
}

impl Swept {
    fn new(context: &Context<'_>, device: &str, tensors: u32, freed_percent: u32) -> Result<Self> {
        let host = host(context, device)?;
        let device = context.device(device)?;
        let stack = context.stack(&device.constants.default_stack)?;
        let counted = counts(tensors, freed_percent);
        let micros = [counted[0].micros(&device, &stack, &host)?, counted[1].micros(&device, &stack, &host)?];
        Ok(Self { tensors, freed_percent, counted, micros })
    }

    /// Adds a row to the data.
    fn push(&self, outcome: &mut Outcome, device: &str) -> Result<()> {
        let [sort, trees] = self.counted.map(|counts| [counts.comparisons, counts.moves]);
        let case = [self.tensors, self.freed_percent].map(u64::from);
        Ok(outcome.row((device, case, sort, trees, self.micros))?)
    }

    /// Comparisons, moves and time of the sort over those of the trees.
    fn ratios(&self) -> [f64; 3] {
        let [sort, trees] = &self.counted;
        let [sort_us, trees_us] = self.micros;
        [sort.comparisons / trees.comparisons, sort.moves / trees.moves, sort_us / trees_us]
    }
}

/// The ratios over what is swept, and that of times that the paper has.
fn ratio_lines(found: &[(f64, Swept)], paper: Option<f64>) -> Lines {
    let mut lines = Lines::new();
    for (which, name) in ["comparisons", "moves", "time"].into_iter().enumerate() {
        let points: Vec<_> = found.iter().map(|(x, swept)| (*x, swept.ratios()[which])).collect();
        lines = lines.series(Series::new(name, points));
    }
    if let (Some(ratio), [(first, _), .., (last, _)]) = (paper, found) {
        let across = [(*first, ratio), (*last, ratio)];
        lines = lines.series(Series::new("time", across).unmarked().look(Look::Hatched));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_of_all_draws() {
        let works = [OrderWork { comparisons: 1, moves: 4 }, OrderWork { comparisons: 2, moves: 8 }];
        let Counts { comparisons, moves } = Counts::mean(&works);
        assert_eq!((comparisons, moves), (1.5, 6.0));
    }
}
