//! A run as text.

use std::fmt::Write as _;

use haversack_devices::{Bytes, ConstantEntry, GpuConstants, Nanos, Precision, Processor};
use haversack_memory::phone::PAGE;
use haversack_reports::table::three_digits;
use haversack_training::{PhoneReport, Stalls, TrainerKill, Wall};
use haversack_workloads::Node;
use serde_json::{Value, json};

use super::{Simulated, longest_table};
use crate::checked::doubt;
use crate::output::join;
use crate::quantities::{self, Unit, percent};
use crate::run::{PlanError, Results, share};
use crate::scenario::{size_text, workload};
use crate::texts;

/// Below this fraction of the peak, a run names the constant that limits it.
const LITTLE: f64 = 0.05;
/// The length of a 100% bar, in characters.
const BAR: f64 = 40.0;
/// Micro-batches that are listed; of more, only the number is given.
const WRITTEN_OUT: usize = 12;

impl Simulated {
    /// The run in text; `answer` is its JSON, and `baseline` the time it is compared with, `None` if it is
    /// the baseline itself.
    pub(super) fn to_text(&self, mut answer: Value, baseline: Option<&Result<Nanos, PlanError>>) -> String {
        let (plan, device) = (&self.plan, &self.plan.resolved.device.constants);
        let precision = plan.arithmetic();
        let of_phone = self.record.phone.as_ref().map(|phone| {
            Self::phone(phone) + &self.record.track.as_ref().map(super::phone::killed).unwrap_or_default()
        });
        let more = json!({
            "model": workload::called(&plan.scenario().model),
            "name": device.name, "soc": device.soc, "default_stack": device.default_stack,
            "precision": precision.to_string(), "against": self.against(baseline),
            "time_budget_s": plan.budgets.time.map(Nanos::seconds),
            "is_missed": plan.budgets.time.is_some_and(|budget| self.record.iteration > budget),
            "walls": self.walls(), "breakdown": self.breakdown(), "bounds": self.bounds(precision), "of_phone": of_phone,
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

    /// The bounds of the time, and the slowest operators.
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

    /// The fraction of peak that the network's arithmetic reaches, and, where that is little, the
    /// constant that limits it.
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

    /// The statistics of the phone's kernel.
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

fn row(name: &str, value: &str) -> String {
    format!("{name:24}{value}\n")
}

/// A bar for `share` of the whole, [`BAR`] characters long at 100%.
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
