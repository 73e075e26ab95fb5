//! The advice as people read it.

use std::fmt::Write as _;

use haversack_devices::units::{Bytes, Nanos};
use haversack_reports::table::three_digits;
use haversack_reports::text_table::{Column, TextTable};

use super::{Advice, Candidate};
use crate::quantities::{self, Unit};
use crate::run::Status;
use crate::scenario::{Cell, workload};

impl Advice {
    pub(super) fn to_text(&self) -> String {
        let mut text = self.heading();
        // Writing to a text cannot fail.
        if self.fitting().next().is_some() {
            let _ = write!(text, "\nthese policies fit, by {}\n{}", self.by.word(), self.table());
            text += "* no other that fits is both faster and smaller\n";
            text += "Time, energy and memory are simulated, accuracy is not: fewer bits and integers may cost some.\n";
        }
        let others = |refused: bool| self.candidates.iter().filter(move |candidate| is_other(candidate, refused));
        for (refused, title) in [(false, "these do not"), (true, "these do not run here at all")] {
            if others(refused).next().is_none() {
                continue;
            }
            let mut table = TextTable::new([Column::left(0).fitted(), Column::left(0).after(2)]).indented(2);
            others(refused).for_each(|candidate| {
                table.row([candidate.policy.id.to_owned(), self.why(candidate)]);
            });
            let _ = write!(text, "\n{title}\n{table}");
        }
        text
    }

    fn heading(&self) -> String {
        let scenario = &self.scenario;
        let mut within = Vec::new();
        if let Some(budget) = scenario.memory_budget {
            let sizes: Vec<Bytes> = self.candidates.iter().filter_map(|candidate| candidate.memory_budget).collect();
            // Under a trace, or where percentages are of what each policy's own stack needs, they differ.
            let one = sizes.first().filter(|first| sizes.iter().all(|size| size == *first));
            let bytes = one.filter(|_| budget.to_string().ends_with('%'));
            let bytes = bytes.map_or_else(String::new, |bytes| format!(" ({})", quantities::size(*bytes)));
            within.push(format!("a memory budget of {budget}{bytes}"));
        }
        if let Some(budget) = scenario.activation_budget {
            within.push(format!("an activation budget of {budget}"));
        }
        if let Some(budget) = scenario.time_budget {
            within.push(format!("a time budget of {}", quantities::time(budget)));
        }
        if let Some(trace) = &scenario.trace {
            within.push(format!("the trace {}", trace.display()));
        }
        let within = if within.is_empty() { String::new() } else { format!(", within {}", within.join(" and ")) };
        let input = match scenario.cell(crate::scenario::Key::Input) {
            Cell::Text(Some(input)) => format!(" ({input})"),
            _ => String::new(),
        };
        let (model, batch, device) = (workload::called(&scenario.model), scenario.batch, &scenario.device);
        format!("{model}{input}, batch {batch}, on {device}{within}\n")
    }

    fn table(&self) -> String {
        let results = || self.fitting().filter_map(Candidate::fits);
        let longest = results().map(|results| nanos(results.iteration_time_s)).max().unwrap_or_default();
        let largest = results().map(|results| results.peak_memory_bytes).max().unwrap_or_default();
        let (times, sizes) = (Unit::of_times(longest), Unit::of_sizes(Bytes(largest)));
        let (words, numbers) = (Column::left(0).fitted(), Column::right(0).fitted().after(2));
        let columns = [words, words.after(1), numbers, numbers, numbers, numbers, words.after(2), words.after(2)];
        let mut table = TextTable::new(columns);
        let memory = format!("peak {}", sizes.symbol);
        table.row(["", "policy", times.symbol, "samples/s", "J", &memory, "stack", "format"]);
        for candidate in self.fitting() {
            let (Some(results), Some((stack, precision))) = (candidate.fits(), &candidate.runs_as) else { continue };
            table.row([
                if candidate.is_best { "*" } else { "" },
                candidate.policy.id,
                &times.number(results.iteration_time_s * 1e9),
                &three_digits(results.samples_per_s),
                &three_digits(results.energy_j),
                &sizes.number(results.peak_memory_bytes as f64),
                stack,
                precision,
            ]);
        }
        table.to_string()
    }

    /// Why a policy does not fit, with the least budget at which it would.
    fn why(&self, candidate: &Candidate) -> String {
        let outcome = &candidate.outcome;
        match (&outcome.results, self.scenario.time_budget, &outcome.advice) {
            (Some(results), Some(budget), _) => {
                let (took, budget) = (nanos(results.iteration_time_s), quantities::time(budget));
                format!("an iteration takes {}, more than the time budget of {budget}", quantities::time(took))
            }
            (None, _, Some(advice)) => advice.clone(),
            _ => outcome.reason.clone().unwrap_or_default(),
        }
    }
}

/// Whether it does not fit, and its scenario cannot be at all, or its run came to nothing.
fn is_other(candidate: &Candidate, refused: bool) -> bool {
    let status = candidate.outcome.status;
    status != Status::Ok && (status == Status::Unsupported) == refused
}

fn nanos(seconds: f64) -> Nanos {
    Nanos::from_seconds(seconds)
}
