//! A resolved scenario as named cells: the `scenario` object of a result, and the first columns of a sweep.

use std::collections::BTreeMap;

use haversack_devices::work::MemoryFormat;
use haversack_workloads::autograd::Attention;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::key::Key;
use super::{ALLOCATORS, ATTENTION, BudgetReference, GRADIENTS, OPTIMISERS, Scenario, name_of, time_text};

/// One value of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text, or nothing.
    Text(Option<String>),
    /// A whole number, or nothing.
    Whole(Option<u64>),
    /// A whole number that may be below zero, or nothing.
    Signed(Option<i64>),
    /// A decimal number, or nothing.
    Real(Option<f64>),
    /// Names and values.
    Settings(BTreeMap<String, String>),
}

impl Cell {
    fn text(text: impl ToString) -> Self {
        Self::Text(Some(text.to_string()))
    }

    /// The whole number, if this is one.
    pub(crate) fn whole(&self) -> Option<u64> {
        if let Self::Whole(number) = self { *number } else { None }
    }

    /// The number that may be below zero, if this is one.
    pub(crate) fn signed(&self) -> Option<i64> {
        if let Self::Signed(number) = self { *number } else { None }
    }

    /// The decimal number, if this is one.
    pub(crate) fn real(&self) -> Option<f64> {
        if let Self::Real(number) = self { *number } else { None }
    }

    /// The text, if this is one; of names and values `name=value,...`.
    pub(crate) fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => text,
            Self::Settings(settings) if !settings.is_empty() => {
                let settings = settings.iter().map(|(name, value)| format!("{name}={value}"));
                Some(settings.collect::<Vec<_>>().join(","))
            }
            _ => None,
        }
    }

    /// Whether nothing stands in it.
    fn is_nothing(&self) -> bool {
        match self {
            Self::Settings(settings) => settings.is_empty(),
            other => other.to_json().is_null(),
        }
    }

    /// The cell as JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Whole(number) => json!(number),
            Self::Signed(number) => json!(number),
            Self::Real(number) => json!(number),
            Self::Settings(settings) => json!(settings),
        }
    }
}

/// The budgets of a run in bytes; `None` without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetBytes {
    /// All that the framework may hold.
    pub memory: Option<u64>,
    /// What percentages of it are of; `None` if none is given.
    pub reference: Option<u64>,
    /// All that saved tensors may take.
    pub activations: Option<u64>,
    /// What percentages of it are of; `None` if none is given.
    pub activation_reference: Option<u64>,
}

impl Scenario {
    /// The value of `key`.
    pub fn cell(&self, key: Key) -> Cell {
        match key {
            Key::Device => Cell::text(&self.device),
            Key::Stack => Cell::Text(self.stack.clone()),
            Key::Model => Cell::text(&self.model),
            Key::Input => Cell::Text(self.input.as_ref().map(ToString::to_string)),
            Key::Batch => Cell::Whole(Some(self.batch)),
            Key::Policy => Cell::text(&self.policy),
            Key::Set => Cell::Settings(self.set.clone()),
            Key::DeviceSet => Cell::Settings(self.device_set.clone()),
            Key::SystemSet => Cell::Settings(self.system_set.clone()),
            Key::Precision => Cell::text(self.precision),
            Key::Optimizer => Cell::text(name_of(self.optimizer, &OPTIMISERS)),
            Key::Graph => Cell::Text(self.graph.map(|variant| variant.id().to_owned())),
            Key::Gradients => Cell::text(name_of(self.gradients, &GRADIENTS)),
            Key::Allocator => Cell::Text(self.allocator.map(|kind| name_of(kind, &ALLOCATORS).to_owned())),
            Key::MemoryFormat => {
                let given = self.memory_format != MemoryFormat::default();
                Cell::Text(given.then(|| self.memory_format.name().to_owned()))
            }
            Key::Attention => {
                let given = self.attention != Attention::default();
                Cell::Text(given.then(|| name_of(self.attention, &ATTENTION).to_owned()))
            }
            Key::Inference => Cell::Text(self.inference.then(|| "true".to_owned())),
            Key::System => Cell::Text(self.system.clone()),
            Key::TrainerAdj => Cell::Signed(self.trainer_adj.map(i64::from)),
            Key::Apps => Cell::Text(self.apps.as_ref().map(ToString::to_string)),
            Key::Cores => Cell::Text(self.cores.map(|cores| cores.to_string())),
            Key::Frequency => Cell::text(self.frequency),
            Key::AmbientC => Cell::Real(self.ambient_c),
            Key::MemoryBudget => Cell::Text(self.memory_budget.map(|budget| budget.to_string())),
            Key::ActivationBudget => Cell::Text(self.activation_budget.map(|budget| budget.to_string())),
            Key::BudgetReference => {
                let given = self.budget_reference != BudgetReference::default();
                Cell::Text(given.then(|| name_of(self.budget_reference, &BudgetReference::WORDS).to_owned()))
            }
            Key::BudgetWalls => Cell::Text((!self.budget_walls.is_empty()).then(|| self.budget_walls.to_string())),
            Key::IgnoreRam => Cell::Text(self.ignore_ram.then(|| "true".to_owned())),
            Key::TimeBudget => Cell::Text(self.time_budget.map(time_text)),
            Key::Trace => Cell::Text(self.trace.as_ref().map(|path| path.display().to_string())),
            Key::TraceFrom => Cell::Text(self.trace_from.as_ref().map(ToString::to_string)),
            Key::TraceWindow => Cell::Text(self.trace_window.map(time_text)),
            Key::Footprints => Cell::Text(self.footprints.clone()),
            Key::Usage => Cell::Text(self.usage.clone()),
            Key::Iterations => Cell::Whole(Some(u64::from(self.iterations))),
            Key::Seed => Cell::Whole(Some(self.seed)),
        }
    }

    /// All keys with their values, and beside the budgets their bytes and those that percentages are of; a key that is
    /// shown only if it was given is left out if it was not.
    pub fn cells(&self, bytes: BudgetBytes) -> Vec<(&'static str, Cell)> {
        let mut cells = Vec::new();
        for key in Key::ALL {
            let cell = self.cell(key);
            if key.is_shown_if_given() && cell.is_nothing() {
                continue;
            }
            cells.push((key.name(), cell));
            let names = match key {
                Key::MemoryBudget => [("memory_budget_bytes", bytes.memory), ("reference_bytes", bytes.reference)],
                Key::ActivationBudget => [
                    ("activation_budget_bytes", bytes.activations),
                    ("activation_reference_bytes", bytes.activation_reference),
                ],
                _ => continue,
            };
            cells.extend(names.map(|(name, bytes)| (name, Cell::Whole(bytes))));
        }
        cells
    }

    /// The text of `keys`, by which results that depend on nothing else are shared.
    pub fn fingerprint(&self, keys: impl IntoIterator<Item = Key>) -> String {
        let named = keys.into_iter().map(|key| (key.name().to_owned(), self.cell(key).to_json()));
        Value::Object(named.collect::<Map<String, Value>>()).to_string()
    }
}
