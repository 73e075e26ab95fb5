//! A run as text.

use std::fmt::Write as _;

use haversack_devices::{Bytes, ConstantEntry, GpuConstants, Nanos, Precision, Processor};
use haversack_memory::phone::PAGE;
use haversack_reports::table::three_digits;
use haversack_training::Wall;
use haversack_workloads::Node;
use serde_json::{Value, json};

use super::Simulated;
use crate::checked::doubt;
use crate::output::join;
use crate::quantities::{self, percent};
use crate::run::{PlanError, share};
use crate::scenario::{size_text, workload};
use crate::texts;

/// Below this fraction of the peak, a run names the constant that limits it.
const LITTLE: f64 = 0.05;
/// Micro-batches that are listed; of more, only the number is given.
const WRITTEN_OUT: usize = 12;

impl Simulated {
    /// The run in text; `answer` is its JSON, and `baseline` the time it is compared with, `None` if it is
    /// the baseline itself.
    pub(super) fn to_text(&self, mut answer: Value, baseline: Option<&Result<Nanos, PlanError>>) -> String {
        let (plan, device) = (&self.plan, &self.plan.resolved.device.constants);
        let precision = plan.arithmetic();
        let more = json!({
            "model": workload::called(&plan.scenario().model),
            "name": device.name, "soc": device.soc, "default_stack": device.default_stack,
            "precision": precision.to_string(), "against": self.against(baseline),
            "time_budget_s": plan.budgets.time.map(Nanos::seconds),
            "is_missed": plan.budgets.time.is_some_and(|budget| self.record.iteration > budget),
            "walls": self.walls(), "of_peak": self.of_peak(precision), "page": PAGE,
            "managed_bytes": self.record.phone.as_ref().map(|phone| phone.managed.0),
            "used_peak_bytes": self.record.phone.as_ref().map(|phone| phone.run.used_peak.0),
            "least": self.least_memory.map(size_text), "doubt": doubt(plan),
        });
        join(&mut answer, more);
        texts::text(include_str!("../../texts/simulate.txt"), &answer)
    }

    /// The comparison of the run with its baseline, in one sentence.
    fn against(&self, baseline: Option<&Result<Nanos, PlanError>>) -> String {
        let (own, of_baseline) = (self.plan.scenario().precision, self.plan.baseline().precision);
        let precision = if own == of_baseline { String::new() } else { format!(", {of_baseline}") };
        let name = format!("baseline (policy original, no budget{precision})");
        match baseline {
            None => format!("{name}: this run"),
            Some(Err(error)) => format!("{name}: does not run here: {error}"),
            Some(Ok(time)) => {
                let times = three_digits(share(self.record.iteration, *time));
                format!("{name}: {}; this run takes {times} times as long", quantities::time(*time))
            }
        }
    }

    /// Rows of a table: the fraction of peak that the network's arithmetic reaches, and, where that is little, the
    /// constant that limits it.
    fn of_peak(&self, precision: Precision) -> String {
        let Some(peak) = self.peak(precision) else { return String::new() };
        let arithmetic = |node: &Node| node.work.flops.at(self.plan.scenario().batch) as f64;
        let reached = self.plan.graph.nodes.iter().map(arithmetic).sum::<f64>() / self.record.iteration.seconds();
        let share = reached / peak;
        let [reached, peak] = [reached, peak].map(|rate| three_digits(rate / 1e9));
        let mut rows = format!("of the peak¦{}¦{reached} of {peak} GFLOP/s\n", percent(share));
        if let Some(constant) = self.keeps_low().filter(|_| share < LITTLE) {
            let ConstantEntry { name, unit, kind, file, .. } = &constant;
            let value = three_digits(constant.value);
            let _ = writeln!(rows, "above all by¦¦{name} = {value} {unit} of {file} ({kind})");
        }
        rows
    }

    /// The peak operations per second of the processors that train, in the run's format.
    fn peak(&self, precision: Precision) -> Option<f64> {
        let machine = self.plan.machine();
        let of_gpu = |gpu: &GpuConstants| gpu.tensor_peak(precision).unwrap_or(gpu.general_peak(precision)).0;
        let own = match &machine.processor {
            Processor::Cpu(cores, _) => cores.peak(precision).0,
            Processor::Gpu(..) => machine.device.constants.gpu.as_ref().map(of_gpu)?,
        };
        let dsp = machine.device.constants.dsp.as_ref().filter(|_| machine.dsp.is_some());
        Some(own + dsp.map_or(0.0, |dsp| dsp.int8_peak().0))
    }

    /// The constant behind the bound that limits the run most.
    fn keeps_low(&self) -> Option<ConstantEntry> {
        let machine = self.plan.machine();
        let section = if matches!(machine.processor, Processor::Gpu(..)) { "gpu" } else { "cpu" };
        let bound = self.record.bound_by.longest();
        let kind = self.longest.iter().find(|operator| operator.bound_by == bound).map(|operator| operator.kind);
        let in_loops = |kind| machine.stack.cpu().is_some_and(|on_cpu| section == "cpu" && on_cpu.sweeps(kind));
        let names = match bound {
            "arithmetic" if in_loops(kind?) => vec!["cpu.sweep_work".to_owned()],
            "arithmetic" => vec![format!("{section}.efficiency.{}", kind?)],
            "index-arithmetic" => {
                vec![format!("{section}.index_ops_per_access"), format!("{section}.0.fp32_rate")]
            }
            "dram" => vec!["dram.achievable".to_owned()],
            "caches" => vec![format!("{section}.l2_bandwidth"), format!("{section}.0.l2_rate")],
            "launches" | "host" => {
                ["launch", "operator_work", "operator_overhead"].map(|name| format!("{section}.{name}")).into()
            }
            "preparation" => vec![format!("{section}.preparation_work")],
            _ => Vec::new(),
        };
        let mut entries = machine.device.entries();
        entries.extend(machine.stack.entries());
        names.iter().find_map(|name| entries.iter().find(|entry| entry.name == *name)).cloned()
    }

    /// How the budgets change during the run.
    fn walls(&self) -> String {
        let budgets = &self.plan.budgets;
        let of_activations = walls("budget of saved tensors", budgets.activations, &budgets.activation_walls);
        walls("budget", budgets.memory, &budgets.walls) + &self.trace() + &of_activations
    }

    /// The budgets of the trace: each of them, or their range if there are many.
    fn trace(&self) -> String {
        let budgets = &self.plan.budgets;
        let traced = &budgets.traced;
        if traced.len() <= WRITTEN_OUT {
            let later = traced.iter().filter(|wall| wall.at > Nanos::ZERO).copied().collect::<Vec<_>>();
            return walls("budget", budgets.memory, &later);
        }
        let sizes = || traced.iter().map(|wall| wall.memory);
        let [least, most] = [sizes().min(), sizes().max()].map(|size| quantities::size(size.unwrap_or_default()));
        format!("  budget of the trace: {} values from {least} to {most}\n", traced.len())
    }
}

/// How `budget` changes during the iteration, which begins with `first`: a sentence for each wall.
fn walls(budget: &str, first: Option<Bytes>, walls: &[Wall]) -> String {
    let before = std::iter::once(first).chain(walls.iter().map(|wall| Some(wall.memory)));
    let sentence = |(before, wall): (Option<Bytes>, &Wall)| {
        let verb = if before.is_some_and(|before| before < wall.memory) { "rises" } else { "falls" };
        format!("  {budget} {verb} to {} at {}\n", quantities::size(wall.memory), quantities::time(wall.at))
    };
    before.zip(walls).map(sentence).collect()
}
