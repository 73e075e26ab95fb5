//! A resolved scenario as named cells: the `scenario` object of a result, and the first columns of a sweep.

use std::collections::BTreeMap;

use haversack_devices::units::Bytes;
use serde_json::{Map, Value, json};

use super::key::Key;
use super::{ALLOCATORS, GRADIENTS, OPTIMISERS, Scenario, name_of, time_text};

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
            Key::Precision => Cell::text(self.precision),
            Key::Optimizer => Cell::text(name_of(self.optimizer, &OPTIMISERS)),
            Key::Graph => Cell::Text(self.graph.map(|variant| variant.id().to_owned())),
            Key::Gradients => Cell::text(name_of(self.gradients, &GRADIENTS)),
            Key::Allocator => Cell::Text(self.allocator.map(|kind| name_of(kind, &ALLOCATORS).to_owned())),
            Key::System => Cell::Text(self.system.clone()),
            Key::TrainerAdj => Cell::Signed(self.trainer_adj.map(i64::from)),
            Key::Apps => Cell::Text(self.apps.as_ref().map(ToString::to_string)),
            Key::Cores => Cell::Text(self.cores.map(|cores| cores.to_string())),
            Key::Frequency => Cell::text(self.frequency),
            Key::AmbientC => Cell::Real(self.ambient_c),
            Key::MemoryBudget => Cell::Text(self.memory_budget.map(|budget| budget.to_string())),
            Key::ActivationBudget => Cell::Text(self.activation_budget.map(|budget| budget.to_string())),
            Key::BudgetWalls => Cell::Text((!self.budget_walls.is_empty()).then(|| self.budget_walls.to_string())),
            Key::TimeBudget => Cell::Text(self.time_budget.map(time_text)),
            Key::Trace => Cell::Text(self.trace.as_ref().map(|path| path.display().to_string())),
            Key::Iterations => Cell::Whole(Some(u64::from(self.iterations))),
            Key::Seed => Cell::Whole(Some(self.seed)),
        }
    }

    /// All keys with their values, and the budgets in bytes if they are known; a key that is shown only if it was given
    /// is left out if it was not.
    pub fn cells(&self, memory: Option<Bytes>, activations: Option<Bytes>) -> Vec<(&'static str, Cell)> {
        let mut cells = Vec::new();
        for key in Key::ALL {
            let cell = self.cell(key);
            if key.is_shown_if_given() && cell.to_json().is_null() {
                continue;
            }
            cells.push((key.name(), cell));
            let (name, bytes) = match key {
                Key::MemoryBudget => ("memory_budget_bytes", memory),
                Key::ActivationBudget => ("activation_budget_bytes", activations),
                _ => continue,
            };
            cells.push((name, Cell::Whole(bytes.map(|bytes| bytes.0))));
        }
        cells
    }

    /// The text of `keys`, by which results that depend on nothing else are shared.
    pub fn fingerprint(&self, keys: impl IntoIterator<Item = Key>) -> String {
        let named = keys.into_iter().map(|key| (key.name().to_owned(), self.cell(key).to_json()));
        Value::Object(named.collect::<Map<String, Value>>()).to_string()
    }
}
