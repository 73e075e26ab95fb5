//! A run as people read it.

use std::fmt::Write as _;

use haversack_devices::{Bytes, ConstantEntry, GpuConstants, Nanos, Precision, Processor};
use haversack_memory::phone::PAGE;
use haversack_reports::table::three_digits;
use haversack_training::{PeakReport, PhoneReport, Stalls, TrainerKill, Wall};
use haversack_workloads::Node;

use super::{Simulated, longest_table};
use crate::checked::doubt;
use crate::quantities::{self, Unit, percent};
use crate::run::{PlanError, Results, share};
use crate::scenario::{Budget, BudgetReference, Cell, Key, size_text, workload};

/// The share of a peak below which a run says what keeps it there.
const LITTLE: f64 = 0.05;
/// Characters of a bar of 100%.
const BAR: f64 = 40.0;
/// Micro-batches that are written out; of more, only how many.
const WRITTEN_OUT: usize = 12;

impl Simulated {
    /// The run in text; `baseline` is what it is compared with, `None` if it is the baseline itself.
    pub(super) fn to_text(&self, baseline: Option<&Result<Nanos, PlanError>>) -> String {
        let precision = self.plan.arithmetic();
        let mut text = self.heading(precision);
        let (times, memory) = (self.times() + &self.against(baseline), self.memory());
        // Writing to a text cannot fail.
        let _ = write!(text, "\n{times}\n{memory}\n{}\n{}", self.breakdown(), self.bounds(precision));
        if let Some(phone) = &self.record.phone {
            let _ = write!(text, "\n{}", Self::phone(phone));
            text.extend(self.record.track.as_ref().map(super::phone::killed));
        }
        if let Some(peak) = &self.record.peak {
            let _ = write!(text, "\n{}", explain(peak));
        }
        if let Some(bytes) = self.least_memory {
            let _ = writeln!(text, "\nleast memory budget  {bytes} (--memory-budget {})", size_text(bytes));
        }
        if let Some(doubt) = doubt(&self.plan) {
            let _ = writeln!(text, "\nnote: {doubt}");
        }
        text
    }

    fn heading(&self, precision: Precision) -> String {
        let (scenario, device) = (self.plan.scenario(), &self.plan.resolved.device.constants);
        let value = |key: Key| match scenario.cell(key) {
            Cell::Text(text) => text.unwrap_or_default(),
            _ => String::new(),
        };
        let graph = scenario.graph.map_or_else(String::new, |_| format!(", graph {}", value(Key::Graph)));
        let set: Vec<String> = scenario.set.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let set = if set.is_empty() { String::new() } else { format!(" ({})", set.join(", ")) };
        let input = scenario.input.as_ref().map_or_else(String::new, |input| format!(" ({input})"));
        format!(
            "{}{input}, batch {}, on {} ({}, {}) under {}\npolicy {}{set}{graph}, {}, {}\n",
            workload::called(&scenario.model),
            scenario.batch,
            scenario.device,
            device.name,
            device.soc,
            value(Key::Stack),
            scenario.policy,
            precision,
            value(Key::Optimizer),
        )
    }

    fn times(&self) -> String {
        let record = &self.record;
        let mut text = row(
            "iteration",
            &format!("{}, {} samples/s", quantities::time(record.iteration), three_digits(record.samples_per_second())),
        );
        for (name, time) in
            [("  forward", record.forward), ("  backward", record.backward), ("  update", record.update)]
        {
            text += &row(name, &quantities::time(time));
        }
        if let Some(budget) = self.plan.budgets.time {
            let verdict = if record.iteration > budget { "missed" } else { "met" };
            text += &row("  time budget", &format!("{}, {verdict}", quantities::time(budget)));
        }
        let parts = &record.micro_batches;
        let sizes: Vec<String> = parts.iter().map(u64::to_string).collect();
        let sizes = if parts.len() > WRITTEN_OUT {
            let ends = (parts.iter().min().unwrap_or(&0), parts.iter().max().unwrap_or(&0));
            format!("{} of {} to {} samples", parts.len(), ends.0, ends.1)
        } else {
            format!("{} ({})", parts.len(), sizes.join(" + "))
        };
        text += &row("micro-batches", &sizes);
        text += &row("energy", &format!("{} J", three_digits(record.energy.0)));
        text
    }

    /// The run beside its baseline, in a sentence.
    fn against(&self, baseline: Option<&Result<Nanos, PlanError>>) -> String {
        let (own, of_baseline) = (self.plan.scenario().precision, self.plan.baseline().precision);
        let precision = if own == of_baseline { String::new() } else { format!(", {of_baseline}") };
        let name = format!("baseline (policy original, no budget{precision})");
        match baseline {
            None => format!("{name}: this run\n"),
            Some(Err(error)) => format!("{name}: does not run here: {error}\n"),
            Some(Ok(time)) => {
                let times = three_digits(share(self.record.iteration, *time));
                format!("{name}: {}; this run takes {times} times as long\n", quantities::time(*time))
            }
        }
    }

    /// What the time was bound by, and the operators that took longest.
    fn bounds(&self, precision: Precision) -> String {
        let mut shares: Vec<(&str, f64)> =
            Results::bounds().into_iter().zip(self.results.bound_by.iter().copied()).collect();
        shares.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let mut text = "what bounds it\n".to_owned();
        for (name, share) in shares.into_iter().filter(|(_, share)| *share > 0.0) {
            let line = format!("  {name:22}{:>6}  {}", percent(share), bar(share));
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text += &self.of_peak(precision);
        let _ = write!(text, "\nthe operators that take longest\n{}", longest_table(&self.longest));
        text
    }

    /// How much of the peak the network's arithmetic comes to, and, where that is little, the constant that keeps it there.
    fn of_peak(&self, precision: Precision) -> String {
        let Some(peak) = self.peak(precision) else { return String::new() };
        let arithmetic = |node: &Node| node.work.flops.at(self.plan.scenario().batch) as f64;
        let reached = self.plan.graph.nodes.iter().map(arithmetic).sum::<f64>() / self.record.iteration.seconds();
        let share = reached / peak;
        let [reached, peak] = [reached, peak].map(|rate| three_digits(rate / 1e9));
        let mut text = format!("  {:22}{:>6}  {reached} of {peak} GFLOP/s\n", "of the peak", percent(share));
        if let Some(constant) = self.keeps_low().filter(|_| share < LITTLE) {
            let ConstantEntry { name, unit, kind, file, .. } = &constant;
            let value = three_digits(constant.value);
            let _ = writeln!(text, "  {:22}{:>6}  {name} = {value} {unit} of {file} ({kind})", "above all by", "");
        }
        text
    }

    /// Operations a second of the processors that train, in the format of the run.
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

    /// The constant by which what bounds the run most does so.
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

    fn memory(&self) -> String {
        let record = &self.record;
        let [peak, growth, reserved] = [record.peak_memory, record.peak_growth, record.reserved].map(quantities::size);
        let mut text = row("peak memory", &peak);
        text += &row("  above its start", &format!("{growth}, where weights and samples are there"));
        text += &row("  reserved", &format!("{reserved}, by the allocator"));
        let (scenario, budgets, references) = (self.plan.scenario(), &self.plan.budgets, &self.plan.references);
        let budgets = [
            ("  memory budget", budgets.memory, scenario.memory_budget, references.memory, "original needs"),
            (
                "  activation budget",
                budgets.activations,
                scenario.activation_budget,
                references.activations,
                "original saves",
            ),
        ];
        for (name, bytes, given, reference, whole) in budgets {
            if let Some(bytes) = bytes {
                let share = match (given, reference) {
                    (Some(percent @ Budget::Percent(_)), Some(reference)) => {
                        let reference = quantities::size(reference);
                        format!(", {percent} of the {reference} that {whole} ({})", self.reference())
                    }
                    _ => String::new(),
                };
                text += &row(name, &format!("{}{share}", quantities::size(bytes)));
            }
        }
        let budgets = &self.plan.budgets;
        text += &walls("budget", budgets.memory, &budgets.walls);
        text += &self.trace();
        text += &walls("budget of saved tensors", budgets.activations, &budgets.activation_walls);
        text
    }

    /// The budgets of the trace: each, or their range where they are many.
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

    /// How `original` runs that percentages are of.
    fn reference(&self) -> String {
        let (scenario, stack) = (self.plan.scenario(), &self.plan.resolved.device.constants.default_stack);
        match scenario.budget_reference {
            BudgetReference::StackDefault => format!("fp32, stack {stack}"),
            BudgetReference::Own => {
                format!("{}, stack {}", scenario.precision, scenario.stack.as_ref().unwrap_or(stack))
            }
        }
    }

    /// What the phone's kernel saw.
    fn phone(phone: &PhoneReport) -> String {
        let last = &phone.iteration;
        let share = |bytes: Bytes| format!("{bytes}, {:.1}%", 100.0 * bytes.as_f64() / phone.managed.as_f64());
        let pages = |pages: u64| format!("{pages} pages, {}", Bytes(pages * PAGE));
        let states = last.states;
        let mut text = row("phone memory in use", &format!("{} of {}, the mean", share(last.used_mean), phone.managed));
        text += &row("  at most", &share(last.used_peak));
        text += &row("  evicted", &pages(last.evicted()));
        text += &row("  wanted again", &pages(last.refaults()));
        text += &row("  read from flash", &pages(last.read_from_flash()));
        let thread = format!("{} running, {} asleep, {} runnable", states.running, states.sleeping, states.runnable);
        text += &row("  thread", &thread);
        let stalls =
            |stalls: &Stalls| format!("{}, {} in all, {} the longest", stalls.count, stalls.total, stalls.longest);
        let who = [
            ("  stalls of the trainer", &last.trainer),
            ("  of the system", &last.system),
            ("  of apps", &last.apps),
            ("  app launches", &last.launches),
        ];
        for (name, of) in who.into_iter().filter(|(_, of)| of.count > 0) {
            text += &row(name, &stalls(of));
        }
        if last.pressure.some > Nanos::ZERO {
            text += &row("  pressure", &format!("{} some, {} full", last.pressure.some, last.pressure.full));
        }
        if phone.apps_killed > 0 {
            text += &row("  apps killed", &phone.apps_killed.to_string());
        }
        for TrainerKill { iteration, kill, lost, .. } in &phone.kills {
            let why = format!("in iteration {}, at {}: {}; {lost} lost", iteration + 1, kill.at, kill.reason.name());
            text += &row("  killed", &why);
        }
        text
    }

    fn breakdown(&self) -> String {
        let mut parts: Vec<(&str, Nanos)> =
            self.record.breakdown.parts().into_iter().filter(|(_, time)| *time > Nanos::ZERO).collect();
        parts.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let unit = Unit::of_times(parts.first().map_or(Nanos::ZERO, |(_, time)| *time));
        let mut text = "where the time went\n".to_owned();
        for (name, time) in parts {
            let share = share(time, self.record.iteration);
            let (number, symbol) = (unit.number(time.0 as f64), unit.symbol);
            let line = format!("  {name:22}{:>6}  {number:>8} {symbol}  {}", percent(share), bar(share));
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }
}

fn explain(peak: &PeakReport) -> String {
    let mut text = format!(
        "at the peak, {} runs with a micro-batch of {}; the largest tensors are\n",
        peak.node, peak.micro_batch
    );
    let width = peak.largest.iter().map(|held| held.name.chars().count()).max().unwrap_or(0);
    for held in &peak.largest {
        let _ = writeln!(text, "  {:width$}  {:>10}  {}", held.name, held.bytes.to_string(), held.hold);
    }
    text
}

fn row(name: &str, value: &str) -> String {
    format!("{name:24}{value}\n")
}

/// A bar for `share` of the whole, which all of [`BAR`] stands for.
fn bar(share: f64) -> String {
    "#".repeat((BAR * share).round() as usize)
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
