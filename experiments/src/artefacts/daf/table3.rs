//! Table 3: the upkeep of the page table, by sorting and by two red-black trees.

use haversack_devices::{Device, Stack};
use haversack_memory::pages::order_cost::{self, OrderCost, OrderWork, OrderWorkload};

use super::setting::{BOARD, Network, on_platforms};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact = Artefact {
    devices: &["jetson-agx-orin", BOARD, "iqoo-neo3"],
    ..on_platforms("table3", "time to keep the page table by sorting and by red-black trees", run)
};

/// The devices: as the reference names them, and for people.
const DEVICES: [(&str, &str); 3] =
    [("jetson-agx-orin", "Jetson AGX Orin"), ("jetson-agx-xavier", "Jetson AGX Xavier"), ("iqoo-neo3", "iQOO Neo 3")];
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

    /// Microseconds on the core that keeps the tables of `device` under `stack`.
    fn micros(self, device: &Device, stack: &Stack) -> Result<f64, ArtefactError> {
        let time = stack.table_time(device, self.comparisons.round() as u64, self.moves.round() as u64);
        let Some(time) = time else { anyhow::bail!("{} does not say who keeps tables on {}", stack.id, device.id) };
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

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    let mut table = Table::new([
        "device",
        "tensors",
        "freed_percent",
        "sort_comparisons",
        "sort_moves",
        "trees_comparisons",
        "trees_moves",
        "sort_us",
        "trees_us",
    ]);
    // The tensors that forward saves in ResNet-18 on images of 32 by 32, as the reading `upkeep` has it.
    let plan = context.plan(&Scenario::new(BOARD, Network::ResNetCifar.model()))?;
    let activations = u32::try_from(plan.graph.saved().len())?;
    let counted = counts(activations, 0);
    let mut grid = Grid::default();
    // The ratio of the two methods on the first device, in the paper.
    let mut stated = Vec::new();
    for (id, name) in DEVICES {
        let device = context.device(id)?;
        let stack = context.stack(&device.constants.default_stack)?;
        let mut micros = [0.0; 2];
        for (m, (method, method_name)) in METHODS.into_iter().enumerate() {
            micros[m] = counted[m].micros(&device, &stack)?;
            let row = format!("daf/table3/{id}/{method}/time");
            stated.push(grid.answer((context, &mut outcome), &row, [name, method_name, "time"], micros[m])?);
        }
        push(&mut table, name, activations, 0, &counted, micros)?;
    }
    // The other panels are of one core: what a core needs for an operation cancels out of a ratio.
    let board = context.device(BOARD)?;
    let stack = context.stack(&board.constants.default_stack)?;
    let mut sweep = |of: Vec<(u32, u32)>| -> Result<Vec<[Counts; 2]>, ArtefactError> {
        let mut found = Vec::new();
        for (activations, freed) in of {
            let counted = counts(activations, freed);
            let micros = [counted[0].micros(&board, &stack)?, counted[1].micros(&board, &stack)?];
            push(&mut table, "swept", activations, freed, &counted, micros)?;
            found.push(counted);
        }
        Ok(found)
    };
    let over_number = sweep(SWEPT.map(|n| (n, 0)).to_vec())?;
    let over_freed = sweep(FREED.map(|freed| (activations, freed)).to_vec())?;
    let stated = stated[0].zip(stated[1]).map(|(sort, trees)| sort / trees);
    let ratios = |x: &[u32], counted: &[[Counts; 2]]| ratio_lines(x, counted, (&board, &stack), stated);
    let time = Axis::new("time").unit("µs").log();
    let figure = Figure::new("DAF, table 3: upkeep of the page table in one iteration")
            .note(format!(
                "{activations} tensors, of which each arrival gives one a new key. Both rows of the Orin are fitted, and its ratio is the paper's line; the Xavier's are withheld."
            ))
            .columns(3)
            .panel_size(400, 300)
            .panel(Panel::new(grid.bars("time").show_values()).title("time of an iteration").y(time))
            .panel(
                Panel::new(ratios(&SWEPT, &over_number)?)
                    .title("sort over trees, by tensors")
                    .x(Axis::new("tensors").log().ticks_at(SWEPT.map(f64::from)))
                    .y(Axis::new("sort over trees").unit("x").log()),
            )
            .panel(
                Panel::new(ratios(&FREED, &over_freed)?)
                    .title("sort over trees, by what must go")
                    .x(Axis::new("bytes that must go").unit("%"))
                    .y(Axis::new("sort over trees").unit("x").log()),
            );
    let [sort, trees] = counted;
    outcome.summary.push(format!(
        "table 3, operations for {activations} tensors: sorting {:.0} comparisons and {:.0} moves, trees {:.0} and {:.0}",
        sort.comparisons, sort.moves, trees.comparisons, trees.moves
    ));
    Ok(outcome.drawn(figure, table))
}

fn push(
    table: &mut Table,
    device: &str,
    tensors: u32,
    freed: u32,
    [sort, trees]: &[Counts; 2],
    [sort_us, trees_us]: [f64; 2],
) -> Result<(), ArtefactError> {
    table.push([
        device.into(),
        u64::from(tensors).into(),
        u64::from(freed).into(),
        sort.comparisons.into(),
        sort.moves.into(),
        trees.comparisons.into(),
        trees.moves.into(),
        sort_us.into(),
        trees_us.into(),
    ])?;
    Ok(())
}

/// Comparisons, moves and time of the sort over those of the trees, and the time that the paper has.
fn ratio_lines(
    x: &[u32],
    counted: &[[Counts; 2]],
    (device, stack): (&Device, &Stack),
    paper: Option<f64>,
) -> Result<Lines, ArtefactError> {
    let mut points = [Vec::new(), Vec::new(), Vec::new()];
    for (&x, [sort, trees]) in x.iter().zip(counted) {
        let time = sort.micros(device, stack)? / trees.micros(device, stack)?;
        let ratios = [sort.comparisons / trees.comparisons, sort.moves / trees.moves, time];
        for (points, ratio) in points.iter_mut().zip(ratios) {
            points.push((f64::from(x), ratio));
        }
    }
    let mut lines = Lines::new();
    for (name, points) in ["comparisons", "moves", "time"].into_iter().zip(points) {
        lines = lines.series(Series::new(name, points));
    }
    if let (Some(ratio), [first, .., last]) = (paper, x) {
        let across = [(f64::from(*first), ratio), (f64::from(*last), ratio)];
        lines = lines.series(Series::new("time", across).unmarked().look(Look::Hatched));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::reference::Reference;

    #[test]
    fn means_are_of_all_draws() {
        let works = [OrderWork { comparisons: 1, moves: 4 }, OrderWork { comparisons: 2, moves: 8 }];
        let Counts { comparisons, moves } = Counts::mean(&works);
        assert_eq!((comparisons, moves), (1.5, 6.0));
    }

    #[test]
    fn the_constants_solve_the_two_equations_of_the_orin() {
        let device = haversack_devices::load("jetson-agx-orin").unwrap();
        let stack = haversack_devices::load_stack("pytorch-cuda").unwrap();
        let reference = Reference::load().unwrap();
        for ((method, _), counts) in METHODS.iter().zip(counts(80, 0)) {
            let row = reference.row(&format!("daf/table3/jetson-agx-orin/{method}/time")).unwrap();
            // The constants have four digits, of which each weighs its share of the time.
            let error = counts.micros(&device, &stack).unwrap() / row.number().unwrap() - 1.0;
            assert!(error.abs() < 5e-4, "{method}: {error}");
        }
    }
}
