//! A run as people read it.

use std::fmt::Write as _;

use haversack_devices::units::{Bytes, Nanos};
use haversack_memory::phone::PAGE;
use haversack_training::{PeakReport, PhoneReport, TrainerKill};

use super::Simulated;
use crate::scenario::{Budget, BudgetReference, Cell, Key, size_text};

/// Characters of the longest bar.
const BAR: f64 = 40.0;
/// Micro-batches that are written out; of more, only how many.
const WRITTEN_OUT: usize = 12;

impl Simulated<'_> {
    pub(super) fn to_text(&self) -> String {
        let mut text = self.heading();
        // Writing to a text cannot fail.
        let _ = write!(text, "\n{}\n{}\n{}", self.times(), self.memory(), self.breakdown());
        if let Some(phone) = &self.record.phone {
            let _ = write!(text, "\n{}", Self::phone(phone));
        }
        if let Some(peak) = &self.record.peak {
            let _ = write!(text, "\n{}", explain(peak));
        }
        if let Some(bytes) = self.least_memory {
            let _ = writeln!(text, "\nleast memory budget  {bytes} (--memory-budget {})", size_text(bytes));
        }
        if let Some(warning) = self.warning() {
            let _ = writeln!(text, "\nwarning: {warning}");
        }
        text
    }

    fn heading(&self) -> String {
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
            scenario.model,
            scenario.batch,
            scenario.device,
            device.name,
            device.soc,
            value(Key::Stack),
            scenario.policy,
            value(Key::Precision),
            value(Key::Optimizer),
        )
    }

    fn times(&self) -> String {
        let record = self.record;
        let mut text =
            row("iteration", &format!("{}, {} samples/s", record.iteration, digits(record.samples_per_second())));
        for (name, time) in
            [("  forward", record.forward), ("  backward", record.backward), ("  update", record.update)]
        {
            text += &row(name, &time.to_string());
        }
        text += &row("  if nothing is short", &format!("{}, this is {}", self.unbounded, self.slowdown()));
        if let Some(budget) = self.plan.budgets.time {
            let verdict = if record.iteration > budget { "missed" } else { "met" };
            text += &row("  time budget", &format!("{budget}, {verdict}"));
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
        text += &row("energy", &format!("{} J", digits(record.energy.0)));
        text
    }

    fn slowdown(&self) -> String {
        let (now, least) = (self.record.iteration.0 as f64, self.unbounded.0 as f64);
        let percent = 100.0 * (now / least.max(1.0) - 1.0);
        if percent.abs() < 0.05 {
            "as fast".to_owned()
        } else {
            format!("{:.1}% {}", percent.abs(), if percent > 0.0 { "slower" } else { "faster" })
        }
    }

    fn memory(&self) -> String {
        let record = self.record;
        let mut text = row("peak memory", &record.peak_memory.to_string());
        text += &row("  above its start", &format!("{}, where weights and samples are there", record.peak_growth));
        text += &row("  reserved", &format!("{}, by the allocator", record.reserved));
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
                        format!(", {percent} of the {reference} that {whole} ({})", self.reference())
                    }
                    _ => String::new(),
                };
                text += &row(name, &format!("{bytes}{share}"));
            }
        }
        let budgets = &self.plan.budgets;
        for (name, walls) in [("  wall", &budgets.walls), ("  wall of saved tensors", &budgets.activation_walls)] {
            for wall in walls {
                text += &row(name, &format!("{} from {} on", wall.memory, wall.at));
            }
        }
        text
    }

    /// How `original` runs that percentages are of.
    fn reference(&self) -> String {
        let device = &self.plan.resolved.device.constants;
        match self.plan.scenario().budget_reference {
            BudgetReference::Device => format!("fp32, stack {}", device.default_stack),
            BudgetReference::Own => "its own precision and stack".to_owned(),
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
        let parts: Vec<(&str, Nanos)> =
            self.record.breakdown.parts().into_iter().filter(|(_, time)| *time > Nanos::ZERO).collect();
        let most = parts.iter().map(|(_, time)| time.0).max().unwrap_or(1) as f64;
        let whole = (self.record.iteration.0 as f64).max(1.0);
        let mut text = "where the time went\n".to_owned();
        for (name, time) in parts {
            let bar = "#".repeat((BAR * time.0 as f64 / most).round() as usize);
            let share = 100.0 * time.0 as f64 / whole;
            let line = format!("  {name:22}{share:5.1}%  {:>10}  {bar}", time.to_string());
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

/// A number with about four digits.
fn digits(number: f64) -> String {
    let places = if number >= 1000.0 {
        0
    } else if number >= 10.0 {
        1
    } else {
        3
    };
    format!("{number:.places$}")
}
