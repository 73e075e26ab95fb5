//! The operators of an iteration that take longest, and what bounds them.

use haversack_devices::units::Nanos;
use haversack_reports::text_table::{Column, TextTable};
use haversack_training::{OperatorTime, Record};
use haversack_workloads::{Phase, TrainingGraph};
use serde_json::{Value, json};

use crate::quantities::{Unit, percent};
use crate::run::share;

/// Operators that are listed.
const LISTED: usize = 10;

/// An operator that takes long.
pub(super) struct Longest {
    name: String,
    kind: &'static str,
    phase: &'static str,
    /// How often it ran.
    times: u64,
    time: Nanos,
    /// Of the iteration.
    share: f64,
    bound_by: &'static str,
}

/// The operators of `record`, a run of `graph`, that take longest; of equal ones the first of the graph.
pub(super) fn of(graph: &TrainingGraph, record: &Record) -> Vec<Longest> {
    let mut operators: Vec<&OperatorTime> = record.operators.iter().collect();
    operators.sort_by_key(|operator| std::cmp::Reverse(operator.time));
    let named = |operator: &OperatorTime| {
        let node = graph.nodes.get(operator.node as usize)?;
        Some(Longest {
            name: node.name.clone(),
            kind: node.work.kind.name(),
            phase: match node.phase {
                Phase::Forward => "forward",
                Phase::Backward => "backward",
                Phase::Update => "update",
            },
            times: operator.times,
            time: operator.time,
            share: share(operator.time, record.iteration),
            bound_by: operator.bound_by.longest(),
        })
    };
    operators.into_iter().take(LISTED).filter_map(named).collect()
}

impl Longest {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "kind": self.kind,
            "phase": self.phase,
            "times": self.times,
            "time_s": self.time.0 as f64 / 1e9,
            "share": self.share,
            "bound_by": self.bound_by,
        })
    }
}

/// The operators as a table.
pub(super) fn table(longest: &[Longest]) -> String {
    let unit = Unit::of_times(longest.first().map_or(Nanos::ZERO, |first| first.time));
    let words = Column::left(0).fitted();
    let numbers = Column::right(0).fitted().after(2);
    let columns = [words, words.after(2), words.after(2), numbers, numbers, numbers, words.after(2)];
    let mut table = TextTable::new(columns).indented(2);
    table.row(["operator", "kind", "phase", "times", unit.symbol, "share", "bound by"]);
    for Longest { name, kind, phase, times, time, share, bound_by } in longest {
        let (times, time) = (times.to_string(), unit.number(time.0 as f64));
        table.row([name, *kind, *phase, &times, &time, &percent(*share), *bound_by]);
    }
    table.to_string()
}
