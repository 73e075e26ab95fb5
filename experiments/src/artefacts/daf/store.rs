//! DAF's store: the processor that packs, the data structure of its page table, and the effect of cutting its budget.

use haversack_devices::{Device, HostThread, Precision, Stack};
use haversack_memory::pages::order_cost::{self, OrderCost, OrderWork, OrderWorkload};
use haversack_training::AllocatorKind;

use super::setting::{BOARD, IMPORTANCE, RESNET_CIFAR, scenario, store};
use crate::artefacts::prelude::*;
use crate::scenario::Step;

/// The configurations: the name in the reference, and of the policy.
const CONFIGURATIONS: [(&str, &str); 4] = [
    ("cpu-only", "cpu"),
    ("gpu-only", "gpu"),
    ("cpu-gpu-no-unified-layout", "shared"),
    ("cpu-gpu-unified-layout", "unified"),
];
const MIB: f64 = 1024.0 * 1024.0;

/// The parts of an iteration in the table: the time added by packing, unpacking and waiting for them, and the rest.
pub(crate) fn parts(record: &Record) -> (Nanos, Nanos) {
    let packing = record.breakdown.packing + record.breakdown.paging;
    (record.iteration.saturating_sub(packing), packing)
}

/// The scenario of the configuration `id` of the reference; `reading` returns the numbers of readings.
///
/// # Errors
/// No such configuration, or no such reading.
pub(crate) fn packed(reading: impl Fn(&str) -> Result<f64>, id: &str) -> Result<Scenario> {
    let found = CONFIGURATIONS.iter().find(|(known, _)| *known == id);
    let (_, packing) = found.with_context(|| format!("no configuration of table 2 is called `{id}`"))?;
    let mut scenario = Scenario::new(BOARD, RESNET_CIFAR.model);
    scenario.allocator = Some(AllocatorKind::Caching);
    scenario.batch = reading("resnet-batch")? as u64;
    scenario.activation_budget = Some(Budget::Bytes(Bytes((reading("activation-memory")? * MIB) as u64)));
    let least = reading("least-bits")?.to_string();
    Ok(under(&scenario, "daf", &[("packing", packing), ("least_bits", &least), IMPORTANCE]))
}

pub(super) fn table2(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let budget = context.reading_number("activation-memory")?;
    outcome.answer("daf/table2/resnet18-cifar10/activation/memory", Answer::Input(budget));
    let records = records(context, "store_mib,overhead_mib,time_ms,overhead_ms", |_, ids| {
        let record = context.run(&packed(|reading| context.reading_number(reading), &ids[0])?)?;
        let times: [Nanos; 2] = parts(&record).into();
        Ok((
            [store(&record), record.peak_staging].map(|bytes| bytes.as_f64() / MIB),
            times.map(|time| time.seconds() * 1e3),
        ))
    })?;
    show(context, records, outcome)
}

const DEVICES: &[&str] = &["jetson-agx-orin", BOARD, "iqoo-neo3"];
/// Draws of sizes, times and importances over which counts are averaged: a single draw of 80 tensors is
/// off by some percent.
const DRAWS: u64 = 64;
/// Tensors of the sweep.
const SWEPT: [u32; 8] = [8, 16, 32, 64, 128, 256, 512, 1024];
/// Percentages of all bytes that are freed during an iteration.
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

/// The counts of an iteration with `activations` tensors, by sorting and by trees.
fn counts(activations: u32, freed_percent: u32) -> [Counts; 2] {
    let of_draw = |seed| {
        let workload = OrderWorkload { freed: f64::from(freed_percent) / 100.0, seed, ..OrderWorkload::default() };
        order_cost::iteration(activations, &workload)
    };
    let draws: Vec<_> = (1..=DRAWS).map(of_draw).collect();
    let of = |way: fn(&OrderCost) -> OrderWork| Counts::mean(&draws.iter().map(way).collect::<Vec<_>>());
    [of(|cost| cost.sort), of(|cost| cost.tree)]
}

pub(super) fn table3(context: &Context<'_>) -> Result<Outcome> {
    // The tensors that forward saves in ResNet-18 on images of 32 by 32, as in the reading `upkeep`.
    let plan = context.plan(&Scenario::new(BOARD, RESNET_CIFAR.model))?;
    let activations = u32::try_from(plan.graph.saved().len())?;
    // The ratio of the two methods on the first device, in the paper.
    let paper = |method: &str| context.paper(&format!("daf/table3/{}/{method}/time", DEVICES[0]));
    let stated = paper("sort")?.zip(paper("red-black-tree")?).map(|(sort, trees)| sort / trees);
    let mut records = Records::of(
        "panel,device,name,tensors,freed_percent,sort_comparisons,sort_moves,trees_comparisons,trees_moves,sort_us,\
         trees_us,comparisons,moves,time,stated",
    );
    for &id in DEVICES {
        upkeep(context, &mut records, ["devices", id, &spelled(id)], [activations, 0], None)?;
    }
    // The other panels are for one core: its cost per operation cancels out of a ratio.
    for (place, tensors) in SWEPT.into_iter().enumerate() {
        let stated = stated.filter(|_| place % (SWEPT.len() - 1) == 0);
        upkeep(context, &mut records, ["tensors", BOARD, "swept"], [tensors, 0], stated)?;
    }
    for (place, freed) in FREED.into_iter().enumerate() {
        let stated = stated.filter(|_| place % (FREED.len() - 1) == 0);
        upkeep(context, &mut records, ["freed", BOARD, "swept"], [activations, freed], stated)?;
    }
    show(context, records, Outcome::default())
}

/// The thread that drives the accelerator: an iteration of ResNet-18 on images of 32 by 32, which it launches.
fn host(context: &Context<'_>, device: &str) -> Result<HostThread> {
    let plan = context.plan(&scenario(context, device, RESNET_CIFAR)?)?;
    let (graph, batch) = (&plan.graph, plan.scenario().batch);
    let launch = |id| plan.machine().cost(graph, id, batch, Precision::Fp32).launch;
    let working = (0..graph.nodes.len()).map(launch).sum();
    Ok(HostThread { span: plan.machine().unbounded_time(graph, batch, Precision::Fp32), working })
}

/// Adds the costs of an iteration on a device by both methods; `case` is the number of tensors and the percentage of
/// bytes to be freed, `of` the panel, the device and its name.
fn upkeep(
    context: &Context<'_>,
    records: &mut Records,
    of: [&str; 3],
    case: [u32; 2],
    stated: Option<f64>,
) -> Result<()> {
    let host = host(context, of[1])?;
    let device = context.device(of[1])?;
    let stack = context.stack(&device.constants.default_stack)?;
    let [sort, trees] = counts(case[0], case[1]);
    let [sort_us, trees_us] = [sort.micros(&device, &stack, &host)?, trees.micros(&device, &stack, &host)?];
    let counted = [sort, trees].map(|counts| [counts.comparisons, counts.moves]);
    let ratios = [sort.comparisons / trees.comparisons, sort.moves / trees.moves, sort_us / trees_us];
    records.row((of, case.map(u64::from), counted.concat(), [sort_us, trees_us], ratios, stated))
}

pub(super) fn figure13(context: &Context<'_>) -> Result<Outcome> {
    let [before, after] = context.reading_numbers("budget-cut")?[..] else {
        bail!("the reading `budget-cut` is not two numbers")
    };
    let budgets = [before, after].map(|megabytes| Bytes((megabytes * 1e6) as u64));
    let header = "effective_mb,paging_ms,gradients_given_up,iteration_ms,effective,paging_s,allowed_mb,allowed";
    swept(context, header, |scenario, ids| {
        let share: f64 = ids[0].parse()?;
        let mut scenario = scenario.clone();
        scenario.activation_budget = Some(Budget::Bytes(budgets[0]));
        let forward = context.run(&scenario)?.forward;
        let at = if share < 1.0 { Nanos((forward.0 as f64 * share) as u64) } else { forward };
        scenario.budget_walls.activations = vec![Step { at, budget: Budget::Bytes(budgets[1]) }];
        let record = context.run(&scenario)?;
        // The size of saved tensors right after the cut, and the time of system calls and copying.
        let effective = record.saved_after_cut.unwrap_or_default();
        let [paging, iteration] = [record.breakdown.paging, record.iteration].map(|time| time.seconds() * 1e3);
        let found = [effective.megabytes(), paging, record.given_up as f64, iteration];
        Ok((found, effective.as_f64(), record.breakdown.paging.seconds(), after, budgets[1].as_f64()))
    })
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
